"""Training on both parts: plain steps on U, noised steps on C, in the order of the schedule.

A step on C is that of `PrivateTraining`: the clipped sum at the current model, noise on all rows. A step on U is the
sum of gradients of public statements: post-processing of what was released before. It is clipped alike, which privacy
does not ask for: steps on few statements diverge otherwise, and arms differ in noise alone. Neither has moments.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from secure_kg.data.graph import Side, TripleArray
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.foundation.seeds import generator
from secure_kg.models.base import EmbeddingModel
from secure_kg.privacy.confidential.schedule import Part, batches
from secure_kg.privacy.draws.noise import Grid, NoiseSource, SecretNoise
from secure_kg.privacy.draws.sampling import poisson_sample
from secure_kg.privacy.gradients.clipped_sums import PrivateGradients, touched_coordinates
from secure_kg.privacy.mechanisms.interface import Mechanism, PrivateStep
from secure_kg.privacy.training import private_model
from secure_kg.privacy.training_config import PrivateTrainingConfig


@dataclass(frozen=True, slots=True)
class Source:
    """One part of the training statements, as an arm uses it."""

    triples: TripleArray
    """[n, 3]."""
    scale: float
    """Step per unit of the sum; public."""
    noised: bool


_MADE_UP: Final = 10_000
Parts = dict[Part, Source]
"""A part that is not there is not used."""


class ConfidentialTraining:
    """One training over one division of a graph."""

    def __init__(
        self,
        sizes: tuple[int, int],
        parts: Parts,
        config: PrivateTrainingConfig,
        seed: int,
        source: NoiseSource | None = None,
    ) -> None:
        """`config.steps` counts passes over each part; `config.sampling` is the rate of its batches.

        TransM's weights come from U, if it has no noise; otherwise they are 1.
        """
        self._parts, self._config, self._seed, self._sizes = parts, config, seed, sizes
        self._source: NoiseSource = SecretNoise() if source is None else source
        public = parts["U"].triples if "U" in parts and not parts["U"].noised else None
        self.model: EmbeddingModel = private_model(config, sizes, seed, public)
        self._gradients = PrivateGradients(self.model, config.temperature)
        self._candidates = min(config.negatives, sizes[0])
        self._grid = Grid(config.clip, touched_coordinates(self.model, self._candidates))
        self._tables = {part: torch.from_numpy(one.triples) for part, one in parts.items()}

    def run(self, mechanism: Mechanism | None) -> EmbeddingModel:
        """All passes. `mechanism` is for parts with noise and may be None only if there is none."""
        if mechanism is None and any(part.noised for part in self._parts.values()):
            raise UserError("confidential statements need a mechanism with noise")
        order = list(self._order())
        for number, part in enumerate(order):
            done = number / max(1, len(order) - 1)
            size = self._parts[part].scale * (1.0 - (1.0 - self._config.last_step) * done)
            candidates, side = self._public_choices(number)
            if mechanism is None or not self._parts[part].noised:
                sums = self._gradients.sums(self._public_batch(part, number), candidates, self._config.clip, side)
                self._move(sums.entity, sums.relation, size)
            else:
                table = self._tables[part]
                sample = table[torch.from_numpy(poisson_sample(len(table), self._config.sampling))]
                sums = self._gradients.sums(sample, candidates, self._config.clip, side)
                noised = mechanism.privatise(PrivateStep(sample, sums, candidates, self._grid), self._source)
                self._move(noised.entity, noised.relation, size)
        if not all(bool(table.isfinite().all()) for table in self.model.parameters()):
            raise TrainingDiverged("training on confidential statements diverged; a smaller --rate may help")
        return self.model

    def _order(self) -> Iterator[Part]:
        rates: dict[Part, float] = dict.fromkeys(self._parts, self._config.sampling)
        return batches(self._config.steps, rates, self._seed)

    def _public_choices(self, number: int) -> tuple[Tensor, Side]:
        draws = generator(self._seed, "private candidates", number)
        candidates = torch.from_numpy(draws.choice(self._sizes[0], self._candidates, replace=False, shuffle=False))
        return candidates, "head" if self._config.corrupt == "both" and number % 2 else "tail"

    def _public_batch(self, part: Part, number: int) -> Tensor:
        """Without noise, batches may be public too: drawn by the seed."""
        table = self._tables[part]
        if self._config.sampling == 1:
            return table
        return table[torch.from_numpy(generator(self._seed, part, number).random(len(table)) < self._config.sampling)]

    @torch.no_grad()
    def _move(self, entity: Tensor, relation: Tensor, size: float) -> None:
        self.model.entity.sub_((size * entity).to(self.model.entity.dtype))
        self.model.relation.sub_((size * relation).to(self.model.relation.dtype))


def public_clip(
    unrestricted: TripleArray, config: PrivateTrainingConfig, sizes: tuple[int, int], seed: int, quantile: float
) -> float:
    """A quantile of gradient norms of U at the initial rows; the paper takes the 20th percentile, of all statements.

    Without U, random statements stand for it: at random rows, norms differ little.
    """
    if not 0 < quantile <= 1:
        raise UserError(f"a quantile of gradient norms lies above 0 and is at most 1, not {quantile:g}")
    if len(unrestricted) == 0:
        made_up = generator(seed, "statements for the clip")
        unrestricted = made_up.integers(0, [sizes[0], sizes[1], sizes[0]], size=(_MADE_UP, 3))
    model = private_model(config, sizes, seed, unrestricted)
    draws = generator(seed, "private candidates", 0)
    candidates = torch.from_numpy(draws.choice(sizes[0], min(config.negatives, sizes[0]), replace=False, shuffle=False))
    norms = PrivateGradients(model, config.temperature).end_rows(torch.from_numpy(unrestricted), candidates).norms
    return max(1e-6, float(torch.quantile(norms.double()[:1_000_000], quantile)))
