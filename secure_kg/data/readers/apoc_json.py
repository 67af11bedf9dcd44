"""Lines of JSON as Neo4j's apoc.export.json writes them (`.json`, `.jsonl`): nodes and relationships.

As in the export as CSV, nodes are blank nodes unless `--columns PROPERTY,label,PROPERTY` names a property of theirs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from secure_kg.data.readers.interface import CHUNK, Chunk, FileRules, refuse
from secure_kg.data.readers.nodes import NodeNames
from secure_kg.data.readers.streams import open_stream, text_chunks
from secure_kg.foundation.parsing import json_of

_NONE_SUCH = "not a line of apoc.export.json (a node or a relationship)"


def read_apoc_json(path: Path, rules: FileRules) -> Iterator[Chunk]:
    """Relationships by the names of their nodes."""
    prop = _naming_property(path, rules.reading.chosen)
    names = NodeNames(path, rules, prop is not None)
    chunk, nodes = Chunk([], [], []), 0
    for number, entry in _entries(path):
        match entry:
            case {"type": "node", "id": str(own)}:
                nodes += 1
                _name(names, own, entry, prop, number)
            case {
                "type": "relationship",
                "label": str(label),
                "start": {"id": str(head)} as start,
                "end": {"id": str(tail)} as end,
            } if label.strip():
                _name(names, head, start, prop, number)
                _name(names, tail, end, prop, number)
                names.add(chunk, (head, label, tail))
            case _:
                refuse(path, _NONE_SUCH, number)
        if len(chunk) + nodes >= CHUNK:
            chunk.left_out = names.left_out(nodes)
            yield chunk
            chunk, nodes = Chunk([], [], []), 0
    chunk.left_out = names.left_out(nodes)
    yield chunk


def _naming_property(path: Path, chosen: tuple[str, ...]) -> str | None:
    if not chosen:
        return None
    if chosen[0] != chosen[2] or chosen[1] != "label":
        refuse(path, "--columns of this export: PROPERTY,label,PROPERTY with one property that names nodes")
    return chosen[0]


def _entries(path: Path) -> Iterator[tuple[int, Any]]:
    with open_stream(path) as stream:
        for first, text in text_chunks(stream):
            for number, line in enumerate(text.split("\n"), start=first):
                if not line.strip():
                    continue
                try:
                    line.encode("utf-8")
                    yield number, json_of(line)
                except ValueError:
                    refuse(path, _NONE_SUCH, number)


def _name(names: NodeNames, own: str, entry: dict[str, Any], prop: str | None, line: int) -> None:
    properties = entry.get("properties")
    value = properties.get(prop) if prop is not None and isinstance(properties, dict) else None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str) and value.strip():
        names.name(own, value, line)
