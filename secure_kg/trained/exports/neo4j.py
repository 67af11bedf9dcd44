"""Export as CSV for Neo4j: nodes with their rows, and the client's triples as relationships.

Headers are those of `neo4j-admin database import`; arrays are separated by semicolons. Names are always in quotes, and
a quote inside is doubled (RFC 4180).
"""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from secure_kg.data.triples import PARTS
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import counted
from secure_kg.trained.client_model import ClientModel
from secure_kg.trained.exports.files import numbers, write_pieces

NODES = ("entityId:ID", "name", "vector:float[]")
RELATIONSHIPS = (":START_ID", ":END_ID", ":TYPE", "part")


def export_neo4j(model: ClientModel, out: Path) -> list[str]:
    """`nodes.csv`, `relationships.csv`."""
    graph, rows = model.graph, model.scorer.tables()["entity"]
    if any("\0" in name for name in (*graph.entities, *graph.relations)):
        raise UserError(f"{out}: a name holds a zero byte, which CSV files cannot")
    nodes = (
        [number, name, numbers(row, ";")] for number, (name, row) in enumerate(zip(graph.entities, rows, strict=True))
    )
    write_pieces(out / "nodes.csv", _csv(NODES, nodes))
    facts = (
        [head, tail, graph.relations[relation], part]
        for part in PARTS
        for head, relation, tail in graph.part(part).tolist()
    )
    write_pieces(out / "relationships.csv", _csv(RELATIONSHIPS, facts))
    slashed = sum("\\" in name for name in (*graph.entities, *graph.relations))
    warning = f"{counted(slashed, 'name')} with a backslash, which LOAD CSV may misread; neo4j-admin does not"
    return [warning] if slashed else []


def _csv(header: Iterable[str], rows: Iterable[list[Any]]) -> Iterator[str]:
    yield _line(header, csv.QUOTE_MINIMAL)
    for row in rows:
        yield _line(row, csv.QUOTE_NONNUMERIC)


def _line(fields: Iterable[Any], quoting: int) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=quoting).writerow(fields)  # type: ignore[arg-type]
    return out.getvalue()
