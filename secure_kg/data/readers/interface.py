"""Interface of readers: a file, by some rules, is chunks of named triples and counts of what was left out."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NoReturn, Protocol, get_args

from secure_kg.foundation.errors import DataError
from secure_kg.foundation.visible import shown

Literals = Literal["drop", "keep"]
CHUNK: Final = 32_768
"""Triples in a chunk, or about as many."""
BLANK: Final = "_:"
"""How the name of a blank node begins."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Rules that the user chooses."""

    literals: Literals = "drop"
    """What becomes of triples whose tail is a literal: dropped and counted, or kept with the literal as an entity."""
    columns: str = ""
    """Names or numbers of the columns of head, relation and tail, by commas; empty: the header says."""

    def __post_init__(self) -> None:
        if self.literals not in get_args(Literals):
            raise DataError(f"--literals must be one of {', '.join(get_args(Literals))}")
        if self.columns and (len(self.chosen) != 3 or not all(self.chosen)):
            raise DataError("--columns needs three names or numbers of columns: head,relation,tail")

    @property
    def chosen(self) -> tuple[str, ...]:
        """The columns of head, relation and tail; empty if the header says."""
        return tuple(name.strip() for name in self.columns.split(",")) if self.columns else ()


@dataclass(frozen=True, slots=True)
class FileRules:
    """Rules for one file."""

    reading: Reading = Reading()
    owner: str = ""
    """The client whose own file it is; empty for a data set that all clients divide."""
    label: str = "1"
    """The file among those that are read together."""
    graphs: bool = False
    """Whether named graphs are told apart."""

    def blank_nodes(self) -> "BlankNodes":
        """Names of the file's blank nodes."""
        return BlankNodes(f"{BLANK}{self.owner}.{self.label}." if self.owner else f"{BLANK}{self.label}.")

    def own_names(self, names: list[str]) -> list[str]:
        """Names of a table, which are taken as they are. A blank node's gets the owner's number, so that those of two
        clients never meet."""
        if not self.owner:
            return names
        begin = f"{BLANK}{self.owner}:"
        return [begin + name[2:] if name.startswith(BLANK) else name for name in names]


class BlankNodes(dict[str, str]):
    """Names of blank nodes by their labels: numbers in the order in which nodes occur.

    A label means something inside its file only, and parsers invent labels at random. A number tells nobody what the
    label was, and is the same each time the file is read.
    """

    def __init__(self, begin: str) -> None:
        super().__init__()
        self._begin = begin

    def __missing__(self, label: str) -> str:
        name = self[label] = f"{self._begin}{len(self) + 1}"
        return name


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Counts of what files hold and the graph does not."""

    literals: int = 0
    """Triples whose tail is a literal."""
    triple_terms: int = 0
    """Triples about triples: the tail is a triple (RDF 1.2)."""
    node_rows: int = 0
    """Rows of a Neo4j export that describe nodes."""
    unnamed_nodes: int = 0
    """Nodes of a Neo4j export that lack the property by which nodes are named. They are blank nodes instead."""
    default_graph: int = 0
    """Triples of the default graph, where each named graph is a client."""

    def __add__(self, other: "LeftOut") -> "LeftOut":
        names = [entry.name for entry in dataclasses.fields(self)]
        return LeftOut(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def counts(self) -> dict[str, int]:
        """Those that are not 0, for a record."""
        return {name: count for name, count in dataclasses.asdict(self).items() if count}

    def phrases(self) -> list[str]:
        """One for each kind that occurs."""
        counted = [
            (self.literals, "triples with a literal"),
            (self.triple_terms, "triples about triples"),
            (self.node_rows, "rows of nodes"),
            (self.unnamed_nodes, "names of nodes without the chosen property (they are blank nodes)"),
            (self.default_graph, "triples of the default graph"),
        ]
        return [f"{count} {what}" for count, what in counted if count]


@dataclass(slots=True, repr=False)
class Chunk:
    """Some triples of a file, in its order: columns of equal length."""

    heads: list[str]
    relations: list[str]
    tails: list[str]
    graphs: list[str] | None = None
    """Names of the graphs of the triples, empty for the default graph; None unless they were asked for."""
    left_out: LeftOut = LeftOut()
    """Between the chunk before and the end of this one."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """Prefixes that the file has declared so far, and what they stand for."""

    def __len__(self) -> int:
        return len(self.heads)

    def __repr__(self) -> str:  # names are private
        return f"Chunk({len(self)} triples)"


class Reader(Protocol):
    """Chunks of one file. Raises DataError in one line that names places and never contents."""

    def __call__(self, path: Path, rules: FileRules) -> Iterator[Chunk]: ...


Refusal = Callable[[str], NoReturn]


def refuse(path: Path, reason: str, line: int | None = None, column: int | None = None) -> NoReturn:
    """Raise the DataError of a file. `from None`: the text of a parser's error quotes what it has read."""
    place = shown(path)
    if line is not None:
        place += f", line {line}"
    if column is not None:
        place += f", column {column}"
    raise DataError(f"{place}: {reason}") from None
