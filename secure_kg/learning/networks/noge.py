"""The learner of NoGE: pairs (h, r) against all tails at once, as FedR's code trains it.

Every pair (h, r) of the client's train part is one example, and its targets are all entities: 1 for those that answer
it in the train part, else 0, smoothed to (1 − s) y + 1 / n over n entities. The loss is the mean binary cross-entropy
over pairs and entities. Relations have no inverse that would be trained on heads: FedR predicts tails, and so does its
code, while that of NoGE's authors adds inverse triples. Heads are ranked by the same score, for which nothing was
trained.

A step takes the whole graph through the encoder and multiplies a batch of points with the rows of all entities. It
needs 8 · 128 · n bytes for scores, 13 MB for 13,000 entities, whatever the batch.
"""

from typing import Final

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, Part, TripleArray
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.foundation.seeds import generator, torch_seed
from secure_kg.learning.adam import Adam
from secure_kg.learning.device import to_device
from secure_kg.learning.learner import Rows, Settings, TrainStats
from secure_kg.learning.networks.learner import NetworkLearner
from secure_kg.models.networks.cooccurrence import cooccurrence
from secure_kg.models.networks.noge import Noge
from secure_kg.models.networks.noge_config import NogeConfig

_OWN: Final = "own"
_BLOCK: Final = 128  # points whose scores are there at a time


class NogeLearner(NetworkLearner):
    """Trains on one client's graph."""

    def __init__(self, settings: Settings, graph: ClientGraph, client: int, device: torch.device) -> None:
        config = settings.network
        if not isinstance(config, NogeConfig):
            raise ValueError("settings of another network")
        sizes = len(graph.entities), len(graph.relations)
        seeds = torch.Generator().manual_seed(torch_seed(settings.seed, "initial rows", client))
        self._noge = Noge(cooccurrence(graph.train, *sizes), sizes[0], config, seeds).to(device)
        self._noge_config, self._seed, self._client = config, settings.seed, client
        self._optimiser = Adam(self._noge.parameters(), config.lr)
        super().__init__(graph, config, self._noge, {"adam": self._optimiser}, device)
        self._pairs = Pairs(graph.train, len(graph.relations))
        self._loss = SmoothedLoss(config.label_smoothing)
        self._own: dict[str, Rows] = {}
        """By block: this client's own rows where means stand in their place for an evaluation."""

    def load_block(self, block: str, rows: Rows) -> None:
        """Replace rows that go in; of means that are for evaluation only, own rows are kept for the next training."""
        if block in ("entity", "relation") and self._noge_config.means_loaded == "for-evaluation":
            self._own.setdefault(block, self.export_block(block))
        super().load_block(block, rows)

    def evaluate(self, part: Part, trained: TrainStats | None = None) -> RankingMetrics:
        self._own.clear()  # as in FedR's code, which writes the means over them
        return super().evaluate(part, trained)

    def state(self) -> dict[str, Tensor]:
        own = {f"{_OWN}/{block}": torch.from_numpy(rows.copy()) for block, rows in self._own.items()}
        return super().state() | own

    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state)
        prefix = f"{_OWN}/"
        own = {name.removeprefix(prefix): rows for name, rows in state.items() if name.startswith(prefix)}
        self._own = {block: rows.numpy().copy() for block, rows in own.items()}

    def train(self, round: int) -> TrainStats:
        for block, kept in self._own.items():
            super().load_block(block, kept)
        self._own.clear()
        config, parameters = self._noge_config, list(self._noge.parameters())
        self._optimiser.rate = config.lr * config.lr_decay ** max(0, round - 1)
        if config.moments == "anew":
            self._optimiser.state.clear()
        order = generator(self._seed, "order", self._client, round)
        draws = torch.Generator().manual_seed(torch_seed(self._seed, "dropout", self._client, round))
        loss_sum = torch.zeros((), dtype=torch.float64, device=self._device)
        examples = steps = 0
        for _ in range(config.local_epochs):
            shuffled = order.permutation(len(self._pairs.keys))
            for start in range(0, len(shuffled), config.batch_size):
                chosen = shuffled[start : start + config.batch_size]
                loss_sum += self._gradients(chosen, draws) * len(chosen)
                self._optimiser.step()
                examples, steps = examples + len(chosen), steps + 1
        # One check per round, as for embeddings: a value that is not finite stays so.
        finite = torch.stack([loss_sum.isfinite(), *(p.isfinite().all() for p in parameters)]).all()
        if not bool(finite):
            raise TrainingDiverged(
                f"client {self._client}: training is not finite in round {round}; a smaller --lr may help"
            )
        return TrainStats(float(loss_sum) / max(examples, 1), examples, steps)

    def _gradients(self, chosen: TripleArray, draws: torch.Generator) -> Tensor:
        """Gradients of a batch of pairs into the parameters; returns its mean loss."""
        heads, relations, places, tails = (to_device(one, self._device) for one in self._pairs.batch(chosen))
        points, rows = self._noge.compared(heads, relations, draws)
        loss, by_points, by_rows = self._loss.of(points.detach(), rows.detach(), (places, tails))
        parameters = list(self._noge.parameters())
        gradients = torch.autograd.grad((points, rows), parameters, (by_points, by_rows))
        clip_into(parameters, gradients, self._noge_config.max_norm)
        return loss


class Pairs:
    """The different pairs (h, r) of triples, and the different tails of each."""

    def __init__(self, train: TripleArray, relations: int) -> None:
        self._relations = max(1, relations)
        triples = np.unique(train, axis=0)  # sorted, and without repetitions, which a damaged split may have
        keys = triples[:, 0] * self._relations + triples[:, 1]
        self.keys, self._starts, self._counts = np.unique(keys, return_index=True, return_counts=True)
        self._tails = triples[:, 2]

    def batch(self, chosen: TripleArray) -> tuple[TripleArray, TripleArray, TripleArray, TripleArray]:
        """Heads [b] and relations [b] of pairs; numbers of pairs [k] and tails [k], the places of their answers."""
        heads, relations = np.divmod(self.keys[chosen], self._relations)
        counts = self._counts[chosen]
        pairs = np.repeat(np.arange(len(chosen)), counts)
        within = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
        return heads, relations, pairs, self._tails[self._starts[chosen][pairs] + within]


class SmoothedLoss:
    """The mean binary cross-entropy of points [b, width] with the rows of all entities [n, width], and its gradient.

    Targets are (1 − smoothing) y + 1 / n, with y = 1 for answers; without smoothing they are y. Scores are made and
    used up in blocks of points, in memory that is kept: they stay in the processor's cache, and a third of the time
    that whole batches take is saved.
    """

    def __init__(self, smoothing: float) -> None:
        self._smoothing = smoothing
        self._scores = self._losses = torch.empty(0)

    @torch.no_grad()
    def of(self, points: Tensor, rows: Tensor, answers: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """The loss in double precision, and its gradients by points and by rows.

        `answers`: numbers of points, ascending, and of entities. No pair may stand there twice.
        """
        kept, base = 1 - self._smoothing, 1 / len(rows) if self._smoothing else 0.0
        self._make_room(len(rows), points.device)
        by_points, by_rows = torch.empty_like(points), torch.zeros_like(rows)
        ends = torch.searchsorted(answers[0], torch.arange(0, len(points) + _BLOCK, _BLOCK, device=points.device))
        loss = torch.zeros((), dtype=torch.float64, device=points.device)
        for number, block in enumerate(torch.split(points, _BLOCK)):
            first, own = number * _BLOCK, slice(*ends[number : number + 2].tolist())
            scores, places = self._scores[: len(block)], (answers[0][own] - first, answers[1][own])
            torch.mm(block, rows.t(), out=scores)
            torch.ops.aten.softplus.out(scores, out=self._losses[: len(block)])
            loss += self._losses[: len(block)].sum(dim=1).double().sum() - base * scores.sum(dim=1).double().sum()
            loss -= kept * scores[places].double().sum()
            scores.sigmoid_().sub_(base)
            scores[places] -= kept
            torch.mm(scores, rows, out=by_points[first : first + len(block)])
            by_rows.addmm_(scores.t(), block)
        entries = len(points) * len(rows)
        return loss / entries, by_points.div_(entries), by_rows.div_(entries)

    def _make_room(self, entities: int, device: torch.device) -> None:
        if self._scores.shape[1:] != (entities,):
            self._scores, self._losses = (torch.empty(_BLOCK, entities, device=device) for _ in range(2))


def clip_into(parameters: list[torch.nn.Parameter], gradients: tuple[Tensor, ...], most: float) -> None:
    """Gradients into their parameters, cut together to the length `most`."""
    length = torch.stack([one.square().sum() for one in gradients]).sum().sqrt()
    factor = (most / (length + 1e-6)).clamp(max=1.0)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient * factor
