"""A client's own rules about what it says to others; free of torch, so that a command can read them at once."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

NamePolicy = Literal["all", "shared", "none"]
"""Which entities a client tells others of: all, those that enough clients hold for their rows to be averaged, none."""

FactParts = Literal["train", "all"]
"""Which of its triples a client counts as stored: those that it has trained on, or those of all parts of its graph."""


class Exact(StrEnum):
    """What of a question is answered from stored facts."""

    NO = "no"
    BESIDE = "beside"
    """Stored answers, and predicted ones beside them."""
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class Rules:
    """What a client says, and of what it is silent."""

    names: NamePolicy = "shared"
    """Which entities it names, if it is asked for positions."""
    no_atoms: frozenset[str] = frozenset()
    """Relations along or against which it projects for nobody else, and of whose facts it tells nobody."""
    exact: frozenset[str] | None = frozenset()
    """Relations of whose stored facts it tells others; None: of all."""
    facts: FactParts = "train"
    anchors: NamePolicy = "all"
    """Of which entities it gives the row, if it is asked for names. A row says that somebody holds the name."""
