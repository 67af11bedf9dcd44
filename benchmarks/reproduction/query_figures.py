"""Figures that FedCQA (Hu et al. 2024) printed, in percent, to be set beside what is measured here.

By data set, model and strategy: in-graph Hits@3 and MRR, then cross-graph Hits@3 and MRR. Local and FedR have no
cross-graph figures. Table 3 is of 3 clients, Table 4 of 5 and of two strategies only. The row of tree-LSTM and Local
for NELL-995 in Table 3 has its columns shifted in print; it is left out.
"""

from typing import Final

METRICS: Final = ("hits@3", "mrr", "cross hits@3", "cross mrr")
Row = tuple[float, ...]

FEDCQA_TABLE_3: Final[dict[str, dict[str, dict[str, Row]]]] = {
    "fb15k-237": {
        "GQE": {
            "local": (12.64, 12.03),
            "central": (13.13, 12.39, 13.03, 12.28),
            "fede": (13.72, 13.23, 12.74, 11.63),
            "fedr": (12.89, 11.98),
            "fedcqa": (13.54, 12.43, 12.63, 11.32),
        },
        "Q2P": {
            "local": (14.55, 13.63),
            "central": (14.93, 14.66, 15.02, 14.81),
            "fede": (14.82, 14.27, 14.79, 13.93),
            "fedr": (14.32, 14.23),
            "fedcqa": (15.32, 14.32, 14.83, 14.11),
        },
        "tree-LSTM": {
            "local": (13.32, 12.73),
            "central": (13.28, 12.61, 13.36, 12.91),
            "fede": (13.12, 12.23, 12.62, 12.08),
            "fedr": (13.92, 12.92),
            "fedcqa": (12.93, 12.11, 12.55, 11.96),
        },
    },
    "fb15k": {
        "GQE": {
            "local": (22.05, 18.21),
            "central": (29.53, 25.65, 30.21, 25.33),
            "fede": (24.31, 26.74, 27.95, 25.21),
            "fedr": (20.29, 18.61),
            "fedcqa": (25.63, 26.87, 24.77, 25.17),
        },
        "Q2P": {
            "local": (24.32, 22.64),
            "central": (38.62, 34.14, 38.03, 34.36),
            "fede": (43.68, 39.62, 39.72, 35.95),
            "fedr": (25.32, 22.71),
            "fedcqa": (44.02, 39.27, 40.27, 36.31),
        },
        "tree-LSTM": {
            "local": (22.87, 20.51),
            "central": (38.87, 35.86, 37.97, 36.13),
            "fede": (34.27, 30.18, 31.19, 26.03),
            "fedr": (23.64, 20.97),
            "fedcqa": (34.85, 33.83, 31.80, 28.99),
        },
    },
    "nell-995": {
        "GQE": {
            "local": (11.85, 11.03),
            "central": (12.87, 11.95, 13.06, 12.46),
            "fede": (13.29, 12.72, 12.46, 11.82),
            "fedr": (12.01, 11.23),
            "fedcqa": (14.21, 13.27, 13.76, 12.67),
        },
        "Q2P": {
            "local": (15.86, 13.02),
            "central": (16.74, 14.82, 16.42, 15.63),
            "fede": (17.23, 14.12, 16.28, 14.01),
            "fedr": (16.04, 13.26),
            "fedcqa": (16.62, 15.28, 16.27, 16.23),
        },
        "tree-LSTM": {
            "central": (15.41, 14.23, 16.27, 15.83),
            "fede": (14.27, 13.81, 14.18, 13.71),
            "fedr": (12.48, 11.67),
            "fedcqa": (16.28, 15.38, 16.09, 15.27),
        },
    },
}

FEDCQA_TABLE_4: Final[dict[str, dict[str, dict[str, Row]]]] = {
    "fb15k-237": {
        "GQE": {"local": (11.44, 10.65), "fedcqa": (12.42, 11.60, 11.20, 10.79)},
        "Q2P": {"local": (19.83, 17.51), "fedcqa": (21.40, 20.83, 20.71, 19.94)},
        "tree-LSTM": {"local": (10.48, 10.09), "fedcqa": (13.79, 13.27, 12.74, 12.18)},
    },
    "fb15k": {
        "GQE": {"local": (14.65, 13.8), "fedcqa": (16.13, 15.78, 15.28, 14.91)},
        "Q2P": {"local": (36.10, 35.04), "fedcqa": (40.81, 37.96, 38.56, 35.73)},
        "tree-LSTM": {"local": (15.26, 14.37), "fedcqa": (15.44, 15.81, 15.28, 14.24)},
    },
    "nell-995": {
        "GQE": {"local": (11.23, 10.37), "fedcqa": (12.48, 11.91, 11.49, 11.02)},
        "Q2P": {"local": (20.03, 18.62), "fedcqa": (24.59, 23.75, 23.85, 22.90)},
        "tree-LSTM": {"local": (14.52, 13.89), "fedcqa": (15.68, 14.28, 14.57, 12.89)},
    },
}
