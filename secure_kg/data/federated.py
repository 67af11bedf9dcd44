"""Published federated splits as `.npz`: who holds which triple was decided by a paper's authors, and is kept.

    n_clients                          scalar
    c{i}_train, c{i}_valid, c{i}_test  (n, 3): head, relation, tail in global ids, i = 0 .. n_clients - 1
    c{i}_ent, c{i}_rel                 (m,): the global ids that client i knows

Other arrays are ignored. Names come from `entities.tsv(.gz)` and `relations.tsv(.gz)` beside the file, lines
`id<TAB>name` with ids 0, 1, 2, ...; without them, the decimal id is the name. Client 1 here is c0 in the file.

The file comes from elsewhere, so everything is checked before it is used, and nothing is ever unpickled.
"""

import dataclasses
import os
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import ClientGraph
from secure_kg.data.soundness import trained_elsewhere
from secure_kg.data.triples import PARTS, read_text, shown
from secure_kg.data.vocabulary import Namer, client_graph
from secure_kg.foundation.errors import DataError

_MOST_IDS = 2**31  # with no list of names beside the file, ids are only bounded by this
Ids = npt.NDArray[np.int64]


def read_federated(path: Path) -> tuple[ClientGraph, ...]:
    """The clients in order, exactly as published: rows keep their order, repetitions and leaks stay.

    Here all clients' parts are at hand, so each graph's `origin` counts what of it other clients train on.
    """
    entities, relations = _names(path, "entities"), _names(path, "relations")
    try:
        # Object arrays are refused by numpy itself: unpickling would run code from the file.
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise DataError(f"{shown(path)}: not an .npz archive")
        with archive:
            return _clients(_Arrays(path, archive), entities, relations)
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be read ({error.strerror or 'damaged'})") from None
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, MemoryError, NotImplementedError):
        raise DataError(f"{shown(path)}: damaged, or not an .npz archive of integer arrays") from None


class _Arrays:
    """Checked access to the arrays of one archive."""

    def __init__(self, path: Path, archive: "np.lib.npyio.NpzFile[Any]") -> None:
        self.path, self.archive = path, archive

    def refuse(self, name: str, reason: str) -> DataError:
        return DataError(f"{shown(self.path)}: array {name} {reason}")

    def integers(self, name: str, shape: tuple[int | None, ...], limit: int) -> Ids:
        """Array `name`, of `shape` (None: any length), with values in 0 .. limit - 1."""
        if name not in self.archive.files:
            raise self.refuse(name, "is missing")
        array = self.archive[name]
        if array.dtype.kind not in "iu":
            raise self.refuse(name, f"holds {array.dtype}, not integers")
        same = [want in (None, got) for want, got in zip(shape, array.shape, strict=False)]
        if array.ndim != len(shape) or not all(same):
            raise self.refuse(name, f"has shape {array.shape}")
        if array.size and (int(array.min()) < 0 or int(array.max()) >= limit):
            raise self.refuse(name, f"holds values outside 0 .. {limit - 1}")
        return array.astype(np.int64)


def _clients(arrays: _Arrays, entities: list[str] | None, relations: list[str] | None) -> tuple[ClientGraph, ...]:
    count = int(arrays.integers("n_clients", (), _MOST_IDS))
    if count < 1:
        raise arrays.refuse("n_clients", "is 0")
    for name in arrays.archive.files:
        if (match := re.match(r"c([0-9]{1,9})_", name)) and int(match[1]) >= count:
            raise arrays.refuse(name, f"belongs to no client: n_clients is {count}")
    limits = [_MOST_IDS if names is None else len(names) for names in (entities, relations)]
    clients = [_parts(arrays, number, limits) for number in range(count)]
    entity_name: Namer = str if entities is None else entities.__getitem__
    relation_name: Namer = str if relations is None else relations.__getitem__
    return tuple(
        dataclasses.replace(client_graph(entity_name, relation_name, *parts), origin=origin)
        for parts, origin in zip(clients, trained_elsewhere(clients), strict=True)
    )


def _parts(arrays: _Arrays, number: int, limits: list[int]) -> list[Ids]:
    """Train, valid and test of one client in global ids."""
    parts = [arrays.integers(f"c{number}_{part}", (None, 3), max(limits)) for part in PARTS]
    together = np.concatenate(parts)
    for kind, column, limit in (("ent", [0, 2], limits[0]), ("rel", [1], limits[1])):
        own = arrays.integers(f"c{number}_{kind}", (None,), limit)
        if not np.array_equal(np.sort(own), np.unique(together[:, column])):
            raise arrays.refuse(f"c{number}_{kind}", "does not list each id of the client's triples exactly once")
    return parts


def _names(archive: Path, kind: str) -> list[str] | None:
    """Names by global id from the list beside the archive; None if there is no such list."""
    beside = [archive.with_name(f"{kind}.tsv.gz"), archive.with_name(f"{kind}.tsv")]
    path = next((candidate for candidate in beside if os.path.isfile(candidate)), None)
    if path is None:
        return None
    names: list[str] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line:
            continue
        identifier, _, name = line.partition("\t")
        if identifier != str(len(names)) or not name.strip() or "\t" in name:
            raise DataError(f"{shown(path)}, line {number}: expected {len(names)}<TAB>name")
        names.append(name)
    if repeated := len(names) - len(set(names)):
        raise DataError(f"{shown(path)}: {repeated} repeated names")
    return names
