"""Files of triples by name: found in a folder, read whole, written.

Formats and their rules are those of `readers`. A partition is written as `.tsv`; a part with a name that holds a tab or
a line end, which no such file could hold, as `.csv`. The text of a line never enters a message: messages may travel to
the server.
"""

import csv
import gzip
import io
import os
from dataclasses import dataclass
from pathlib import Path

from secure_kg.data.graph import Part
from secure_kg.data.readers.columns import is_header
from secure_kg.data.readers.interface import FileRules, refuse
from secure_kg.data.readers.registry import SUFFIXES, graph_files, reader_of, suffix_of
from secure_kg.data.readers.streams import open_stream
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.visible import shown as shown

PARTS: tuple[Part, Part, Part] = ("train", "valid", "test")
_HEADER = ("head", "relation", "tail")


@dataclass(frozen=True, slots=True, repr=False)
class NamedTriples:
    """Triples by name, as three columns of equal length."""

    heads: tuple[str, ...]
    relations: tuple[str, ...]
    tails: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.heads)

    def __repr__(self) -> str:
        return f"NamedTriples({len(self)} triples)"


def is_triple_file(path: Path) -> bool:
    """Whether the name is that of a file of triples (the file need not exist)."""
    return suffix_of(path) is not None


def part_file(folder: Path, part: Part) -> Path | None:
    """The file of `part` in `folder`, found by name without opening anything; None if there is none."""
    found = [path for suffix in SUFFIXES if os.path.isfile(path := folder / f"{part}{suffix}")]
    if len(found) > 1:  # a silent choice could train on a stale copy
        raise DataError(f"{shown(folder)}: both {found[0].name} and {found[1].name}; keep one")
    return found[0] if found else None


def only_graph_file(folder: Path) -> Path | None:
    """The one file of triples in `folder`, by name; None if there is none. Two are refused: which one is meant?"""
    try:
        found = graph_files(folder)
    except OSError as error:
        raise DataError(f"{shown(folder)}: cannot be read ({error.strerror})") from None
    if len(found) > 1:
        names = f"{shown(found[0].name)} and {shown(found[1].name)}"
        raise DataError(f"{shown(folder)}: both {names}; keep one, or name them train, valid and test")
    return found[0] if found else None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, unpacked if it is packed, line ends made "\\n"."""
    with open_stream(path) as stream:
        data = stream.read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(path, "not valid UTF-8", data.count(b"\n", 0, error.start) + 1)
    text = text.replace("\r\n", "\n").removesuffix("\r")
    if (stray := text.find("\r")) >= 0:
        refuse(path, "a carriage return inside the line", text.count("\n", 0, stray) + 1)
    return text


def read_triples(path: Path, rules: FileRules = FileRules()) -> NamedTriples:  # noqa: B008  # frozen
    """All triples of one file in file order, repetitions included. For files that are small: names are not shared."""
    heads: list[str] = []
    relations: list[str] = []
    tails: list[str] = []
    for chunk in reader_of(path)(path, rules):
        heads += chunk.heads
        relations += chunk.relations
        tails += chunk.tails
    return NamedTriples(tuple(heads), tuple(relations), tuple(tails))


def part_suffix(triples: NamedTriples) -> str:
    """How the name of a file ends that can hold these triples."""
    return ".csv" if _needs_quotes(triples) else ".tsv"


def write_triples(path: Path, triples: NamedTriples) -> None:
    """Write `triples` in order as `.tsv` or `.csv`, also with `.gz`; the same triples always give the same bytes (a
    `.gz` carries no time of writing)."""
    as_csv = (suffix_of(path) or "").startswith(".csv")
    empty = not all(map(str.strip, {*triples.heads, *triples.relations, *triples.tails}))
    if empty or (not as_csv and _needs_quotes(triples)):
        raise DataError(f"{shown(path)}: a name is empty or holds a tab or a line end, so no such file could hold it")
    rows = zip(triples.heads, triples.relations, triples.tails, strict=True)
    try:
        if as_csv:
            text = io.StringIO(newline="")
            csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows((_HEADER, *rows))
            data = text.getvalue().encode("utf-8")
        else:
            data = "".join(f"{head}\t{relation}\t{tail}\n" for head, relation, tail in rows).encode("utf-8")
        path.write_bytes(gzip.compress(data, mtime=0) if path.name.lower().endswith(".gz") else data)
    except UnicodeEncodeError:
        raise DataError(f"{shown(path)}: a name is not valid Unicode") from None
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be written ({error.strerror})") from None


def _needs_quotes(triples: NamedTriples) -> bool:
    """Whether a name would end a field or a line, be taken for a byte-order mark, or make the first line a header."""
    names = {*triples.heads, *triples.relations, *triples.tails}
    marks = any(mark in name for name in names for mark in "\t\n\r") or any(name.startswith("\ufeff") for name in names)
    return marks or is_header([column[0] for column in (triples.heads, triples.relations, triples.tails) if column])
