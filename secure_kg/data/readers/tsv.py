"""Triple files: UTF-8, one `head<TAB>relation<TAB>tail` a line, `.tsv` or `.txt`.

Blank lines are skipped and Windows line ends are tolerated; everything else is refused with its line number. There is
no quoting: names are the text between tabs. A first line that names known columns is a header (`columns.py`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from secure_kg.data.readers.columns import Columns, find_columns
from secure_kg.data.readers.interface import Chunk, FileRules, refuse
from secure_kg.data.readers.streams import open_stream, text_chunks


def read_tsv(path: Path, rules: FileRules) -> Iterator[Chunk]:
    """Names as they stand there, repetitions included."""
    columns: Columns | None = None
    with open_stream(path) as stream:
        for line, text in text_chunks(stream):
            lines = _lines(path, line, text)
            if columns is None:
                first = next((number for number, one in enumerate(lines) if one.strip(" ")), None)
                if first is None:
                    continue
                columns = find_columns(path, lines[first].split("\t"), rules.reading.chosen, line + first, bare=True)
                if columns.kind != "triples":
                    refuse(path, "an export of Neo4j with tabs; only one with commas (.csv) is read", line + first)
                if columns.header:
                    lines[first] = ""
            heads, relations, tails = map(rules.own_names, _fields(path, line, lines, columns))
            if heads:
                yield Chunk(heads, relations, tails)


def _lines(path: Path, line: int, text: str) -> list[str]:
    text = text.replace("\r\n", "\n").removesuffix("\r")
    if (stray := text.find("\r")) >= 0:
        refuse(path, "a carriage return inside the line", line + text.count("\n", 0, stray))
    # str.splitlines would also split at U+2028, U+0085 and others, which may stand in a name.
    return text.split("\n")


def _fields(path: Path, line: int, lines: list[str], columns: Columns) -> tuple[list[str], list[str], list[str]]:
    filled = [one for one in lines if one.strip(" ")]
    # One flat list of fields: a list for each line would be four times slower, most of it garbage collection.
    fields = "\t".join(filled).split("\t") if filled else []
    width = columns.width
    if any(one.count("\t") != width - 1 for one in filled):
        _refuse_malformed(path, line, lines, columns)
    heads, relations, tails = (fields[place::width] for place in columns.places)
    if not all(map(str.strip, heads + relations + tails)):
        _refuse_malformed(path, line, lines, columns)
    return heads, relations, tails


def _refuse_malformed(path: Path, line: int, lines: list[str], columns: Columns) -> NoReturn:
    """Name the first line that is neither blank nor a triple; there is one."""
    expected = f"expected {columns.width}" if columns.named else "expected head<TAB>relation<TAB>tail"
    for number, one in enumerate(lines, start=line):
        fields = one.split("\t")
        if not one.strip(" "):
            continue
        if len(fields) != columns.width:
            refuse(path, f"{len(fields)} field(s); {expected}", number)
        if not all(fields[place].strip() for place in columns.places):
            refuse(path, f"an empty field; {expected}", number)
    raise AssertionError("no malformed line")
