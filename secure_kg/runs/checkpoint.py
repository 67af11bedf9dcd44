"""Checkpoints in safetensors: named arrays and one JSON record, no pickle.

A checkpoint of round R is complete when `checkpoint.json` names R, which the server writes after every client that is
there has said that its own part is on disk; the file names them. Each party keeps its last two parts, so that the one
named there always exists. A client that was absent goes on from its own last part before R, or from the start.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from secure_kg.foundation.errors import UserError
from secure_kg.foundation.parsing import json_of, require_regular
from secure_kg.runs.records.record import Figures
from secure_kg.runs.run_folder import DRAFT, read_json, write_json, write_whole

Arrays = dict[str, npt.NDArray[Any]]
_KEEP = 2


def save_arrays(path: Path, arrays: Arrays, record: Figures) -> None:
    contiguous = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    write_whole(path, save(contiguous, metadata={"record": json.dumps(record)}))


def load_arrays(path: Path) -> tuple[Arrays, Figures]:
    require_regular(path)
    try:
        with safe_open(path, framework="np") as file:
            record: Figures = json_of((file.metadata() or {})["record"])
            if not isinstance(record, dict):
                raise ValueError
            return {name: file.get_tensor(name) for name in file.keys()}, record  # noqa: SIM118  not a dict
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):  # the last: numbers that numpy does not have
        raise UserError(f"{path}: not a readable checkpoint") from None


def load_numbers(path: Path) -> tuple[Arrays, Figures]:
    """Likewise, where every value must be a number. Told here, because later nobody could say which file it was."""
    arrays, record = load_arrays(path)
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UserError(f"{path}: damaged ({name} has values that are no numbers)")
    return arrays, record


def save_part(folder: Path, round_id: int, arrays: Arrays, record: Figures) -> None:
    """One party's part of the checkpoint of `round_id`."""
    save_arrays(part_path(folder, round_id), arrays, record)
    for old in [number for number in _rounds(folder) if number <= round_id][:-_KEEP]:
        part_path(folder, old).unlink()
    for draft in folder.glob(f"checkpoint-*{DRAFT}"):  # of a process that was ended while it wrote
        draft.unlink(missing_ok=True)


def load_part(folder: Path, round_id: int) -> tuple[Arrays, Figures]:
    return load_numbers(part_path(folder, round_id))


def latest_before(folder: Path, round_id: int) -> int | None:
    """The last round up to `round_id` of which this party has a part."""
    return max((number for number in _rounds(folder) if number <= round_id), default=None)


def _rounds(folder: Path) -> list[int]:
    """Of which this party has a part, in order. Files with other names are not its own."""
    names = {path.name: path.stem.removeprefix("checkpoint-") for path in folder.glob("checkpoint-*.safetensors")}
    rounds = [int(number) for number in names.values() if number.isascii() and number.isdigit()]
    return sorted(number for number in rounds if part_path(folder, number).name in names)


@dataclass(frozen=True, slots=True)
class Complete:
    """The checkpoint to go on from; round 0 if there is none yet."""

    round: int
    saved_by: tuple[int, ...]


def mark_complete(run: Path, round_id: int, saved_by: Collection[int]) -> None:
    write_json(run / "checkpoint.json", {"round": round_id, "clients": sorted(int(number) for number in saved_by)})


def last_complete(run: Path) -> Complete:
    path = run / "checkpoint.json"
    if not path.exists():
        return Complete(0, ())
    content = read_json(path)
    round_id, clients = content.get("round"), content.get("clients")
    if not isinstance(round_id, int) or round_id < 0:
        raise UserError(f"{path}: names no round")
    if not isinstance(clients, list) or not all(isinstance(number, int) for number in clients):
        raise UserError(f"{path}: names no clients")
    return Complete(round_id, tuple(clients))


def part_path(folder: Path, round_id: int) -> Path:
    return folder / f"checkpoint-{round_id:06d}.safetensors"
