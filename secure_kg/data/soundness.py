"""Faults of a split, counted. Counts only: no name or triple is shown.

Faults are of two kinds. *Damage* makes the reported quality too good, or a figure of something else than it says: a
held-out triple that was trained on, by this client or by another (a federation trains on what any of its clients
trains on), a test triple that early stopping looked at, and triples that count more than once. Damage is refused
unless the user says that it is meant. *Blemishes* make quality at most a little worse: held-out entities and relations
that nothing ever trained. Published splits have a few of them; they are taken and told.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import ClientGraph, Origin, Part, TripleArray
from secure_kg.data.triples import PARTS
from secure_kg.data.vocabulary import triple_keys
from secure_kg.foundation.errors import DataError

_OPTION = "--allow-leaky-split"


@dataclass(frozen=True, slots=True)
class Faults:
    """Counts for one client, or added up over several."""

    valid_triples: int = 0
    test_triples: int = 0
    test_in_train: int = 0
    test_in_other_train: int = 0
    """In another client's train part and not in the client's own, so that the two add up."""
    test_in_valid: int = 0
    valid_in_train: int = 0
    valid_in_other_train: int = 0
    repeated_in_train: int = 0
    repeated_in_valid: int = 0
    repeated_in_test: int = 0
    untrained_entities: int = 0
    untrained_relations: int = 0
    valid_with_untrained: int = 0
    """Validation triples with such an entity or relation."""
    test_with_untrained: int = 0
    dropped_repeats: int = 0

    def __add__(self, other: "Faults") -> "Faults":
        names = [entry.name for entry in dataclasses.fields(self)]
        return Faults(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def test_trained_on(self) -> int:
        return self.test_in_train + self.test_in_other_train

    def counts(self) -> dict[str, int]:
        """For a record in JSON or TOML."""
        return dataclasses.asdict(self)

    def damage(self) -> list[str]:
        """One phrase for each kind that occurs, worst first."""
        test, valid = f"of {self.test_triples} test triples", f"of {self.valid_triples} valid triples"
        counted = [
            (self.test_in_train, f"{test} also stand in train"),
            (self.test_in_other_train, f"{test} stand in another client's train only"),
            (self.test_in_valid, f"{test} also stand in valid"),
            (self.valid_in_train, f"{valid} also stand in train"),
            (self.valid_in_other_train, f"{valid} stand in another client's train only"),
            (self.repeated_in_train, "repeated triples in train"),
            (self.repeated_in_valid, "repeated triples in valid"),
            (self.repeated_in_test, "repeated triples in test"),
        ]
        return [f"{count} {what}" for count, what in counted if count]

    def blemishes(self) -> list[str]:
        """One phrase for each kind that occurs."""
        counted = [
            (self.untrained_entities, "entities of valid and test do not occur in train"),
            (self.untrained_relations, "relations of valid and test do not occur in train"),
        ]
        found = [f"{count} {what}" for count, what in counted if count]
        if found:
            found.append(f"they stand in {self.test_with_untrained} of {self.test_triples} test triples")
        return found


def faults(graph: ClientGraph) -> Faults:
    """All faults of one client's graph."""
    keys = {part: triple_keys(graph.part(part), len(graph.entities), len(graph.relations)) for part in PARTS}

    def shared(held_out: Part, known: Part) -> int:
        return int(np.isin(keys[held_out], keys[known]).sum())

    new_entities, new_relations = _untrained(graph, [0, 2]), _untrained(graph, [1])

    def touched(part: Part) -> int:
        rows = graph.part(part)
        new = np.isin(rows[:, [0, 2]], new_entities).any(axis=1) | np.isin(rows[:, 1], new_relations)
        return int(new.sum())

    return Faults(
        valid_triples=len(graph.valid),
        test_triples=len(graph.test),
        test_in_train=shared("test", "train"),
        test_in_other_train=graph.origin.test_in_other_train,
        test_in_valid=shared("test", "valid"),
        valid_in_train=shared("valid", "train"),
        valid_in_other_train=graph.origin.valid_in_other_train,
        repeated_in_train=_repeated(keys["train"]),
        repeated_in_valid=_repeated(keys["valid"]),
        repeated_in_test=_repeated(keys["test"]),
        untrained_entities=len(new_entities),
        untrained_relations=len(new_relations),
        valid_with_untrained=touched("valid"),
        test_with_untrained=touched("test"),
        dropped_repeats=graph.origin.dropped_repeats,
    )


def check_split(graphs: Sequence[ClientGraph], where: str, *, allow_leaky: bool) -> Faults:
    """The faults of all `graphs` together; damage raises one DataError unless it is allowed.

    `where` says whose split it is. Added up over clients, so that every client of a job says the same line.
    """
    found = sum(map(faults, graphs), start=Faults())
    if (damage := found.damage()) and not allow_leaky:
        # The option first: a long line may be cut on its way to the server.
        raise DataError(f"{where}: damaged split, refused without {_OPTION}: {'; '.join(damage)}")
    return found


def trained_elsewhere(clients: Sequence[Sequence[TripleArray]]) -> list[Origin]:
    """For each client, how many of its held-out triples other clients train on and it does not.

    `clients`: train, valid and test of each, in ids that mean the same for all.
    """
    everything = np.concatenate([part for parts in clients for part in parts])
    entities, relations = np.unique(everything[:, [0, 2]]), np.unique(everything[:, 1])

    def keys(part: TripleArray) -> npt.NDArray[np.int64]:
        # Ids may be sparse and large; their ranks are not.
        ranks = np.empty_like(part)
        ranks[:, [0, 2]] = np.searchsorted(entities, part[:, [0, 2]])
        ranks[:, 1] = np.searchsorted(relations, part[:, 1])
        return triple_keys(ranks, len(entities), len(relations))

    trained = [np.unique(keys(parts[0])) for parts in clients]
    by_anyone = np.unique(np.concatenate(trained))
    counts = [
        [
            int((np.isin(held_out, by_anyone) & ~np.isin(held_out, own)).sum())
            for held_out in (keys(parts[1]), keys(parts[2]))
        ]
        for parts, own in zip(clients, trained, strict=True)
    ]
    return [Origin(valid_in_other_train=valid, test_in_other_train=test) for valid, test in counts]


def check_complete(graph: ClientGraph, where: str, advice: str) -> None:
    """Raise a DataError unless train, valid and test all hold triples.

    Without valid a client cannot stop early, and without test it has no weight in the reported mean.
    """
    for part, word in zip(PARTS, ("training", "validation", "test"), strict=True):
        if len(graph.part(part)) == 0:
            raise DataError(f"{where} has no {word} triples; {advice}")


def _repeated(keys: npt.NDArray[np.int64]) -> int:
    return len(keys) - len(np.unique(keys))


def _untrained(graph: ClientGraph, column: list[int]) -> npt.NDArray[np.int64]:
    held_out = np.concatenate([graph.part(part)[:, column].ravel() for part in PARTS[1:]])
    return np.setdiff1d(held_out, graph.train[:, column])


def about_graph(graph: ClientGraph) -> dict[str, Any]:
    """Sizes and faults of a client's data, for its own result file, and what its files hold and it does not."""
    left_out = graph.left_out.counts()
    return {
        "split_faults": faults(graph).counts(),
        **({"left_out": left_out} if left_out else {}),
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "train_triples": len(graph.train),
        "valid_triples": len(graph.valid),
        "test_triples": len(graph.test),
    }
