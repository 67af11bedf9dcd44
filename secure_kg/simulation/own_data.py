"""Triples that a caller has in memory, written as the folders that real owners of data would bring."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from secure_kg.data.folders import client_folder, write_client_folder
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import divide
from secure_kg.data.triples import NamedTriples, part_file
from secure_kg.data.vocabulary import distinct, encode
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.seeds import generator
from secure_kg.foundation.words import counted

Triple: TypeAlias = tuple[str, str, str]
Data: TypeAlias = str | Path | Sequence[Iterable[Triple]]
"""A data set's name, a path, or the triples of each client."""


def place_of(data: Any) -> dict[str, str] | None:
    """The setting that names data which are stored already; None for triples in memory."""
    if isinstance(data, str | Path):
        folder = Path(data)
        if folder.is_dir() and part_file(folder, "train") is None and client_folder(folder, 1).is_dir():
            return {"client_data": str(folder)}
        return {"dataset": str(data)}
    if isinstance(data, Sequence) and not isinstance(data, bytes):
        return None
    raise DataError("data: give a data set's name, a path, or one list of (head, relation, tail) for each client")


def write_data(data: Sequence[Iterable[Triple]], folder: Path, seed: int) -> None:
    """Divide each client's triples into train, valid and test, and write them to a folder of its own."""
    if len(data) < 2:
        lists = counted(len(data), "list")
        raise DataError(f"data: {lists} of triples; a federation has at least 2 clients, one list for each")
    for number, triples in enumerate(data, start=1):
        graph = _graph(_columns(triples, number), generator(seed, "held out", "given", len(data), number), number)
        write_client_folder(client_folder(folder, number), graph)


def _graph(named: NamedTriples, rng: Any, number: int) -> ClientGraph:
    entities, relations, (rows,) = encode([named])
    graph = ClientGraph(entities, relations, *divide(distinct(rows, len(entities), len(relations))[0], rng))
    for part in ("valid", "test"):
        if not len(graph.valid if part == "valid" else graph.test):
            raise DataError(
                f"data: client {number} has too few triples to hold out some for {part}: a triple is held out only if "
                "its names occur in others, too"
            )
    return graph


def _columns(triples: Any, number: int) -> NamedTriples:
    """Contents stay out of messages, as everywhere: they name the client and the triple's place."""
    found: list[Triple] = []
    if not isinstance(triples, Iterable) or isinstance(triples, str | bytes):
        raise DataError(f"data: client {number} has no list of triples")
    for place, triple in enumerate(triples):
        if isinstance(triple, str) or not isinstance(triple, Sequence) or len(triple) != 3:
            raise DataError(f"data: client {number}, triple {place}: not a (head, relation, tail)")
        head, relation, tail = triple
        if not all(isinstance(name, str) and name for name in triple):
            raise DataError(f"data: client {number}, triple {place}: names are strings with at least one character")
        if any(letter in name for name in triple for letter in "\t\r\n"):
            raise DataError(f"data: client {number}, triple {place}: a name has a tab or a line break")
        found.append((head, relation, tail))
    if not found:
        raise DataError(f"data: client {number} has no triples")
    heads, relations, tails = zip(*found, strict=True)
    return NamedTriples(heads, relations, tails)
