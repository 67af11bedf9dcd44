"""The learner of NoGE: pairs (h, r) against all tails at once, as FedR's code trains it.

Every pair (h, r) of the client's train part is one example, and its targets are all entities: 1 for those that answer
it in the train part, else 0, smoothed to (1 − s) y + 1 / n over n entities. The loss is the mean binary cross-entropy
over pairs and entities. Relations have no inverse that would be trained on heads: FedR predicts tails, and so does its
code, while that of NoGE's authors adds inverse triples. Heads are ranked by the same score, for which nothing was
trained.

A step takes the whole graph through the encoder and multiplies a batch of points with the rows of all entities:
4 batch_size · n bytes for the scores, 18 MB for 1,024 pairs and 4,500 entities.
"""


import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.foundation.seeds import generator, torch_seed
from secure_kg.learning.adam import Adam
from secure_kg.learning.device import to_device
from secure_kg.learning.learner import Settings, TrainStats
from secure_kg.learning.networks.learner import NetworkLearner
from secure_kg.models.networks.cooccurrence import cooccurrence
from secure_kg.models.networks.noge import Noge
from secure_kg.models.networks.noge_config import NogeConfig


class NogeLearner(NetworkLearner):
    """Trains on one client's graph.

    Adam begins anew in every round, as in FedR's code: the means have moved its parameters in between.
    """

    def __init__(self, settings: Settings, graph: ClientGraph, client: int, device: torch.device) -> None:
        config = settings.network
        if not isinstance(config, NogeConfig):
            raise ValueError("settings of another network")
        sizes = len(graph.entities), len(graph.relations)
        seeds = torch.Generator().manual_seed(torch_seed(settings.seed, "initial rows", client))
        self._noge = Noge(cooccurrence(graph.train, *sizes), sizes[0], config, seeds).to(device)
        self._noge_config, self._seed, self._client = config, settings.seed, client
        super().__init__(graph, config, self._noge, {}, device)
        self._pairs = Pairs(graph.train, len(graph.relations))

    def train(self, round: int) -> TrainStats:
        config, parameters = self._noge_config, list(self._noge.parameters())
        optimiser = Adam(parameters, config.lr * config.lr_decay ** max(0, round - 1))
        order = generator(self._seed, "order", self._client, round)
        draws = torch.Generator().manual_seed(torch_seed(self._seed, "dropout", self._client, round))
        loss_sum = torch.zeros((), dtype=torch.float64, device=self._device)
        examples = steps = 0
        for _ in range(config.local_epochs):
            shuffled = order.permutation(len(self._pairs.keys))
            for start in range(0, len(shuffled), config.batch_size):
                chosen = shuffled[start : start + config.batch_size]
                heads, relations, rows, tails = (to_device(one, self._device) for one in self._pairs.batch(chosen))
                scores = self._noge.tail_scores(heads, relations, draws)
                loss, gradient = smoothed_loss(scores.detach(), rows, tails, config.label_smoothing)
                gradients = torch.autograd.grad(scores, parameters, gradient)
                clip_into(parameters, gradients, config.max_norm)
                optimiser.step()
                loss_sum += loss * len(chosen)
                examples, steps = examples + len(chosen), steps + 1
        finite = torch.stack([loss_sum.isfinite(), *(p.isfinite().all() for p in parameters)]).all()
        if not bool(finite):
            raise TrainingDiverged(
                f"client {self._client}: training is not finite in round {round}; a smaller --lr may help"
            )
        return TrainStats(float(loss_sum) / max(examples, 1), examples, steps)


class Pairs:
    """The different pairs (h, r) of triples, and the tails of each."""

    def __init__(self, train: TripleArray, relations: int) -> None:
        self._relations = max(1, relations)
        keys = train[:, 0] * self._relations + train[:, 1]
        order = np.lexsort((train[:, 2], keys))
        self.keys, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
        self._tails, self._starts, self._counts = train[order, 2], starts, counts

    def batch(self, chosen: TripleArray) -> tuple[TripleArray, TripleArray, TripleArray, TripleArray]:
        """Heads [b] and relations [b] of pairs; rows [k] and tails [k], the places of their answers."""
        heads, relations = np.divmod(self.keys[chosen], self._relations)
        counts = self._counts[chosen]
        rows = np.repeat(np.arange(len(chosen)), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return heads, relations, rows, self._tails[self._starts[chosen][rows] + within]


def smoothed_loss(scores: Tensor, rows: Tensor, tails: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The mean binary cross-entropy of scores [b, n] and its gradient [b, n], in closed form.

    Targets are (1 − smoothing) y + 1 / n, with y = 1 at (rows, tails); without smoothing they are y. Scores are
    overwritten. No place may stand there twice.
    """
    base = 1 / scores.shape[1] if smoothing else 0.0
    answers = scores[rows, tails]
    loss = softplus(scores).sum(dtype=torch.float64) - base * scores.sum(dtype=torch.float64)
    loss -= (1 - smoothing) * answers.sum(dtype=torch.float64)
    gradient = scores.sigmoid_().sub_(base)
    gradient[rows, tails] -= 1 - smoothing
    return loss / scores.numel(), gradient.div_(scores.numel())


def clip_into(parameters: list[torch.nn.Parameter], gradients: tuple[Tensor, ...], most: float) -> None:
    """Gradients into their parameters, cut together to the length `most`."""
    length = torch.stack([one.square().sum() for one in gradients]).sum().sqrt()
    factor = (most / (length + 1e-6)).clamp(max=1.0)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient * factor
