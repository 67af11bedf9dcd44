"""Servers that answer a union falsely, and a client that asks it for names it does not have."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import structs

import protocols.alignment.psu.places as union_places
import protocols.alignment.psu.union as private_union
from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import refusals, said, sums_read
from benchmarks.cheating.stage import COLLUDER, VICTIM, Stage, nations, stage_config, thread_name
from benchmarks.cheating.totals import group_key_of, lone_rows
from protocols.alignment.plain import ClearUnion
from protocols.alignment.psu.attempts import Attempt, UnionPlaces
from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.table import peel_in_rounds, write
from protocols.alignment.psu.tags import tags_of
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId
from protocols.primitives.group import FieldArray, GroupVector, PrimeField
from protocols.sums.secagg.messages import AdvertiseKeys, MaskedInput
from secure_kg.runs.records.client_result import ClientResult
from secure_kg.runs.run_folder import read_record

UNION: Final = "union/"
MOST_TABLES: Final = 3
"""So many tables at most a client should send, whatever it is told of them."""


@contextmanager
def substituted(place: Any, name: str, replacement: Any) -> Iterator[None]:
    """For the whole process: one session at a time. Only the server's side uses what is substituted here."""
    original = getattr(place, name)
    setattr(place, name, replacement)
    try:
        yield
    finally:
        setattr(place, name, original)


class CollidingPlaces(Cheat):
    """Two names on one position, the same for all clients. Which tags these names have, a colluding client tells."""

    def __init__(self, names: tuple[str, str]) -> None:
        super().__init__()
        self._names = names

    def answer(self, total: GroupVector, attempt: Attempt) -> UnionPlaces:
        honest = _ANSWER(total, attempt)
        if not honest.size or self.stage is None:
            return honest
        wanted = tags_of(self._names, attempt.tag_key(group_key_of(self.stage, COLLUDER)))
        peeled = peel_in_rounds(total.astype(np.uint64, copy=False), attempt.layout)
        tags = np.concatenate([one.tags for one in peeled.rounds])
        first, second = (int(np.flatnonzero((tags == tag).all(axis=1))[0]) for tag in wanted)

        def shuffled(size: int) -> npt.NDArray[np.uint64]:
            positions = _SHUFFLED(size)
            positions[first] = positions[second]
            return positions

        with substituted(union_places, "_shuffled", shuffled):
            return _ANSWER(total, attempt)


_ANSWER, _SHUFFLED = private_union.answer_of, union_places._shuffled


def colliding_names(path: Path) -> Played:
    """Two names of the victim: its success is that nobody but the victim complains, so that the server knows it."""
    stage = _divided(path)
    _collide(stage, stage.graphs[VICTIM - 1].relations[0], stage.graphs[VICTIM - 1].relations[1])
    complained = refusals(stage).keys()
    return Played(stage, complained == {str(VICTIM)}, {"complained": sorted(complained)})


def colliding_lone_names(path: Path) -> Played:
    """Names of two clients, each of one holder: its success is a sum of rows that have no two holders."""
    stage = _divided(path)
    _collide(stage, stage.graphs[VICTIM - 1].relations[0], stage.graphs[1].relations[0])
    lone = lone_rows(stage)
    return Played(stage, lone > 0, {"rows_of_one_holder_in_a_sum": lone})


def _divided(path: Path) -> Stage:
    """Relations without overlap: every name has one holder."""
    return Stage(path, stage_config(by="relations", rounds=2, min_holders=2))


def _collide(stage: Stage, first: str, second: str) -> None:
    cheat = CollidingPlaces((first, second))
    with substituted(private_union, "answer_of", cheat.answer):
        stage.perform(cheat)


class UnionAgain(Cheat):
    """The first union is said to have failed, and the next one is held without the victim."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def answer(self, total: GroupVector, attempt: Attempt) -> UnionPlaces:
        honest = _ANSWER(total, attempt)
        self.sizes.append(honest.size)
        return attempt.again() if attempt.number == 0 else honest

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if sender == VICTIM and isinstance(message, AdvertiseKeys) and message.purpose == f"{UNION}1":
            self.call_dropout(VICTIM)
        return message


def union_again(path: Path) -> Played:
    """Its success: the number of names that only the victim holds."""
    stage, cheat = _divided(path), UnionAgain()
    with substituted(private_union, "answer_of", cheat.answer):
        stage.perform(cheat)
    truth = len(stage.graphs[VICTIM - 1].relations)
    computed = cheat.sizes[0] - cheat.sizes[1] if len(cheat.sizes) > 1 else None
    return Played(stage, computed == truth, {"computed": computed, "names_of_the_victim_alone": truth})


class NeverReadable(Cheat):
    """Every table is said to be unreadable, a few times over: each attempt makes the clients send a larger one."""

    patience = 4
    """Attempts after which this server is content."""

    def answer(self, total: GroupVector, attempt: Attempt) -> UnionPlaces:
        return attempt.again() if attempt.number < self.patience else _ANSWER(total, attempt)


def never_readable(path: Path) -> Played:
    """Its success: one larger table after the other."""
    stage, cheat = Stage(path, stage_config(rounds=1, eval_every=1, union_bound=64)), NeverReadable()
    with substituted(private_union, "answer_of", cheat.answer):
        stage.perform(cheat)
    return Played(stage, *_tables(stage))


def _tables(stage: Stage) -> tuple[bool, dict[str, Any]]:
    """How often clients have sent tables for a union, and how large the last was."""
    tables = {
        one.purpose: len(one.message.vector)
        for one in said(stage.last, MaskedInput)
        if isinstance(one.message, MaskedInput) and one.purpose.startswith(UNION)
    }
    largest = max(tables.values(), default=0)
    return len(tables) > MOST_TABLES, {"attempts": len(tables), "largest_table_entries": largest}


class DifferentPlaces(Cheat):
    """The victim finds all its rows one position further on than the others do."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if to == VICTIM and isinstance(message, UnionPlaces) and message.size:
            third = len(message.places) // 3  # every tag has one cell in each third of the table
            moved = message.places.copy()
            moved[:third] = (moved[:third].astype(np.uint64) + 1) % message.size
            return (structs.replace(message, places=moved),)
        if to == VICTIM and isinstance(message, ClearUnion):
            return (structs.replace(message, tags=np.roll(message.tags, 1, axis=0)),)
        return (message,)


def different_places(path: Path) -> Played:
    return _different(Stage(path, stage_config(rounds=2)))


def different_lists(path: Path) -> Played:
    return _different(Stage(path, stage_config(rounds=2, alignment="plain")))


def _different(stage: Stage) -> Played:
    """Their success: a sum of rows with the victim in it, whose rows stand elsewhere."""
    stage.perform(DifferentPlaces())
    opened = [one for one in sums_read(stage, stage.last) if one.purpose == "rows" and VICTIM in one.contributors]
    inputs = [one for one in said(stage.last, MaskedInput, sender=VICTIM) if one.purpose == "rows"]
    return Played(stage, bool(opened or inputs), {"sums_opened": len(opened), "inputs_of_the_victim": len(inputs)})


def guessed_names(path: Path) -> Played:
    """A client puts two guesses into its own graph, one of them right: its success is that it can tell which."""
    config = stage_config(by="relations", rounds=2, min_holders=2)
    graphs = nations(config.clients or 0, config)
    own, right = graphs[COLLUDER - 1], graphs[VICTIM - 1].relations[0]
    answers: dict[str, int] = {}
    stage = Stage(path, config, graphs)
    for number, guess in enumerate((right, "zzz nobody has this"), start=1):
        changed = [*graphs]
        changed[COLLUDER - 1] = replace(own, relations=(*own.relations, guess))
        stage = Stage(path / str(number), config, changed)
        stage.perform(Cheat())
        result = stage.run / "clients" / str(COLLUDER) / "result.json"
        answers["held" if guess == right else "invented"] = (
            read_record(result, ClientResult).rows_averaged if result.exists() else -1
        )
    return Played(stage, answers == {"held": 1, "invented": 0}, {"rows_averaged": answers})


def garbage_tables(path: Path) -> Played:
    """A client whose tables are noise: its success is that all clients send one larger table after the other."""
    stage = Stage(path, stage_config(rounds=1, eval_every=1, union_bound=64))
    honest, sent = write, list[int]()

    def written(tags: FieldArray, layout: TableLayout, into: FieldArray | None = None) -> FieldArray:
        if threading.current_thread().name != thread_name(COLLUDER) or len(sent) >= NeverReadable.patience:
            return honest(tags, layout, into)
        sent.append(layout.entries)
        return PrimeField().uniform((layout.entries,))

    with substituted(private_union, "write", written):
        stage.perform(Cheat())
    return Played(stage, *_tables(stage))
