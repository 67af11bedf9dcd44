"""A query as text in the toolkit's own language: what is written here is read back as the same query.

Only a query of more atoms than `MOST_ATOMS` in `places.py` can be written and not read.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Final

from secure_kg.queries.form import Anchor, Intersection, NamedQuery, Negation, Projection, QueryError, Union

_BARE: Final = re.compile(r"[^\W\d][\w-]*")
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def to_text(query: NamedQuery, name: str | None = None) -> str:
    """The query as one line, with the name of the question if it has one."""
    variables = (f"?x{number}" if number else "?x" for number in itertools.count())
    answer = next(variables)
    title = "" if name is None else f"{name_text(name)} = "
    return f"{title}{answer} : {_written(query, answer, variables, in_conjunction=False)}"


def _written(query: NamedQuery, at: str, variables: Iterator[str], *, in_conjunction: bool) -> str:
    """What must hold for the variable `at`; in a conjunction, alternatives stand in parentheses."""
    match query:
        case Anchor(entity=entity):
            return f"{at} = {quoted(entity)}"
        case Projection(relation=relation, of=Anchor(entity=entity), inverse=inverse):
            return atom_text(relation, quoted(entity), at, inverse)
        case Projection(relation=relation, of=of, inverse=inverse):
            other = next(variables)
            there = _written(of, other, variables, in_conjunction=True)
            return f"{atom_text(relation, other, at, inverse)} & {there}"
        case Negation(of=of):
            return f"!({_written(of, at, variables, in_conjunction=False)})"
        case Intersection(parts=parts):
            return " & ".join(_written(part, at, variables, in_conjunction=True) for part in parts)
        case Union(parts=parts):
            either = " | ".join(_written(part, at, variables, in_conjunction=False) for part in parts)
            return f"({either})" if in_conjunction else either


def atom_text(relation: str, source: str, target: str, inverse: bool) -> str:
    """One atom: `source` and `target` are variables or quoted names, and change places if it is an inverse one."""
    first, second = (target, source) if inverse else (source, target)
    return f"{name_text(relation)}({first}, {second})"


def name_text(name: str) -> str:
    """A name of a relation or of a question, in quotes if it needs them."""
    return name if _BARE.fullmatch(name) and name != "not" else quoted(name)


def quoted(name: str) -> str:
    """A name of an entity, in printable characters only."""
    if not name or any("\ud800" <= character < "\ue000" for character in name):
        raise QueryError("a name that is empty or not valid Unicode cannot be written")
    return f'"{"".join(map(_escaped, name))}"'


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
