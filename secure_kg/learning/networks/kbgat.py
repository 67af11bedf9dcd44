"""The learner of KB-GAT: an encoder trained in every round, and a decoder fitted where something is to be ranked.

A round trains the encoder from the rows that go in; the rows that come out take their place, so that they are what
clients share and what the next round starts from (FedR, appendix D). The decoder is fitted to the rows as they are when
an evaluation asks for it, from first filters that depend on the seed alone: with the means loaded, that is, as in
FedR's public code, and not in rounds without an evaluation. So it is a function of the rows, and no state of its own.
"""

import math

import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.foundation.seeds import generator, torch_seed
from secure_kg.learning.learner import Rows, Settings, TrainStats
from secure_kg.learning.networks.corrupting import Corruption
from secure_kg.learning.networks.kbgat_steps import Stage, fit_decoder, train_encoder
from secure_kg.learning.networks.learner import NetworkLearner
from secure_kg.models.networks.base import Nodes
from secure_kg.models.networks.convkb import ConvKB
from secure_kg.models.networks.edges import edges_of
from secure_kg.models.networks.kbgat import Kbgat
from secure_kg.models.networks.kbgat_config import KbgatConfig


class KbgatLearner(NetworkLearner):
    """Trains on one client's graph.

    Adam begins anew in every round, as in FedR's code: what its moments were about is no longer what goes in.
    """

    def __init__(self, settings: Settings, graph: ClientGraph, client: int, device: torch.device) -> None:
        config = settings.network
        if not isinstance(config, KbgatConfig):
            raise ValueError("settings of another network")
        self._config, self._seed, self._client = config, settings.seed, client
        sizes = len(graph.entities), len(graph.relations)
        # Networks begin alike at all clients: rows that different maps have made have no mean.
        rows, networks = self._torch("initial rows", client), self._torch("initial networks")
        self._kbgat = Kbgat(sizes, config, rows, networks).to(device)
        super().__init__(graph, config, self._kbgat, {}, device)
        edges = edges_of(graph.train, *sizes, config.two_hop, generator(self._seed, "2-hop edges", client))
        self._stage = Stage(graph.train, edges.to(device), Corruption(graph.train, *sizes), config, device)

    def train(self, round: int) -> TrainStats:
        """Epochs of the encoder; raises `TrainingDiverged` if anything stops being finite."""
        rate = self._config.lr * self._config.lr_decay ** max(0, round - 1)
        draws = generator(self._seed, "order and negatives", self._client, round)
        fit, nodes = train_encoder(self._stage, self._kbgat, rate, draws, self._torch("dropout", self._client, round))
        self._require_finite(nodes, f"training is not finite in round {round}")
        with torch.no_grad():
            self._kbgat.entity.copy_(nodes.entity)
            self._kbgat.relation.copy_(nodes.relation)
        self._kbgat.fitted.zero_()
        return TrainStats(math.fsum(fit.losses) / len(fit.losses), fit.triples, fit.steps)

    def nodes(self) -> Nodes:
        """Rows to rank by; the decoder is fitted now if rows have changed since it was."""
        if not bool(self._kbgat.fitted):
            self._fit()
        return self._kbgat.nodes()

    def load_block(self, block: str, rows: Rows) -> None:
        super().load_block(block, rows)
        self._kbgat.fitted.zero_()

    def parameters_state(self) -> dict[str, Tensor]:
        """Rows, encoder and decoder, and the rows that this was last fitted with."""
        kept = self._kept() | self._following()
        return {name: value.detach().cpu().clone() for name, value in kept.items()}

    def load_parameters(self, state: dict[str, Tensor]) -> None:
        super().load_parameters(state)
        with torch.no_grad():
            for name, value in self._following().items():
                value.copy_(state[name])

    def _fit(self) -> None:
        config, model = self._config, self._kbgat
        first = ConvKB(config.dim, config.filters, self._torch("initial decoder"))
        model.decoder.load_state_dict(first.state_dict())
        draws = generator(self._seed, "order and negatives of the decoder", self._client)
        _, nodes = fit_decoder(self._stage, model.decoder, Nodes(model.entity, model.relation), draws)
        self._require_finite(nodes, "the decoder's fit is not finite")
        scored = model.nodes()
        scored.entity.copy_(nodes.entity)
        scored.relation.copy_(nodes.relation)
        model.fitted.fill_(1)

    def _require_finite(self, nodes: Nodes, what: str) -> None:
        if not (bool(nodes.entity.isfinite().all()) and bool(nodes.relation.isfinite().all())):
            raise TrainingDiverged(f"client {self._client}: {what}; a smaller --lr may help")

    def _kept(self) -> dict[str, Tensor]:
        """What training goes on from, and what digests are of."""
        return {name: value for name, value in super()._kept().items() if not name.startswith("decoder.")}

    def _following(self) -> dict[str, Tensor]:
        """What follows from it and is saved so that nobody needs to fit it again."""
        decoder = {f"decoder.{name}": value for name, value in self._kbgat.decoder.state_dict(keep_vars=True).items()}
        nodes = self._kbgat.nodes()
        return decoder | {
            "encoded.entity": nodes.entity,
            "encoded.relation": nodes.relation,
            "fitted": self._kbgat.fitted,
        }

    def _torch(self, *purpose: str | int) -> torch.Generator:
        return torch.Generator().manual_seed(torch_seed(self._seed, *purpose))
