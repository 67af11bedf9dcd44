"""DPKGE's noise as printed: on the rows of the batch only. NOT SOUND: here to be attacked, not to be used.

A row that no confidential statement touches has no noise, so whoever sees which rows move sees which entities occur in
C. No ε describes that, and `releases` refuses to name one. `benchmarks.dp_audit` tells every canary by it.
"""

from dataclasses import dataclass, replace
from typing import NoReturn, Self

import torch

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.draws.noise import NoiseSource
from secure_kg.privacy.mechanisms.interface import Mechanism, NoisedSums, PrivateStep


@dataclass(frozen=True, slots=True)
class DpkgeAsPrintedUnsound(Mechanism):
    """Noise on rows of the step's triples and candidates; zero elsewhere."""

    noise: float

    def releases(self) -> NoReturn:
        raise UserError("DPKGE's noise as printed has no sound privacy guarantee: noise must fall on all rows")

    def privatise(self, step: PrivateStep, source: NoiseSource) -> NoisedSums:
        entity, relation = torch.zeros_like(step.sums.entity), torch.zeros_like(step.sums.relation)
        ends = torch.unique(torch.cat((step.triples[:, 0], step.triples[:, 2], step.candidates)))
        kinds = torch.unique(step.triples[:, 1])
        entity[ends] = step.grid.noised(step.sums.entity[ends], self.noise, source)
        relation[kinds] = step.grid.noised(step.sums.relation[kinds], self.noise, source)
        return NoisedSums(entity, relation, len(ends))

    def scaled(self, factor: float) -> Self:
        return replace(self, noise=self.noise * factor)
