"""Tracing of confidential statements in a released model.

Figures. The AUC compares ranks of confidential statements with ranks of held-out ones, which were in no training:
above one half, the model tells the two apart; p is the chance of such ranks if it does not (Mann and Whitney, one
side). The paper's test (section 4.6) compares the ranks of confidential
statements under a model with their ranks under training without privacy, by Mann and Whitney. It has no non-members:
every model that predicts worse passes it, also one that never saw a confidential statement.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from secure_kg.data.graph import TripleArray
from secure_kg.models.base import EmbeddingModel

Ranks = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Traced:
    """Ranks under one model."""

    confidential: Ranks
    held_out: Ranks

    @property
    def auc(self) -> float:
        """The share of pairs in which the confidential statement ranks better than the held-out one."""
        pairs = len(self.held_out) * len(self.confidential)
        return float(_mann_whitney(self.held_out, self.confidential).statistic) / pairs

    @property
    def p(self) -> float:
        """Small if confidential statements rank better than held-out ones."""
        return float(_mann_whitney(self.confidential, self.held_out, "less").pvalue)

    def papers_p(self, without_privacy: "Traced") -> float:
        """p of the paper's test: small if ranks of confidential statements differ from those without privacy."""
        return float(_mann_whitney(self.confidential, without_privacy.confidential).pvalue)


def traced(model: EmbeddingModel, confidential: TripleArray, held_out: TripleArray) -> Traced:
    """Of statements [n, 3] each, at least one."""
    return Traced(raw_ranks(model, confidential), raw_ranks(model, held_out))


@torch.no_grad()
def raw_ranks(model: EmbeddingModel, triples: TripleArray) -> Ranks:
    """The mean over both sides of the rank of triples [n, 3] among all entities, without a filter: [n]."""
    found = []
    for block in torch.split(torch.from_numpy(triples), 256):
        both = torch.zeros(len(block), dtype=torch.float64)
        for side, column in (("tail", 2), ("head", 0)):
            scores = model.scores(block, "tail" if side == "tail" else "head")
            own = scores.gather(1, block[:, [column]])
            both += 1 + (scores > own).sum(1) + ((scores == own).sum(1) - 1) / 2
        found.append(both / 2)
    return torch.cat(found).numpy()


def _mann_whitney(first: Ranks, second: Ranks, alternative: str = "two-sided") -> Any:
    from scipy.stats import mannwhitneyu  # takes a second to import, so only where it is needed

    return mannwhitneyu(first, second, alternative=alternative)
