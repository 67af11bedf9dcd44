"""What an encoder of queries is, and how it walks down any query of the general form.

Unions are moved to the top (disjunctive normal form, FedCQA Eq. 1): every conjunctive part is encoded by itself, and an
entity's score is its best among them. So no encoder needs a definition of a union. One whose negation has no
definition refuses queries with a negation.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor

from secure_kg.models.queries.shapes import EncoderShape
from secure_kg.queries.form import Anchor, Intersection, Negation, Projection, QueryError, Union
from secure_kg.queries.normal import disjuncts
from secure_kg.queries.structures import Structure

Operators: TypeAlias = Mapping[str, Tensor]
"""Parts of the flat vector by name, in their shapes."""
State: TypeAlias = Tensor
"""A set as an encoder knows it [b, ...]; its first axis are the queries of a batch."""
Lookup: TypeAlias = Callable[[int], Tensor]
"""Rows [b, d] of what stands in a column."""


class Encoder(ABC):
    """Pure functions of rows and of operators. It has no rows: whoever holds them hands them in."""

    title: ClassVar[str]

    def __init__(self, operators: Operators, shape: EncoderShape) -> None:
        self.operators, self.shape = operators, shape

    @abstractmethod
    def anchor(self, rows: Tensor) -> State:
        """The set of one entity with row [b, d]."""

    @abstractmethod
    def project(self, state: State, relation: Tensor, of_anchor: bool) -> State:
        """From a set along the relation with row [b, d]. `of_anchor`: the set is an anchor's."""

    @abstractmethod
    def intersect(self, states: Sequence[State]) -> State:
        """Two sets or more."""

    def complement(self, state: State) -> State:
        """Everything that is not in the set."""
        raise QueryError(f"{self.title} has no definition of a negation; --encoder q2p has")

    @abstractmethod
    def points(self, state: State) -> Tensor:
        """Points [b, k, d] that entities are compared with; the best one counts."""


@cache
def conjunctions(structure: Structure) -> tuple[Structure, ...]:
    """The conjunctive parts of a structure, computed once."""
    return disjuncts(structure)


def encode(encoder: Encoder, structure: Structure, entity: Lookup, relation: Lookup) -> Tensor:
    """Points [b, k, d] of a batch of queries of one structure."""
    found = [encoder.points(_state(encoder, part, entity, relation)) for part in conjunctions(structure)]
    return found[0] if len(found) == 1 else torch.cat(found, dim=1)


def _state(encoder: Encoder, node: Structure, entity: Lookup, relation: Lookup) -> State:
    match node:
        case Anchor(entity=column):
            return encoder.anchor(entity(column))
        case Projection(relation=column, of=of):
            inner = _state(encoder, of, entity, relation)
            return encoder.project(inner, relation(column), isinstance(of, Anchor))
        case Negation(of=of):
            return encoder.complement(_state(encoder, of, entity, relation))
        case Intersection(parts=parts):
            return encoder.intersect([_state(encoder, part, entity, relation) for part in parts])
        case Union():
            raise QueryError("a union within a conjunctive query")
