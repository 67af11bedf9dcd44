"""Sources of triples: a data set's name, a folder, a file of any format in `readers`, or a published federated split.

A word is looked up in this order: a data set inside PyKEEN's wheel (umls, kinships, nations); an existing folder or
file; a data set PyKEEN can download. So `./umls` is a folder named umls, and a local copy spares a download.
"""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from secure_kg.data.catalogue import BUNDLED, bundled_files, canonical, download, downloadable
from secure_kg.data.federated import read_federated
from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.data.readers.encoding import Encoded, encode_files
from secure_kg.data.readers.interface import LeftOut, Reading
from secure_kg.data.readers.registry import IN_BRIEF, QUADS
from secure_kg.data.triples import PARTS, is_triple_file, only_graph_file, part_file, shown
from secure_kg.data.vocabulary import Vocabulary, compact, distinct, triple_keys
from secure_kg.foundation.errors import DataError

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PooledSource:
    """One graph still to be divided: the different triples of train, valid and test together.

    The papers pool the parts before dividing them among clients. `triples` is sorted, so it depends on the set of
    triples only and not on the order of lines; `duplicates` counts the repeated lines that were removed.

    `parts` are train, valid and test as published, row by row, for whoever does not divide the graph; None where not
    all three were. `named_graphs`: for each named graph, in the order of their names, its rows of `triples`; None
    unless graphs were asked for.
    """

    entities: Vocabulary = field(repr=False)
    relations: Vocabulary = field(repr=False)
    triples: TripleArray = field(repr=False)
    duplicates: int
    parts: tuple[TripleArray, ...] | None = field(default=None, repr=False)
    named_graphs: tuple[Rows, ...] | None = field(default=None, repr=False)
    left_out: LeftOut = field(default=LeftOut(), repr=False)
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class FederatedSource:
    """A graph that its publishers already divided; kept exactly as published, faults included."""

    clients: tuple[ClientGraph, ...]


Source = PooledSource | FederatedSource


@dataclass(frozen=True, slots=True)
class _TripleFiles:
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class _Archive:
    path: Path


@dataclass(frozen=True, slots=True)
class _Download:
    name: str


def load_source(dataset: str, reading: Reading = Reading(), *, graphs: bool = False) -> Source:  # noqa: B008  # frozen
    """Read all triples that `dataset` names. Raises DataError in one line.

    `graphs`: tell named graphs apart. The triples of the default graph then belong to nobody, and are counted.
    """
    place = _locate(dataset)
    if graphs:
        _require_quads(dataset, place)
    match place:
        case _TripleFiles(paths):
            labels = [str(number) for number, _ in enumerate(paths, start=1)]
            found = encode_files(list(zip(labels, paths, strict=True)), reading, graphs=graphs)
            return _by_graphs(dataset, found) if graphs else _pooled(dataset, found)
        case _Archive(path):
            return FederatedSource(read_federated(path))
        case _Download(name):
            entities, relations, parts = compact(*download(name))
            return _pooled(dataset, Encoded(entities, relations, parts, (), [], LeftOut(), {}))


def _pooled(dataset: str, found: Encoded) -> PooledSource:
    entities, relations, parts = found.entities, found.relations, found.parts
    triples, duplicates = distinct(np.concatenate(parts), len(entities), len(relations))
    if len(triples) == 0:
        told = "; ".join(found.left_out.phrases())
        raise DataError(f"{shown(dataset)}: no triples" + (f" ({told} left out)" if told else ""))
    published = tuple(parts) if len(parts) == len(PARTS) else None
    return PooledSource(
        entities, relations, triples, duplicates, published, left_out=found.left_out, prefixes=found.prefixes
    )


def _by_graphs(dataset: str, found: Encoded) -> PooledSource:
    """Rows of each named graph among the different triples of all of them."""
    rows, graph = np.concatenate(found.parts), np.concatenate(found.graph_ids)
    default = found.graphs.index("") if "" in found.graphs else len(found.graphs)
    named = graph != default
    left_out = found.left_out + LeftOut(default_graph=int((~named).sum()))
    if not named.any():
        raise DataError(f"{shown(dataset)}: no named graphs, and --by graph needs one for each client")
    rows, graph = rows[named], graph[named]
    names = found.entities.__getitem__, found.relations.__getitem__
    entities, relations, (rows,) = compact(*names, [rows])  # names of the default graph alone are gone
    triples, _ = distinct(rows, len(entities), len(relations))
    keys = triple_keys(rows, len(entities), len(relations))
    places = np.searchsorted(triple_keys(triples, len(entities), len(relations)), keys)
    # Names of graphs are sorted, and so are their numbers. A line repeated in its graph counts once.
    of_graphs = tuple(np.unique(places[graph == number]) for number in np.unique(graph))
    duplicates = len(rows) - sum(map(len, of_graphs))
    return PooledSource(
        entities, relations, triples, duplicates, None, of_graphs, left_out=left_out, prefixes=found.prefixes
    )


def _require_quads(dataset: str, place: "_TripleFiles | _Archive | _Download") -> None:
    if not isinstance(place, _TripleFiles) or not any(path.name.lower().endswith(QUADS) for path in place.paths):
        raise DataError(f"{shown(dataset)}: --by graph needs a format with named graphs ({', '.join(QUADS[::3])})")


def check_source_name(dataset: str) -> None:
    """Raise the DataError that `load_source` would raise if nothing of that name exists.

    For the server: it looks at names only. It opens no triple file, imports no PyKEEN and downloads nothing.
    """
    _locate(dataset)


def _locate(dataset: str) -> _TripleFiles | _Archive | _Download:
    name, path = canonical(dataset), Path(dataset)
    if name in BUNDLED:
        return _TripleFiles(bundled_files(name))
    if dataset and os.path.isdir(path):
        return _TripleFiles(_folder_files(path))
    if os.path.isfile(path):
        if path.suffix.lower() == ".npz":
            return _Archive(path)
        if is_triple_file(path):
            return _TripleFiles((path,))
        raise DataError(f"{shown(path)}: not a file of triples ({IN_BRIEF}) nor a federated split (.npz)")
    if os.path.lexists(path) and dataset:
        raise DataError(f"{shown(path)}: neither a file nor a folder")
    if len(path.parts) > 1 or is_triple_file(path) or path.suffix.lower() == ".npz":
        raise DataError(f"{shown(path)}: no such file or folder")
    if name in downloadable():
        return _Download(name)
    close = difflib.get_close_matches(name, (*BUNDLED, *sorted(downloadable())), n=1)
    hint = f"; did you mean {close[0]}?" if close else "; give a PyKEEN data set, a folder or a file"
    raise DataError(f"unknown data set {shown(dataset) or '(empty)'}{hint}")


def _folder_files(folder: Path) -> tuple[Path, ...]:
    """Train, valid and test as far as they are there; else the one file of triples."""
    files = [path for part in PARTS if (path := part_file(folder, part)) is not None]
    if not files and (only := only_graph_file(folder)) is not None:
        return (only,)
    if part_file(folder, "train") is None:
        raise DataError(f"{shown(folder)}: no train file (such as train.tsv or train.nt), nor one file of triples")
    return tuple(files)
