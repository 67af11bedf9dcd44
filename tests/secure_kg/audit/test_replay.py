"""The server's program over a record: it explains every honest one, whatever fails, and nothing else."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.cheating import framing
from benchmarks.cheating.sessions import Dies
from benchmarks.cheating.stage import Stage, stage_config
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerLost, ProtocolError
from protocols.foundation.identifiers import NO_SESSION, PartyId, RoundId
from protocols.session.conversation import Abandon, Abort, LeaveOut
from protocols.sums.secagg.messages import KeyDirectory, Survivors
from protocols.transport.tap import Tap, Transcript, read_transcript
from secure_kg.audit.replay import wire as recorded
from secure_kg.audit.replay.again import SessionAgain, run_again
from secure_kg.audit.replay.kept import Kept
from secure_kg.audit.replay.record import Record, same_message
from secure_kg.audit.replay.wire import NotExplained, RecordedWire, RecordEnded
from secure_kg.audit.view.read import Observation, open_run
from secure_kg.federation.plan.messages import (
    Evaluate,
    Finish,
    Goodbye,
    SaveCheckpoint,
    SharedRows,
    TrainRound,
    Verdict,
)
from secure_kg.federation.plan.settings import FORMAT
from secure_kg.federation.server import server
from secure_kg.runs import checkpoint
from tests.support.audited_runs import (
    NET,
    audited,
    audited_config,
    edited,
    ids,
    observed,
    recorded_run,
    replacing,
    transcript_of,
    with_fields,
)
from tests.support.dying_clients import dying_after
from tests.support.federation_in_threads import nations, run_federation

pytestmark = pytest.mark.long


def again(run: Path) -> list[SessionAgain]:
    return run_again(open_run(run))


def explained(run: Path) -> bool:
    return not any(one.difference for one in again(run))


def changed(run: Path, out: Path, edit: Callable[[list[Observation]], Iterable[Observation]]) -> SessionAgain:
    (one,) = again(edited(run, out, lambda observations: edit(list(observations))))
    return one


# --- honest records ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aggregation": "secret"},
        {"aggregation": "plain", "alignment": "plain"},
        {"strategy": "local"},
        {"reveal_names": True},
        {"client_fraction": 0.75, "max_corrupt": 0.0, "rounds": 4, "eval_every": 1},
        {"union_bound": 2},
    ],
    ids=["secagg", "secret", "plain", "local", "names", "drawn", "second attempt at the union"],
)
def test_every_message_of_an_honest_server_is_explained(tmp_path: Path, changes: dict[str, Any]) -> None:
    run = recorded_run(tmp_path / "run", **changes)
    (one,) = again(run)
    assert one == SessionAgain(len(observed(run)))


def test_sessions_that_follow_each_other(two_sessions: Path) -> None:
    assert explained(two_sessions)


def test_a_run_whose_folder_is_called_otherwise_by_now(secagg_run: Path, tmp_path: Path) -> None:
    assert explained(edited(secagg_run, tmp_path / "another name", lambda observations: observations))


@pytest.mark.parametrize(
    "step", [13, pytest.param(1, marks=pytest.mark.slow)], ids=["at some messages", "at every message"]
)
def test_a_record_that_ends_anywhere(secagg_run: Path, tmp_path: Path, step: int) -> None:
    """A server that is killed leaves the beginning of an honest record."""
    run = edited(secagg_run, tmp_path / "run", lambda observations: observations)
    path, whole = transcript_of(run), list(read_transcript(transcript_of(run)))
    for length in range(0, len(whole), step):
        path.unlink()
        tap = Tap(path)
        for one in whole[:length]:
            tap.write(one.direction, one.peer, one.round, one.phase, one.frame)
        tap._file.close()
        assert not any(one.difference for one in again(run)), length


@pytest.mark.parametrize("messages", [8, 19, 27])
@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_clients_that_die(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aggregation: str, messages: int) -> None:
    monkeypatch.setattr(server, "_SETUP_GRACE", 0.5)
    config = audited_config(4, eval_every=1, patience=9, grace=0.3, aggregation=aggregation)
    run_federation(config, nations(4), tmp_path / "run", transport_of=dying_after(messages))
    (one,) = again(tmp_path / "run")
    assert not one.difference
    assert 2 in one.absent  # on a busy machine others may be, too


def test_a_server_killed_after_it_wrote_a_file_or_just_before(tmp_path: Path) -> None:
    """The record is the same, and the next session goes on from one checkpoint or from the other."""
    for written in (True, False):
        stage = Stage(tmp_path / str(written), stage_config(rounds=6, eval_every=6))
        stage.path.mkdir()
        stage.perform(Dies(5))  # when round 4 is over, and its checkpoint complete
        if not written:
            checkpoint.mark_complete(stage.run, 2, range(1, 6))
        stage.perform(Dies(9))
        first, second = again(stage.run)
        assert not first.difference
        (rounds,) = {
            one.message.rounds_done  # type: ignore[attr-defined]
            for one in open_run(stage.run).recordings[1]
            if one.kind == "Welcome"
        }
        # Round 5 had begun: the server was there after it had written the checkpoint of round 4.
        assert rounds == (4 if written else 2)
        assert bool(second.difference) is not written


# --- other records ----------------------------------------------------------------------------------------------------


def of(kind: type, client: int, number: int) -> Callable[[Observation], bool]:
    return lambda one: (
        isinstance(one.message, kind) and (one.direction, one.peer, one.round) == ("sent", client, number)
    )


@pytest.mark.parametrize(
    ("kind", "number"),
    [(KeyDirectory, 2), (Survivors, 2), (SharedRows, 2), (TrainRound, 2), (Evaluate, 3), (Verdict, 3)],
)
def test_a_message_left_out_is_not_explained_if_the_client_goes_on(
    secagg_run: Path, tmp_path: Path, kind: type, number: int
) -> None:
    one = changed(secagg_run, tmp_path / "run", lambda all_: [one for one in all_ if not of(kind, 2, number)(one)])
    assert one.difference


@pytest.mark.parametrize(
    "kind", [SharedRows, TrainRound, Evaluate, Verdict, SaveCheckpoint, Finish, Goodbye, UnionPlaces]
)
def test_a_message_said_twice_is_not_explained(secagg_run: Path, tmp_path: Path, kind: type) -> None:
    def twice(observations: list[Observation]) -> Iterator[Observation]:
        for one in observations:
            yield one
            if isinstance(one.message, kind) and one.peer == 2:
                yield one

    assert changed(secagg_run, tmp_path / "run", twice).difference


def test_messages_in_another_order_are_not_explained(secagg_run: Path, tmp_path: Path) -> None:
    """Answers before what they answer. Answers of several clients may come in any order."""

    def swapped(observations: list[Observation]) -> list[Observation]:
        place = next(index for index, one in enumerate(observations) if of(TrainRound, 4, 2)(one))
        observations[place], observations[place + 1] = observations[place + 1], observations[place]
        return observations

    assert changed(secagg_run, tmp_path / "run", swapped).difference


def test_other_rows_are_not_explained_and_the_place_is_told(secagg_run: Path, tmp_path: Path) -> None:
    def moved(one: Observation) -> Any:
        rows = np.nextafter(one.message.rows, np.float32(9))  # type: ignore[attr-defined]
        return with_fields(one.message, rows=rows)

    run = edited(secagg_run, tmp_path / "run", replacing(of(SharedRows, 3, 2), moved))
    found = audited(run)
    (finding,) = (one for one in found.findings if one.id == NET)
    (line,) = finding.evidence
    assert "(round 2): SharedRows sent, to client 3, where the program sends SharedRows to client 3" in line
    assert found.exit_code == 3


def test_places_of_a_union_are_free_but_must_be_places(secagg_run: Path, tmp_path: Path) -> None:
    def turned(one: Observation) -> Any:
        places, size = one.message.places, one.message.size  # type: ignore[attr-defined]
        return with_fields(one.message, places=(places + np.uint32(1)) % np.uint32(size))

    def false(one: Observation) -> Any:
        return with_fields(one.message, places=np.zeros_like(one.message.places))  # type: ignore[attr-defined]

    def is_answer(one: Observation) -> bool:
        return isinstance(one.message, UnionPlaces)

    # Other places that are places change the digest of the union, which clients signed or sealed nothing under here.
    right = changed(secagg_run, tmp_path / "right", lambda all_: replacing(is_answer, turned)(all_))
    wrong = changed(secagg_run, tmp_path / "wrong", lambda all_: replacing(is_answer, false)(all_))
    answer = next(index for index, one in enumerate(observed(secagg_run)) if is_answer(one))
    assert right.explained > answer
    assert wrong.explained == answer
    assert wrong.difference


def test_an_abort_is_the_last_word(secagg_run: Path, tmp_path: Path) -> None:
    """A server may end a session at any moment. It cannot go on after it, or end it for one client."""

    def aborting(to: Iterable[int], *, goes_on: bool) -> Callable[[list[Observation]], Iterator[Observation]]:
        def edit(observations: list[Observation]) -> Iterator[Observation]:
            for one in observations:
                if of(TrainRound, 1, 2)(one):
                    yield from (dataclasses.replace(one, peer=peer, message=Abort("enough")) for peer in to)
                    if not goes_on:
                        return
                yield one

        return edit

    assert not changed(secagg_run, tmp_path / "1", aborting([1, 2, 3, 4], goes_on=False)).difference
    assert not changed(secagg_run, tmp_path / "2", aborting([1, 3], goes_on=False)).difference
    assert changed(secagg_run, tmp_path / "3", aborting([2], goes_on=True)).difference


def test_an_unknown_format_has_no_program_here(secagg_run: Path, tmp_path: Path) -> None:
    """Clients have their own format in the settings that they agree on, so a server cannot choose an old one."""
    run = edited(secagg_run, tmp_path / "run", lambda observations: observations)
    for path in (run / "config.toml", *run.glob("settings-*.toml")):
        path.write_text(path.read_text().replace(f"format = {FORMAT}", "format = 1"))
    found = audited(run)
    assert NET not in ids(found)
    assert {"settings-differ"} <= ids(found, "high")


def test_a_session_without_its_settings_is_not_explained(secagg_run: Path, tmp_path: Path) -> None:
    """Every server writes them. Without them a session before the last could have been held under any."""
    run = edited(secagg_run, tmp_path / "run", lambda observations: observations)
    (path,) = run.glob("settings-*.toml")
    path.unlink()
    (one,) = again(run)
    assert "settings of session" in one.difference


# --- what clients send ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "play",
    [framing.in_set_up, framing.by_second_input, framing.by_other_ring, framing.by_noise, framing.by_short_input],
)
def test_what_one_client_sends_accuses_nobody(tmp_path: Path, play: Callable[[Path], Any]) -> None:
    played = play(tmp_path)
    assert not played.got, played.evidence
    assert explained(played.stage.run)


# --- parts ------------------------------------------------------------------------------------------------------------


def test_reasons_may_be_put_otherwise_and_nothing_else() -> None:
    def frame(message: wire.Message, number: int = 2) -> wire.Frame:
        return wire.encode(message, NO_SESSION, RoundId(number))

    assert same_message(frame(Abandon("rows", "one")), frame(Abandon("rows", "another reason")))
    assert not same_message(frame(Abandon("rows", "one")), frame(Abandon("valid", "one")))
    assert not same_message(frame(Abandon("rows", "one")), frame(Abandon("rows", "one"), 3))
    assert same_message(frame(Abort("one")), frame(Abort("another"), 3))  # a session may end in any round
    assert not same_message(frame(Abandon("rows", "one")), frame(Abort("one")))
    assert not same_message(frame(Verdict(True)), frame(Verdict(False)))
    assert not same_message(b"short", frame(Verdict(True)))


def test_a_program_that_does_not_come_to_an_end_is_stopped(secagg_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "_MOST_IN_VAIN", 3)
    end = RecordedWire([PartyId(1)], Record(transcript_of(secagg_run)), lambda position: None)
    for _ in range(3):
        with pytest.raises(PeerLost):
            end.send(PartyId(1), b"what nobody has sent")
    with pytest.raises(NotExplained):
        end.send(PartyId(1), b"what nobody has sent")


def test_the_end_of_a_record(tmp_path: Path) -> None:
    Tap(tmp_path / "empty").close()
    record = Record(tmp_path / "empty")
    end = RecordedWire([PartyId(1)], record, lambda position: None)
    assert record.next is None
    assert end.busy(PartyId(1))
    assert not end.pause(Deadline.after(60.0))
    with pytest.raises(PeerLost):  # whom it waits for in vain
        end.receive([PartyId(1)], Deadline.after(60.0))
    with pytest.raises(RecordEnded):
        end.send(PartyId(1), b"another message")
    with pytest.raises(IndexError):
        record.take()


def test_who_is_told_something_next(tmp_path: Path) -> None:
    tap = Tap(tmp_path / "record")
    word, large = wire.encode(LeaveOut(), NO_SESSION, RoundId(1)), bytes(1 << 17)
    for direction, peer, frame in (("sent", 2, word), ("sent", 1, word), ("sent", 3, large), ("sent", 4, word)):
        tap.write(direction, PartyId(peer), RoundId(1), "", frame)  # type: ignore[arg-type]
    tap.close()
    record = Record(tmp_path / "record")
    assert [record.is_next_told(PartyId(peer)) for peer in (1, 2, 3, 4)] == [True, True, False, False]
    assert record.position == 0
    assert record.said(LeaveOut) is not None
    assert record.said(Abort) is None


def test_what_a_server_keeps_is_known_at_the_moment_it_was_ended(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    assert kept.possible(0) == [(None, None, None)]
    checkpoint.mark_complete(tmp_path, 2, [1, 2])
    kept.watch(7)
    after = kept.possible(7)
    assert [one[0] is not None for one in after] == [True, False]
    assert kept.possible(8) == after[:1]
    checkpoint.mark_complete(tmp_path, 4, [1])
    now, before = kept.possible(9)
    assert before == after[0]
    assert kept.possible(9) == [now, before]
    kept.restore(before)
    assert checkpoint.last_complete(tmp_path) == checkpoint.Complete(2, (1, 2))
    kept.restore((None, None, None))
    assert checkpoint.last_complete(tmp_path).round == 0
    assert now[0] is not None


def test_the_program_stops_where_the_server_did(secagg_run: Path) -> None:
    """`ProtocolError`, which is what an honest server's own errors are, ends a session with an `Abort` to all."""
    assert issubclass(PeerLost, ProtocolError)
    assert sum(1 for _ in Transcript(transcript_of(secagg_run))) == again(secagg_run)[0].explained
