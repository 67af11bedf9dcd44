"""DP-FLames, Table 3, as printed: MRR, Hits@1 and Hits@10 of federated embeddings with and without privacy.

Hu et al., WWW 2023. By data set, then by row and epsilon (None: without privacy), for the models in `MODELS`' order.
"""

from typing import Final

Triple = tuple[float, float, float]
Row = tuple[Triple, Triple, Triple, Triple]

METRICS: Final = ("mrr", "hits@1", "hits@10")
MODELS: Final = ("TransE", "RotatE", "DistMult", "ComplEx")
PAPER: Final[dict[str, dict[tuple[str, float | None], Row]]] = {
    "fb15k-237": {
        ("FKGE", None): (
            (0.3606, 0.2582, 0.5720), (0.3676, 0.2671, 0.5745), (0.3138, 0.2345, 0.4718), (0.3010, 0.2277, 0.4444),
        ),
        ("Baseline", 16.0): (
            (0.1296, 0.0492, 0.2524), (0.0506, 0.0197, 0.1180), (0.0069, 0.0060, 0.0074), (0.0067, 0.0058, 0.0068),
        ),
        ("DP-FLames", 16.0): (
            (0.1843, 0.0719, 0.3949), (0.0901, 0.0477, 0.1800), (0.2342, 0.1750, 0.3533), (0.2638, 0.1999, 0.3974),
        ),
        ("DP-FLames-Adp", 16.0): (
            (0.3193, 0.2233, 0.5107), (0.2946, 0.2362, 0.4548), (0.2764, 0.2074, 0.4136), (0.2874, 0.2136, 0.4285),
        ),
        ("Baseline", 32.0): (
            (0.1248, 0.0430, 0.2575), (0.0371, 0.0138, 0.0830), (0.0084, 0.0068, 0.0098), (0.0078, 0.0066, 0.0087),
        ),
        ("DP-FLames", 32.0): (
            (0.2964, 0.1962, 0.4942), (0.2740, 0.1968, 0.4228), (0.2881, 0.2137, 0.4438), (0.2784, 0.2084, 0.4226),
        ),
        ("DP-FLames-Adp", 32.0): (
            (0.3239, 0.2285, 0.5143), (0.3044, 0.2241, 0.4660), (0.2728, 0.2046, 0.4072), (0.2850, 0.2114, 0.4338),
        ),
    },
    "nell-995": {
        ("FKGE", None): (
            (0.6866, 0.6230, 0.7976), (0.7299, 0.6824, 0.7993), (0.4120, 0.3508, 0.5183), (0.3685, 0.3072, 0.4852),
        ),
        ("Baseline", 16.0): (
            (0.1516, 0.0035, 0.3455), (0.0265, 0.0052, 0.0576), (0.0001, 0.0, 0.0), (0.0001, 0.0, 0.0),
        ),
        ("DP-FLames", 16.0): (
            (0.1419, 0.0, 0.3473), (0.0151, 0.0052, 0.0209), (0.1975, 0.1396, 0.2949), (0.3340, 0.3002, 0.3962),
        ),
        ("DP-FLames-Adp", 16.0): (
            (0.4687, 0.2723, 0.7330), (0.3822, 0.3438, 0.4538), (0.3745, 0.2984, 0.5166), (0.3620, 0.2932, 0.4921),
        ),
        ("Baseline", 32.0): (
            (0.1076, 0.0, 0.2618), (0.0169, 0.0017, 0.0297), (0.0002, 0.0, 0.0), (0.0003, 0.0, 0.0),
        ),
        ("DP-FLames", 32.0): (
            (0.3589, 0.1658, 0.6038), (0.1099, 0.0803, 0.1623), (0.3786, 0.3054, 0.4904), (0.3747, 0.2967, 0.5061),
        ),
        ("DP-FLames-Adp", 32.0): (
            (0.4814, 0.2757, 0.7365), (0.5031, 0.4555, 0.6021), (0.3912, 0.3141, 0.5201), (0.3569, 0.2740, 0.4817),
        ),
    },
}  # fmt: skip


def printed(dataset: str, model: str, row: str, epsilon: float | None) -> dict[str, float] | None:
    """The paper's figures of one row by metric; None where it has none."""
    found = PAPER[dataset].get((row, epsilon))
    return None if found is None else dict(zip(METRICS, found[MODELS.index(model)], strict=True))
