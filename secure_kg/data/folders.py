"""One folder for each client: `client-1/train.tsv`, `valid.tsv`, `test.tsv`, or files of any format in `readers`.

The way real owners bring their data: a client process opens its own folder and no other. All three files are needed
and must hold triples; a damaged split (see `soundness.py`) is refused with counts unless it is allowed. A folder with
one file of triples and none of the three is divided 80/10/10 by the run's seed, as a partition is.

A client sees its own triples only and cannot find out whether others train on what it holds out. Where the folder was
written from a split of which that is known, `origin.toml` in it says how many, so that the damage is not forgotten.
"""

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import tomli_w

from secure_kg.data.graph import ClientGraph, Origin
from secure_kg.data.partition import divide
from secure_kg.data.prefixes import read_prefixes, write_prefixes
from secure_kg.data.readers.encoding import encode_files
from secure_kg.data.readers.interface import Reading
from secure_kg.data.soundness import check_complete, check_split
from secure_kg.data.triples import PARTS, only_graph_file, part_file, part_suffix, read_text, shown, write_triples
from secure_kg.data.vocabulary import decode, distinct
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.parsing import toml_of
from secure_kg.foundation.seeds import generator

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
        triples = decode(graph.entities, graph.relations, graph.part(part))
        write_triples(path / f"{part}{part_suffix(triples)}", triples)
    write_prefixes(path, [*graph.entities, *graph.relations], graph.prefixes)
    if graph.origin != Origin():
        write_record(path / _ORIGIN, dataclasses.asdict(graph.origin))


def load_client_folder(
    path: Path | str,
    client: int,
    *,
    allow_leaky: bool = False,
    seed: int = 0,
    reading: Reading = Reading(),  # noqa: B008  # frozen
) -> ClientGraph:
    """The graph of client `client` (from 1): `path` itself if it is one file of triples or holds a train file, else its
    `client-<k>` folder, else `path` itself if it holds one file of triples and no folder of any client."""
    root = Path(path)
    if client < 1:
        raise DataError(f"client {client}: clients are numbered from 1")
    if os.path.isfile(root):
        return _divided(root, client, seed, reading)
    if not os.path.isdir(root):
        raise DataError(f"{shown(root)}: no such {'file or ' if root.suffix else ''}folder")
    folder = _own_folder(root, client)
    files = {part: file for part in PARTS if (file := part_file(folder, part)) is not None}
    if not files and (only := only_graph_file(folder)) is not None:
        return _divided(only, client, seed, reading)
    for part in PARTS:
        if part not in files:
            raise DataError(f"{shown(folder)}: no {part}.tsv; train, valid and test are all needed")
    found = encode_files([(part, files[part]) for part in PARTS], reading, owner=str(client))
    graph = ClientGraph(
        found.entities,
        found.relations,
        *found.parts,
        origin=_read_origin(folder / _ORIGIN),
        left_out=found.left_out,
        prefixes={**read_prefixes(folder), **found.prefixes},
    )
    check_complete(graph, shown(folder), "train, valid and test must all hold some")
    check_split([graph], shown(folder), allow_leaky=allow_leaky)
    return graph


def _own_folder(root: Path, client: int) -> Path:
    own = client_folder(root, client)
    if part_file(root, "train") is not None:
        return root
    if os.path.isdir(own):
        return own
    # A file beside other clients' folders may be what they were divided from, and is not this client's.
    of_clients = any(re.fullmatch(r"client-[0-9]+", entry.name) and entry.is_dir() for entry in os.scandir(root))
    if not of_clients and only_graph_file(root) is not None:
        return root
    raise DataError(f"{shown(root)}: neither a train file nor a folder {own.name}")


def _divided(path: Path, client: int, seed: int, reading: Reading) -> ClientGraph:
    """One file of triples, different ones only, divided by the seed."""
    found = encode_files([("graph", path)], reading, owner=str(client))
    triples, repeats = distinct(found.parts[0], len(found.entities), len(found.relations))
    parts = divide(triples, generator(seed, "held out", "own file", client)) if len(triples) else (triples,) * 3
    names, origin = (found.entities, found.relations), Origin(dropped_repeats=repeats)
    graph = ClientGraph(*names, *parts, origin=origin, left_out=found.left_out, prefixes=found.prefixes)
    check_complete(graph, shown(path), "a tenth of it is held out for each, if their names occur elsewhere in it")
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
