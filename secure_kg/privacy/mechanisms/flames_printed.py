"""DP-FLames, algorithms 1 and 2 as printed. NOT SOUND: here to be measured, not to be used for training.

Reference: Hu et al., "Quantifying and Defending against Privacy Threats on Federated Knowledge Graph Embedding",
WWW 2023. Per triple the positive part of the loss, clipped to C₁, then each row to C₂; PrivSelection on the row norms
of the sum: k = argmax_j gap(j) + r(j) + Gumbel(2 C₂ σ_r), r = 0 on ranks B to 2 B; noised gap
d̂ = max(C₂, gap(k)) + N(0, σ_p² C₂²) − σ_p C₂ √(2 ln 1/δ_t); if d̂ > C₂, the first k rows get their gradient with noise.

Faults, apart from those of the accounting: (1) the test cannot pass. Behind the first B of at most 2 B touched rows of
a batch stand rows that occur once, next to rows that occur once or never, so the gap is at most about C₂, and d̂ > C₂
needs a normal draw above √(2 ln 1/δ_t), which has a probability below δ_t. (2) One triple changes a gap by up to 2 C₂,
not by C₂. (3) Relation rows move without noise. The mended version is `flames.py`.
"""

import math
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.gradients.clipped_sums import PrivateGradients


@dataclass(frozen=True, slots=True)
class PrintedChoice:
    """The outcome of PrivSelection for one batch."""

    rows: Tensor | None
    """Ids of the chosen rows [k]; None if the test failed."""
    rank: int
    gap: float
    """At that rank."""
    largest_gap: float
    """Among the ranks to choose from."""


@dataclass(frozen=True, slots=True)
class FlamesAsPrintedUnsound:
    """The paper's settings (appendix G.2); δ_t is not given there."""

    batch: int = 64
    clip: float = 1.2
    row_clip: float = 0.8
    choice_noise: float = 1.0
    test_noise: float = 1.0
    noise: float = 1.0
    test_delta: float = 1e-9

    def __post_init__(self) -> None:
        values = (self.clip, self.row_clip, self.choice_noise, self.test_noise, self.noise)
        if self.batch < 1 or not all(math.isfinite(value) and value > 0 for value in values):
            raise UserError("clips and noises of DP-FLames are positive numbers, its batch has at least one triple")
        if not 0 < self.test_delta < 1:
            raise UserError(f"the test's delta lies between 0 and 1, not at {self.test_delta:g}")

    def releases(self) -> NoReturn:
        """There is no sound account of it."""
        raise UserError("DP-FLames as printed has no sound privacy guarantee: use the mended mechanism, flames")

    def row_sums(self, gradients: PrivateGradients, triples: Tensor, entities: int) -> Tensor:
        """Algorithm 1, clipping: sums [entities, width] of the positive gradients of triples [b, 3]."""
        none = torch.empty(0, dtype=torch.int64)
        found = gradients.end_rows(triples, none)
        scale = (self.clip / found.norms.clamp_min(1e-30)).clamp_max(1.0)[:, None]
        sums = found.head.new_zeros(entities, found.head.shape[1])
        for ids, rows in ((triples[:, 0], found.head), (triples[:, 2], found.tail)):
            rows = rows * scale
            norms = torch.linalg.vector_norm(rows, dim=1).clamp_min(1e-30)
            sums.index_add_(0, ids, rows * (self.row_clip / norms).clamp_max(1.0)[:, None])
        return sums

    def choose(self, sums: Tensor, random: np.random.Generator) -> PrintedChoice:
        """Algorithm 2, PrivSelection, on sums [n, width]. Its noise is not secret: nothing here is private anyway."""
        norms, order = torch.sort(torch.linalg.vector_norm(sums, dim=1).double(), descending=True)
        gaps = (norms[:-1] - norms[1:]).numpy()[self.batch - 1 : 2 * self.batch]
        if len(gaps) == 0:
            raise UserError(f"a graph of {len(sums)} entities has no ranks {self.batch} to {2 * self.batch}")
        place = int((gaps + random.gumbel(0.0, 2.0 * self.row_clip * self.choice_noise, len(gaps))).argmax())
        deviation = self.test_noise * self.row_clip
        noised = max(self.row_clip, float(gaps[place])) + random.normal(0.0, deviation)
        noised -= deviation * math.sqrt(2.0 * math.log(1.0 / self.test_delta))
        rank = self.batch + place
        chosen = order[:rank] if noised > self.row_clip else None
        return PrintedChoice(chosen, rank, float(gaps[place]), float(gaps.max()))

    def privatise(self, sums: Tensor, random: np.random.Generator) -> tuple[Tensor, PrintedChoice]:
        """The step as printed: noise on the chosen rows of sums [n, width], zero elsewhere."""
        choice, noised = self.choose(sums, random), torch.zeros_like(sums)
        if choice.rows is not None:
            noise = random.normal(0.0, self.noise * self.clip, (len(choice.rows), sums.shape[1]))
            noised[choice.rows] = sums[choice.rows] + torch.from_numpy(noise).to(sums.dtype)
        return noised, choice
