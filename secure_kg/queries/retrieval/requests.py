"""Requests as an asker seals them. Names stand in cells of one size, so a request tells the server numbers and no more.

    entities      one cell each: length (1 byte) and name
    atoms         for each: a flag (1 byte: against the relation), a cell with the entity, a cell with the relation
    projections   for each: flags (1 byte: against the relation, from an anchor), a cell with the relation, the point
    points        numbers alone

Whoever reads a request was sent it by another client: everything is checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.alignment.psu.names import MAX_NAME_BYTES
from protocols.foundation.errors import PeerMisbehaved
from secure_kg.foundation.errors import UserError
from secure_kg.queries.naming import ascii_quoted

Numbers = npt.NDArray[np.float32]
CELL_BYTES: Final = 1 + MAX_NAME_BYTES
_INVERSE, _OF_ANCHOR = 1, 2
_NUMBER_BYTES: Final = 4
_ATOM_BYTES: Final = 1 + 2 * CELL_BYTES


@dataclass(frozen=True, slots=True)
class Step:
    """One projection: a point, flat, along or against a relation. Private: kept out of reprs."""

    relation: str = field(repr=False)
    inverse: bool
    of_anchor: bool
    """Whether the point is an anchor's."""
    point: Numbers = field(repr=False)


@dataclass(frozen=True, slots=True)
class Atom:
    """All that stored facts lead to from an entity along a relation, or against it. Private: kept out of reprs."""

    entity: str = field(repr=False)
    relation: str = field(repr=False)
    inverse: bool


def bytes_of_step(width: int) -> int:
    """Of one projection in a request, for points of so many numbers."""
    return 1 + CELL_BYTES + _NUMBER_BYTES * width


def write_names(names: Sequence[str]) -> bytes:
    return b"".join(map(_cell, names))


def read_names(request: bytes, count: int) -> list[str]:
    """`PeerMisbehaved` if these are not so many names."""
    if len(request) != count * CELL_BYTES:
        raise PeerMisbehaved("a request for entities of another length")
    return [_name(request[start : start + CELL_BYTES]) for start in range(0, len(request), CELL_BYTES)]


def write_atoms(atoms: Sequence[Atom]) -> bytes:
    return b"".join(bytes([_INVERSE * atom.inverse]) + _cell(atom.entity) + _cell(atom.relation) for atom in atoms)


def read_atoms(request: bytes, count: int) -> list[Atom]:
    """`PeerMisbehaved` if these are not so many atoms."""
    if len(request) != count * _ATOM_BYTES:
        raise PeerMisbehaved("a request for exact answers of another length")
    return [_atom(request[start : start + _ATOM_BYTES]) for start in range(0, len(request), _ATOM_BYTES)]


def write_steps(steps: Sequence[Step]) -> bytes:
    return b"".join(
        bytes([_INVERSE * step.inverse | _OF_ANCHOR * step.of_anchor]) + _cell(step.relation) + write_points(step.point)
        for step in steps
    )


def read_steps(request: bytes, count: int, width: int, largest: float) -> list[Step]:
    """`PeerMisbehaved` if these are not so many projections of points of so many numbers, none beyond ±`largest`."""
    size = bytes_of_step(width)
    if len(request) != count * size:
        raise PeerMisbehaved("a request for projections of another length")
    return [_step(request[start : start + size], width, largest) for start in range(0, len(request), size)]


def write_points(points: Numbers) -> bytes:
    return np.ascontiguousarray(points, dtype="<f4").tobytes()


def read_points(request: bytes, count: int, width: int, largest: float) -> Numbers:
    """[count, width]. `PeerMisbehaved` if these are no such points.

    `largest`: no number is beyond, by terms that all have alike. Larger ones would make what a client computes from
    its own rows overflow, or not, and so tell of these rows.
    """
    if len(request) != _NUMBER_BYTES * count * width:
        raise PeerMisbehaved("points of another number or width")
    points = np.frombuffer(request, dtype="<f4").reshape(count, width).astype(np.float32)
    if not np.isfinite(points).all():
        raise PeerMisbehaved("points that are not finite")
    if beyond(points, largest):
        raise PeerMisbehaved("points with numbers that are too large")
    return points


def beyond(points: Numbers, largest: float) -> bool:
    """Whether a number is not finite, or beyond ±`largest`."""
    return not bool((np.abs(points) <= largest).all())


def _step(content: bytes, width: int, largest: float) -> Step:
    flags = content[0]
    if flags > (_INVERSE | _OF_ANCHOR):
        raise PeerMisbehaved("a projection of no known kind")
    (point,) = read_points(content[1 + CELL_BYTES :], 1, width, largest)
    return Step(_name(content[1 : 1 + CELL_BYTES]), bool(flags & _INVERSE), bool(flags & _OF_ANCHOR), point)


def _atom(content: bytes) -> Atom:
    if content[0] > _INVERSE:
        raise PeerMisbehaved("an atom of no known kind")
    return Atom(_name(content[1 : 1 + CELL_BYTES]), _name(content[1 + CELL_BYTES :]), bool(content[0]))


def _cell(name: str) -> bytes:
    encoded = name.encode("utf-8", "surrogatepass")
    if len(encoded) > MAX_NAME_BYTES:
        raise UserError(f"{ascii_quoted(name)}: a name of more than {MAX_NAME_BYTES} bytes cannot be asked for")
    return (bytes([len(encoded)]) + encoded).ljust(CELL_BYTES, b"\0")


def _name(cell: bytes) -> str:
    length = cell[0]
    if cell[1 + length :].strip(b"\0"):
        raise PeerMisbehaved("a name that is longer than it says")
    try:
        return cell[1 : 1 + length].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise PeerMisbehaved("a name that is no text") from None
