"""One folder for each client: `client-1/train.tsv`, `valid.tsv`, `test.tsv`.

The way real owners bring their data: a client process opens its own folder and no other. All three files are needed
and must hold triples; a damaged split (see `soundness.py`) is refused with counts unless it is allowed.

A client sees its own triples only and cannot find out whether others train on what it holds out. Where the folder was
written from a split of which that is known, `origin.toml` in it says how many, so that the damage is not forgotten.
"""

import dataclasses
import os
from pathlib import Path
from typing import Any

import tomli_w

from secure_kg.data.graph import ClientGraph, Origin
from secure_kg.data.soundness import check_complete, check_split
from secure_kg.data.triples import PARTS, part_file, read_text, read_triples, shown, write_triples
from secure_kg.data.vocabulary import decode, encode
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.parsing import toml_of

_ORIGIN = "origin.toml"


def client_folder(folder: Path, client: int) -> Path:
    """Where client `client` (from 1) keeps its files below `folder`."""
    return folder / f"client-{client}"


def write_client_folder(path: Path, graph: ClientGraph, *, allow_leaky: bool = False) -> None:
    """Write one client's graph into the new or empty folder `path`; the same graph always gives the same bytes.

    Refuses what `load_client_folder` would refuse, before anything is written.
    """
    check_complete(graph, shown(path), "not written")
    check_split([graph], shown(path), allow_leaky=allow_leaky)
    make_empty_folder(path)
    for part in PARTS:
        write_triples(path / f"{part}.tsv", decode(graph.entities, graph.relations, graph.part(part)))
    if graph.origin != Origin():
        write_record(path / _ORIGIN, dataclasses.asdict(graph.origin))


def load_client_folder(path: Path | str, client: int, *, allow_leaky: bool = False) -> ClientGraph:
    """The graph of client `client` (from 1): `path` itself if it holds a train file, else its `client-<k>` folder."""
    root = Path(path)
    if client < 1:
        raise DataError(f"client {client}: clients are numbered from 1")
    if not os.path.isdir(root):
        raise DataError(f"{shown(root)}: no such folder")
    folder = root if part_file(root, "train") is not None else client_folder(root, client)
    if not os.path.isdir(folder):
        raise DataError(f"{shown(root)}: neither a train file nor a folder {folder.name}")
    files = []
    for part in PARTS:
        file = part_file(folder, part)
        if file is None:
            raise DataError(f"{shown(folder)}: no {part}.tsv; train, valid and test are all needed")
        files.append(file)
    entities, relations, parts = encode([read_triples(file) for file in files])
    graph = ClientGraph(entities, relations, *parts, origin=_read_origin(folder / _ORIGIN))
    check_complete(graph, shown(folder), "train, valid and test must all hold some")
    check_split([graph], shown(folder), allow_leaky=allow_leaky)
    return graph


def write_record(path: Path, values: dict[str, Any]) -> None:
    """Write `values` as TOML."""
    try:
        path.write_bytes(tomli_w.dumps(values).encode())
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be written ({error.strerror})") from None


def _read_origin(path: Path) -> Origin:
    if not os.path.lexists(path):
        return Origin()
    try:
        counts = toml_of(read_text(path))
    except ValueError:
        counts = {}
    known = {entry.name for entry in dataclasses.fields(Origin)}
    if counts.keys() != known or not all(type(count) is int and count >= 0 for count in counts.values()):
        raise DataError(f"{shown(path)}: not a record of counts as {command('launch.partition')} writes it")
    return Origin(**counts)


def make_empty_folder(path: Path) -> None:
    """Create `path`, or accept it if it is an empty folder; never write among files that are already there."""
    require_new_or_empty(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be created ({error.strerror})") from None


def require_new_or_empty(path: Path) -> None:
    """Refuse a folder with files in it, before work that may take minutes."""
    try:
        if path.exists() and any(path.iterdir()):
            raise DataError(f"{shown(path)}: exists and is not empty; choose a new folder")
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be created ({error.strerror})") from None
