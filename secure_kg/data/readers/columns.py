"""Columns of a table that hold head, relation and tail: by the user's choice, or by a header that is known.

    head, relation, tail          subject, predicate, object          source, type, target
    :START_ID, :TYPE, :END_ID     relationships as neo4j-admin imports them
    _start, _type, _end           relationships as apoc.export.csv writes them

Letter case does not count. Columns are chosen by name (the table has a header) or by number from 1 (it has none).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from secure_kg.data.readers.interface import refuse

KNOWN: Final = (
    ("head", "relation", "tail"),
    ("subject", "predicate", "object"),
    ("source", "type", "target"),
)
ADMIN: Final = (":start_id", ":type", ":end_id")
APOC: Final = ("_start", "_type", "_end")
_ID_SPACE: Final = re.compile(r"(:(?:start|end)_id)(?:\(([^)]*)\))?(?:\{.*\})?", re.IGNORECASE)
Kind = Literal["triples", "admin", "apoc"]


@dataclass(frozen=True, slots=True)
class Columns:
    """Where head, relation and tail stand."""

    places: tuple[int, int, int]
    width: int
    """Fields in a row."""
    header: bool
    """Whether the first row is a header."""
    named: bool = True
    """Whether somebody has named columns: the user, or the header."""
    kind: Kind = "triples"
    spaces: tuple[str, str] = ("", "")
    """Of neo4j-admin: the spaces of ids that heads and tails are of. An id is unique in its space only."""
    node_name: tuple[int, int] | None = None
    """Of apoc: the columns of `_id` and of the property that names nodes, if one does."""


def find_columns(path: Path, first: Sequence[str], chosen: tuple[str, ...], line: int, *, bare: bool) -> Columns:
    """Columns by the first row of a table. `bare`: without a known header it is three columns without names."""
    if chosen and all(name.isascii() and name.isdigit() for name in chosen):
        return _by_number(path, len(first), chosen, line)
    names = [name.strip().lower() for name in first]
    if chosen and not set(APOC) <= set(names):
        return Columns(_places(path, names, [name.lower() for name in chosen], line), len(first), True)
    found = [known for known in KNOWN if set(known) <= set(names)]
    plain, spaces = _without_spaces(first)
    if set(ADMIN) <= set(plain):
        return Columns(_places(path, plain, ADMIN, line), len(first), True, kind="admin", spaces=spaces)
    if set(APOC) <= set(names):
        node_name = _node_name(path, names, chosen, line)
        return Columns(_places(path, names, APOC, line), len(first), True, kind="apoc", node_name=node_name)
    if len(found) > 1:
        refuse(path, "a header that names head, relation and tail twice; choose with --columns", line)
    if found:
        return Columns(_places(path, names, found[0], line), len(first), True)
    if bare:
        return Columns((0, 1, 2), 3, header=False, named=False)
    refuse(path, "no known header (such as head,relation,tail); name the columns with --columns", line)


def is_header(first: Sequence[str]) -> bool:
    """Whether a first row would be taken for a header."""
    names = {name.strip().lower() for name in first}
    return any(set(known) <= names for known in (*KNOWN, APOC)) or set(ADMIN) <= set(_without_spaces(first)[0])


def _by_number(path: Path, width: int, chosen: tuple[str, ...], line: int) -> Columns:
    head, relation, tail = (int(number) - 1 if len(number) < 6 else width for number in chosen)
    if not all(0 <= place < width for place in (head, relation, tail)):
        refuse(path, f"--columns: this row has columns 1 to {width}", line)
    return Columns((head, relation, tail), width, header=False)


def _places(path: Path, names: Sequence[str], wanted: Sequence[str], line: int) -> tuple[int, int, int]:
    for number, name in enumerate(wanted, start=1):
        if (count := names.count(name)) != 1:
            which = f"column {number} of those that were chosen" if tuple(wanted) not in KNOWN else f"column {name}"
            refuse(path, f"{which} is {'not in the header' if count == 0 else 'there more than once'}", line)
    head, relation, tail = (names.index(name) for name in wanted)
    return head, relation, tail


def _without_spaces(first: Sequence[str]) -> tuple[list[str], tuple[str, str]]:
    """Names as neo4j-admin knows them without `(space)`, and the spaces of heads and tails."""
    plain, spaces = [], {":start_id": "", ":end_id": ""}
    for name in map(str.strip, first):
        if match := _ID_SPACE.fullmatch(name):
            name = match[1].lower()
            spaces[name] = match[2] or ""
        plain.append(name.lower())
    return plain, (spaces[":start_id"], spaces[":end_id"])


def _node_name(path: Path, names: Sequence[str], chosen: tuple[str, ...], line: int) -> tuple[int, int] | None:
    wanted = {name.lower() for name in chosen} - set(APOC)
    if not wanted:
        return None
    if len(wanted) > 1 or any(names.count(name) != 1 for name in ("_id", *wanted)):
        refuse(path, "--columns of this export: PROPERTY,_type,PROPERTY with one property that names nodes", line)
    return names.index("_id"), names.index(wanted.pop())
