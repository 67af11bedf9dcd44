"""KB-GAT (Nathani et al., ACL 2019): two layers of attention over triples and 2-hop edges.

    X = concat over heads of ELU(attention(H⁰, G)),   G' = G W^R,
    H' = ELU(mean over heads of attention(X, G')),     H = (H⁰ W^E + H') / ‖H⁰ W^E + H'‖

H⁰ and G are the rows that go in, H⁰ of length one. The encoder is trained by a margin loss on d = ‖h + r − t‖₁ of the
rows that come out; ConvKB (`convkb`) then scores by them. Memory: [nodes, heads · width], a few times over, beside
what `attention` and `edges` state.
"""

import math
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, normalize

from secure_kg.models.networks.attention import Kept, attend
from secure_kg.models.networks.base import GraphNetwork, Nodes
from secure_kg.models.networks.convkb import ConvKB
from secure_kg.models.networks.edges import Edges
from secure_kg.models.networks.kbgat_config import KbgatConfig

_GAIN: Final = 1.414


class _Head(nn.Module):
    """A, B, C and w of one attention head."""

    def __init__(self, entity: int, relation: int, out: int, generator: torch.Generator) -> None:
        super().__init__()
        spread = _GAIN * math.sqrt(2 / (out + 2 * entity + relation))
        self.own, self.other, self.along = (
            nn.Parameter(torch.empty(width, out).normal_(0, spread, generator=generator))
            for width in (entity, entity, relation)
        )
        self.scorer = nn.Parameter(torch.empty(out).normal_(0, _GAIN * math.sqrt(2 / (1 + out)), generator=generator))

    def forward(self, edges: Edges, nodes: Tensor, kinds: Tensor, kept: Kept | None) -> Tensor:
        parts = nodes @ self.own, nodes @ self.other, kinds @ self.along
        return attend(edges, parts, self.scorer, kept)


class KbgatEncoder(nn.Module):
    """The two layers. Whoever has the rows and the edges hands them in."""

    def __init__(self, dim: int, heads: int, generator: torch.Generator) -> None:
        """`generator`: on the CPU, so that the same seed gives the same networks on every device."""
        super().__init__()
        self.first = nn.ModuleList(_Head(dim, dim, dim, generator) for _ in range(heads))
        self.second = nn.ModuleList(_Head(heads * dim, dim, dim, generator) for _ in range(heads))
        bound = _GAIN * math.sqrt(6 / (2 * dim))
        self.entities, self.relations = (
            nn.Parameter(torch.empty(dim, dim).uniform_(-bound, bound, generator=generator)) for _ in range(2)
        )

    def forward(
        self, edges: Edges, entity: Tensor, relation: Tensor, kept: Kept | None = None, attended: Tensor | None = None
    ) -> Nodes:
        """Rows that come out. `attended` [entities]: H' counts only where it is 1; None: everywhere."""
        encoded = relation @ self.relations
        hidden = torch.cat([elu(head(edges, entity, _kinds(edges, relation), kept)) for head in self.first], dim=1)
        if kept is not None:
            hidden = kept(hidden)
        found = torch.stack([head(edges, hidden, _kinds(edges, encoded), kept) for head in self.second]).mean(0)
        found = elu(found)
        if attended is not None:
            found = found * attended[:, None]
        return Nodes(normalize(entity @ self.entities + found), encoded)


def _kinds(edges: Edges, relation: Tensor) -> Tensor:
    """Rows [kinds, width]: a relation's, or the sum of those on a way of two edges."""
    with_none = torch.cat((relation, relation.new_zeros(1, relation.shape[1])))
    return with_none.index_select(0, edges.relations[:, 0]) + with_none.index_select(0, edges.relations[:, 1])


def distances(nodes: Nodes, triples: Tensor) -> Tensor:
    """‖h + r − t‖₁ of triples [b, 3]."""
    head, relation, tail = (triples[:, column] for column in range(3))
    entity = nodes.entity.index_select(0, torch.cat((head, tail)))
    h, t = torch.tensor_split(entity, (len(triples),))
    return (h + nodes.relation.index_select(0, relation) - t).abs().sum(dim=1)


class Kbgat(GraphNetwork):
    """Rows that go in, encoder and decoder, and the rows that the decoder was last fitted with."""

    fitted: Tensor
    """[]: 1 if those are of the rows that go in as they are now, else 0."""

    def __init__(
        self, numbers: tuple[int, int], config: KbgatConfig, rows: torch.Generator, networks: torch.Generator
    ) -> None:
        """`numbers` of entities and relations. Generators are on the CPU; clients share that of the networks."""
        super().__init__()
        self.entity, self.relation = (
            nn.Parameter(torch.empty(number, config.dim).uniform_(-config.span, config.span, generator=rows))
            for number in numbers
        )
        self.encoder = KbgatEncoder(config.dim, config.heads, networks)
        self.decoder: ConvKB = ConvKB(config.dim, config.filters, networks)
        for name, number in zip(("scored_entity", "scored_relation"), numbers, strict=True):
            self.register_buffer(name, torch.zeros(number, config.dim), persistent=False)
        self.register_buffer("fitted", torch.zeros(()), persistent=False)

    def nodes(self) -> Nodes:
        return Nodes(self.get_buffer("scored_entity"), self.get_buffer("scored_relation"))


def make_decoder(config: KbgatConfig) -> ConvKB:
    """A decoder of this size, for a trained model to be loaded into."""
    return ConvKB(config.dim, config.filters, torch.Generator())
