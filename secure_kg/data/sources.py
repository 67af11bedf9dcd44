"""Sources of triples: a data set's name, a folder, a triple file or a published federated split.

A word is looked up in this order: a data set inside PyKEEN's wheel (umls, kinships, nations); an existing folder or
file; a data set PyKEEN can download. So `./umls` is a folder named umls, and a local copy spares a download.
"""

import difflib
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from secure_kg.data.catalogue import BUNDLED, bundled_files, canonical, download, downloadable
from secure_kg.data.federated import read_federated
from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.data.triples import PARTS, SUFFIXES, is_triple_file, part_file, read_triples, shown
from secure_kg.data.vocabulary import Vocabulary, compact, distinct, encode
from secure_kg.foundation.errors import DataError


@dataclass(frozen=True, slots=True)
class PooledSource:
    """One graph still to be divided: the different triples of train, valid and test together.

    The papers pool the parts before dividing them among clients. `triples` is sorted, so it depends on the set of
    triples only and not on the order of lines; `duplicates` counts the repeated lines that were removed.

    `parts` are train, valid and test as published, row by row, for whoever does not divide the graph; None where not
    all three were.
    """

    entities: Vocabulary = field(repr=False)
    relations: Vocabulary = field(repr=False)
    triples: TripleArray = field(repr=False)
    duplicates: int
    parts: tuple[TripleArray, ...] | None = field(default=None, repr=False)


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


def load_source(dataset: str) -> Source:
    """Read all triples that `dataset` names. Raises DataError in one line."""
    match _locate(dataset):
        case _TripleFiles(paths):
            entities, relations, parts = encode([read_triples(path) for path in paths])
        case _Archive(path):
            return FederatedSource(read_federated(path))
        case _Download(name):
            entities, relations, parts = compact(*download(name))
    triples, duplicates = distinct(np.concatenate(parts), len(entities), len(relations))
    if len(triples) == 0:
        raise DataError(f"{shown(dataset)}: no triples")
    published = tuple(parts) if len(parts) == len(PARTS) else None
    return PooledSource(entities, relations, triples, duplicates, published)


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
        raise DataError(f"{shown(path)}: not a file of triples ({', '.join(SUFFIXES)}) nor a federated split (.npz)")
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
    files = [path for part in PARTS if (path := part_file(folder, part)) is not None]
    if part_file(folder, "train") is None:
        raise DataError(f"{shown(folder)}: no train file (train{', train'.join(SUFFIXES)})")
    return tuple(files)
