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
_SEPARATORS: Final = '/#?:"<>'
_MOST_BEYOND: Final = 64
"""Characters of a prefix after its last separator, such as `GO_`. Longer ones are not used."""


class Shortener:
    """Short names by some prefixes. The time for a name does not grow with their number."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._by_space: dict[str, str] = {}
        self._lengths: dict[str, list[int]] = {}
        for prefix, space in prefixes.items():
            begin = _begin(space)
            if (
                space
                and _PREFIX.fullmatch(prefix)
                and len(space) - begin <= _MOST_BEYOND
                and space not in self._by_space
            ):
                self._by_space[space] = prefix
                self._lengths.setdefault(space[:begin], []).append(len(space))
        self._lengths = {begin: sorted(set(lengths), reverse=True) for begin, lengths in self._lengths.items()}

    def prefix(self, name: str) -> tuple[str, int] | None:
        """The prefix of an IRI and the length of what it stands for, by the longest that fits; None if none does."""
        for length in self._lengths.get(name[: _begin(name)], ()):
            prefix = self._by_space.get(name[:length])
            if prefix is not None and _LOCAL.fullmatch(name, length):
                return prefix, length
        return None

    def short(self, name: str) -> str:
        """`ex:alice` for an IRI of a known prefix; any other name as it is."""
        found = self.prefix(name)
        return name if found is None else f"{found[0]}:{name[found[1] :]}"

    def full(self, short: str) -> str:
        """The IRI that is shown as `short`; `short` itself if none is."""
        begin, _, local = short.partition(":")
        spaces = [space for space, prefix in self._by_space.items() if prefix == begin]
        return next((space + local for space in spaces if self.short(space + local) == short), short)


def _begin(name: str) -> int:
    """Where the part after the last separator begins. A local name has no separator, so its prefix ends no earlier."""
    return max(map(name.rfind, _SEPARATORS)) + 1


def short_names(names: Sequence[str], prefixes: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Names as a table shows them, and a line for each prefix in it.

    A name that looks shortened and is not would be taken for another one, so it is shown in quotes.
    """
    short = list(map(Shortener(prefixes).short, names))
    apart = [
        ascii(name) if one == name and ":" in name and name.partition(":")[0] in prefixes else one
        for one, name in zip(short, names, strict=True)
    ]
    return apart, [f"{prefix}: is {space}" for prefix, space in used_prefixes(names, prefixes).items()]


def used_prefixes(names: Iterable[str], prefixes: Mapping[str, str]) -> dict[str, str]:
    """The prefixes that shorten at least one of the names, in alphabetical order."""
    found = map(Shortener(prefixes).prefix, names)
    return {prefix: prefixes[prefix] for prefix in sorted({one[0] for one in found if one is not None})}


def write_prefixes(folder: Path, names: Iterable[str], prefixes: Mapping[str, str]) -> None:
    """Keep the prefixes that shorten a client's own names, as many as the file holds; without any there is no file."""
    text = ""
    for prefix, space in used_prefixes(names, prefixes).items() if prefixes else ():
        line = tomli_w.dumps({prefix: space})
        if len(text) + len(line) > _MOST_TEXT:
            break
        text += line
    if not text:
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
