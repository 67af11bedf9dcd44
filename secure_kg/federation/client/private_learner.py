"""The learner of differentially private embeddings: one clipped sum of gradients per round, as a step of the mean.

Parties:     one client among n that share rows.
Adversary:   whoever sees sums of shared rows and models, also after every round, and knows all settings and the seed.
Reveals:     (ε, δ) by the settings; `secure_kg.federation.plan.private_plan` has the step and its sensitivity.
Assumes:     the names of the client's entities and relations are public, and so are the candidates that follow from
             them and the seed. Noise on shared rows comes with their sum (`protocols.sums.noise_shares`), unless the
             client's own mechanism has added it.
Not covered: how long a step takes, and a client's own test results, which stay with it.

Shared rows stay at the applied means while a round is trained: what the gradients say is in the contribution only. Own
tables move by themselves, with all noise. Ranks that are told leave out evaluation triples alone, which are public
then, and the loss is not told.

Under adafest and flames the client's mechanism noises its sums of both tables before anything leaves, in one release;
what it did not choose goes into the contribution as it was.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from protocols.foundation.digests import digest
from secure_kg.data.graph import ClientGraph, Part, Side
from secure_kg.evaluation.metrics import Metrics
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.plan.private_plan import PrivatePlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.errors import SettingsError, TrainingDiverged
from secure_kg.foundation.seeds import generator
from secure_kg.learning.device import to_device
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import Contributed, NoiseKeys, Rows, TrainStats
from secure_kg.models.transm import TransM
from secure_kg.privacy.draws.noise import Grid
from secure_kg.privacy.draws.sampling import poisson_sample
from secure_kg.privacy.gradients.clipped_sums import PrivateGradients
from secure_kg.privacy.mechanisms.adafest import AdaFest
from secure_kg.privacy.mechanisms.flames import Flames
from secure_kg.privacy.mechanisms.interface import Mechanism, PrivateStep
from secure_kg.privacy.release_record import KeyedNoise, StepNoise

_TABLES: Final = ("entity", "relation")


class PrivateLearner(KgeLearner):
    """`entrust` comes before the first round."""

    def __init__(self, settings: RunConfig, graph: ClientGraph, client: int, device: torch.device) -> None:
        super().__init__(graph, settings.training, device, settings.seed, client)
        if isinstance(self.model, TransM):
            self.model.weight.fill_(1.0)  # weights by the triples would be released without noise
        self._plan = PrivatePlan.of(settings, STRATEGIES[settings.strategy])
        self._mechanism = _mechanism(self._plan, len(graph.entities))
        self._keys: NoiseKeys | None = None
        self._gradients = PrivateGradients(self.model, self.config.temperature)
        self._candidates = min(self.config.negatives, len(graph.entities))
        self._grid = Grid(self._plan.sensitivity, self._plan.coordinates)
        self._moves: dict[str, npt.NDArray[np.float64]] = {}
        """By shared table: what this round's gradients add to its rows in the sum."""
        none = np.empty((0, 3), dtype=np.int64)
        known = ClientGraph(graph.entities, graph.relations, none, graph.valid, graph.test)
        self._public_ranking = FilteredRanking(known, device, self.config.eval_megabytes)
        if max(len(graph.entities), len(graph.relations)) > self._plan.union_rows:
            raise SettingsError(f"--union-bound: this client alone has more names than {self._plan.union_rows}")

    def entrust(self, keys: NoiseKeys) -> None:
        self._keys = keys

    def train(self, round: int) -> TrainStats:
        """The clipped sums of one step. Own tables are moved at once; nothing is told of losses or of numbers."""
        plan, keys = self._plan, self._keys
        if keys is None or not plan.first_round <= round <= plan.rounds:
            raise RuntimeError("a private step needs keys of its noise, and has a round within the budget")
        keys.begin(self.digest())  # before anything depends on a triple
        sample, candidates = self._sample(round, keys), self._drawn(round)
        sums = self._gradients.sums(sample, candidates, plan.privacy.dp_clip, self._side(round))
        tables, step, self._moves = (sums.entity, sums.relation), plan.step_at(round), {}
        noised = self._chosen(PrivateStep(sample, sums, candidates, self._grid), round, keys)
        for name, table, own in zip(_TABLES, tables, noised or tables, strict=True):
            if plan.is_shared(name):
                self._moves[name] = -(step * plan.clients) * own.cpu().numpy()
            elif noised is None:
                content = digest(repr(self._grid).encode(), _content(table))
                source = KeyedNoise(keys, round, f"own/{name}", content)
                self._move_own(name, self._grid.noised(table, plan.own_multiplier, source), step)
            else:
                self._move_own(name, own, step)
        return TrainStats(0.0, 0, 1)

    def _chosen(self, step: PrivateStep, round: int, keys: NoiseKeys) -> tuple[Tensor, Tensor] | None:
        """Both tables as this client's own mechanism noises them; None if it has none. Draws are bound to all of it."""
        if self._mechanism is None:
            return None
        tables = step.triples, step.candidates, step.sums.entity, step.sums.relation
        about = repr((self._mechanism, self._grid)).encode()
        content = digest(about, *(_content(table) for table in tables))
        noised = self._mechanism.privatise(step, StepNoise(keys, round, "own", content))
        return noised.entity, noised.relation

    def _sample(self, round: int, keys: NoiseKeys) -> Tensor:
        """The triples of a step. A Poisson sample repeats with parameters and triples, and is known to nobody else."""
        triples = np.ascontiguousarray(self.graph.train)
        random = keys.stream(round, digest(self.digest(), triples.tobytes()))
        chosen = poisson_sample(len(triples), self._plan.privacy.dp_sampling, random)
        return self._train[to_device(chosen, self._device)]

    def _drawn(self, round: int) -> Tensor:
        """Public candidates [m]: entities of this client, by the seed."""
        draws = generator(self._seed, "private candidates", self._client, round)
        chosen = draws.choice(len(self.graph.entities), self._candidates, replace=False, shuffle=False)
        return to_device(chosen, self._device)

    def _side(self, round: int) -> Side:
        return "head" if self.config.corrupt == "both" and round % 2 else "tail"

    @torch.no_grad()
    def _move_own(self, name: str, noised: Tensor, step: float) -> None:
        parameter = self._parameter(name)
        parameter.sub_((step * noised).to(parameter.dtype))
        if not bool(parameter.isfinite().all()):
            raise TrainingDiverged("private training diverged; a smaller --dp-step may help")

    def contributed_block(self, block: str) -> Contributed:
        """The rows with the step of this round, in double precision: rounding them would be seen beside the noise."""
        rows = self.export_block(block).astype(np.float64)
        if not self._moves:
            return rows
        shared = [self._moves[name] for name in _TABLES if self._plan.is_shared(name)]
        moved: npt.NDArray[np.float64] = rows + np.concatenate(shared)
        return moved

    def load_block(self, block: str, rows: Rows) -> None:
        super().load_block(block, rows)
        self._moves = {}

    def evaluate(self, part: Part, trained: TrainStats | None = None) -> RankingMetrics:
        return super().evaluate(part) if part == "test" else self.told_results(part)

    def told_results(self, part: Part, own: Metrics | None = None) -> RankingMetrics:
        """Ranks that leave out evaluation triples alone: those are public where results are told, train triples not."""
        triples = self.graph.part(part)
        tail = self._public_ranking.rank(self.model, triples, "tail")
        return RankingMetrics(tail, tail + self._public_ranking.rank(self.model, triples, "head"))


def _mechanism(plan: PrivatePlan, entities: int) -> Mechanism | None:
    """Of a client that chooses rows, by public settings and the number of its entities, which is public too."""
    privacy = plan.privacy
    match privacy.dp:
        case "adafest":
            share, sampling = privacy.dp_row_share, privacy.dp_sampling
            usual = AdaFest.of_total(plan.own_multiplier, 0.0, sampling, share)
            threshold = privacy.dp_row_threshold * usual.selection_noise
            return AdaFest.of_total(plan.own_multiplier, threshold, sampling, share)
        case "flames":
            return Flames.of_total(plan.own_multiplier, (1, entities), plan.step_delta, privacy.dp_sampling)
        case _:
            return None


def _content(table: Tensor) -> bytes:
    return digest(np.ascontiguousarray(table.cpu().numpy()).tobytes())


def make_learner(settings: RunConfig, graph: ClientGraph, client: int, device: torch.device) -> PrivateLearner:
    """A client's learner, by the settings of its run."""
    return PrivateLearner(settings, graph, client, device)
