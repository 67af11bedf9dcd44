"""Files as ids: names are numbered chunk by chunk, so that a graph's triples are never all in memory by name."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.data.readers.interface import Chunk, FileRules, LeftOut, Reading
from secure_kg.data.readers.registry import reader_of
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.visible import shown

Ids = npt.NDArray[np.int64]
_Columns = npt.NDArray[np.uint32]
_MOST: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Encoded:
    """Files in ids that mean the same for all of them. Names are sorted, and an id is a position among them."""

    entities: tuple[str, ...] = field(repr=False)
    relations: tuple[str, ...] = field(repr=False)
    parts: list[Ids] = field(repr=False)
    """For each file its triples in its order, shape (n, 3)."""
    graphs: tuple[str, ...] = field(repr=False)
    """Names of graphs, sorted; the default graph's is empty."""
    graph_ids: list[Ids] = field(repr=False)
    """For each file the graphs of its triples, shape (n,); empty unless they were asked for."""
    left_out: LeftOut
    prefixes: dict[str, str] = field(repr=False)


class _Numbers(dict[str, int]):
    """Names to numbers, in the order in which names occur."""

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number

    def column(self, names: list[str]) -> _Columns:
        return np.fromiter(map(self.__getitem__, names), dtype=np.uint32, count=len(names))

    def ranked(self) -> tuple[tuple[str, ...], Ids]:
        """The names, sorted; and for each number the position of its name."""
        names = tuple(sorted(self))
        ranks = np.empty(len(names), dtype=np.int64)
        ranks[np.fromiter(map(self.__getitem__, names), dtype=np.int64, count=len(names))] = np.arange(len(names))
        return names, ranks


def encode_files(
    files: Sequence[tuple[str, Path]], reading: Reading, *, owner: str = "", graphs: bool = False
) -> Encoded:
    """`files`: each with its label among them (`FileRules.label`)."""
    entities, relations, named_graphs = _Numbers(), _Numbers(), _Numbers()
    left_out, prefixes = LeftOut(), dict[str, str]()
    read: list[tuple[_Columns, _Columns]] = []
    for label, path in files:
        triples, of_graphs = [np.empty((0, 3), np.uint32)], [np.empty(0, np.uint32)]
        for chunk in reader_of(path)(path, FileRules(reading, owner, label, graphs)):
            triples.append(_triples(chunk, entities, relations))
            if graphs:
                of_graphs.append(named_graphs.column(chunk.graphs or [""] * len(chunk)))
            left_out += chunk.left_out
            prefixes = {**chunk.prefixes, **prefixes}
            if len(entities) > _MOST:
                raise DataError(f"{shown(path)}: more than {_MOST} names")
        read.append((np.concatenate(triples), np.concatenate(of_graphs)))
    entity_names, entity_ranks = entities.ranked()
    relation_names, relation_ranks = relations.ranked()
    graph_names, graph_ranks = named_graphs.ranked()
    parts = [
        np.column_stack((entity_ranks[rows[:, 0]], relation_ranks[rows[:, 1]], entity_ranks[rows[:, 2]]))
        for rows, _ in read
    ]
    _check_names(files, entity_names, relation_names)
    graph_ids = [graph_ranks[rows] for _, rows in read]
    return Encoded(entity_names, relation_names, parts, graph_names, graph_ids, left_out, prefixes)


def _triples(chunk: Chunk, entities: _Numbers, relations: _Numbers) -> _Columns:
    return np.column_stack(
        (entities.column(chunk.heads), relations.column(chunk.relations), entities.column(chunk.tails))
    )


def _check_names(files: Sequence[tuple[str, Path]], *names: tuple[str, ...]) -> None:
    """JSON can write halves of characters, which no file holds."""
    try:
        for kind in names:
            "".join(kind).encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{shown(files[0][1])}: a name is not valid Unicode") from None
