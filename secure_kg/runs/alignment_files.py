"""Alignment of one run, kept for as long as the run: a resumed job must find its rows where they were.

Positions change with every alignment, and two alignments over different clients would show which names one of them
alone holds. So a run is aligned once; every party writes down its part, and a resumed job goes on with it.

    server/alignment.json           size and digest of the union, and which clients took part
    clients/K/alignment.safetensors positions of the client's own names
    clients/K/objection.txt         why this client refused an alignment; nobody else is told
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from protocols.alignment.interface import Positions, Union
from secure_kg.foundation.errors import UserError
from secure_kg.runs.checkpoint import load_arrays, save_arrays
from secure_kg.runs.run_folder import read_json, write_json

_DIGEST_BYTES: Final = 32
_CLIENT_FILE: Final = "alignment.safetensors"
_SERVER_FILE: Final = "alignment.json"
_OBJECTION_FILE: Final = "objection.txt"
_NO_POSITIONS: Final = np.zeros((0, 0), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class AlignedRun:
    """The server's part."""

    union: Union
    clients: tuple[int, ...]


def save_aligned(folder: Path, union: Union, clients: Collection[int]) -> None:
    record = {"size": union.size, "digest": union.digest.hex(), "clients": sorted(int(client) for client in clients)}
    write_json(folder / _SERVER_FILE, record)


def load_aligned(folder: Path) -> AlignedRun | None:
    """None if the run has not come that far."""
    path = folder / _SERVER_FILE
    if not path.exists():
        return None
    record = read_json(path)
    try:
        union = Union(record["size"], bytes.fromhex(record["digest"]))
        clients = tuple(record["clients"])
        if any(type(number) is not int for number in (union.size, *clients)):  # true is no number here
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: not a record of an alignment") from None
    if union.size < 1 or len(union.digest) != _DIGEST_BYTES or not clients or min(clients) < 1:
        raise UserError(f"{path}: not a record of an alignment")
    return AlignedRun(union, clients)


def save_positions(folder: Path, positions: Positions, names: Sequence[str]) -> None:
    record = {"size": positions.union_size, "digest": positions.digest.hex(), "names": _digest(names)}
    save_arrays(folder / _CLIENT_FILE, {"positions": positions.own}, record)


def keep_objection(folder: Path, objection: str) -> None:
    """Why this client objected to an alignment, by its own names: for its own folder alone. Nothing if it did not."""
    if objection:
        (folder / _OBJECTION_FILE).write_text(f"{objection}\n", encoding="utf-8")


def own_positions(folder: Path, names: Sequence[str]) -> Positions:
    """The positions of `names` in the one alignment that this client has on file; `UserError` if it has none."""
    path = folder / _CLIENT_FILE
    try:
        _, record = load_arrays(path)
        digest = bytes.fromhex(record["digest"])
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: not the positions of this client's names") from None
    return load_positions(folder, digest, names)


def load_positions(folder: Path, digest: bytes, names: Sequence[str]) -> Positions:
    """The positions of `names` in the alignment that has this digest; `UserError` if this client has no such."""
    path = folder / _CLIENT_FILE
    if not path.exists():
        raise UserError(f"{path}: missing; without it this client cannot go on with the run")
    arrays, record = load_arrays(path)
    if record.get("digest") != digest.hex():
        raise UserError(f"{path}: of another run than the server's")
    if record.get("names") != _digest(names):
        raise UserError(f"{path}: this client's names have changed since the run began")
    size, own = record.get("size"), arrays.get("positions", _NO_POSITIONS)
    sound = own.dtype == np.int64 and own.shape == (len(names),) and len(np.unique(own)) == len(own)
    if type(size) is not int or not sound or not bool(((own >= 0) & (own < size)).all()):
        raise UserError(f"{path}: not the positions of this client's names")
    return Positions(size, own, digest)


def _digest(names: Sequence[str]) -> str:
    state = hashlib.sha256()
    for name in names:
        encoded = name.encode("utf-8", "surrogatepass")
        state.update(len(encoded).to_bytes(8, "little") + encoded)
    return state.hexdigest()
