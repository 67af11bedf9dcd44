"""Clients that want an honest server to be accused: they send what it drops, for an auditor to read otherwise."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.sessions import Dies
from benchmarks.cheating.stage import COLLUDER, Stage, stage_config
from benchmarks.cheating.unions import substituted
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import LeftOut
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.session.conversation import Abandon, Abort, Conversation, LeaveOut
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import PEERS_BYTES, AdvertiseKeys, KeyDirectory, MaskedInput, ShareKeys, Survivors
from protocols.sums.totals import SumTotal
from secure_kg.audit.audit import audit
from secure_kg.audit.view.read import open_run
from secure_kg.federation.client.client import FederationClient
from secure_kg.federation.plan.messages import (
    Evaluate,
    Finish,
    Goodbye,
    LendTable,
    SaveCheckpoint,
    SharedRows,
    TrainRound,
    Verdict,
    Welcome,
)

_IN_ROUND: Final = 3
_EARLIER: Final = RoundId(2)


def words_of_a_server() -> list[wire.Message]:
    """One of every kind that could tell an auditor something."""
    keys = {1: os.urandom(32), 2: os.urandom(32)}
    return [
        ChannelDirectory(keys, {}),
        Welcome(os.urandom(16), os.urandom(32), 0, [], b"", "another"),
        UnionPlaces("union/x", 1, np.zeros(1, dtype="<u4")),
        UnionPlaces("union/0", 1, np.zeros(1, dtype="<u4")),
        KeyDirectory("rows", keys, {one: os.urandom(32) for one in keys}, {}),
        Survivors("rows", [2]),
        SumTotal("rows", 2, [1, 2], np.zeros(4, dtype=np.uint32)),
        SharedRows(np.zeros((55, 8), dtype=np.float32), np.zeros(55, dtype=np.uint32)),
        TrainRound(),
        Evaluate(),
        Verdict(True),
        SaveCheckpoint(),
        LendTable(2),
        LeaveOut(),
        Finish(1, True),
        Abort("over"),
        Goodbye(False),
    ]


@contextmanager
def _adding(words: Callable[[], list[tuple[wire.Message, int]]]) -> Iterator[None]:
    """The colluder is honest, and sends `words` besides, each under a round, when it begins the sum of a round."""
    honest = Conversation.send

    def send(self: Conversation, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        honest(self, to, message, round_id)
        begins = isinstance(message, ShareKeys) and message.purpose == "rows" and round_id == _IN_ROUND
        if begins and self.transport.party == COLLUDER:
            for word, number in words():
                honest(self, to, word, RoundId(number))

    with substituted(Conversation, "send", send):
        yield


def in_servers_words(path: Path) -> Played:
    """What only a server says, under an earlier round, and then a resumed session, which is read by that, too."""
    stage = Stage(path, stage_config())
    with _adding(lambda: [(word, _EARLIER) for word in words_of_a_server()]):
        stage.perform(Dies(4))
    stage.perform(Cheat())
    return _played(stage)


def by_refusal(path: Path) -> Played:
    """It refuses a sum while the server awaits its answer in another one."""
    stage = Stage(path, stage_config())
    with _adding(lambda: [(Abandon("rows", "no"), _IN_ROUND)]):
        stage.perform(Cheat())
    return _played(stage)


def as_dropout(path: Path, back: bool = True) -> Played:
    """It lets a deadline pass, sends keys of the round to come, and only then says that it is back."""
    stage, fallen, honest = Stage(path, stage_config(deadline=6.0, grace=1.0)), list[int](), FederationClient._train

    def train(self: FederationClient, round_id: RoundId) -> None:
        if self._transport.party != COLLUDER or round_id != _EARLIER or fallen:
            honest(self, round_id)
            return
        fallen.append(int(round_id))
        talk = self._conversation
        try:
            while True:
                talk.receive_any(SERVER, SETUP, Deadline.after(60.0))
        except LeftOut:
            keys = AdvertiseKeys("holders", os.urandom(32), os.urandom(32), os.urandom(64))
            talk.send(SERVER, keys, RoundId(_IN_ROUND))
            if back:
                raise
        talk.receive_any(SERVER, RoundId(2 * _IN_ROUND), Deadline.after(60.0))  # waits until the job ends

    with substituted(FederationClient, "_train", train):
        stage.perform(Cheat())
    return _played(stage)


def in_set_up(path: Path) -> Played:
    """It refuses a sum of the set-up that has not begun, right after its channel key."""
    stage = Stage(path, stage_config())
    word = Abandon("union vote", "no")
    with _after(lambda message, _: isinstance(message, AdvertiseChannel), lambda talk: talk(word, SETUP)):
        stage.perform(Cheat())
    return _played(stage)


def _is_rows(message: wire.Message, round_id: RoundId) -> bool:
    return isinstance(message, MaskedInput) and message.purpose == "rows" and round_id == _IN_ROUND


def by_second_input(path: Path) -> Played:
    stage, sent = Stage(path, stage_config()), list[MaskedInput]()

    def keep(message: wire.Message, round_id: RoundId) -> bool:
        if isinstance(message, MaskedInput) and _is_rows(message, round_id):
            sent.append(message)
        return _is_rows(message, round_id)

    with _after(keep, lambda talk: talk(sent[-1], RoundId(_IN_ROUND))):
        stage.perform(Cheat())
    return _accused(stage)


def by_other_ring(path: Path) -> Played:
    stage = Stage(path, stage_config())
    with _instead(_is_rows, MaskedInput("rows", np.zeros(4, dtype="<u8"), bytes(PEERS_BYTES))):
        stage.perform(Cheat())
    return _accused(stage)


def by_noise(path: Path) -> Played:
    """Bytes that no party can read, in place of its input."""
    stage, honest = Stage(path, stage_config()), Conversation.send

    def send(self: Conversation, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        if _is_rows(message, round_id) and self.transport.party == COLLUDER:
            self.transport.send(to, os.urandom(100))
        else:
            honest(self, to, message, round_id)

    with substituted(Conversation, "send", send):
        stage.perform(Cheat())
    return _accused(stage)


def by_short_input(path: Path) -> Played:
    settings = {"aggregation": "plain", "adversary": "semi-honest"}
    stage = Stage(path, stage_config(**settings))

    def rows(message: wire.Message, round_id: RoundId) -> bool:
        return isinstance(message, ClearInput) and message.purpose == "rows" and round_id == _IN_ROUND

    with _instead(rows, ClearInput("rows", np.zeros(3, dtype="<u4"))):
        stage.perform(Cheat())
    return _accused(stage)


@contextmanager
def _after(
    when: Callable[[wire.Message, RoundId], bool],
    then: Callable[[Callable[[wire.Message, RoundId], None]], None],
) -> Iterator[None]:
    """The colluder is honest, and says more `when` it has sent a message."""
    honest = Conversation.send

    def send(self: Conversation, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        honest(self, to, message, round_id)
        if self.transport.party == COLLUDER and when(message, round_id):
            then(lambda word, number: honest(self, to, word, number))

    with substituted(Conversation, "send", send):
        yield


@contextmanager
def _instead(when: Callable[[wire.Message, RoundId], bool], other: wire.Message) -> Iterator[None]:
    """The colluder is honest but for some messages."""
    honest = Conversation.send

    def send(self: Conversation, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        changed = self.transport.party == COLLUDER and when(message, round_id)
        honest(self, to, other if changed else message, round_id)

    with substituted(Conversation, "send", send):
        yield


def _accused(stage: Stage) -> Played:
    """Its success: a high finding, but for those of sums in clear. The job ends: any client can have that."""
    told = audit(open_run(stage.run), stage.run / "clients", stage.directory)
    high = [one.id for one in told.findings if one.severity == "high" and not one.id.startswith("clear-")]
    return Played(stage, bool(high), {"accused_of": high, "ended": stage.last.server_error})


def _played(stage: Stage) -> Played:
    """Its success: a high finding, or that the run does not come to its end."""
    told = audit(open_run(stage.run), stage.run / "clients", stage.directory)
    high, finished = [one.id for one in told.findings if one.severity == "high"], stage.last.outcome is not None
    return Played(stage, bool(high) or not finished, {"accused_of": high, "finished": finished})
