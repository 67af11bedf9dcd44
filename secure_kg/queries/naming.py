"""Queries by name over a vocabulary: names become ids, and those that are unknown come back with the nearest known.

A name that one client does not know may be known to others, so an unknown name is no error here: the caller decides
whether to warn, to ask elsewhere or to refuse. Names are compared with a client's own vocabulary and told to nobody
else.
"""

import difflib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from secure_kg.queries.form import IdQuery, NamedQuery, anchors, relations, translate

Kind = Literal["entity", "relation"]

NOT_NAMED: Final = "(not named)"
NEAREST: Final = 3
_LONGEST: Final = 200
"""Characters of a name up to which near ones are looked for: the comparison takes time that grows with their square."""
_MOST: Final = 20
"""Unknown names of one query for which near ones are looked for."""


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name that the vocabulary has not, and its nearest names there, best first."""

    kind: Kind
    name: str
    nearest: tuple[str, ...]

    def warning(self) -> str:
        """One line for the asker, who wrote the name and owns the vocabulary."""
        known = f"; the nearest known: {', '.join(map(ascii_quoted, self.nearest))}" if self.nearest else ""
        return f"unknown {self.kind} {ascii_quoted(self.name)}{known}"


def ascii_quoted(name: str) -> str:
    """A name in quotes, on one line, whatever characters it has."""
    shown = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    return f'"{shown}"' if shown.isprintable() else ascii(shown)


def name_shown(name: str | None) -> str:
    """The name of an answer as people read it, or that there is none. A name that says the latter is in quotes."""
    if name is None:
        return NOT_NAMED
    plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return ascii(name) if NOT_NAMED in plain else name


def unknown_names(query: NamedQuery, entities: Sequence[str], relations_known: Sequence[str]) -> list[UnknownName]:
    """The different names of a query that the vocabularies lack, in the order in which they occur."""
    found: list[UnknownName] = []
    asked: tuple[tuple[Kind, list[str], Sequence[str]], ...] = (
        ("relation", relations(query), relations_known),
        ("entity", anchors(query), entities),
    )
    for kind, names, vocabulary in asked:
        known = set(vocabulary)
        for name in dict.fromkeys(names):
            if name not in known:
                found.append(UnknownName(kind, name, nearest_names(name, vocabulary) if len(found) < _MOST else ()))
    return found


def nearest_names(name: str, vocabulary: Sequence[str]) -> tuple[str, ...]:
    """Those of the vocabulary that a person may have meant, best first; none for a name that is too long."""
    if len(name) > _LONGEST:
        return ()
    folded: dict[str, str] = {}
    for known in vocabulary:
        if len(known) <= _LONGEST:
            folded.setdefault(known.casefold(), known)
    return tuple(folded[near] for near in difflib.get_close_matches(name.casefold(), folded, n=NEAREST))


def to_ids(query: NamedQuery, entities: Sequence[str], relations_known: Sequence[str]) -> IdQuery:
    """The query in positions of the vocabularies; `unknown_names` must be empty, else KeyError."""
    entity = {name: number for number, name in enumerate(entities)}
    relation = {name: number for number, name in enumerate(relations_known)}
    return translate(query, entity.__getitem__, relation.__getitem__)


def to_names(query: IdQuery, entities: Sequence[str], relations_known: Sequence[str]) -> NamedQuery:
    """The inverse of `to_ids`."""
    return translate(query, entities.__getitem__, relations_known.__getitem__)
