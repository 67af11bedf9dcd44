"""Base of graph networks: rows that go in, an encoder over the client's own graph, rows that come out, a decoder.

Rows that go in are what clients share. Rows that come out depend on the client's triples and stay with it, unless the
learner makes them the next ones that go in (KB-GAT). The decoder scores triples by these alone, so that a ranking or a
prediction encodes once and then needs no graph.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from secure_kg.data.graph import Side

_FEWEST_TRIPLES: Final = 16
"""Products of fewer rows take another route inside the library, on which equal rows need not give equal bits."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Encoded rows of entities [entities, width] and relations [relations, width]."""

    entity: Tensor
    relation: Tensor

    def of(self, entities: Tensor, relations: Tensor) -> "Nodes":
        """Those of some entities and relations, by number."""
        return Nodes(self.entity[entities], self.relation[relations])


class Decoder(nn.Module, ABC):
    """Scores triples by encoded rows. Its parameters are a client's own."""

    described: str
    """The score in a line, for readers of exported rows."""

    @abstractmethod
    def scores(self, nodes: Nodes, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> [b, entities]: every entity as that side of each triple."""

    @abstractmethod
    def of_triples(self, nodes: Nodes, triples: Tensor) -> Tensor:
        """triples [b, 3] -> [b]."""


class GraphNetwork(nn.Module, ABC):
    """One client's network. What `state_dict` names is its state; what can be built from the graph is not there."""

    entity: nn.Parameter
    relation: nn.Parameter
    """Rows that go in, and that clients share, [n, width]."""
    decoder: Decoder

    @abstractmethod
    def nodes(self) -> Nodes:
        """Encoded rows of the network as it stands, for evaluation: nothing is dropped, nothing is remembered."""


class NodeScorer:
    """Scores of every entity as one side of a triple, for rankings (`secure_kg.evaluation.ranking.Scorer`)."""

    def __init__(self, nodes: Nodes, decoder: Decoder) -> None:
        self.nodes, self.decoder = nodes, decoder

    @torch.no_grad()
    def scores(self, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> [b, entities]."""
        missing = max(0, _FEWEST_TRIPLES - len(triples))
        filled = torch.cat((triples, triples[:1].expand(missing, 3))) if missing else triples
        return self.decoder.scores(self.nodes, filled, side)[: len(triples)]
