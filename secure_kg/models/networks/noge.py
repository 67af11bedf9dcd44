"""NoGE: one graph convolution over entities and relations, and QuatE on what comes out.

    X' = tanh(BatchNorm(A X W))          encoder; X: rows that go in, entities above relations; A: `cooccurrence`
    f(h, r, t) = ⟨h' ⊗ r'/|r'|, t'⟩      decoder (Zhang et al., "Quaternion Knowledge Graph Embeddings", NeurIPS 2019)

Reference: Nguyen et al., WSDM 2022, in the form that FedR (Zhang et al., EMNLP Findings 2022, appendix B) takes: the
plain graph convolution (Kipf and Welling, ICLR 2017) of one layer, as wide as its input and without a bias.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from secure_kg.data.graph import Side
from secure_kg.models.networks.base import Decoder, GraphNetwork, Nodes
from secure_kg.models.networks.noge_config import NogeConfig
from secure_kg.models.networks.quaternions import conjugate, product, unit
from secure_kg.models.networks.sparse import SparseMatrix

_MOMENTUM = 0.1  # of the statistics that evaluation takes; that and the next one as in the authors' code
_EPSILON = 1e-5


class QuatE(Decoder):
    """Inner products of tails with turned heads. It has no parameters."""

    described = "<h * r/|r|, t>, * the Hamilton product; quarters of a row are the parts 1, i, j, k"

    def scores(self, nodes: Nodes, triples: Tensor, side: Side) -> Tensor:
        head, relation, tail = triples.t()
        turn = unit(nodes.relation[relation])
        points = product(nodes.entity[head], turn) if side == "tail" else product(nodes.entity[tail], conjugate(turn))
        return points @ nodes.entity.t()

    def of_triples(self, nodes: Nodes, triples: Tensor) -> Tensor:
        head, relation, tail = triples.t()
        return (product(nodes.entity[head], unit(nodes.relation[relation])) * nodes.entity[tail]).sum(dim=-1)


class Noge(GraphNetwork):
    """One client's network. Statistics of the normalisation are part of its state."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, matrix: SparseMatrix, entities: int, config: NogeConfig, seeds: torch.Generator) -> None:
        """`seeds`: a CPU generator, so that first values are the same whichever device the network moves to."""
        super().__init__()
        dim, self._matrix, self._dropout = config.dim, matrix, config.dropout

        def uniform(rows: int, bound: float) -> nn.Parameter:
            return nn.Parameter(torch.empty(rows, dim).uniform_(-bound, bound, generator=seeds))

        self.entity = uniform(entities, config.span)
        self.relation = uniform(matrix.size - entities, config.span)
        self.weight = uniform(dim, 1 / math.sqrt(dim))
        self.scale, self.shift = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.register_buffer("running_mean", torch.zeros(dim))
        self.register_buffer("running_var", torch.ones(dim))
        self.decoder = QuatE()

    def nodes(self) -> Nodes:
        return self._encoded(training=False)

    def compared(self, heads: Tensor, relations: Tensor, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        """Heads [b] and relations [b] to points [b, dim], and the rows of all tails that they are compared with.

        As they are trained on: statistics of all nodes normalise them, and enter the running ones. `draws`: for what is
        dropped of the points.
        """
        nodes = self._encoded(training=True)
        points = product(nodes.entity[heads], unit(nodes.relation[relations]))
        return dropped(points, self._dropout, draws), nodes.entity

    def _encoded(self, *, training: bool) -> Nodes:
        rows = self._matrix(torch.cat((self.entity, self.relation)) @ self.weight)
        statistics = self.running_mean, self.running_var
        normal = batch_norm(rows, *statistics, self.scale, self.shift, training, _MOMENTUM, _EPSILON)
        return Nodes(*torch.tensor_split(torch.tanh(normal), (len(self.entity),)))


def dropped(points: Tensor, share: float, draws: torch.Generator) -> Tensor:
    """Points with a share of their numbers set to zero, and the others raised to make up for it."""
    kept = torch.empty(points.shape).uniform_(generator=draws).to(points.device) >= share
    return points * kept / (1 - share)


def make_decoder(config: NogeConfig) -> QuatE:
    """The decoder of a trained model."""
    return QuatE()
