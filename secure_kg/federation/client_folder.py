"""A client's own folder: made for its owner's eyes only, and the record of the sums it has helped to open.

pid                 number of the process that works on it
openings.jsonl      one line per sum: round, purpose, survivors (see `protocols.secagg.openings`)
"""

import json
import os
from pathlib import Path

from protocols.identifiers import PartyId, RoundId
from secure_kg.errors import UserError

_OPENINGS = "openings.jsonl"


def open_folder(folder: Path, process: int, *, resume: bool) -> None:
    """Make the folder. A new run must not find one in use: a server that names an old run could have it overwritten."""
    if not resume and folder.exists() and any(path.name != "pid" for path in folder.iterdir()):
        raise UserError(f"{folder}: has files of another run; choose another --out or continue with --resume")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        (folder / "pid").write_text(f"{process}\n", encoding="utf-8")
    except OSError as problem:
        raise UserError(f"{folder}: cannot be written ({problem.strerror})") from None


def append_opening(folder: Path, round_id: RoundId, purpose: str, survivors: frozenset[PartyId]) -> None:
    """Written before the answer leaves, so that it outlives this process."""
    record = {"round": int(round_id), "purpose": purpose, "survivors": sorted(int(party) for party in survivors)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _OPENINGS).open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            stub = b"" if file.read(1) in (b"", b"\n") else b"\n"  # a line that a crash cut short stays by itself
            file.write(stub + json.dumps(record).encode() + b"\n")
    except OSError as problem:
        raise UserError(f"{folder / _OPENINGS}: cannot be written ({problem.strerror})") from None


def read_openings(folder: Path) -> dict[tuple[int, str], frozenset[PartyId]]:
    """The first opening of every sum counts. A last line cut short by a crash was never answered for."""
    path = folder / _OPENINGS
    if not path.exists():
        return {}
    known: dict[tuple[int, str], frozenset[PartyId]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.endswith("}"):
            continue
        try:
            record = json.loads(line)
            key = int(record["round"]), str(record["purpose"])
            survivors = frozenset(PartyId(int(party)) for party in record["survivors"])
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path}: not a record of openings") from None
        known.setdefault(key, survivors)
    return known
