"""The names of a union for the server, where it is meant to have them: who holds a name stays hidden.

After the union every client adds, at the position of each of its names, a fresh weight r and r times the name, written
as field elements. All holders of a position have the same name, so in the sum stands the name times the sum of their
weights, and the server divides. That sum is uniform for one holder as for all of them.

Parties:     the clients of a union (`protocols.psu`), 1 server.
Adversary:   semi-honest: the server, with the declared share of clients (`protocols.secagg`).
Reveals:     to the server the names of the union by position. Not who holds a name, and not how many do, unless it is
             a client on its side that holds it. To clients nothing.
Assumes:     as for the union.
Not covered: clients that write other names than those they have aligned. Where an honest client holds the position too,
             the sum is no name and the server stops; else the server is told whatever they wish. A client that drops
             out after the union: positions that it alone held come out empty, which tells the server how many they are.
Reference:   FedR (Zhang et al., Findings of EMNLP 2022), section 3: the server keeps the table of all relations.
Deviations:  the paper does not say how the server gets it.
"""

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols import wire
from protocols.conversation import Conversation
from protocols.errors import PeerMisbehaved, ProtocolError
from protocols.identifiers import SETUP, PartyId
from protocols.patience import Patience
from protocols.primitives.group import FieldArray, PrimeField
from protocols.secagg.vectors import VectorClient, VectorServer, VectorTask
from protocols.sums import Silent
from protocols.transport.deadline import Deadline
from protocols.unions import Positions, Union

PURPOSE: Final = "union names"
MAX_NAME_BYTES: Final = 255
"""Of its UTF-8 form: the length of a name takes one byte. All names are padded to it, so their lengths stay hidden."""
LIMB_BYTES: Final = 7
"""As many as are below the modulus whatever they contain."""
NAME_LIMBS: Final = -(-(1 + MAX_NAME_BYTES) // LIMB_BYTES)
POSITION_ENTRIES: Final = 1 + NAME_LIMBS
MAX_UNION: Final = (wire.MAX_FRAME_BYTES - 4096) // (8 * POSITION_ENTRIES)
"""Positions whose entries fit a frame, with room for its other fields."""

_FIELD: Final = PrimeField()
_LIMB_LIMIT: Final = np.uint64(1 << (8 * LIMB_BYTES))


def reveal(
    conversation: Conversation,
    vectors: VectorClient,
    positions: Positions,
    names: Sequence[str],
    clients: tuple[PartyId, ...],
    deadline: Deadline,
) -> None:
    """The client's side. `names`: those the `positions` were asked for, in the same order."""
    vector = written(positions, names)
    task = _task(clients, positions.union_size, positions.digest)
    vectors.prepare(conversation, task, deadline)
    vectors.contribute(conversation, task, vector, deadline)


def learn(
    conversation: Conversation,
    vectors: VectorServer,
    union: Union,
    clients: tuple[PartyId, ...],
    present: Collection[PartyId],
    patience: Patience,
    silent: Silent,
) -> list[str]:
    """The server's side: the names by position. Empty where nobody is left who holds one."""
    task = _task(clients, union.size, union.digest)
    vectors.prepare(conversation, task, present, patience, silent)
    total = vectors.collect(conversation, task, patience, silent, present)
    return read(total.vector.astype(np.uint64, copy=False), union.size)


def written(positions: Positions, names: Sequence[str]) -> FieldArray:
    """A client's addend, a vector of `POSITION_ENTRIES` * union entries: all weights, all first limbs, ..."""
    if len(names) != len(positions.own):
        raise ValueError(f"{len(names)} names with {len(positions.own)} positions")
    _require_room(positions.union_size)
    # A name that stands twice is written once.
    own, first = np.unique(positions.own, return_index=True)
    limbs = _limbs([names[index] for index in first])
    weights = _weights(len(own))
    table = np.zeros((POSITION_ENTRIES, positions.union_size), dtype=np.uint64)
    table[0, own] = weights
    for row, limb in zip(table[1:], limbs, strict=True):
        row[own] = _FIELD.multiply(weights, limb)
    return table.reshape(-1)


def read(total: FieldArray, size: int) -> list[str]:
    """The names [size] in a sum of such vectors; `PeerMisbehaved` if it is none of names that agree."""
    _FIELD.require(total, size * POSITION_ENTRIES)
    table = total.reshape(POSITION_ENTRIES, size)
    held = np.flatnonzero(table[0])
    inverses = _FIELD.inverse(table[0, held])
    limbs = np.empty((NAME_LIMBS, len(held)), dtype=np.uint64)
    for row, limb in zip(table[1:], limbs, strict=True):
        limb[:] = _FIELD.multiply(row[held], inverses)
    unheld = table[0] == 0
    if table[:, unheld].any():
        raise PeerMisbehaved("a position of the union has a name without a weight")
    found = _names(limbs)
    if len(set(found)) != len(found):
        raise PeerMisbehaved("two positions of the union have the same name")
    names = [""] * size
    for position, name in zip(held.tolist(), found, strict=True):
        names[position] = name
    return names


def _task(clients: tuple[PartyId, ...], size: int, digest: bytes) -> VectorTask:
    _require_room(size)
    return VectorTask(SETUP, PURPOSE, clients, _FIELD, size * POSITION_ENTRIES, digest)


def _require_room(size: int) -> None:
    if size > MAX_UNION:
        raise ProtocolError(f"the names of a union of {size:,} are too many to be sent, {MAX_UNION:,} fit")


def _weights(count: int) -> FieldArray:
    return _FIELD.uniform((count,))


def _limbs(names: Sequence[str]) -> FieldArray:
    """[NAME_LIMBS, n]: the length of each name in one byte, its UTF-8 form, zeros; seven bytes to a limb."""
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]  # as tags do
    longest = max(map(len, encoded), default=0)
    if longest > MAX_NAME_BYTES:
        raise ProtocolError(f"a name of {longest} bytes cannot be revealed: {MAX_NAME_BYTES} at most")
    padded = b"".join((bytes([len(name)]) + name).ljust(NAME_LIMBS * LIMB_BYTES, b"\0") for name in encoded)
    words = np.zeros((len(names), NAME_LIMBS, 8), dtype=np.uint8)
    words[:, :, :LIMB_BYTES] = np.frombuffer(padded, dtype=np.uint8).reshape(len(names), NAME_LIMBS, LIMB_BYTES)
    limbs: npt.NDArray[np.uint64] = words.view("<u8")[:, :, 0]
    return np.ascontiguousarray(limbs.T, dtype=np.uint64)


def _names(limbs: FieldArray) -> list[str]:
    """The inverse of `_limbs`, for limbs that others have written."""
    if (limbs >= _LIMB_LIMIT).any():
        raise PeerMisbehaved("the holders of a position of the union do not agree on its name")
    words = np.ascontiguousarray(limbs.T, dtype="<u8").view(np.uint8).reshape(-1, NAME_LIMBS, 8)
    rows = np.ascontiguousarray(words[:, :, :LIMB_BYTES]).reshape(-1, NAME_LIMBS * LIMB_BYTES)
    lengths = rows[:, 0].astype(np.int64)
    if rows[np.arange(rows.shape[1])[None, :] > lengths[:, None]].any():
        raise PeerMisbehaved("a name of the union is longer than it claims")
    try:
        return [
            row[1 : 1 + length].decode("utf-8", "surrogatepass")
            for row, length in zip(map(bytes, rows), lengths.tolist(), strict=True)
        ]
    except UnicodeDecodeError:
        raise PeerMisbehaved("a name of the union is no text") from None
