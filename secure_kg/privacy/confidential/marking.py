"""Marks on training statements: which are confidential. The rule is public, the marked statements are not."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.data.triples import read_triples, shown
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator

Marks = npt.NDArray[np.bool_]
PER_ENTITY: Final = 20
"""Statements per entity that a graph is taken to have if all of them are confidential and no guess is given."""


@dataclass(frozen=True, slots=True)
class Divided:
    """The training statements of a graph in two parts."""

    unrestricted: TripleArray
    """U [n, 3]: public."""
    confidential: TripleArray
    """C [n, 3]: private, its size too."""
    expected: float
    """A public guess of the size of C, by which its steps are scaled. 0: by the rule there is no C, which is public."""

    @property
    def protects(self) -> bool:
        """Whether the rule can mark a statement at all."""
        return self.expected > 0


def divided(graph: ClientGraph, confidential: Marks, expected: float) -> Divided:
    """By marks [train triples]."""
    if not 0 < expected < float("inf"):
        raise UserError("the expected number of confidential statements must be a number above 0")
    return Divided(graph.train[~confidential], graph.train[confidential], expected)


def by_fraction(graph: ClientGraph, fraction: float, seed: int, expected: float | None = None) -> Divided:
    """Each statement with probability `fraction`, by a seed: for experiments, as in the paper's tables.

    The guess follows from U. At 1 there is no U, and the number of entities, which is public, stands for it.
    """
    if not 0 <= fraction <= 1:
        raise UserError(f"the confidential fraction lies from 0 to 1, not at {fraction:g}")
    if fraction in (0, 1):
        guess = float(PER_ENTITY * len(graph.entities)) if expected is None else expected
        marks = np.full(len(graph.train), fraction == 1)
        return divided(graph, marks, guess) if fraction == 1 else Divided(graph.train, graph.train[:0], 0.0)
    key = generator(seed, "confidential statements").integers(2**63, dtype=np.uint64)
    marks = _coins(graph, key) < fraction
    unrestricted = int((~marks).sum())
    guess = unrestricted * fraction / (1 - fraction) if expected is None else expected
    return divided(graph, marks, max(1.0, guess) if expected is None else guess)


def by_relations(graph: ClientGraph, names: Sequence[str], expected: float | None) -> Divided:
    """All statements of some predicates. Without an expected number, U's size stands for it."""
    unknown = sorted(set(names) - set(graph.relations))
    if unknown:
        raise UserError(f"{shown(unknown[0])}: no relation of the data set")
    if len(set(names)) < len(names):
        raise UserError("a relation is marked as confidential twice")
    ids = [graph.relations.index(name) for name in names]
    marks = np.isin(graph.train[:, 1], ids)
    return _with_expected(graph, marks, expected)


def by_file(graph: ClientGraph, path: Path, expected: float | None) -> Divided:
    """The statements of a triple file.

    One that is no training statement, or comes twice, is refused: it is likely a mistake. Messages name its place.
    """
    entities = {name: place for place, name in enumerate(graph.entities)}
    relations = {name: place for place, name in enumerate(graph.relations)}
    train = [tuple(triple) for triple in graph.train.tolist()]
    known = set(train)
    named = read_triples(path)
    confidential: set[tuple[int, ...]] = set()
    for place, (head, relation, tail) in enumerate(zip(named.heads, named.relations, named.tails, strict=True), 1):
        triple = entities.get(head, -1), relations.get(relation, -1), entities.get(tail, -1)
        if triple not in known:
            raise UserError(f"{shown(path)}: its statement {place} is not among the training statements")
        if triple in confidential:
            raise UserError(f"{shown(path)}: its statement {place} is marked twice")
        confidential.add(triple)
    marks = np.fromiter((triple in confidential for triple in train), dtype=np.bool_, count=len(train))
    return _with_expected(graph, marks, expected)


def _coins(graph: ClientGraph, key: np.uint64) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for each training statement, by itself and the key alone, not by which others there are.

    The mixing of SplitMix64. Marks that were sums of draws for entities and relations would not do: they would put
    statements that are like each other on the same side.
    """
    head, relation, tail = graph.train.astype(np.uint64).T
    place = (head * np.uint64(len(graph.relations)) + relation) * np.uint64(len(graph.entities)) + tail
    mixed = place * np.uint64(0x9E3779B97F4A7C15) + key
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    coins: npt.NDArray[np.float64] = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) / 2.0**53
    return coins


def _with_expected(graph: ClientGraph, marks: Marks, expected: float | None) -> Divided:
    return divided(graph, marks, max(1, int((~marks).sum())) if expected is None else expected)
