"""DPKGE's figures on FB15k-237 as printed (Han et al. 2022): mean rank and Hits@10 in percent, filtered, both sides."""

from dataclasses import dataclass
from typing import Final

DATASET: Final = "fb15k-237"
MODELS: Final = ("TransE", "TransM", "RESCAL", "DistMult")
SIGMAS: Final = (0.7, 1.0, 1.3, 10.0)
EPSILONS: Final[dict[str, tuple[float, ...]]] = {
    "DPKGE": (10.08, 4.49, 2.96, 0.32),
    "FullDP": (6.86, 3.08, 2.05, 0.26),
}
"""By arm, for each sigma of the paper."""
FRACTION: Final = 0.5
SETTINGS: Final = {"batch": "√N = 522", "passes": "100", "dim": "by search, 50 to 512", "runs": "5"}
"""The paper's."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of the table."""

    model: str
    arm: str
    epsilon: float | None = None

    @property
    def name(self) -> str:
        return "-".join((self.model, self.arm, *(() if self.epsilon is None else (f"{self.epsilon:g}",)))).lower()

    @property
    def sigma(self) -> float | None:
        """The paper's, which belongs to its epsilon."""
        return None if self.epsilon is None else SIGMAS[EPSILONS[self.arm].index(self.epsilon)]


_WITHOUT: Final = {
    "TransE": ((179.01, 44.79), (346.85, 31.03)),
    "TransM": ((176.23, 45.34), (316.83, 32.41)),
    "RESCAL": ((328.73, 39.88), (626.00, 29.06)),
    "DistMult": ((422.37, 34.40), (752.85, 22.35)),
}
_WITH: Final = {
    ("TransE", "DPKGE"): ((250.45, 40.28), (259.23, 39.86), (263.45, 39.46), (287.03, 39.46)),
    ("TransE", "FullDP"): ((639.19, 32.19), (1045.20, 29.92), (1705.34, 28.81), (5311.87, 8.30)),
    ("TransM", "DPKGE"): ((238.17, 41.47), (249.01, 40.87), (254.98, 41.30), (260.64, 40.65)),
    ("TransM", "FullDP"): ((781.76, 32.97), (1420.87, 30.85), (2279.18, 28.79), (5330.69, 8.58)),
    ("RESCAL", "DPKGE"): ((389.18, 35.86), (421.86, 35.41), (426.68, 34.74), (547.41, 33.60)),
    ("RESCAL", "FullDP"): ((691.48, 30.63), (1613.17, 24.08), (3474.53, 13.04), (7165.76, 0.03)),
    ("DistMult", "DPKGE"): ((465.80, 32.60), (507.36, 31.97), (529.74, 32.48), (715.40, 30.96)),
    ("DistMult", "FullDP"): ((1544.88, 10.37), (3611.03, 9.43), (6245.80, 4.28), (7066.83, 0.45)),
}


def cells(model: str) -> list[Cell]:
    """The cells of one model, in the order of the table."""
    private = [Cell(model, arm, epsilon) for place in range(len(SIGMAS)) for arm in EPSILONS
               for epsilon in EPSILONS[arm][place : place + 1]]  # fmt: skip
    return [Cell(model, "NDP"), Cell(model, "U-only"), *private]


def printed(cell: Cell) -> tuple[float, float]:
    """Mean rank and Hits@10."""
    if cell.epsilon is None:
        return _WITHOUT[cell.model][("NDP", "U-only").index(cell.arm)]
    return _WITH[cell.model, cell.arm][EPSILONS[cell.arm].index(cell.epsilon)]
