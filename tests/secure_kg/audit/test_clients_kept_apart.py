"""Clients kept from each other, sent back, aligned again or lent tables: found, and honest bad luck is not."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.session.conversation import Failed, LeaveOut
from protocols.sums.secagg.messages import EncryptedShares, KeyDirectory
from secure_kg.audit.audit import Audit
from secure_kg.audit.checks.repeated_sums import RepeatedSums
from secure_kg.audit.view.lending import Lending
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import LendTable, LentTable, TrainRound, Welcome
from secure_kg.federation.plan.run_plan import RunPlan
from tests.support.audited_runs import (
    audited,
    audited_config,
    edited,
    ids,
    recorded_run,
    replacing,
    with_fields,
    without,
)
from tests.support.federation_in_threads import nations, run_federation

pytestmark = pytest.mark.long

ALL, BUT_ONE = frozenset({1, 2, 3, 4}), frozenset({1, 2, 3})


def evidence(found: Audit, name: str) -> str:
    (finding,) = (one for one in found.findings if one.id == name)
    return "\n".join(finding.evidence)


def kept_from(
    kind: type[Any], pairs: set[tuple[int, int]], purpose: str = "rows"
) -> Callable[..., Iterator[Observation]]:
    """Whoever stands first in a pair is not shown to whoever stands second."""

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            if isinstance(one.message, kind) and (one.round, one.purpose) == (2, purpose):
                fields = {name: getattr(one.message, name) for name in one.message.__struct_fields__}
                less = {
                    name: {party: part for party, part in value.items() if (party, one.peer) not in pairs}
                    for name, value in fields.items()
                    if isinstance(value, dict)
                }
                one = dataclasses.replace(one, message=with_fields(one.message, **less))
            yield one

    return edit


@pytest.mark.parametrize("kind", [KeyDirectory, EncryptedShares])
@pytest.mark.parametrize("pairs", [{(2, 4)}, {(2, 4), (4, 2)}], ids=["one from another", "two from each other"])
def test_a_client_that_is_kept_from_another_is_found(
    secagg_run: Path, tmp_path: Path, kind: type[Any], pairs: set[tuple[int, int]]
) -> None:
    found = audited(edited(secagg_run, tmp_path / "run", kept_from(kind, pairs)))
    assert "answers-ignored" in ids(found, "high")
    what = "keys" if kind is KeyDirectory else "shares"
    told = evidence(found, "answers-ignored")
    for of, to in pairs:
        assert f"round 2, rows: client {of} had sent its {what}, and client {to} did not get them" in told


# --- sessions -----------------------------------------------------------------------------------------------------


def test_a_saver_that_is_said_to_be_none_is_found(two_sessions: Path, tmp_path: Path) -> None:
    denied = replacing(
        lambda one: isinstance(one.message, Welcome), lambda one: with_fields(one.message, saved_by=[1, 2, 4])
    )
    found = audited(edited(two_sessions, tmp_path / "run", denied, session=2))
    assert "client 3 has written its part, and is said not to have" in evidence(found, "resumed-from-nowhere")


def began_twice(run: Path, alignment: str, loses_alignment: bool) -> Path:
    """Two rounds, and the same run from its beginning, with or without the alignment it had."""
    config = audited_config(4, rounds=2, eval_every=2, checkpoint_every=0, alignment=alignment)
    run_federation(config, nations(4), run).done()
    if loses_alignment:
        (run / "server" / "alignment.json").unlink()
    run_federation(config, nations(4), run, resume=True)
    return run


@pytest.mark.parametrize("alignment", ["psu", "plain"])
def test_a_run_that_was_trained_and_is_aligned_again_is_found(tmp_path: Path, alignment: str) -> None:
    run = began_twice(tmp_path / "run", alignment, loses_alignment=True)
    assert "session 2 aligns names, though session 1 had trained" in evidence(audited(run), "aligned-again")
    untrained = edited(run, tmp_path / "untrained", without(lambda one: isinstance(one.message, TrainRound)), session=1)
    assert "aligned-again" not in ids(audited(untrained))


def test_a_run_that_begins_again_with_its_alignment_is_not(tmp_path: Path) -> None:
    run = began_twice(tmp_path / "run", "psu", loses_alignment=False)
    assert not ids(audited(run)) & {"aligned-again", "resumed-from-nowhere"}


def test_a_run_that_is_said_to_have_no_alignment_after_a_checkpoint_is_found(
    two_sessions: Path, tmp_path: Path
) -> None:
    """Whether or not clients align again."""
    forgotten = replacing(
        lambda one: isinstance(one.message, Welcome), lambda one: with_fields(one.message, aligned=b"")
    )
    found = audited(edited(two_sessions, tmp_path / "run", forgotten, session=2))
    assert "session 2 goes on after round 3, and is said to have no alignment" in evidence(found, "aligned-again")


# --- greetings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("message", "direction"), [(LeaveOut(), "sent"), (Failed("too late"), "received")])
def test_a_client_lost_before_its_greeting_damages_no_transcript(tmp_path: Path, message: Any, direction: Any) -> None:
    """Others have their `Welcome` by then, and this one has no session in which it could be told."""
    run = recorded_run(tmp_path / "run", rounds=1, eval_every=1)

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            yield one
            if isinstance(one.message, Welcome) and one.peer == 4:
                yield dataclasses.replace(one, message=message, direction=direction)

    found = audited(edited(run, tmp_path / "lost", edit))
    assert "transcript-damaged" not in ids(found)
    assert found.flow.messages == audited(run).flow.messages + 1


# --- sums of the same name ----------------------------------------------------------------------------------------


def rows(number: int, contributors: frozenset[int], **states: bytes) -> OpenedSum:
    own = {party: states.get(f"of_{party}", b"%d in %d" % (party, number)) for party in contributors}
    return OpenedSum(number, "rows", contributors, 3, np.zeros(8, dtype=np.uint32), states=own)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (rows(3, ALL), set()),
        (rows(3, ALL, of_2=b"another"), {"same-sum-from-other-states"}),
        (rows(3, BUT_ONE), {"same-sum-over-other-clients"}),
        (rows(4, BUT_ONE), set()),
        (rows(4, ALL, of_1=b"1 in 3"), set()),
        (rows(4, BUT_ONE, of_1=b"1 in 3"), {"same-sum-over-other-clients"}),
        (rows(4, BUT_ONE, of_1=b""), set()),
    ],
    ids=["the same", "another state", "without one", "another round", "same state", "same state, others", "no state"],
)
def test_sums_that_can_be_subtracted_are_told_from_those_that_cannot(second: OpenedSum, expected: set[str]) -> None:
    check = RepeatedSums(audited_config(4), 4)
    for total in (rows(3, ALL), rows(2, ALL, of_1=b""), second):
        check.begin_session()
        check.opened(total)
    assert {finding.id for finding in check.findings() if finding.severity == "high"} == expected


# --- loans --------------------------------------------------------------------------------------------------------


def seen(message: Any, peer: int, direction: Any = "sent", number: int = 3) -> Observation:
    return Observation(0, 0, direction, peer, number, "", message, 0, b"")


BLOCKS = RunPlan(audited_config(4, aggregation="secret"), 4).blocks


def greeting(done: int, *saved_by: int) -> Observation:
    return seen(Welcome(bytes(16), bytes(32), done, list(saved_by), b"", "run"), 1)


@pytest.mark.parametrize(
    ("before", "fault"),
    [
        ([greeting(2, 1, 2, 4)], ""),
        ([greeting(2, 1, 2, 3, 4)], "which had all of it"),
        ([greeting(2, 1, 2, 3, 4), seen(LeaveOut(), 3)], ""),
        ([greeting(0)], "which had all of it"),
        ([greeting(0), seen(LeaveOut(), 3)], "still kept"),
        ([greeting(2, 1, 2, 4), seen(LendTable(3), 1)], "asked twice"),
        ([greeting(2, 1, 2, 4), seen(LendTable(3), 2)], ""),
        ([greeting(2, 1, 2, 4), seen(LentTable(1, b"x"), 3)], "which had all of it"),
    ],
    ids=["absent", "saved", "left out", "first session", "sums kept", "twice", "another lender", "lent already"],
)
def test_a_loan_is_due_only_to_a_client_that_lacks_sums(before: list[Observation], fault: str) -> None:
    lending = Lending(4, BLOCKS)
    for one in before:
        lending.observe(one)
    told = lending.fault_of_request(seen(LendTable(3), 1))
    assert fault in told
    assert bool(fault) == bool(told)


def test_a_loan_reaches_the_client_it_was_for() -> None:
    lending, lent = Lending(4, BLOCKS), LentTable(1, b"sealed")
    lending.observe(seen(LendTable(3), 1))
    lending.observe(seen(lent, 1, "received"))
    assert lending.reached_its_receiver(seen(lent, 3), lent)
    assert not lending.reached_its_receiver(seen(lent, 4), lent)
    assert not lending.reached_its_receiver(seen(lent, 3), LentTable(1, b"another"))
