"""Clusters of entity rows under the arms, compared with those of training without privacy (section 4.4).

k-means on the entity rows of each model. The agreement of two clusterings is their normalised mutual information: 1 if
they are the same up to names, about 0 if they have nothing to do with each other.

Two trainings with the same seed start from the same rows, and agree by that alone. So pairs of models have different
seeds; those of the same seed are given apart. Control: two trainings without privacy with different seeds. No arm can
be expected to agree with NDP more than NDP agrees with itself. The paper compares with U-only.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from secure_kg.foundation.errors import UserError

Rows = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int32]
REFERENCE: Final = "NDP"
_STARTS: Final = 10  # of k-means, of which the best counts


def labels(rows: Rows, clusters: int) -> Labels:
    """The cluster of each of rows [n, width]."""
    from sklearn.cluster import KMeans

    if not 2 <= clusters <= len(rows):
        raise UserError(f"{clusters} clusters: there are at least 2, and no more than entities ({len(rows)})")
    found: Labels = KMeans(clusters, n_init=_STARTS, random_state=0).fit_predict(rows)
    return found


def agreement(one: Labels, other: Labels) -> float:
    """Normalised mutual information."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(one, other))


class Clusterings:
    """Clusters of all models of all arms. The first arm is the one that others are compared with."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = tuple(numbers)
        self._found: dict[tuple[str, float | None], dict[int, dict[int, Labels]]] = {}

    def add(self, arm: str, epsilon: float | None, rows: Mapping[int, Rows]) -> None:
        """Entity rows by seed."""
        if self._numbers:
            self._found[arm, epsilon] = {
                number: {seed: labels(one, number) for seed, one in rows.items()} for number in self._numbers
            }

    def rows(self) -> list[dict[str, Any]]:
        """One for each arm, epsilon and number of clusters."""
        return [
            {"arm": arm, "epsilon": epsilon, "clusters": number} | self._compared(arm, epsilon, number)
            for (arm, epsilon) in self._found
            for number in self._numbers
        ]

    def _compared(self, arm: str, epsilon: float | None, number: int) -> dict[str, Any]:
        reference, here = self._found[REFERENCE, None][number], self._found[arm, epsilon][number]
        twice = arm == REFERENCE  # a pair of models would come in both orders
        other = [
            agreement(reference[one], here[two])
            for one in reference
            for two in here
            if (one < two if twice else one != two)
        ]
        same = [] if twice else [agreement(reference[seed], here[seed]) for seed in here]
        return {
            "nmi": statistics.mean(other) if other else None,
            "deviation": statistics.stdev(other) if len(other) > 1 else None,
            "pairs": len(other),
            "same_seed_nmi": statistics.mean(same) if same else None,
        }
