"""Triple files: UTF-8, one `head<TAB>relation<TAB>tail` a line, `.tsv` or `.txt`, optionally `.gz`.

Blank lines are skipped and Windows line ends and a byte-order mark are tolerated; everything else is refused with the
file and the line number. The text of a line never enters a message: messages may travel to the server.
"""

import gzip
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from secure_kg.data.graph import Part
from secure_kg.foundation.errors import DataError

SUFFIXES = (".tsv", ".txt", ".tsv.gz", ".txt.gz")
PARTS: tuple[Part, Part, Part] = ("train", "valid", "test")


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


def shown(path: Path | str) -> str:
    """`path` for a message: one line, whatever characters the path holds."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def is_triple_file(path: Path) -> bool:
    """Whether the name is that of a triple file (the file need not exist)."""
    return path.name.lower().endswith(SUFFIXES)


def part_file(folder: Path, part: Part) -> Path | None:
    """The file of `part` in `folder`, found by name without opening anything; None if there is none."""
    found = [path for suffix in SUFFIXES if os.path.isfile(path := folder / f"{part}{suffix}")]
    if len(found) > 1:  # a silent choice could train on a stale copy
        raise DataError(f"{shown(folder)}: both {found[0].name} and {found[1].name}; keep one")
    return found[0] if found else None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, `.gz` unpacked, line ends made "\\n"."""
    data = _read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(path, data.count(b"\n", 0, error.start) + 1, "not valid UTF-8")
    text = text.replace("\r\n", "\n").removesuffix("\r")
    if (stray := text.find("\r")) >= 0:
        _refuse(path, text.count("\n", 0, stray) + 1, "a carriage return inside the line")
    return text


def read_triples(path: Path) -> NamedTriples:
    """All triples of one file in file order, repetitions included."""
    # str.splitlines would also split at U+2028, U+0085 and others, which may stand in a name.
    lines = read_text(path).split("\n")
    filled = [line for line in lines if line.strip(" ")]
    # One flat list of fields: a list for each line would be four times slower, most of it garbage collection.
    fields = "\t".join(filled).split("\t") if filled else []
    if any(line.count("\t") != 2 for line in filled) or not all(map(str.strip, fields)):
        _refuse_malformed(path, lines)
    return NamedTriples(tuple(fields[0::3]), tuple(fields[1::3]), tuple(fields[2::3]))


def write_triples(path: Path, triples: NamedTriples) -> None:
    """Write `triples` in order; the same triples always give the same bytes (a `.gz` carries no time of writing)."""
    for name in {*triples.heads, *triples.relations, *triples.tails}:
        if not name.strip() or any(mark in name for mark in "\t\n\r") or name.startswith("\ufeff"):
            raise DataError(f"{shown(path)}: a name is empty or holds a tab or a line end, so no file could hold it")
    columns = zip(triples.heads, triples.relations, triples.tails, strict=True)
    try:
        data = "".join(f"{head}\t{relation}\t{tail}\n" for head, relation, tail in columns).encode("utf-8")
        path.write_bytes(gzip.compress(data, mtime=0) if path.name.lower().endswith(".gz") else data)
    except UnicodeEncodeError:
        raise DataError(f"{shown(path)}: a name is not valid Unicode") from None
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be written ({error.strerror})") from None


def _refuse(path: Path, line: int, reason: str) -> NoReturn:
    # `from None`: the text of a decoding error quotes bytes of the line.
    raise DataError(f"{shown(path)}, line {line}: {reason}") from None


def _refuse_malformed(path: Path, lines: list[str]) -> NoReturn:
    """Name the first line that is neither blank nor a triple; there is one."""
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t")
        if len(fields) != 3 and line.strip(" "):
            _refuse(path, number, f"{len(fields)} field(s); expected head<TAB>relation<TAB>tail")
        if len(fields) == 3 and not all(map(str.strip, fields)):
            _refuse(path, number, "an empty field; expected head<TAB>relation<TAB>tail")
    raise AssertionError("no malformed line")


def _read_bytes(path: Path) -> bytes:
    if os.path.isdir(path):
        raise DataError(f"{shown(path)}: is a folder, not a file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be read ({error.strerror})") from None
    return _gunzip(path, data) if path.name.lower().endswith(".gz") else data


def _gunzip(path: Path, data: bytes) -> bytes:
    """Unpack every member of a gzip file. Unlike gzip.decompress, this knows how far it came in a truncated one."""
    unpacked = b""
    while True:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # 16: gzip header and checksum are required
        try:
            unpacked += member.decompress(data)
        except zlib.error:
            raise DataError(f"{shown(path)}: not a gzip file, or a damaged one") from None
        if not member.eof:
            _refuse(path, unpacked.count(b"\n") + 1, "the compressed file ends here, too early")
        data = member.unused_data.lstrip(b"\0")  # tape blocks are padded with zeros
        if not data:
            return unpacked
