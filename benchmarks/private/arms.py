"""Private training of several clients' triples in one process, by who adds the noise.

Every step is the one of a private federation under `--strategy all-rows`: each client computes the clipped sum of its
gradients at the shared rows, against candidates of its own, and the rows move against the sum of all. Messages, masks
and the rounding to a ring are left out, so that settings can be searched and mechanisms compared that a federation
does not have. `benchmarks.private_federation` runs the federation itself.

    no noise   the clipped sums themselves: what clipping and few steps cost alone
    shares     the noise of one holder times √(n / (n − f)) on the sum: shares of noise under a secure sum, of which f
               clients may be missing or corrupt, all n being there
    full       every client adds all noise to its sum (DP-FLames calls it the baseline)
    adafest    every client chooses rows by noised counts, and adds all noise to those
    flames     every client chooses rows as DP-FLames does, mended, and adds all noise to those
    local      every client trains alone, with all noise
    counts     no embeddings: a table of counts relation → tail, with noise in shares on every cell

Parties:     one process that has all triples.
Adversary:   none here: noise may come from a seed, and evaluation is in clear. Figures only, no model is kept.
Reveals:     everything, to whoever runs it.
Assumes:     public data.
Not covered: dropouts, which leave a sum with less noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, Part, Side, TripleArray
from secure_kg.evaluation.ranking import FilteredRanking, Scorer
from secure_kg.evaluation.sums import RankingSums
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.foundation.seeds import generator
from secure_kg.models.base import EmbeddingModel
from secure_kg.privacy.accounting.accountant import Budget, noise_for
from secure_kg.privacy.draws.noise import Grid, Integers, NoiseSource, SecretNoise
from secure_kg.privacy.gradients.clipped_sums import PrivateGradients, touched_coordinates
from secure_kg.privacy.mechanisms.adafest import AdaFest
from secure_kg.privacy.mechanisms.counts import Counts, NoisedCounts, counted
from secure_kg.privacy.mechanisms.flames import Flames
from secure_kg.privacy.mechanisms.interface import Mechanism, PrivateStep
from secure_kg.privacy.mechanisms.no_noise import NoNoise
from secure_kg.privacy.mechanisms.sgd import Sgd
from secure_kg.privacy.training import private_model
from secure_kg.privacy.training_config import PrivateTrainingConfig

ARMS: Final = ("no noise", "shares", "full", "adafest", "flames", "local", "counts")
_TEST_DELTA: Final = 0.1  # of delta, for the tests of all steps of flames together


@dataclass(frozen=True, slots=True)
class Arm:
    """Who adds which noise, and for what budget."""

    name: str
    budget: Budget
    spare: int = 1
    """f of shares: clients that may be missing or corrupt."""
    threshold: float = 1.0
    """Of noised counts, in deviations of their noise: rows of adafest, cells of counts."""


class SeededNoise:
    """Noise that can be drawn again, for comparisons of settings on public data. Never for a release."""

    def __init__(self, seed: int) -> None:
        self._draws = generator(seed, "noise of a comparison")

    def integers(self, sigma: float, shape: tuple[int, ...]) -> Integers:
        return np.rint(self._draws.standard_normal(shape) * sigma).astype(np.int64)


class Sites:
    """The clients' triples under one numbering of names."""

    def __init__(self, graphs: Sequence[ClientGraph]) -> None:
        self.graphs = tuple(graphs)
        names = [sorted({name for graph in graphs for name in getattr(graph, kind)})
                 for kind in ("entities", "relations")]  # fmt: skip
        self.sizes = len(names[0]), len(names[1])
        entity, relation = ({name: place for place, name in enumerate(one)} for one in names)
        self.entities = [np.array([entity[name] for name in graph.entities]) for graph in graphs]
        self.relations = [np.array([relation[name] for name in graph.relations]) for graph in graphs]

    def part(self, place: int, part: TripleArray) -> TripleArray:
        """A part of one client's triples under the common numbers."""
        entity, relation = self.entities[place], self.relations[place]
        return np.stack((entity[part[:, 0]], relation[part[:, 1]], entity[part[:, 2]]), axis=1)

    def judged(self, scored: Sequence[EmbeddingModel | NoisedCounts], part: Part) -> RankingSums:
        """The same by models over all names, of each client or one for all."""
        whose = scored if len(scored) > 1 else list(scored) * len(self.graphs)
        return self.judged_by_own([self._own(place, one) for place, one in enumerate(whose)], part)

    def judged_by_own(self, models: Sequence[EmbeddingModel | Scorer], part: Part) -> RankingSums:
        """Tails of all clients' triples of `part`, each among its client's entities, by models over the client's names.

        Known triples of all clients are left out of the ranks. To rank validation triples, those of test are unknown.
        """
        parts: tuple[Part, ...] = ("train", "valid") if part == "valid" else ("train", "valid", "test")
        known = np.concatenate(
            [self.part(place, graph.part(one)) for place, graph in enumerate(self.graphs) for one in parts]
        )
        total, none = RankingSums(), np.empty((0, 3), dtype=np.int64)
        for place, graph in enumerate(self.graphs):
            here = self._of_client(place, known)
            ranking = FilteredRanking(ClientGraph(graph.entities, graph.relations, here, none, none), _CPU)
            total += ranking.rank(models[place], graph.part(part), "tail")
        return total

    def _of_client(self, place: int, known: TripleArray) -> TripleArray:
        """The known triples whose names a client has, under its own numbers."""
        columns = []
        for column, own, size in ((0, 0, 0), (1, 1, 1), (2, 0, 0)):
            own_ids = self.relations[place] if own else self.entities[place]
            numbers = np.full(self.sizes[size], -1, dtype=np.int64)
            numbers[own_ids] = np.arange(len(own_ids))
            columns.append(numbers[known[:, column]])
        found = np.stack(columns, axis=1)
        return np.ascontiguousarray(found[(found >= 0).all(axis=1)])

    def _own(self, place: int, scored: EmbeddingModel | NoisedCounts) -> EmbeddingModel | Scorer:
        """The rows of one client's names."""
        entity, relation = torch.from_numpy(self.entities[place]), torch.from_numpy(self.relations[place])
        if isinstance(scored, NoisedCounts):
            return NoisedCounts(scored.table[relation][:, entity])
        size = scored.size
        config = PrivateTrainingConfig(model=scored.name, dim=size.dim, margin=size.margin, norm=_norm(size.norm))
        model = private_model(config, (len(entity), len(relation)), 0)
        with torch.no_grad():
            model.entity.copy_(scored.entity[entity])
            model.relation.copy_(scored.relation[relation])
        return model


_CPU: Final = torch.device("cpu")


def _norm(norm: int) -> Literal[1, 2]:
    return 1 if norm == 1 else 2


def measured(
    sites: Sites, config: PrivateTrainingConfig, arm: Arm, seed: int, *, part: Part, source: NoiseSource | None = None
) -> RankingSums:
    """Ranks of one arm after one training; noise is the operating system's unless there is a `source`."""
    noise: NoiseSource = SecretNoise() if source is None else source
    everybody = list(range(len(sites.graphs)))
    if arm.name == "counts":
        return sites.judged([_counts(sites, arm, noise)], part)
    if arm.name == "local":
        return sites.judged([_trained(sites, config, arm, seed, ([place], noise)) for place in everybody], part)
    return sites.judged([_trained(sites, config, arm, seed, (everybody, noise))], part)


def _counts(sites: Sites, arm: Arm, source: NoiseSource) -> NoisedCounts:
    train = [sites.part(place, graph.train) for place, graph in enumerate(sites.graphs)]
    exact = counted(torch.from_numpy(np.concatenate(train)), sites.sizes[1], sites.sizes[0])
    noise = noise_for(arm.budget, 1) * _excess(len(sites.graphs), arm.spare)
    return Counts(noise, arm.threshold).privatise(exact, source)


def _excess(clients: int, spare: int) -> float:
    """How much more the noise of a whole sum is than what is needed, as deviations."""
    return math.sqrt(clients / (clients - spare)) if clients > 1 else 1.0


def _mechanism(arm: Arm, config: PrivateTrainingConfig, entities: int) -> Mechanism:
    """What one client does by itself."""
    if arm.name in ("no noise", "shares"):
        return NoNoise()
    delta = arm.budget.delta * (1 - _TEST_DELTA if arm.name == "flames" else 1)
    total = noise_for(Budget(arm.budget.epsilon, delta), config.steps)
    if arm.name == "adafest":
        counts = AdaFest.of_total(total, 0.0).selection_noise
        return AdaFest.of_total(total, arm.threshold * counts)
    if arm.name == "flames":
        test_delta = _TEST_DELTA * arm.budget.delta / config.steps
        return Flames.of_total(total, (1, entities), test_delta)
    return Sgd(total)


def _trained(
    sites: Sites, config: PrivateTrainingConfig, arm: Arm, seed: int, among: tuple[list[int], NoiseSource]
) -> EmbeddingModel:
    """A model of the clients `among`, over all names."""
    clients, source = among
    model = private_model(config, sites.sizes, seed)
    gradients = PrivateGradients(model, config.temperature)
    train = {place: torch.from_numpy(sites.part(place, sites.graphs[place].train)) for place in clients}
    grid = Grid(config.clip, touched_coordinates(model, config.negatives))
    mechanism = _mechanism(arm, config, sites.sizes[0])
    on_sum = None
    if arm.name == "shares":
        total = noise_for(arm.budget, config.steps)
        on_sum = total * _excess(len(clients), arm.spare)
    for number in range(config.steps):
        moves = [torch.zeros_like(table, dtype=torch.float64) for table in (model.entity, model.relation)]
        for place in clients:
            drawn = _candidates(sites.entities[place], config.negatives, seed, (place, number))
            sums = gradients.sums(train[place], drawn, config.clip, _side(config, number))
            noised = mechanism.privatise(PrivateStep(train[place], sums, drawn, grid), source)
            for move, table in zip(moves, (noised.entity, noised.relation), strict=True):
                move += table
        if on_sum is not None:
            moves = [grid.noised(table, on_sum, source) for table in moves]
        with torch.no_grad():
            for parameter, move in zip((model.entity, model.relation), moves, strict=True):
                parameter.sub_((config.step_at(number) * move).to(parameter.dtype))
    if not all(bool(table.isfinite().all()) for table in model.parameters()):
        raise TrainingDiverged("private training diverged; a smaller step may help")
    return model


def _candidates(entities: npt.NDArray[np.int64], count: int, seed: int, which: tuple[int, int]) -> Tensor:
    """Public candidates [m] of one client in one step: entities of its own, by the seed."""
    draws = generator(seed, "private candidates", *which)
    return torch.from_numpy(draws.choice(entities, min(count, len(entities)), replace=False, shuffle=False))


def _side(config: PrivateTrainingConfig, number: int) -> Side:
    return "head" if config.corrupt == "both" and number % 2 else "tail"
