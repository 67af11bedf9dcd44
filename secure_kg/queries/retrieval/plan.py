"""Plan of a question: which vectors are looked up, and in which order.

Unions are moved to the top, and each branch is encoded by itself. Every anchor is looked up, and then every projection,
all of one depth together: whether the asker knows them itself makes no difference to what is asked. So what others see
follows from the question. Parts that occur several times are looked up once.
"""

from dataclasses import dataclass

from secure_kg.queries.form import Anchor, NamedQuery, Projection, children
from secure_kg.queries.normal import canonical, disjuncts

NamedProjection = Projection[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """`branches`: queries without a union, whose answers together are those of the question."""

    branches: tuple[NamedQuery, ...]
    anchors: tuple[Anchor[str], ...]
    levels: tuple[tuple[NamedProjection, ...], ...]
    """Projections by how many others lie below each of them."""

    @classmethod
    def of(cls, query: NamedQuery) -> "Plan":
        branches = tuple(dict.fromkeys(map(canonical, disjuncts(canonical(query)))))
        depths: dict[NamedQuery, int] = {}
        for branch in branches:
            _note_depths(branch, depths)
        projections = {node: depth for node, depth in depths.items() if isinstance(node, Projection)}
        last = max(projections.values(), default=0)
        levels = tuple(
            tuple(node for node, depth in projections.items() if depth == level) for level in range(1, last + 1)
        )
        return cls(branches, tuple(node for node in depths if isinstance(node, Anchor)), levels)


def _note_depths(node: NamedQuery, depths: dict[NamedQuery, int]) -> int:
    """Of a node and all below it: how many projections follow each other there, at most."""
    below = [_note_depths(child, depths) for child in children(node)]
    depth = max(below, default=0) + isinstance(node, Projection)
    depths[node] = depth
    return depth
