"""Honest servers that were killed, or lost clients, at the worst moments: their program explains what they left."""

import dataclasses
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cheating.meddling import Cheat, Meddling, ServerDied
from benchmarks.cheating.spoils import said
from benchmarks.cheating.stage import Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.errors import PeerLost
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Abandon, Conversation, LeaveOut
from protocols.sums.secagg.messages import AdvertiseKeys, KeyDirectory, MaskedInput, Survivors, UnmaskShares
from protocols.sums.totals import SumTotal
from secure_kg.audit.audit import Audit, audit
from secure_kg.audit.view.read import open_run
from secure_kg.federation.client.client import FederationClient
from secure_kg.federation.plan.messages import Evaluate, Finish, Ready, SaveCheckpoint, TrainRound, Welcome
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.server.gathering import Gathering
from secure_kg.federation.server.server import FederationServer
from secure_kg.runs import checkpoint
from secure_kg.runs.run_folder import RunFolder
from tests.support.audited_runs import ids

pytestmark = pytest.mark.long


def audited(stage: Stage) -> Audit:
    return audit(open_run(stage.run), stage.run / "clients", stage.directory)


def die(*_: Any) -> None:
    raise ServerDied


class DiesAt(Cheat):
    """Is killed when it is to send a message of some kind."""

    def __init__(self, kind: type[wire.Message], in_round: int = 0) -> None:
        super().__init__()
        self._kind, self._in_round = kind, in_round

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, self._kind) and self.round == self._in_round:
            raise ServerDied
        return (message,)


class Freezes(Cheat):
    """Some clients take no more messages from a moment on, so that they cannot even be told that they are left out."""

    def __init__(self, when: Callable[[wire.Message], bool], clients: set[int]) -> None:
        super().__init__()
        self._when, self._clients = when, clients

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if self._when(message) and to in self._clients:
            self.unread.add(to)
        return (message,)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that are left unread take nothing either."""
    monkeypatch.setattr(Meddling, "busy", lambda self, to: to in self._cheat.unread)


def test_killed_before_a_checkpoint_was_complete_and_again_while_greeting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, stage_config())
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "mark_complete", die)
        stage.perform(Cheat())
    stage.perform(DiesAt(Welcome))
    stage.perform(Cheat())
    assert ids(audited(stage), "high") == set()


def test_killed_before_it_noted_over_whom_results_were_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session in between is explained whether it was noted or not, and the next one by one of the two."""

    class Slow(Cheat):
        def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
            if to == 3 and isinstance(message, Finish):
                self.unread.add(3)
            if isinstance(message, LeaveOut):
                self.unread.discard(to)
            return (message,)

    stage = Stage(tmp_path, stage_config(grace=1.0, deadline=6.0))
    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "note_tested", die)
        stage.perform(Slow())
    stage.perform(DiesAt(Finish, 5))
    stage.perform(Cheat())
    assert "not-as-programmed" not in ids(audited(stage))


@pytest.mark.usefixtures("busy")
def test_killed_while_it_waited_for_clients_that_could_not_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had waited for them in vain, and then written its checkpoint, without a message in between."""
    stage = Stage(tmp_path, stage_config(grace=1.0, deadline=4.0))
    with monkeypatch.context() as patched:
        patched.setattr(Gathering, "_wait_for", die)
        stage.perform(Freezes(lambda message: isinstance(message, SaveCheckpoint), {2, 3, 4}))
    stage.perform(Cheat())
    assert ids(audited(stage), "high") == set()


@pytest.mark.usefixtures("busy")
def test_an_abort_after_it_has_waited_in_vain(tmp_path: Path) -> None:
    """It goes on to the next round first, and writes a checkpoint before."""
    stage = Stage(tmp_path, stage_config(adversary="semi-honest", grace=0.5, deadline=2.0))
    stage.perform(Freezes(lambda message: isinstance(message, SaveCheckpoint), {2, 3, 4}))
    assert "2 of 5 clients are left in round 3" in stage.last.server_error
    stage.perform(Cheat())
    assert ids(audited(stage), "high") == set()


@pytest.mark.usefixtures("busy")
def test_a_checkpoint_for_which_nobody_is_left(tmp_path: Path) -> None:
    """Nobody is asked to write a part of it, so no message says that there is one."""
    stage = Stage(tmp_path, stage_config(adversary="semi-honest", grace=0.5, deadline=2.0))
    stage.perform(Freezes(lambda message: isinstance(message, Evaluate), {1, 2, 3, 4, 5}))
    assert "0 of 5 clients are left in round 3" in stage.last.server_error
    assert checkpoint.last_complete(stage.run) == checkpoint.Complete(2, ())
    stage.perform(Cheat())
    assert ids(audited(stage), "high") == set()


def test_a_start_in_which_nobody_was_greeted_leaves_other_settings(tmp_path: Path) -> None:
    stage = Stage(tmp_path, stage_config(rounds=2))
    stage.perform(Cheat())
    stage.perform(DiesAt(Welcome), dataclasses.replace(stage.config, rounds=4))
    assert ids(audited(stage), "high") == set()


def test_clients_lost_when_the_union_is_to_be_opened(tmp_path: Path) -> None:
    class Lost(Cheat):
        def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
            if isinstance(message, Survivors) and message.purpose == "union/0" and to in (2, 3, 4):
                raise PeerLost("out of reach", to)
            return (message,)

    stage = Stage(tmp_path, stage_config(adversary="semi-honest"))
    stage.perform(Lost())
    assert "could not be aligned" in stage.last.server_error
    stage.perform(Cheat())
    assert ids(audited(stage), "high") == set()


def rounds_drawn_alike() -> tuple[Any, int]:
    """Settings, and a round for which the same two clients are drawn as for the one before, one of them again next."""
    changes: dict[str, Any] = {"clients": 6, "client_fraction": 0.34, "max_corrupt": 0.0, "min_holders": 2}
    for seed in range(200):
        config = stage_config(
            adversary="semi-honest",
            rounds=8,
            eval_every=8,
            checkpoint_every=0,
            grace=0.5,
            deadline=3.0,
            seed=seed,
            **changes,
        )
        plan = RunPlan(config, 6)
        drawn = {number: set(plan.participants(number)) for number in range(1, 9)}
        for number in range(3, 7):
            if len(drawn[number]) == 2 and drawn[number] == drawn[number - 1] and drawn[number] & drawn[number + 1]:
                return config, number
    raise AssertionError("no such draw")


def test_a_client_that_is_back_after_a_round_without_a_message(tmp_path: Path) -> None:
    """The program would find its `Back` one look too early, and ask it for that round."""
    config, silent = rounds_drawn_alike()

    class Late(Cheat):
        def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
            if isinstance(message, TrainRound) and self.round == silent - 1:
                self.unread.add(to)
            return (message,)

    cheat = Late()

    class Server(FederationServer):
        def _assemble(self) -> None:
            if self._people.round == silent + 1:
                cheat.unread.clear()
                time.sleep(0.5)
            super()._assemble()

    cheat.server = Server
    stage = Stage(tmp_path, config)
    stage.perform(cheat)
    assert stage.last.outcome is not None
    assert stage.last.outcome.dropouts
    assert "not-as-programmed" not in ids(audited(stage))


def test_a_flood_of_late_messages_is_judged_by_no_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server reads them as long as it waits for others. An auditor's machine may be slower or faster."""
    honest = FederationClient._train_locally

    def train(self: FederationClient, round_id: RoundId) -> None:
        honest(self, round_id)
        if self._transport.party == 1 and round_id == 4:
            for _ in range(2000):
                self._conversation.send(PartyId(0), Ready(), RoundId(0))
        else:
            time.sleep(0.3)

    monkeypatch.setattr(FederationClient, "_train_locally", train)
    stage = Stage(tmp_path, stage_config(grace=0.01, eval_every=4, checkpoint_every=0))
    stage.perform(Cheat())
    assert "not-as-programmed" not in ids(audited(stage))


def test_the_key_of_another_client_in_what_the_server_drops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest, receive, keys = Conversation.send, Conversation.receive, dict[int, bytes]()

    def got(
        self: Conversation, sender: PartyId, expected: type[wire.Message], *more: Any, **named: Any
    ) -> wire.Message:
        message = receive(self, sender, expected, *more, **named)
        if isinstance(message, KeyDirectory) and self.transport.party == 1 and message.purpose == "rows":
            keys.update(message.mask_keys)
        return message

    def send(self: Conversation, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        rows = isinstance(message, MaskedInput) and message.purpose == "rows" and round_id == 2
        if rows and self.transport.party == 1:
            honest(self, to, AdvertiseKeys("rows", keys[3], bytes(32), bytes(64)), RoundId(1))
        honest(self, to, message, round_id)

    monkeypatch.setattr(Conversation, "send", send)
    monkeypatch.setattr(Conversation, "receive", got)
    stage = Stage(tmp_path, stage_config(rounds=3))
    stage.perform(Cheat())
    found = audited(stage)
    assert ids(found, "high") == set()
    assert "secret-reused" in ids(found, "medium")


@pytest.mark.parametrize("cut", [1, 64])
def test_killed_while_it_wrote_a_record(tmp_path: Path, cut: int) -> None:
    stage = Stage(tmp_path, stage_config())
    stage.perform(DiesAt(TrainRound, 4))
    (path,) = stage.run.glob("transcript-*.bin")
    path.write_bytes(path.read_bytes()[:-cut])
    stage.perform(Cheat())
    found = audited(stage)
    assert ids(found, "high") == set()
    assert "transcript-unfinished" in ids(found, "medium")


def test_a_late_answer_that_opens_an_abandoned_evaluation(tmp_path: Path) -> None:
    """Two clients are slow to rank, and one to help: the sum is abandoned, and could be opened after the next round."""

    class Slow(Cheat):
        def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
            ranks = isinstance(message, Evaluate) and to in (1, 4)
            helps = isinstance(message, Survivors) and message.purpose == "valid" and to == 2
            if self.round == 1 and (ranks or helps):
                self.unread.add(to)
            if isinstance(message, LeaveOut):
                self.unread.discard(to)
            return (message,)

    stage = Stage(
        tmp_path,
        stage_config(adversary="semi-honest", checkpoint_every=0, grace=0.6, deadline=4.0, rounds=3, eval_every=1),
    )
    stage.perform(Slow())
    assert stage.last.outcome is not None
    assert [one.evidence for one in audited(stage).findings if one.severity == "high"] == []


def test_a_refusal_after_help_does_not_undo_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server drops it. In the next session the client refuses truly, by the opening that it has helped with."""
    honest = Conversation.send

    def send(self: Conversation, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        rows = isinstance(message, MaskedInput) and message.purpose == "rows" and round_id == 1
        if rows and self.transport.party == 3:
            honest(self, to, Abandon("holders", "no"), RoundId(1))
        honest(self, to, message, round_id)

    class Without(Cheat):
        def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
            if isinstance(message, TrainRound) and self.round == 1 and to == 1:
                raise PeerLost("out of reach", to)
            return (message,)

    stage = Stage(
        tmp_path,
        stage_config(adversary="semi-honest", checkpoint_every=0, grace=0.6, deadline=4.0, rounds=3, eval_every=3),
    )
    with monkeypatch.context() as patched:
        patched.setattr(Conversation, "send", send)
        stage.perform(DiesAt(TrainRound, 2))
    stage.perform(Without())
    assert ids(audited(stage), "high") == set()


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_unread_answers_to_one_sum_are_no_answers_to_another(tmp_path: Path, aggregation: str) -> None:
    """Clients refuse a sum of rows, because one is slow after the count. Their answers to a later sum come to nothing:
    the server is killed. When the first sum is asked for again, the slow one is in it."""

    class Slow(Cheat):
        def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
            if isinstance(message, SumTotal) and message.purpose == "holders" and self.round == 1 and to == 4:
                self.unread.add(to)
            if isinstance(message, LeaveOut):
                self.unread.discard(to)
            return (message,)

        def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
            if isinstance(message, UnmaskShares) and message.purpose == "rows" and self.round == 2:
                time.sleep(0.5)  # so that the others have answered, too
                raise ServerDied
            return message

    settings: dict[str, Any] = {"adversary": "semi-honest", "aggregation": aggregation, "grace": 0.5, "deadline": 5.0}
    stage = Stage(tmp_path, stage_config(checkpoint_every=0, rounds=3, eval_every=3, **settings))
    stage.perform(Slow())
    assert stage.last.server_error == "died"
    refused = {one.peer for one in said(stage.last, Abandon) if (one.round, one.purpose) == (1, "rows")}
    assert {1, 2, 3, 5} <= refused
    stage.perform(Cheat())
    assert stage.last.outcome is not None
    found = audited(stage)
    assert "messages-not-recorded" in ids(found)
    assert ids(found, "high") == set()
