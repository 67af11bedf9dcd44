"""Figures that the papers printed, to be set beside what is measured here. Nothing here is computed.

FedR: Zhang et al., Findings of EMNLP 2022, Tables 2 and 7; the rows of NoGE stand by themselves, like their runs.
FedE: Chen et al., IJCKG 2021, Tables 2 to 5. Strategies bear the names they have here: FedE's Single is `local`.

FedE's Table 3 calls its last setting FedE. The paper describes model fusion as a step of FedE and leaves it out in the
ablation of Table 5 only, and the mean of Table 3's RotatE row over its clients (0.4579, unweighted) is nearer to Table
5 with fusion (0.4543, weighted by test triples) than without (0.4434). So these figures are read as those with fusion
and filed under `fused`. That is a reading: the paper does not say it in so many words.
"""

from typing import Final

FEDR_CLIENTS: Final = (5, 10, 15, 20)
"""The columns of FedR's Table 2."""

FEDR_TABLE_2: Final[dict[str, dict[str, dict[str, tuple[float, float, float, float]]]]] = {
    "ddb14": {
        "TransE": {
            "local": (0.4206, 0.2998, 0.2464, 0.2043),
            "fede": (0.4572, 0.3493, 0.3076, 0.2962),
            "fedr": (0.4461, 0.3289, 0.2842, 0.2761),
        },
        "RotatE": {
            "local": (0.4187, 0.2842, 0.2411, 0.2020),
            "fede": (0.4667, 0.3635, 0.3244, 0.3031),
            "fedr": (0.4477, 0.3184, 0.2765, 0.2681),
        },
        "DistMult": {
            "local": (0.2248, 0.1145, 0.0764, 0.0652),
            "fede": (0.3037, 0.2485, 0.2315, 0.1877),
            "fedr": (0.4219, 0.3146, 0.2685, 0.2577),
        },
        "ComplEx": {
            "local": (0.3406, 0.2025, 0.1506, 0.1247),
            "fede": (0.3595, 0.2838, 0.2411, 0.1946),
            "fedr": (0.4287, 0.3235, 0.2747, 0.2611),
        },
    },
    "wn18rr": {
        "TransE": {
            "local": (0.0655, 0.0319, 0.0378, 0.0285),
            "fede": (0.1359, 0.1263, 0.1204, 0.1419),
            "fedr": (0.0859, 0.0779, 0.0722, 0.0668),
        },
        "RotatE": {
            "local": (0.1201, 0.0649, 0.0513, 0.0155),
            "fede": (0.2741, 0.1936, 0.1287, 0.0902),
            "fedr": (0.1372, 0.1271, 0.1074, 0.0912),
        },
        "DistMult": {
            "local": (0.0654, 0.0517, 0.0548, 0.0374),
            "fede": (0.1137, 0.0946, 0.0766, 0.0670),
            "fedr": (0.1350, 0.1202, 0.1198, 0.0898),
        },
        "ComplEx": {
            "local": (0.0035, 0.0033, 0.0033, 0.0022),
            "fede": (0.0153, 0.0115, 0.0108, 0.0122),
            "fedr": (0.0203, 0.0152, 0.0152, 0.0166),
        },
    },
    "fb15k-237": {
        "TransE": {
            "local": (0.2174, 0.1255, 0.1087, 0.0874),
            "fede": (0.2588, 0.2230, 0.2065, 0.1892),
            "fedr": (0.2520, 0.2052, 0.1867, 0.1701),
        },
        "RotatE": {
            "local": (0.2424, 0.1991, 0.1526, 0.0860),
            "fede": (0.2682, 0.2278, 0.2199, 0.1827),
            "fedr": (0.2510, 0.2080, 0.1854, 0.1586),
        },
        "DistMult": {
            "local": (0.1133, 0.0773, 0.0765, 0.0689),
            "fede": (0.1718, 0.1129, 0.0901, 0.0753),
            "fedr": (0.1670, 0.0999, 0.0884, 0.0814),
        },
        "ComplEx": {
            "local": (0.1241, 0.0694, 0.0571, 0.0541),
            "fede": (0.1603, 0.1161, 0.0944, 0.0751),
            "fedr": (0.1716, 0.1174, 0.1075, 0.0993),
        },
    },
}
"""MRR by data set, model and strategy, for each of `FEDR_CLIENTS`."""

FEDR_TABLE_2_NOGE: Final[dict[str, dict[str, tuple[float, float, float, float]]]] = {
    "ddb14": {
        "local": (0.3178, 0.2298, 0.1822, 0.1580),
        "fede": (0.3193, 0.3171, 0.2678, 0.2659),
        "fedr": (0.4312, 0.3127, 0.2604, 0.2452),
    },
    "wn18rr": {
        "local": (0.0534, 0.0474, 0.0371, 0.0372),
        "fede": (0.0789, 0.0697, 0.0632, 0.0533),
        "fedr": (0.0669, 0.0543, 0.0530, 0.0499),
    },
    "fb15k-237": {
        "local": (0.2315, 0.1642, 0.1246, 0.1042),
        "fede": (0.2412, 0.1954, 0.1730, 0.1637),
        "fedr": (0.2432, 0.1822, 0.1448, 0.1282),
    },
}
"""The same for NoGE, by data set and strategy."""

FEDR_TABLE_7: Final[dict[str, dict[str, tuple[float, float, float, float]]]] = {
    "RotatE": {
        "local": (0.5347, 0.5311, 0.5459, 0.5912),
        "fede": (0.6087, 0.5070, 0.6774, 0.7916),
        "fedr": (0.5834, 0.5583, 0.5852, 0.6326),
    },
    "KBGAT": {
        "local": (0.4467, 0.4369, 0.4620, 0.4755),
        "fede": (0.5622, 0.5471, 0.5634, 0.5887),
        "fedr": (0.5034, 0.4861, 0.5301, 0.5644),
    },
}
"""DDB14, 3 clients: MRR, Hits@1, Hits@3 and Hits@10 by model and strategy."""

FEDE_METRICS: Final = ("mrr", "hits@1", "hits@5", "hits@10")

PerClient = tuple[float, float, float, float]

FEDE_TABLE_3: Final[dict[str, dict[str, tuple[PerClient, PerClient, PerClient]]]] = {
    "TransE": {
        "local": ((0.5035, 0.3975, 0.6362, 0.6982), (0.3869, 0.2561, 0.5464, 0.6373), (0.3372, 0.2056, 0.4887, 0.5967)),
        "entire": (
            (0.5424, 0.4345, 0.6739, 0.7414),
            (0.4098, 0.2752, 0.5756, 0.6689),
            (0.3568, 0.2202, 0.5223, 0.6308),
        ),
        "fused": ((0.5478, 0.4378, 0.6831, 0.7481), (0.4183, 0.2789, 0.5910, 0.6844), (0.3626, 0.2226, 0.5289, 0.6337)),
    },
    "DistMult": {
        "local": ((0.4893, 0.4014, 0.5925, 0.6519), (0.3655, 0.2642, 0.4850, 0.5618), (0.3465, 0.2364, 0.4729, 0.5703)),
        "entire": (
            (0.5167, 0.4186, 0.6334, 0.7006),
            (0.3882, 0.2772, 0.5225, 0.5988),
            (0.3391, 0.2287, 0.4645, 0.5644),
        ),
        "fused": ((0.5356, 0.4441, 0.6466, 0.7025), (0.4044, 0.2913, 0.5416, 0.6240), (0.3745, 0.2568, 0.5111, 0.6146)),
    },
    "ComplEx": {
        "local": ((0.4843, 0.3948, 0.5903, 0.6532), (0.3723, 0.2691, 0.4914, 0.5780), (0.3262, 0.2156, 0.4496, 0.5566)),
        "entire": (
            (0.5004, 0.4068, 0.6164, 0.6745),
            (0.3689, 0.2633, 0.4902, 0.5742),
            (0.3340, 0.2238, 0.4541, 0.5545),
        ),
        "fused": ((0.5286, 0.4349, 0.6418, 0.7016), (0.4094, 0.2981, 0.5440, 0.6318), (0.3610, 0.2449, 0.4955, 0.5952)),
    },
    "RotatE": {
        "local": ((0.5271, 0.4265, 0.6470, 0.7063), (0.4062, 0.2844, 0.5559, 0.6418), (0.3660, 0.2479, 0.4994, 0.6016)),
        "entire": (
            (0.5570, 0.4494, 0.6866, 0.7510),
            (0.4212, 0.2886, 0.5824, 0.6733),
            (0.3714, 0.2399, 0.5236, 0.6349),
        ),
        "fused": ((0.5553, 0.4436, 0.6909, 0.7542), (0.4297, 0.2930, 0.6004, 0.6851), (0.3887, 0.2571, 0.5450, 0.6503)),
    },
}
"""FB15k-237-Fed3: `FEDE_METRICS` by model and strategy, for clients 1, 2 and 3."""

FEDE_TABLE_4: Final[dict[str, dict[str, tuple[PerClient, PerClient, PerClient]]]] = {
    "TransE": {
        "local": ((0.4550, 0.3048, 0.6459, 0.7390), (0.2411, 0.1084, 0.3832, 0.4895), (0.2375, 0.1154, 0.3650, 0.4673)),
        "entire": (
            (0.4804, 0.3327, 0.6627, 0.7636),
            (0.2724, 0.1349, 0.4262, 0.5296),
            (0.2800, 0.1560, 0.4173, 0.5181),
        ),
        "fused": ((0.4915, 0.3421, 0.6766, 0.7783), (0.2671, 0.1189, 0.4210, 0.5415), (0.2846, 0.1484, 0.4342, 0.5440)),
    },
    "DistMult": {
        "local": ((0.4084, 0.2950, 0.5430, 0.6425), (0.2129, 0.1411, 0.2815, 0.3555), (0.2326, 0.1779, 0.2866, 0.3339)),
        "entire": (
            (0.4520, 0.3257, 0.6069, 0.7061),
            (0.2870, 0.2025, 0.3727, 0.4558),
            (0.2943, 0.2185, 0.3690, 0.4347),
        ),
        "fused": ((0.4843, 0.3582, 0.6425, 0.7307), (0.2824, 0.1946, 0.3732, 0.4620), (0.2737, 0.1976, 0.3515, 0.4129)),
    },
    "ComplEx": {
        "local": ((0.4213, 0.2967, 0.5728, 0.6811), (0.2566, 0.1702, 0.3457, 0.4305), (0.2283, 0.1625, 0.2875, 0.3600)),
        "entire": (
            (0.4585, 0.3319, 0.6072, 0.7169),
            (0.3034, 0.2142, 0.3959, 0.4833),
            (0.3328, 0.2524, 0.4100, 0.4848),
        ),
        "fused": ((0.4938, 0.3641, 0.6554, 0.7475), (0.3336, 0.2378, 0.4367, 0.5339), (0.3367, 0.2528, 0.4215, 0.5011)),
    },
    "RotatE": {
        "local": ((0.4961, 0.3723, 0.6469, 0.7363), (0.3187, 0.2221, 0.4202, 0.5057), (0.3034, 0.2101, 0.3989, 0.4857)),
        "entire": (
            (0.5215, 0.3902, 0.6850, 0.7779),
            (0.3775, 0.2732, 0.4873, 0.5903),
            (0.3785, 0.2766, 0.4871, 0.5806),
        ),
        "fused": ((0.5312, 0.3927, 0.7042, 0.7977), (0.3771, 0.2634, 0.5057, 0.5984), (0.3828, 0.2733, 0.4984, 0.5992)),
    },
}
"""NELL-995-Fed3: likewise."""

FEDE_TABLE_5: Final[dict[str, dict[str, float]]] = {
    "FB15k-237-Fed3": {"fede": 0.4434, "fused": 0.4543},
    "FB15k-237-Fed5": {"fede": 0.4345, "fused": 0.4439},
    "FB15k-237-Fed10": {"fede": 0.4208, "fused": 0.4340},
    "NELL-995-Fed3": {"fede": 0.4289, "fused": 0.4433},
}
"""MRR, mean over clients weighted by test triples. The model is not named; the section's others are RotatE."""

FEDE_GAINS: Final[dict[int, tuple[float, float, float, float]]] = {
    5: (0.067, 0.017, 0.107, 0.103),
    10: (0.078, 0.017, 0.131, 0.122),
}
"""What FedE adds to Single, relative, mean over the clients of FB15k-237-Fed5 and -Fed10: `FEDE_METRICS` of RotatE."""

FEDR_TABLE_5: Final[dict[str, dict[int, tuple[float, float, float, float]]]] = {
    "ddb14": {
        5: (4462.20, 1049.60, 12.80, 0.84),
        10: (3182.60, 668.89, 12.60, 0.70),
        15: (2533.86, 493.47, 12.50, 0.74),
        20: (2115.59, 385.56, 12.35, 0.75),
    },
    "wn18rr": {
        5: (21293.20, 63.11, 11.00, 0.00),
        10: (13112.20, 46.70, 11.00, 0.00),
        15: (9537.33, 45.45, 11.00, 0.00),
        20: (7501.65, 31.72, 11.00, 0.00),
    },
    "fb15k-237": {
        5: (13359.20, 27.36, 237.00, 0.00),
        10: (11913.00, 31.56, 237.00, 0.00),
        15: (10705.87, 36.93, 236.87, 0.35),
        20: (9705.95, 44.10, 236.80, 0.41),
    },
}
"""Entities of a client, mean and standard deviation, and relations likewise, by data set and number of clients."""

FEDE_TABLE_2: Final[dict[str, dict[int, tuple[float, float, float]]]] = {
    "fb15k-237": {3: (79.0, 12595.3, 103373.0), 5: (47.4, 11260.4, 62023.2), 10: (23.7, 8340.1, 31011.6)},
    "nell-995": {3: (66.7, 33453.7, 51404.3)},
}
"""Relations, entities and triples of a client, means, by data set and number of clients."""

FEDR_SAVED: Final[dict[float, tuple[float, float]]] = {0.2: (0.9989, 0.00029), 0.4: (0.9990, 0.00042)}
"""Section 4.3: the share of FedE's cost that FedR saves until a validation MRR is reached on DDB14 in 5 clients."""

FEDR_TABLE_1: Final[dict[str, tuple[tuple[float, float], ...]]] = {
    "C2": ((0.2904, 0.0607), (0.4835, 0.1951), (0.9690, 0.7378)),
    "C3": ((0.2906, 0.0616), (0.4846, 0.1956), (0.9685, 0.7390)),
}
"""FB15k-237, FedE, TransE, 3 clients: ERR and TRR at leakage ratios of 30, 50 and 100 %."""

FEDR_TABLE_4: Final[dict[str, dict[str, tuple[float, float]]]] = {
    "fb15k-237": {"C2": (145.43e-4, 35.04e-4), "C3": (129.77e-4, 22.01e-4)},
    "wn18rr": {"C2": (22.00e-4, 9.89e-4), "C3": (18.44e-4, 9.23e-4)},
    "ddb14": {"C2": (19.39e-4, 10.10e-4), "C3": (8.87e-4, 5.05e-4)},
}
"""FedR in clear, TransE, 3 clients, LR 100 %: ERR and TRR."""
