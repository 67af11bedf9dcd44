"""What one client has stored, and which of it it tells: of an atom, the positions of its stored answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from protocols.alignment.interface import Positions
from protocols.exact.circuit import Sets
from secure_kg.data.graph import TripleArray
from secure_kg.queries.retrieval.requests import Atom
from secure_kg.queries.retrieval.rules import Rules


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A client's own names."""

    entities: tuple[str, ...] = field(repr=False)
    relations: tuple[str, ...] = field(repr=False)
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Of IRIs, to show them short."""


class StoredFacts:
    """`positions`: of the entities, in their order. `triples`: in local ids; None: there are none."""

    def __init__(
        self, vocabulary: Vocabulary, positions: Positions, rules: Rules, triples: TripleArray | None
    ) -> None:
        self._positions, self._rules = positions, rules
        self._triples = np.zeros((0, 3), dtype=np.int64) if triples is None else triples
        self._entities = {name: place for place, name in enumerate(vocabulary.entities)}
        self._relations = {name: place for place, name in enumerate(vocabulary.relations)}

    def __repr__(self) -> str:  # sizes only: triples are private and must not reach a log by accident
        return f"StoredFacts({len(self._triples)} triples)"

    def sets(self, atoms: Sequence[Atom], *, for_others: bool) -> Sets:
        """[atoms, union]: stored answers. `for_others`: of relations that this client's rules let it tell of; of others
        there are none, and nobody sees the difference."""
        found = np.zeros((len(atoms), self._positions.union_size), dtype=np.bool_)
        for row, atom in zip(found, atoms, strict=True):
            if not for_others or self._tells(atom.relation):
                row[self._positions.own[self._answers(atom)]] = True
        return found

    def _tells(self, relation: str) -> bool:
        allowed = self._rules.exact is None or relation in self._rules.exact
        return allowed and relation not in self._rules.no_atoms  # facts say more than a projection

    def _answers(self, atom: Atom) -> TripleArray:
        """Local ids. A name that this client does not know is that of no triple."""
        start, end = (2, 0) if atom.inverse else (0, 2)
        of_relation = self._triples[:, 1] == self._relations.get(atom.relation, -1)
        of_entity = self._triples[:, start] == self._entities.get(atom.entity, -1)
        answers: TripleArray = self._triples[of_relation & of_entity, end]
        return answers
