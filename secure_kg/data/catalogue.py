"""The data sets that PyKEEN knows. UMLS, Kinships and Nations are in its wheel; others it downloads.

Importing PyKEEN takes seconds and brings torch along, and a job has many ranks. So the wheel's files and its list of
names are read as files, and PyKEEN itself is imported only when it has to download.
"""

import ast
import fcntl
import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from secure_kg.data.graph import TripleArray
from secure_kg.data.triples import PARTS
from secure_kg.data.vocabulary import Namer
from secure_kg.foundation.errors import DataError

BUNDLED = ("kinships", "nations", "umls")
_ALIASES = {"kinship": "kinships"}


def canonical(name: str) -> str:
    """A data set's name as compared: case, spaces, hyphens and underscores do not count (PyKEEN's own rule)."""
    plain = name.lower().translate(str.maketrans("", "", "-_ "))
    return _ALIASES.get(plain, plain)


def bundled_files(name: str) -> tuple[Path, ...]:
    """Train, valid and test file of a data set in PyKEEN's wheel; `name` is one of BUNDLED. Opens nothing."""
    files = tuple(_datasets_folder() / name / f"{part}.txt" for part in PARTS)
    if not all(path.is_file() for path in files):
        raise DataError(f"PyKEEN is installed without its data set {name}; reinstall it")
    return files


@cache
def downloadable() -> frozenset[str]:
    """Canonical names of the data sets that PyKEEN exports, found in its source text without importing it."""
    try:
        tree = ast.parse((_datasets_folder() / "__init__.py").read_text(encoding="utf-8"))
        exported = next(
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        )
    except (OSError, SyntaxError, ValueError, StopIteration):
        raise DataError("PyKEEN's list of data sets cannot be read; reinstall PyKEEN") from None
    # The list also exports helper functions, in lower case, and the base class.
    classes = {name for name in exported if name[:1].isupper() and name != "Dataset"}
    return frozenset(canonical(name) for name in classes) - frozenset(BUNDLED)


def download(name: str) -> tuple[Namer, Namer, list[TripleArray]]:
    """Names of entity ids, names of relation ids, and the parts of a data set, which PyKEEN fetches if need be."""
    try:
        pykeen: Any = importlib.import_module("pykeen.datasets")
        folder = Path(importlib.import_module("pykeen.constants").PYKEEN_DATASETS)
        # All ranks of a machine come here at once: the first downloads, the others wait and find the files.
        with _exclusive(folder / f"{name}.lock"):
            dataset = pykeen.get_dataset(dataset=name)
            factories = [dataset.training, dataset.validation, dataset.testing]
    except Exception as error:  # whatever a download raises: no network, a bad archive, a missing extra package
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"data set {name}: PyKEEN could not load it ({type(error).__name__}: {reason})") from None
    parts = [np.asarray(factory.mapped_triples, dtype=np.int64) for factory in factories if factory is not None]
    return _namer(dataset.training, "entity_to_id"), _namer(dataset.training, "relation_to_id"), parts


def _namer(factory: Any, attribute: str) -> Namer:
    ids: dict[str, int] | None = getattr(factory, attribute, None)  # a few data sets have ids only
    return str if ids is None else {number: str(name) for name, number in ids.items()}.__getitem__


def _datasets_folder() -> Path:
    spec = importlib.util.find_spec("pykeen")  # finds the package without importing it
    if spec is None or not spec.submodule_search_locations:
        raise DataError("PyKEEN is not installed, and its data sets come with it")
    return Path(spec.submodule_search_locations[0]) / "datasets"


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Hold a lock among processes; the system releases it when the file closes, even if the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
