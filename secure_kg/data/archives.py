"""Archives of integer arrays (`.npz`) and lists of names beside them, as papers publish their data in ids.

A list has lines `id<TAB>name` with ids 0, 1, 2, ... The files come from elsewhere, so everything is checked before it
is used, and nothing is ever unpickled.
"""

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from secure_kg.data.triples import read_text, shown
from secure_kg.foundation.errors import DataError

Ids = npt.NDArray[np.int64]


class CheckedArrays:
    """The arrays of one archive, by name."""

    def __init__(self, path: Path, archive: "np.lib.npyio.NpzFile[Any]") -> None:
        self.path, self._archive = path, archive

    @property
    def names(self) -> list[str]:
        return list(self._archive.files)

    def refuse(self, name: str, reason: str) -> DataError:
        return DataError(f"{shown(self.path)}: array {name} {reason}")

    def integers(self, name: str, shape: tuple[int | None, ...], limit: int) -> Ids:
        """Array `name`, of `shape` (None: any length), with values in 0 .. limit - 1."""
        if name not in self._archive.files:
            raise self.refuse(name, "is missing")
        array = self._archive[name]
        if array.dtype.kind not in "iu":
            raise self.refuse(name, f"holds {array.dtype}, not integers")
        same = [want in (None, got) for want, got in zip(shape, array.shape, strict=False)]
        if array.ndim != len(shape) or not all(same):
            raise self.refuse(name, f"has shape {array.shape}")
        if array.size and (int(array.min()) < 0 or int(array.max()) >= limit):
            raise self.refuse(name, f"holds values outside 0 .. {limit - 1}")
        return array.astype(np.int64)


@contextmanager
def open_arrays(path: Path) -> Iterator[CheckedArrays]:
    """The arrays of an archive, which are read when they are asked for. Raises DataError in one line."""
    try:
        # Object arrays are refused by numpy itself: unpickling would run code from the file.
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise DataError(f"{shown(path)}: not an .npz archive")
        with archive:
            yield CheckedArrays(path, archive)
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be read ({error.strerror or 'damaged'})") from None
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, MemoryError, NotImplementedError):
        raise DataError(f"{shown(path)}: damaged, or not an .npz archive of integer arrays") from None


def names_of_ids(folder: Path, kind: str) -> list[str] | None:
    """Names by id from `entities.tsv(.gz)` or `relations.tsv(.gz)`; None if the folder has no such list."""
    beside = [folder / f"{kind}.tsv.gz", folder / f"{kind}.tsv"]
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
