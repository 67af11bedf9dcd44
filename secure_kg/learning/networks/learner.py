"""The learner of a graph network: the rows it exchanges, its state, and its ranking. How it trains, its own class says.

Whatever a network may be, its clients share rows that go into the encoder. Encoder and decoder stay with each client.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, Part
from secure_kg.data.soundness import about_graph
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.learning.adam import Adam
from secure_kg.learning.learner import Learner, Rows, Settings, TrainStats
from secure_kg.models.networks.base import GraphNetwork, Nodes, NodeScorer
from secure_kg.models.networks.config import NetworkConfig
from secure_kg.models.networks.kinds import imported, network_kind

BOTH: Final = "entity and relation"
_BLOCKS: Final = ("entity", "relation")
_ENCODED: Final = "encoded"
_OPTIMISER: Final = "optimiser"


class NetworkLearner(Learner):
    """Trains a graph network on one client's graph.

    A class over this one makes the network and its optimisers, hands them to `__init__`, and has `train`.
    """

    def __init__(
        self,
        graph: ClientGraph,
        config: NetworkConfig,
        network: GraphNetwork,
        optimisers: Mapping[str, Adam],
        device: torch.device,
    ) -> None:
        """`optimisers`: by names under which their states are saved."""
        self.graph, self.config, self.network = graph, config, network
        self._optimisers, self._device = dict(optimisers), device
        self._ranking = FilteredRanking(graph, device, config.eval_megabytes)

    @abstractmethod
    def train(self, round: int) -> TrainStats:
        """Local epochs of one round; raises `TrainingDiverged` if anything stops being finite."""

    @torch.no_grad()
    def nodes(self) -> Nodes:
        """Encoded rows of the network as it stands."""
        return self.network.nodes()

    def block_names(self, block: str) -> tuple[str, ...]:
        """Entities or relations, in the order of local ids. In a block of both, their names say which they are."""
        entities, relations = self.graph.entities, self.graph.relations
        if block == BOTH:
            return (*(f"entity {name}" for name in entities), *(f"relation {name}" for name in relations))
        return relations if block == "relation" else entities

    def export_block(self, block: str) -> Rows:
        """A copy of the rows [n, width] that go in, in local ids; of both tables one after the other."""
        if block == BOTH:
            return np.concatenate([self.export_block(name) for name in _BLOCKS])
        return self._rows(block).detach().cpu().numpy().copy()

    def load_block(self, block: str, rows: Rows) -> None:
        """Replace rows that go in. The moments of optimisers stay."""
        if block == BOTH:
            for name, part in zip(_BLOCKS, np.split(rows, [len(self.graph.entities)]), strict=True):
                self.load_block(name, part)
            return
        target = self._rows(block)
        if rows.shape != tuple(target.shape):
            raise ValueError(f"{block} rows must have shape {tuple(target.shape)}, not {rows.shape}")
        with torch.no_grad():
            target.copy_(torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)))

    def evaluate(self, part: Part, trained: TrainStats | None = None) -> RankingMetrics:
        scorer, triples = NodeScorer(self.nodes(), self.network.decoder), self.graph.part(part)
        tail = self._ranking.rank(scorer, triples, "tail")
        both = tail + self._ranking.rank(scorer, triples, "head")
        if trained is None:
            return RankingMetrics(tail, both)
        return RankingMetrics(tail, both, loss_sum=trained.loss * trained.triples, loss_triples=trained.triples)

    def about(self) -> dict[str, Any]:
        return about_graph(self.graph)

    def digest(self) -> bytes:
        """SHA-256 of the network's state: the same if and only if that is."""
        state = hashlib.sha256()
        for name, value in self._kept().items():
            values = value.detach().cpu().numpy()
            state.update(f"{name}/{values.shape}/".encode())
            state.update(np.ascontiguousarray(values, dtype="<f4").tobytes())
        return state.digest()

    def parameters_state(self) -> dict[str, Tensor]:
        """The network's state, and the encoded rows, which score triples without the graph."""
        return _copied(self._kept()) | encoded_state(self.nodes())

    def load_parameters(self, state: dict[str, Tensor]) -> None:
        """Take the network's state back. Encoded rows follow from it."""
        with torch.no_grad():
            for name, value in self._kept().items():
                value.copy_(state[name])

    def state(self) -> dict[str, Tensor]:
        """That of `parameters_state` and of the optimisers."""
        return self.parameters_state() | {
            f"{_OPTIMISER}/{each}/{name}/{key}": value.detach().cpu().clone()
            for each, optimiser in self._optimisers.items()
            for name, parameter in self.network.named_parameters()
            for key, value in optimiser.state.get(parameter, {}).items()
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.load_parameters(state)
        for each, optimiser in self._optimisers.items():
            optimiser.state.clear()
            for name, parameter in self.network.named_parameters():
                prefix = f"{_OPTIMISER}/{each}/{name}/"
                saved = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
                if saved:  # nothing before the first step
                    optimiser.state[parameter] = {
                        key: value.to(parameter.device, copy=True) for key, value in saved.items()
                    }

    def _kept(self) -> dict[str, Tensor]:
        """Parameters, and what else the network remembers, by name."""
        return dict(self.network.state_dict(keep_vars=True))

    def _rows(self, block: str) -> torch.nn.Parameter:
        if block not in _BLOCKS:
            raise ValueError(f"a graph network has no block '{block}'")
        return self.network.relation if block == "relation" else self.network.entity


def encoded_state(nodes: Nodes) -> dict[str, Tensor]:
    """Copies of encoded rows, under the names that a saved model has them by."""
    return _copied({f"{_ENCODED}.{name}": getattr(nodes, name) for name in _BLOCKS})


def _copied(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in state.items()}


def make_learner(settings: Settings, graph: ClientGraph, client: int, device: torch.device) -> NetworkLearner:
    """A client's learner, by the settings of its run."""
    if settings.network is None:
        raise ValueError("a run without a graph network")
    learner: NetworkLearner = imported(network_kind(settings.network.model).learner)(settings, graph, client, device)
    return learner
