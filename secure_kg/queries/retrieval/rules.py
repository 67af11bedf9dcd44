"""A client's own rules about what it says to others; free of torch, so that a command can read them at once."""

from dataclasses import dataclass
from typing import Literal

NamePolicy = Literal["all", "shared", "none"]
"""Which entities a client names to others: all, those that enough clients hold for their rows to be averaged, none."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a client says, and of what it is silent."""

    names: NamePolicy = "shared"
    no_atoms: frozenset[str] = frozenset()
    """Relations along which it projects for nobody else."""
