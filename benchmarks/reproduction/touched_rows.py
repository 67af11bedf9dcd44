"""What DPKGE's noise as printed gives away: which statements are confidential, by rows that move.

An attacker sees the model before and after each step on C. With noise on the rows of the batch only, the rows that move
are those of the batch's statements and of public candidates. Evidence for a statement are steps that moved both of its
ends and its relation, each by its likelihood ratio: a step has the statement with the rate q of samples, and moves its
rows with the chance c that follows from how often they move at all. The figure is the AUC of confidential statements
against held-out ones, which were in no training. With noise on all rows, all rows move in every step, and the AUC is
one half.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import mannwhitneyu

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.privacy.accounting.releases import Release
from secure_kg.privacy.confidential.marking import Divided
from secure_kg.privacy.confidential.printed import DpkgeAsPrintedUnsound
from secure_kg.privacy.confidential.training import ConfidentialTraining, Source
from secure_kg.privacy.draws.noise import NoiseSource
from secure_kg.privacy.mechanisms.interface import Mechanism, NoisedSums, PrivateStep
from secure_kg.privacy.mechanisms.sgd import Sgd
from secure_kg.privacy.training_config import PrivateTrainingConfig

Moves = npt.NDArray[np.bool_]


class _Watched(Mechanism):
    """A mechanism, and which rows its releases move: all that the attacker looks at."""

    def __init__(self, inner: Mechanism) -> None:
        self._inner = inner
        self._entities: list[Moves] = []
        self._relations: list[Moves] = []

    def releases(self) -> tuple[Release, ...]:
        return self._inner.releases()

    def privatise(self, step: PrivateStep, source: NoiseSource) -> NoisedSums:
        noised = self._inner.privatise(step, source)
        self._entities.append((noised.entity != 0).any(1).numpy())
        self._relations.append((noised.relation != 0).any(1).numpy())
        return noised

    def scaled(self, factor: float) -> "_Watched":
        return _Watched(self._inner.scaled(factor))

    def evidence(self, triples: TripleArray, rate: float) -> npt.NDArray[np.float64]:
        """Log-likelihood ratios of triples [n, 3]: [n]; `rate` of samples, below 1."""
        entities, relations = np.stack(self._entities), np.stack(self._relations)
        head, relation, tail = triples.T
        together = (entities[:, head] & entities[:, tail] & relations[:, relation]).mean(0)
        by_chance = entities.mean(0)[head] * entities.mean(0)[tail] * relations.mean(0)[relation]
        chance = np.clip(by_chance, 1e-12, 1.0)
        yes, no = np.log((rate + (1 - rate) * chance) / chance), np.log1p(-rate)
        found: npt.NDArray[np.float64] = len(entities) * (together * yes + (1 - together) * no)
        return found


def given_away(
    graph: ClientGraph, statements: Divided, config: PrivateTrainingConfig, noise: float, most: int = 2000
) -> dict[str, Any]:
    """The AUC under the noise as printed and under noise on all rows, both with the same multiplier."""
    samples = statements.confidential[:: max(1, len(statements.confidential) // most)], graph.test[:most]
    sizes = len(graph.entities), len(graph.relations)
    found: dict[str, Any] = {"passes": config.steps, "sampling": config.sampling, "noise": noise}
    mechanisms = {"touched_rows": DpkgeAsPrintedUnsound(noise), "all_rows": Sgd(noise, config.sampling)}
    for name, mechanism in mechanisms.items():
        watched = _Watched(mechanism)
        training = ConfidentialTraining(sizes, {"C": Source(statements.confidential, 1e-4, True)}, config, seed=0)
        training.run(watched)
        members, others = (watched.evidence(sample, config.sampling) for sample in samples)
        found[name] = float(mannwhitneyu(members, others).statistic) / (len(members) * len(others))
    return found
