"""The names of a union for the server, where it is meant to have them: who holds a name stays hidden.

After the union every client adds, at the position of each of its names, a fresh weight r, r times a hash of the name,
and r times the name, written as field elements. All holders of a position have the same name, so in the sum stand hash
and name times the sum of their weights, and the server divides. That sum is uniform for one holder as for all of them.
Were the names different, what the server finds would be a random mixture, whose hash is right in one case of 2^61.

Parties:     the clients of a union (`protocols.alignment.psu`), 1 server.
Adversary:   semi-honest: the server, with the declared share of clients (`protocols.sums.secagg`).
Reveals:     to the server the names of the union by position. Not who holds a name, and not how many do, unless it is
             a client on its side that holds it. To clients nothing.
Assumes:     as for the union.
Not covered: clients that write other names than those they have aligned. Where an honest client holds the position too,
             the sum is no name and the server stops; else the server is told whatever they wish. A client that drops
             out after the union: positions that it alone held come out empty, which tells the server how many they are.
Reference:   FedR (Zhang et al., Findings of EMNLP 2022), section 3: the server keeps the table of all relations.
Deviations:  the paper does not say how the server gets it.

A name that is too long to be revealed is an objection to the whole alignment (`objection`), to be voted on in secret
(`protocols.alignment.psu.vote`). Said aloud it would tell the server who holds such a name. After the vote nothing that
a client does here depends on its names, but for the vector it adds.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.alignment.interface import Positions, Union
from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, ProtocolError
from protocols.foundation.identifiers import SETUP, PartyId
from protocols.primitives.group import MODULUS, FieldArray, PrimeField
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms, VectorLayout

PURPOSE: Final = "union names"
MAX_NAME_BYTES: Final = 255
"""Of its UTF-8 form: the length of a name takes one byte. All names are padded to it, so their lengths stay hidden."""
LIMB_BYTES: Final = 7
"""As many as are below the modulus whatever they contain."""
NAME_LIMBS: Final = -(-(1 + MAX_NAME_BYTES) // LIMB_BYTES)
POSITION_ENTRIES: Final = 2 + NAME_LIMBS
"""The weight, the hash, the name."""
MAX_UNION: Final = (wire.MAX_FRAME_BYTES - 4096) // (8 * POSITION_ENTRIES)
"""Positions whose entries fit a frame, with room for its other fields."""

_FIELD: Final = PrimeField()
_DOMAIN: Final = b"secure-kg/name/1"  # BLAKE2b's personalisation: at most 16 bytes
_ROW_BYTES: Final = NAME_LIMBS * LIMB_BYTES
_LIMB_LIMIT: Final = np.uint64(1 << (8 * LIMB_BYTES))


def reveal(
    session: ClientSession,
    vectors: VectorClient,
    clients: tuple[PartyId, ...],
    positions: Positions,
    names: Sequence[str],
    state: bytes = b"",
) -> None:
    """The client's side. `names`: those the `positions` were asked for, in the same order, without an `objection`.
    `state`: its commitment to them, so that they are revealed over one set of clients."""
    vector = written(positions, names)
    terms = replace(names_terms(clients, positions.union_size, positions.digest), state=state)
    vectors.prepare(session, terms)
    vectors.contribute(session, terms, vector)


def learn(session: ServerSession, vectors: VectorServer, clients: tuple[PartyId, ...], union: Union) -> list[str]:
    """The server's side: the names by position. Empty where nobody is left who holds one."""
    terms = names_terms(clients, union.size, union.digest)
    vectors.prepare(session, terms)
    total = vectors.collect(session, terms)
    return read(total.vector.astype(np.uint64, copy=False), union.size)


def objection(names: Collection[str]) -> str:
    """Why these names cannot be revealed, for the client's own log; empty if they can."""
    longest = max((len(name.encode("utf-8", "surrogatepass")) for name in names), default=0)
    if longest <= MAX_NAME_BYTES:
        return ""
    return f"a name of {longest} bytes is too long to be revealed, {MAX_NAME_BYTES} are possible"


def written(positions: Positions, names: Sequence[str]) -> FieldArray:
    """A client's addend of `POSITION_ENTRIES` * union entries: all weights, all hashes, all first limbs, ..."""
    if len(names) != len(positions.own):
        raise ValueError(f"{len(names)} names with {len(positions.own)} positions")
    _require_room(positions.union_size)
    # A name that stands twice is written once.
    own, first = np.unique(positions.own, return_index=True)
    rows = _padded([names[index] for index in first])
    weights = _weights(len(own))
    table = np.zeros((POSITION_ENTRIES, positions.union_size), dtype=np.uint64)
    table[0, own] = weights
    table[1, own] = _FIELD.multiply(weights, _hashes(rows))
    for entries, limb in zip(table[2:], _limbs(rows), strict=True):
        entries[own] = _FIELD.multiply(weights, limb)
    return table.reshape(-1)


def read(total: FieldArray, size: int) -> list[str]:
    """The names [size] in a sum of such vectors; `PeerMisbehaved` if it is none of names that agree."""
    _FIELD.require(total, size * POSITION_ENTRIES)
    table = total.reshape(POSITION_ENTRIES, size)
    held = np.flatnonzero(table[0])
    inverses = _FIELD.inverse(table[0, held])
    limbs = np.empty((NAME_LIMBS, len(held)), dtype=np.uint64)
    for limb, entries in zip(limbs, table[2:], strict=True):
        limb[:] = _FIELD.multiply(entries[held], inverses)
    if table[:, table[0] == 0].any():
        raise PeerMisbehaved("a position of the union has a name without a weight")
    rows = _bytes(limbs)
    if (limbs >= _LIMB_LIMIT).any() or (_hashes(rows) != _FIELD.multiply(table[1, held], inverses)).any():
        raise PeerMisbehaved("the holders of a position of the union do not agree on its name")
    found = _names(rows)
    if len(set(found)) != len(found):
        raise PeerMisbehaved("two positions of the union have the same name")
    names = [""] * size
    for position, name in zip(held.tolist(), found, strict=True):
        names[position] = name
    return names


def names_terms(clients: tuple[PartyId, ...], size: int, digest: bytes) -> SumTerms[VectorLayout]:
    _require_room(size)
    return SumTerms(SETUP, PURPOSE, clients, VectorLayout(_FIELD, size * POSITION_ENTRIES), digest)


def _require_room(size: int) -> None:
    if size > MAX_UNION:
        raise ProtocolError(f"the names of a union of {size:,} are too many to be sent, {MAX_UNION:,} fit")


def _weights(count: int) -> FieldArray:
    return _FIELD.uniform((count,))


def _padded(names: Sequence[str]) -> list[bytes]:
    """Each name as one byte of length, its UTF-8 form, and zeros up to the same number of bytes for all."""
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]  # as tags do
    if max(map(len, encoded), default=0) > MAX_NAME_BYTES:  # how long is not for the server to hear
        raise ProtocolError(f"a name is too long to be revealed: {MAX_NAME_BYTES} bytes at most")
    return [(bytes([len(name)]) + name).ljust(_ROW_BYTES, b"\0") for name in encoded]


def _hashes(rows: Sequence[bytes]) -> FieldArray:
    """[n]: 61 bits of BLAKE2b of each padded name."""
    digests = b"".join(hashlib.blake2b(row, digest_size=8, person=_DOMAIN).digest() for row in rows)
    words = np.frombuffer(digests, dtype="<u8") & np.uint64(MODULUS)
    return np.where(words == np.uint64(MODULUS), np.uint64(0), words)


def _limbs(rows: Sequence[bytes]) -> FieldArray:
    """[NAME_LIMBS, n]: seven bytes of each padded name to a limb, the lowest first."""
    words = np.zeros((len(rows), NAME_LIMBS, 8), dtype=np.uint8)
    words[:, :, :LIMB_BYTES] = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, NAME_LIMBS, LIMB_BYTES)
    limbs: npt.NDArray[np.uint64] = words.view("<u8")[:, :, 0]
    return np.ascontiguousarray(limbs.T, dtype=np.uint64)


def _bytes(limbs: FieldArray) -> list[bytes]:
    """The inverse of `_limbs`, for limbs of seven bytes."""
    words = np.ascontiguousarray(limbs.T, dtype="<u8").view(np.uint8).reshape(-1, NAME_LIMBS, 8)
    joined = words[:, :, :LIMB_BYTES].tobytes()
    return [joined[start : start + _ROW_BYTES] for start in range(0, len(joined), _ROW_BYTES)]


def _names(rows: Sequence[bytes]) -> list[str]:
    """The inverse of `_padded`, for rows that others have written."""
    if any(row[1 + row[0] :].strip(b"\0") for row in rows):
        raise PeerMisbehaved("a name of the union is longer than it claims")
    try:
        return [row[1 : 1 + row[0]].decode("utf-8", "surrogatepass") for row in rows]
    except UnicodeDecodeError:
        raise PeerMisbehaved("a name of the union is no text") from None
