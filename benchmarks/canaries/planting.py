"""Canaries: triples on entities and relations of their own, which a coin puts into the training triples or leaves out.

The names of canaries are in the public entity and relation sets either way, so nothing but the triples themselves
differs. No two canaries share a row, so what one adds to a sum is not disturbed by the coins of the others, except in
the rows of the step's candidates, which an attacker leaves aside.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import ClientGraph, TripleArray


@dataclass(frozen=True, slots=True)
class Planted:
    """A graph with canaries."""

    graph: ClientGraph
    canaries: TripleArray
    """[m, 3]: all of them."""
    inside: npt.NDArray[np.bool_]
    """[m]: those that are among the training triples; what the attacker wants to know."""


def plant(graph: ClientGraph, count: int, random: np.random.Generator) -> Planted:
    """The graph with `count` canaries, each among its training triples with probability 1/2."""
    numbers = np.arange(count)
    entities, relations = len(graph.entities), len(graph.relations)
    canaries = np.stack((entities + 2 * numbers, relations + numbers, entities + 2 * numbers + 1), axis=1)
    inside = random.random(count) < 0.5
    planted = ClientGraph(
        (*graph.entities, *(f"canary {end} {number}" for number in numbers for end in ("head", "tail"))),
        (*graph.relations, *(f"canary relation {number}" for number in numbers)),
        np.concatenate((graph.train, canaries[inside])),
        graph.valid,
        graph.test,
    )
    return Planted(planted, canaries, inside)
