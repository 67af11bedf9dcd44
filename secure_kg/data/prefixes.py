"""Prefixes of IRIs: short names where people read them. Files, alignment and options have full names.

Prefixes are those that a client's own files declare; `prefixes.toml` in its folder keeps them where a graph was divided
into files that cannot declare any. They are the reader's own, so two clients may show one name differently.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import tomli_w

from secure_kg.data.triples import read_text, shown
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.parsing import toml_of

FILE: Final = "prefixes.toml"
_MOST_TEXT: Final = 12_000
_PREFIX: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9_.-]*)?")
_LOCAL: Final = re.compile(r"[^\s/#?:\"<>]+")


def shortened(name: str, prefixes: Mapping[str, str]) -> str:
    """`ex:alice` for an IRI of a known prefix, by the longest that fits; any other name as it is."""
    fitting = [(space, prefix) for prefix, space in prefixes.items() if space and name.startswith(space)]
    for space, prefix in sorted(fitting, key=lambda found: len(found[0]), reverse=True):
        if _PREFIX.fullmatch(prefix) and _LOCAL.fullmatch(name, len(space)):
            return f"{prefix}:{name[len(space) :]}"
    return name


def short_names(names: Sequence[str], prefixes: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Names as a table shows them, and a line for each prefix in it.

    A name that looks shortened and is not would be taken for another one, so it is shown in quotes.
    """
    short = [shortened(name, prefixes) for name in names]
    begins = tuple(f"{prefix}:" for prefix in prefixes)
    apart = [
        ascii(name) if one == name and name.startswith(begins) else one for one, name in zip(short, names, strict=True)
    ]
    return apart, [f"{prefix}: is {space}" for prefix, space in used_prefixes(names, prefixes).items()]


def used_prefixes(names: Iterable[str], prefixes: Mapping[str, str]) -> dict[str, str]:
    """The prefixes that shorten at least one of the names, in alphabetical order."""
    short = {shortened(name, prefixes).partition(":")[0] for name in names if shortened(name, prefixes) != name}
    return {prefix: prefixes[prefix] for prefix in sorted(short)}


def write_prefixes(folder: Path, names: Iterable[str], prefixes: Mapping[str, str]) -> None:
    """Keep the prefixes that shorten a client's own names; nothing is written if there are none."""
    used = used_prefixes(names, prefixes) if prefixes else {}
    while len(text := tomli_w.dumps(used)) > _MOST_TEXT:
        used.popitem()
    if not used:
        return
    try:
        (folder / FILE).write_bytes(text.encode())
    except OSError as error:
        raise DataError(f"{shown(folder / FILE)}: cannot be written ({error.strerror})") from None


def read_prefixes(folder: Path) -> dict[str, str]:
    """Those that a partition has kept; none if it has not."""
    path = folder / FILE
    if not os.path.lexists(path):
        return {}
    try:
        found = toml_of(read_text(path))
    except ValueError:
        found = {"": 0}
    if not all(isinstance(space, str) for space in found.values()):
        raise DataError(f"{shown(path)}: not a table of prefixes and what they stand for")
    return found
