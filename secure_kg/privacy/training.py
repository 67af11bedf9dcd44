"""Private training of embeddings in one place: clipped sums, central noise, plain steps.

Parties:     one holder of all triples, who trains and adds the noise.
Adversary:   whoever gets the model, also after every step, and knows all settings and the seed.
Reveals:     (ε, δ) of what the mechanism releases, by the filter's budget. Unit: one triple, add/remove.
Assumes:     public entity and relation sets; settings chosen without a look at the triples; the operating system's
             randomness for samples and noise.
Not covered: evaluation. Ranks of valid and test triples, and the answers filtered out of them, are computed in clear,
             for the holder alone. The number of triples and of clipped ones stays with the holder as well. Seconds:
             how long a step takes is not hidden.

A step moves both tables against the noised sum, times a step size that falls linearly. There is no state of an
optimiser: moments would follow the noise, and with full batches plain steps were much better at every ε. What a triple
adds depends on that triple and public values only, so negatives from the batch, filters of false negatives and batch
normalisation have no place here.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, Side, TripleArray
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.foundation.seeds import generator, torch_seed
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model
from secure_kg.models.transm import TransM, relation_weights
from secure_kg.privacy.accounting.releases import Release
from secure_kg.privacy.draws.noise import Grid, NoiseSource, SecretNoise
from secure_kg.privacy.draws.sampling import poisson_sample
from secure_kg.privacy.gradients.clipped_sums import PrivateGradients, touched_coordinates
from secure_kg.privacy.mechanisms.interface import Mechanism, PrivateStep
from secure_kg.privacy.training_config import PrivateTrainingConfig


class Filter(Protocol):
    """A budget that says beforehand whether a release still fits."""

    def may(self, release: Release) -> bool: ...

    def spend(self, release: Release) -> None: ...


@dataclass(frozen=True, slots=True)
class AdaptiveNoise:
    """Less noise where training stalls (DP-FLames, section 4.3: σ ← η σ), under a filter, judged on public triples."""

    public: TripleArray
    """[n, 3]: triples that need no protection. They are ranked, and nothing but they is filtered out of the ranks."""
    every: int = 10
    least_gain: float = 0.001
    factor: float = 0.95

    def __post_init__(self) -> None:
        if len(self.public) == 0 or self.every < 1 or not 0 < self.factor < 1:
            raise UserError("adaptive noise needs public triples, an interval of at least one step, a factor below 1")


@dataclass(frozen=True, slots=True)
class Trained:
    """The end of a private training. The model may be seen; the shares stay with the holder of the triples."""

    model: EmbeddingModel
    steps: int
    """Fewer than asked for if the filter had no room for the next one."""
    mechanism: Mechanism
    """The last one; adaptive noise changes it."""
    clipped: float
    """Share of gradients that were clipped."""
    rows: float
    """Mean share of entity rows that a step released."""


def private_model(
    config: PrivateTrainingConfig, sizes: tuple[int, int], seed: int, public: TripleArray | None = None
) -> EmbeddingModel:
    """A model of sizes (entities, relations) with initial rows by the public seed.

    The relation weights of TransM come from public triples; without any, they are 1.
    """
    size = ModelSize(*sizes, config.dim, config.margin, config.norm)
    model = build_model(config.model, size, torch.Generator().manual_seed(torch_seed(seed, "initial rows", "private")))
    if isinstance(model, TransM):
        if public is None or len(public) == 0:
            model.weight.fill_(1.0)
        else:
            model.weight.copy_(torch.from_numpy(relation_weights(public, sizes[1])))
    return model


class PrivateTraining:
    """One training over one graph."""

    def __init__(
        self,
        graph: ClientGraph,
        config: PrivateTrainingConfig,
        seed: int,
        source: NoiseSource | None = None,
        public: TripleArray | None = None,
    ) -> None:
        """`source` of noise: by default the operating system. `public`: triples that TransM may take weights from."""
        self._graph, self._config, self._seed = graph, config, seed
        self._sizes = len(graph.entities), len(graph.relations)
        self._source: NoiseSource = SecretNoise() if source is None else source
        self.model = private_model(config, self._sizes, seed, public)
        self._gradients = PrivateGradients(self.model, config.temperature)
        self._train = torch.from_numpy(graph.train)
        self._candidates = min(config.negatives, self._sizes[0])
        self._grid = Grid(config.clip, touched_coordinates(self.model, self._candidates))

    def run(self, mechanism: Mechanism, budget: Filter | None = None, adaptive: AdaptiveNoise | None = None) -> Trained:
        """Steps until all are done or the filter has no room for the next one.

        Without a filter the noise is what the mechanism says, and the caller accounts for `releases()` times steps.
        """
        self._require_match(mechanism, budget, adaptive)
        judge = None if adaptive is None else _Judge(adaptive, self._graph, self.model)
        clipped = count = rows = done = 0
        for number in range(self._config.steps):
            releases = mechanism.releases()
            if budget is not None:
                if not all(budget.may(release) for release in releases):
                    break
                for release in releases:  # before the triples are looked at
                    budget.spend(release)
            step = self._private_step(number)
            noised = mechanism.privatise(step, self._source)
            self._move(noised.entity, noised.relation, self._config.step_at(number))
            clipped, count = clipped + step.sums.clipped, count + step.sums.count
            rows, done = rows + noised.rows, done + 1
            if judge is not None and judge.stalls(done):
                mechanism = mechanism.scaled(judge.settings.factor)
        if not all(bool(table.isfinite().all()) for table in self.model.parameters()):
            raise TrainingDiverged("private training diverged; a smaller step may help")
        released = rows / max(1, done * self._sizes[0])
        return Trained(self.model, done, mechanism, clipped / max(1, count), released)

    def _require_match(self, mechanism: Mechanism, budget: Filter | None, adaptive: AdaptiveNoise | None) -> None:
        releases = mechanism.releases()
        if any(release.sampling != self._config.sampling for release in releases):
            raise UserError("the mechanism and private training must name the same sampling rate")
        if budget is not None and not releases:
            raise UserError("a privacy budget needs a mechanism with noise")
        if budget is not None and mechanism.delta > 0 and adaptive is not None:
            raise UserError("a mechanism with a test of its own takes no adaptive noise: its delta is for fixed steps")
        if adaptive is not None and budget is None:
            raise UserError("adaptive noise needs a privacy filter: a fixed account does not cover it")

    def _private_step(self, number: int) -> PrivateStep:
        draws = generator(self._seed, "private candidates", number)
        candidates = torch.from_numpy(draws.choice(self._sizes[0], self._candidates, replace=False, shuffle=False))
        side: Side = "head" if self._config.corrupt == "both" and number % 2 else "tail"
        sample = self._train[torch.from_numpy(self._sample(number))]
        sums = self._gradients.sums(sample, candidates, self._config.clip, side)
        return PrivateStep(sample, sums, candidates, self._grid)

    def _sample(self, number: int) -> npt.NDArray[np.int64]:
        """Which triples are in a step; nobody can draw it again."""
        return poisson_sample(len(self._train), self._config.sampling)

    @torch.no_grad()
    def _move(self, entity: Tensor, relation: Tensor, step: float) -> None:
        self.model.entity.sub_((step * entity).to(self.model.entity.dtype))
        self.model.relation.sub_((step * relation).to(self.model.relation.dtype))


class _Judge:
    """The gain in MRR on public triples, from one look to the next. It depends on noised models only."""

    def __init__(self, settings: AdaptiveNoise, graph: ClientGraph, model: EmbeddingModel) -> None:
        self.settings, self._model, self._last = settings, model, 0.0
        none = np.empty((0, 3), dtype=np.int64)
        known = ClientGraph(graph.entities, graph.relations, none, settings.public, none)
        self._ranking = FilteredRanking(known, torch.device("cpu"))

    def stalls(self, done: int) -> bool:
        if done % self.settings.every:
            return False
        before, self._last = self._last, tail_mrr(self._ranking, self._model, self.settings.public)
        return self._last - before < self.settings.least_gain


def tail_mrr(ranking: FilteredRanking, model: EmbeddingModel, triples: TripleArray) -> float:
    """Filtered mean reciprocal rank of the tails of triples [n, 3]."""
    return ranking.rank(model, triples, "tail").metrics()["mrr"]
