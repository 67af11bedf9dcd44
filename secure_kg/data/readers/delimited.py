"""Tables with commas (`.csv`): quoting as in RFC 4180, columns by name (`columns.py`); exports of Neo4j among them.

neo4j-admin: an id is the name of its node, with its space if the header has one: `Person:42`.

apoc.export.csv: a row describes a node or a relationship. The ids are the database's own and mean nothing elsewhere, so
nodes are blank nodes, unless `--columns PROPERTY,_type,PROPERTY` says which property names them.
"""

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from secure_kg.data.readers.columns import Columns, find_columns
from secure_kg.data.readers.interface import CHUNK, BlankNodes, Chunk, FileRules, LeftOut, refuse
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
    spaces = [f"{space}:" if space else "" for space in columns.spaces]
    while True:
        names: tuple[list[str], list[str], list[str]] = ([], [], [])
        for row in islice(filled, CHUNK):
            if not (row[head].strip() and row[relation].strip() and row[tail].strip()):
                refuse(path, "an empty field where head, relation or tail should be", rows.line_num)
            for column, place in zip(names, (head, relation, tail), strict=True):
                column.append(row[place])
        if not names[0]:
            return
        heads, tails = (
            [space + name for name in column] if space else rules.own_names(column)
            for space, column in zip(spaces, (names[0], names[2]), strict=True)
        )
        yield Chunk(heads, names[1], tails)


def _apoc_chunks(path: Path, rows: Any, filled: Iterator[Row], columns: Columns, rules: FileRules) -> Iterator[Chunk]:
    blank, named = rules.blank_nodes(), dict[str, str]()
    while True:
        chunk, nodes, some = Chunk([], [], []), 0, False
        for row in islice(filled, CHUNK):
            some = True
            head, relation, tail = (row[place] for place in columns.places)
            if not (head or relation or tail):
                nodes += 1
                if columns.node_name is not None and (name := row[columns.node_name[1]]).strip():
                    named[row[columns.node_name[0]]] = name
                continue
            if not (head.strip() and relation.strip() and tail.strip()):
                refuse(path, "a relationship without its start, its type or its end", rows.line_num)
            add_relationship(chunk, (head, relation, tail), named, blank)
        if not some:
            return
        chunk.left_out = LeftOut(node_rows=nodes)
        yield chunk


def add_relationship(chunk: Chunk, ids: tuple[str, str, str], named: dict[str, str], blank: BlankNodes) -> None:
    """Add a relationship between nodes by their ids; a node without a name is a blank node."""
    head, relation, tail = ids
    chunk.heads.append(named[head] if head in named else blank[head])
    chunk.relations.append(relation)
    chunk.tails.append(named[tail] if tail in named else blank[tail])
