"""Tables with commas (`.csv`): quoting as in RFC 4180, columns by name (`columns.py`); exports of Neo4j among them.

neo4j-admin: an id is the name of its node, with its space if the header has one: `Person:42`. A colon or backslash of
the space has a backslash before it, so id `B:1` of space `A` and id `1` of space `A:B` have different names. In a file
where one end has a space and the other has none, an id without a space may have no colon.

apoc.export.csv: a row describes a node or a relationship. The ids are the database's own and mean nothing elsewhere, so
nodes are blank nodes, unless `--columns PROPERTY,_type,PROPERTY` says which property names them.
"""

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from secure_kg.data.readers.columns import Columns, find_columns
from secure_kg.data.readers.interface import CHUNK, Chunk, FileRules, refuse
from secure_kg.data.readers.nodes import NodeNames
from secure_kg.data.readers.streams import ByteStream, open_stream, text_chunks

Row = list[str]


def read_csv(path: Path, rules: FileRules) -> Iterator[Chunk]:
    """Names as they stand in the fields."""
    with open_stream(path) as stream:
        rows = csv.reader(_lines(stream), strict=True)
        first = next(_checked(path, rows, None), None)
        if first is None:
            return
        columns = find_columns(path, first, rules.reading.chosen, rows.line_num, bare=False)
        filled = _checked(path, rows, columns.width)
        if not columns.header:
            filled = (row for part in ([first], filled) for row in part)
        if columns.kind == "apoc":
            yield from _apoc_chunks(path, rows, filled, columns, rules)
        else:
            yield from _chunks(path, rows, filled, columns, rules)


def _lines(stream: ByteStream) -> Iterator[str]:
    for _, text in text_chunks(stream):
        yield from (f"{line}\n" for line in text.removesuffix("\n").split("\n"))


def _checked(path: Path, rows: Any, width: int | None) -> Iterator[Row]:
    """Rows that are not empty, all of one width."""
    try:
        for row in rows:
            if width is not None and row and len(row) != width:
                refuse(path, f"{len(row)} field(s); expected {width}", rows.line_num)
            if row:
                yield row
    except csv.Error:
        refuse(path, "not valid CSV (quotes, or a field that is too long)", rows.line_num)


def _chunks(path: Path, rows: Any, filled: Iterator[Row], columns: Columns, rules: FileRules) -> Iterator[Chunk]:
    head, relation, tail = columns.places
    of_heads, of_tails = (f"{_escaped(space)}:" if space else "" for space in columns.spaces)
    spaces = (of_heads, "", of_tails)
    bare = None if bool(of_heads) == bool(of_tails) else tail if of_heads else head
    while True:
        names: tuple[list[str], list[str], list[str]] = ([], [], [])
        for row in islice(filled, CHUNK):
            if not (row[head].strip() and row[relation].strip() and row[tail].strip()):
                refuse(path, "an empty field where head, relation or tail should be", rows.line_num)
            if bare is not None and ":" in row[bare]:
                refuse(path, "an id with a colon and without a space, where other ids have spaces", rows.line_num)
            for column, place in zip(names, (head, relation, tail), strict=True):
                column.append(row[place])
        if not names[0]:
            return
        heads, relations, tails = (
            rules.own_names([space + name for name in column] if space else column)
            for space, column in zip(spaces, names, strict=True)
        )
        yield Chunk(heads, relations, tails)


def _escaped(space: str) -> str:
    return space.replace("\\", "\\\\").replace(":", "\\:")


def _apoc_chunks(path: Path, rows: Any, filled: Iterator[Row], columns: Columns, rules: FileRules) -> Iterator[Chunk]:
    names = NodeNames(path, rules, columns.node_name is not None)
    while True:
        chunk, nodes, some = Chunk([], [], []), 0, False
        for row in islice(filled, CHUNK):
            some = True
            head, relation, tail = (row[place] for place in columns.places)
            if not (head or relation or tail):
                nodes += 1
                if columns.node_name is not None and (name := row[columns.node_name[1]]).strip():
                    names.name(row[columns.node_name[0]], name, rows.line_num)
                continue
            if not (head.strip() and relation.strip() and tail.strip()):
                refuse(path, "a relationship without its start, its type or its end", rows.line_num)
            names.add(chunk, (head, relation, tail))
        if not some:
            return
        chunk.left_out = names.left_out(nodes)
        yield chunk
