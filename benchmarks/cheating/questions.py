"""Servers that cheat in questions, an asker that asks for more than it may, and a client that answers out of form."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.question_stage import DIM, OTHER, QUESTION, THIRD, QuestionStage
from benchmarks.cheating.score_stage import ASKER, CLIENTS, VICTIM
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId
from protocols.lookups import steps
from protocols.lookups.messages import NamesTotal, NextStep
from protocols.lookups.vectors import VectorBudget
from protocols.scores.budget import MemoryRecord
from protocols.scores.messages import ScoresAsked, ScoresTotal
from protocols.session.patience import Patience
from protocols.sums.secagg.messages import AdvertiseKeys, MaskedInput
from secure_kg.audit.scores.audit import audit_scores
from secure_kg.audit.scores.session import open_session
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.retrieval.session import Budgets

_STEPS: Final = 4
"""Of each question that is asked here."""
SECOND_ENTITIES: Final = int(steps.round_of(_STEPS))
SECOND_PROJECTIONS: Final = int(steps.round_of(_STEPS + 1))
SECOND_NAMES: Final = int(steps.round_of(_STEPS + 3))
FRAMER: Final = CLIENTS[-1]
BUDGET: Final = 3


class _Noting(Cheat):
    """Honest; notes which clients go on with the lookup that is attacked."""

    def __init__(self, attacked: int = SECOND_ENTITIES) -> None:
        super().__init__()
        self.attacked = attacked
        self.went_on: set[int] = set()

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if isinstance(message, AdvertiseKeys) and self.round == self.attacked:
            self.went_on.add(int(sender))
        return message


class AnnouncedOtherwise(_Noting):
    """The victim is told of another step than the asker has announced."""

    def __init__(self, kind: str, sizes: Sequence[int]) -> None:
        super().__init__()
        self._kind, self._sizes = kind, list(sizes)

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, NextStep) and self.round == self.attacked and to == VICTIM:
            return (NextStep(self._kind, self._sizes, message.table),)
        return (message,)


def announced_otherwise(path: Path, kind: str, sizes: Sequence[int]) -> Played:
    """Judged by whether the victim answers the step."""
    return _victim_answers(path, AnnouncedOtherwise(kind, sizes))


class OtherRequest(_Noting):
    """The victim is handed another request than the asker's: a changed one, or that of an earlier step."""

    def __init__(self, replays: bool) -> None:
        super().__init__()
        self._replays, self._earlier = replays, b""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, ScoresAsked) or to != VICTIM:
            return (message,)
        if self.round != self.attacked:
            self._earlier = self._earlier or message.sealed
            return (message,)
        flipped = message.sealed[:-1] + bytes([message.sealed[-1] ^ 1])
        return (structs.replace(message, sealed=self._earlier if self._replays else flipped),)


def other_request(path: Path, replays: bool) -> Played:
    """Judged by whether the victim answers it. The earlier one is for the same vector."""
    return _victim_answers(path, OtherRequest(replays))


def _victim_answers(path: Path, cheat: _Noting) -> Played:
    stage = QuestionStage(path)
    stage.perform(cheat)
    return Played(stage, VICTIM in cheat.went_on, {"clients_that_answered": sorted(cheat.went_on)})


class _Opening(Cheat):
    """Notes over whom the vectors of a round are opened."""

    def __init__(self) -> None:
        super().__init__()
        self.over: dict[int, list[int]] = {}

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, ScoresTotal):
            self.over[self.round] = list(message.contributors)
        return (message,)


class LookupWithoutVictim(_Opening):
    """The same vector is looked up twice, and the second time the victim is called a dropout."""

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if sender == VICTIM and isinstance(message, AdvertiseKeys) and self.round == SECOND_ENTITIES:
            self.call_dropout(VICTIM)
        return message


class WithheldAnnouncement(_Opening):
    """The victim is not told of the second lookup, and its answer is not waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.withheld = False

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, NextStep) and self.round == SECOND_ENTITIES and to == VICTIM:
            self.withheld = True
            return ()
        return super().send(to, message)


class _Impatient(Patience):
    """Waits no longer for the victim once it was told nothing."""

    def __init__(self, cheat: Cheat) -> None:
        super().__init__(60.0, 60.0)
        self._cheat = cheat

    def limit(self, step: str, party: PartyId, answered: Sequence[float], asked: int) -> float:
        if party == VICTIM and isinstance(self._cheat, WithheldAnnouncement) and self._cheat.withheld:
            return 0.0
        return super().limit(step, party, answered, asked)


def without_victim(path: Path, cheat: _Opening) -> Played:
    """Judged by whether a lookup is opened without the victim beside one with it: the difference is what it gave."""
    stage = QuestionStage(path, patience=_Impatient)
    stage.perform(cheat)
    among = {VICTIM in over for over in cheat.over.values()}
    return Played(stage, len(among) > 1, {"opened_over": cheat.over})


class ChangedVectors(Cheat):
    """One number of the second question's anchor is made another one."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, ScoresTotal) and self.round == SECOND_ENTITIES:
            vector = message.vector.copy()
            vector[:1] += np.uint32(1 << 20)
            return (structs.replace(message, vector=vector),)
        return (message,)


class ChangedNames(Cheat):
    """The names of the second question's answers are moved."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, NamesTotal) and self.round == SECOND_NAMES:
            return (structs.replace(message, vector=message.vector[::-1].copy()),)
        return (message,)


def believed(path: Path, cheat: Cheat) -> Played:
    """Judged by whether the second question has an answer: it would rest on what the server made up."""
    stage = QuestionStage(path, (QUESTION, OTHER))
    stage.perform(cheat)
    return Played(stage, stage.retrieved(1) is not None, {"answered": len(stage.session.outcomes)})


class _Counting(Cheat):
    """Honest; counts the vectors that are handed to the asker."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors, self._announced = 0, NextStep(steps.END, [], b"")

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if isinstance(message, NextStep):
            self._announced = message
        return message

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, ScoresTotal) and self._announced.kind != "scores":
            self.vectors += self._announced.sizes[0]
        return (message,)


def beyond_atoms(path: Path) -> Played:
    """The asker asks question after question. Judged by how many vectors it reads, two for each."""
    budgets = {
        party: Budgets(VectorBudget(MemoryRecord(), BUDGET, DIM, table=b"all")) for party in CLIENTS if party != ASKER
    }
    stage, counting = QuestionStage(path, (QUESTION, OTHER, THIRD), budgets=budgets), _Counting()
    stage.perform(counting)
    return Played(stage, counting.vectors > BUDGET, {"vectors": counting.vectors, "budget": BUDGET})


def silent_relation(path: Path) -> Played:
    """The asker asks along a relation that all others keep to themselves, and that it lacks."""
    stage = QuestionStage(path, (OTHER,), rules=Rules("all", frozenset({"needs"})))
    stage.perform(Cheat())
    return Played(stage, stage.retrieved(0) is not None, {"answered": len(stage.session.outcomes)})


class ShortVector(Cheat):
    """A client's own: its vector of the second lookup lacks a number."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, MaskedInput) and self.round == SECOND_ENTITIES:
            return (structs.replace(message, vector=message.vector[:-1]),)
        return (message,)


def short_vector(path: Path) -> Played:
    """Judged by whether the question has an answer, or an audit accuses the server, which is honest."""
    stage = QuestionStage(path, client=(FRAMER, ShortVector()))
    stage.perform(Cheat())
    session = open_session(stage.run)
    found = audit_scores(session, stage.directory).findings if session is not None else ()
    accused = [finding.id for finding in found if finding.severity == "high"]
    got = bool(accused) or stage.retrieved(1) is not None
    return Played(stage, got, {"answered": len(stage.session.outcomes), "accused_of": accused})


def honest(path: Path) -> Played:
    stage = QuestionStage(path, (QUESTION, OTHER))
    stage.perform(Cheat())
    finished = stage.retrieved(0) is not None and stage.retrieved(1) is not None and not stage.refused
    return Played(stage, not finished, {"finished": finished})
