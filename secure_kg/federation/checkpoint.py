"""Checkpoints in safetensors: named arrays and one JSON record, no pickle.

A checkpoint of round R is complete when `checkpoint.json` names R, which the server writes after every client has
said that its own part is on disk. Each party keeps its last two parts, so that the one named there always exists.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from secure_kg.errors import UserError
from secure_kg.federation.run_folder import read_json, write_json, write_whole

Arrays = dict[str, npt.NDArray[Any]]
_KEEP = 2


def save_arrays(path: Path, arrays: Arrays, record: dict[str, Any]) -> None:
    contiguous = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    write_whole(path, save(contiguous, metadata={"record": json.dumps(record)}))


def load_arrays(path: Path) -> tuple[Arrays, dict[str, Any]]:
    try:
        with safe_open(path, framework="np") as file:
            record: dict[str, Any] = json.loads((file.metadata() or {})["record"])
            return {name: file.get_tensor(name) for name in file.keys()}, record  # noqa: SIM118  not a dict
    except (OSError, SafetensorError, KeyError, ValueError):
        raise UserError(f"{path}: not a readable checkpoint") from None


def save_part(folder: Path, round_id: int, arrays: Arrays, record: dict[str, Any]) -> None:
    """One party's part of the checkpoint of `round_id`."""
    save_arrays(_part(folder, round_id), arrays, record)
    rounds = sorted(int(path.stem.rpartition("-")[2]) for path in folder.glob("checkpoint-*.safetensors"))
    for old in [number for number in rounds if number <= round_id][:-_KEEP]:
        _part(folder, old).unlink()


def load_part(folder: Path, round_id: int) -> tuple[Arrays, dict[str, Any]]:
    return load_arrays(_part(folder, round_id))


def mark_complete(run: Path, round_id: int) -> None:
    write_json(run / "checkpoint.json", {"round": round_id})


def last_complete(run: Path) -> int:
    """The round to go on from; 0 if there is no checkpoint yet."""
    path = run / "checkpoint.json"
    if not path.exists():
        return 0
    round_id = read_json(path).get("round")
    if not isinstance(round_id, int) or round_id < 0:
        raise UserError(f"{path}: names no round")
    return round_id


def _part(folder: Path, round_id: int) -> Path:
    return folder / f"checkpoint-{round_id:06d}.safetensors"
