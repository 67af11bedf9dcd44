"""A client's knowledge graph: its own vocabularies and its three parts in local ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from secure_kg.data.readers.interface import LeftOut

TripleArray = npt.NDArray[np.int64]
"""Shape (n, 3): columns head, relation, tail, in local ids."""

Part = Literal["train", "valid", "test"]

Side = Literal["tail", "head"]
"""Which end of a triple is asked for."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What only the reader of a split can know: it cannot be seen in the client's triples any more. Counts only."""

    valid_in_other_train: int = 0
    """Validation triples that other clients train on, and this client does not."""
    test_in_other_train: int = 0
    """The same of test triples."""
    dropped_repeats: int = 0
    """Repeated lines of a published train part that were left out."""


@dataclass(frozen=True, slots=True)
class ClientGraph:
    """What one client knows. Position in `entities` / `relations` is the local id; names are sorted and unique."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    train: TripleArray
    valid: TripleArray
    test: TripleArray
    origin: Origin = field(default=Origin(), kw_only=True)
    left_out: LeftOut = field(default=LeftOut(), kw_only=True)
    """Counts of what its files hold and it does not."""
    prefixes: Mapping[str, str] = field(default_factory=dict, kw_only=True, compare=False)
    """Prefixes of IRIs that its files declare. They shorten names where people read them, and nowhere else."""

    def part(self, name: Part) -> TripleArray:
        return {"train": self.train, "valid": self.valid, "test": self.test}[name]

    def __repr__(self) -> str:  # sizes only: names and triples are private and must not reach a log by accident
        sizes = f"{len(self.train)}/{len(self.valid)}/{len(self.test)} triples"
        return f"ClientGraph({len(self.entities)} entities, {len(self.relations)} relations, {sizes})"
