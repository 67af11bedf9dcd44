"""Sums that are opened and then abandoned, tables kept back, clients passed over: found, and bad luck is not."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.session.conversation import Abandon, Abort, Back, LeaveOut
from protocols.sums.secagg.messages import UnmaskShares
from protocols.sums.totals import SumTotal
from secure_kg.audit.audit import Audit
from secure_kg.audit.checks.passed_over import PassedOver
from secure_kg.audit.checks.tables_brought import TablesBrought
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import (
    Evaluate,
    Finish,
    Goodbye,
    LentTable,
    SaveCheckpoint,
    SharedRows,
    TrainRound,
    Verdict,
    Welcome,
)
from secure_kg.federation.plan.run_plan import RunPlan
from tests.support.audited_runs import Edit, audited, audited_config, edited, ids, observed, with_fields, without

pytestmark = pytest.mark.long

CLIENTS = 4
THRESHOLD = 3


def evidence(found: Audit, name: str) -> str:
    (finding,) = (one for one in found.findings if one.id == name)
    return "\n".join(finding.evidence)


# --- opened, then abandoned ---------------------------------------------------------------------------------------


def told_after(answers: int, number: int, purpose: str, *before: tuple[Any, wire.Message, int]) -> Edit:
    """After so many answers that open a sum, everybody is told that it was abandoned. The other answers are not there.

    `before`: what passes ahead of that: direction, message and client.
    """

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        read = 0
        for one in observations:
            opens = isinstance(one.message, UnmaskShares) and (one.round, one.purpose) == (number, purpose)
            read += opens
            if opens and read > answers:
                continue
            yield one
            if opens and read == answers:
                for direction, message, peer in before:
                    yield dataclasses.replace(one, direction=direction, message=message, peer=peer)
                for peer in range(1, CLIENTS + 1):
                    over = Abandon(purpose, "false shares")
                    yield dataclasses.replace(one, direction="sent", message=over, peer=peer)

    return edit


@pytest.mark.parametrize(
    ("kind", "number", "purpose"),
    [("secagg", 2, "rows"), ("secagg", 2, "holders"), ("secagg", 3, "valid"), ("secret", 2, "rows")],
)
def test_a_sum_that_was_opened_is_not_abandoned_without_blame(
    kind: str, number: int, purpose: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run: Path = request.getfixturevalue(f"{kind}_run")
    found = audited(edited(run, tmp_path / "run", told_after(CLIENTS, number, purpose)))
    assert found.exit_code == 3
    told = evidence(found, "given-up-at-will")
    assert (
        told == f"session 1, round {number}, {purpose}: given up, though it was opened from the answers of its clients"
    )


def left_out(*clients: int) -> list[tuple[Any, wire.Message, int]]:
    return [("sent", LeaveOut(), client) for client in clients]


def silent(run: Path, answers: int, number: int) -> list[int]:
    """The clients whose answers come after the first so many."""
    order = [
        one.peer
        for one in observed(run)
        if isinstance(one.message, UnmaskShares) and (one.round, one.purpose) == (number, "rows")
    ]
    return order[answers:]


def test_nor_one_that_enough_have_opened(secagg_run: Path, tmp_path: Path) -> None:
    gone = silent(secagg_run, THRESHOLD, 2)
    found = audited(edited(secagg_run, tmp_path / "run", told_after(THRESHOLD, 2, "rows", *left_out(*gone))))
    assert "though it was opened" in evidence(found, "given-up-at-will")


def without_words_to(clients: Iterable[int], edit: Edit) -> Edit:
    """As `edit`, but those who were left out are not told that the sum is over."""
    gone = set(clients)

    def quiet(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in edit(observations):
            if not (isinstance(one.message, Abandon) and one.direction == "sent" and one.peer in gone):
                yield one

    return quiet


def test_one_that_too_few_have_opened_is_abandoned_for_a_reason(secagg_run: Path, tmp_path: Path) -> None:
    gone = silent(secagg_run, THRESHOLD - 1, 2)
    edit = without_words_to(gone, told_after(THRESHOLD - 1, 2, "rows", *left_out(*gone)))
    assert "given-up-at-will" not in ids(audited(edited(secagg_run, tmp_path / "run", edit)))


def test_a_server_waits_for_those_who_are_to_open_a_sum(secagg_run: Path, tmp_path: Path) -> None:
    """Else it abandons the sum first, and reads their answers afterwards."""
    gone = silent(secagg_run, THRESHOLD - 1, 2)
    found = audited(edited(secagg_run, tmp_path / "run", told_after(THRESHOLD - 1, 2, "rows")))
    told = evidence(found, "given-up-at-will")
    assert all(f"without waiting for client {peer}" in told for peer in gone)


def test_one_that_a_client_has_refused_is_abandoned_for_a_reason(secagg_run: Path, tmp_path: Path) -> None:
    refused = ("received", Abandon("rows", "a holder is missing"), silent(secagg_run, THRESHOLD, 2)[0])
    found = audited(edited(secagg_run, tmp_path / "run", told_after(THRESHOLD, 2, "rows", refused)))
    assert "given-up-at-will" not in ids(found)


def test_what_a_client_refuses_of_another_sum_is_no_reason(secagg_run: Path, tmp_path: Path) -> None:
    refused = ("received", Abandon("holders", "no"), 1)
    found = audited(edited(secagg_run, tmp_path / "run", told_after(CLIENTS, 2, "rows", refused)))
    assert "though it was opened" in evidence(found, "given-up-at-will")


def test_false_shares_are_a_reason(secagg_run: Path, tmp_path: Path) -> None:
    told = told_after(CLIENTS, 2, "rows")

    def false(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in told(observations):
            if isinstance(one.message, UnmaskShares) and (one.round, one.purpose) == (2, "rows"):
                shares = {party: bytes(len(share)) for party, share in one.message.seed_shares.items()}
                one = dataclasses.replace(one, message=with_fields(one.message, seed_shares=shares))
            yield one

    assert "given-up-at-will" not in ids(audited(edited(secagg_run, tmp_path / "run", false)))


@pytest.mark.parametrize("sent_again", [True, False])
def test_an_abandoned_sum_changes_no_table(secagg_run: Path, tmp_path: Path, sent_again: bool) -> None:
    """What is sent after it is the table before it, as it was, and nobody lacks another one."""
    told = told_after(CLIENTS, 2, "rows")
    before = next(one.message for one in observed(secagg_run) if isinstance(one.message, SharedRows))

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in told(observations):
            if not isinstance(one.message, SharedRows) or one.message.averaged.max() != 2:
                yield one
            elif sent_again:
                yield dataclasses.replace(one, message=before)

    found = audited(edited(secagg_run, tmp_path / "run", edit))
    assert not ids(found) & {"false-totals", "tables-withheld", "different-global-models"}
    assert "given-up-at-will" in ids(found, "high")


# --- tables kept back ---------------------------------------------------------------------------------------------


def of(kind: type[Any], number: int | None = None, peer: int | None = None) -> Callable[[Observation], bool]:
    def choose(one: Observation) -> bool:
        fits = peer in (None, one.peer) and number in (None, one.round)
        return isinstance(one.message, kind) and one.direction == "sent" and fits

    return choose


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (2, "round 2: client 1 was told TrainRound without the result of the sum of rows of round 1"),
        (3, "round 3: client 4 was told Evaluate without the result of the sum of rows of round 3"),
        (3, "round 4: client 2 was told Finish without the result of the sum of rows of round 3"),
    ],
)
def test_tables_that_nobody_is_sent_are_missed(secagg_run: Path, tmp_path: Path, lost: int, told: str) -> None:
    found = audited(edited(secagg_run, tmp_path / "run", without(of(SharedRows, lost))))
    assert found.exit_code == 3
    assert told in evidence(found, "tables-withheld")
    assert "different-global-models" not in ids(found)


def test_so_are_totals_of_secret_sums(secret_run: Path, tmp_path: Path) -> None:
    def kept(one: Observation) -> bool:
        return of(SumTotal)(one) and one.purpose == "rows" and one.message.of_round == 2  # type: ignore[attr-defined]

    found = audited(edited(secret_run, tmp_path / "run", without(kept)))
    told = "round 3: client 3 was told TrainRound without the result of the sum of rows of round 2"
    assert told in evidence(found, "tables-withheld")


def test_so_is_the_table_that_a_session_goes_on_with(two_sessions: Path, tmp_path: Path) -> None:
    found = audited(edited(two_sessions, tmp_path / "run", without(of(SharedRows, 4)), session=2))
    assert "session 2, round 4: client 1 was told TrainRound" in evidence(found, "tables-withheld")


def seen(message: wire.Message, peer: int = 1, direction: Any = "sent", number: int = 2) -> Observation:
    return Observation(0, 0, direction, peer, number, "", message, 0, b"")


def greeting(done: int) -> Observation:
    return seen(Welcome(bytes(16), bytes(32), done, [1, 2, 3, 4], b"", "run"), number=0)


def rows_of(number: int, counts: int) -> OpenedSum:
    """A sum of one row to which so many have contributed."""
    config = audited_config(CLIENTS)
    layout = RunPlan(config, CLIENTS).row_layout(RunPlan(config, CLIENTS).blocks[0], 1)
    vector = np.zeros(layout.entries, dtype=np.uint32)
    vector[-1] = counts
    return OpenedSum(number, "rows", frozenset({1, 2, 3, 4}), THRESHOLD, vector, layout)


@pytest.mark.parametrize(("counts", "due"), [(4, True), (0, False)], ids=["some rows", "nothing in common"])
def test_a_checkpoint_without_any_mean_has_no_table_to_bring(counts: int, due: bool) -> None:
    check = TablesBrought(audited_config(CLIENTS), CLIENTS)
    check.begin_session()
    check.observe(greeting(0))
    check.opened(rows_of(2, counts))
    check.observe(seen(SaveCheckpoint()))
    check.begin_session()
    check.observe(greeting(2))
    check.observe(seen(TrainRound(), number=3))
    assert bool(check.findings()) == due


def test_within_a_session_a_sum_of_nothing_has_a_result() -> None:
    check = TablesBrought(audited_config(CLIENTS), CLIENTS)
    check.begin_session()
    check.observe(greeting(0))
    check.opened(rows_of(2, 0))
    check.observe(seen(TrainRound(), number=3))
    assert check.findings()


def test_a_lent_table_stands_for_all_sums_before_it() -> None:
    check = TablesBrought(audited_config(CLIENTS, aggregation="secret"), CLIENTS)
    check.begin_session()
    check.observe(greeting(0))
    check.opened(dataclasses.replace(rows_of(2, 0), layout=None))
    check.observe(seen(LentTable(2, b"sealed"), number=3))
    check.observe(seen(TrainRound(), number=3))
    assert not check.findings()
    check.opened(dataclasses.replace(rows_of(3, 0), layout=None))
    check.observe(seen(TrainRound(), number=4))
    assert "of round 3" in check.findings()[0].evidence[0]


# --- passed over --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "number"), [(Evaluate, 3), (TrainRound, 2)])
def test_a_client_that_is_there_and_not_asked_is_found(
    secagg_run: Path, tmp_path: Path, kind: type[Any], number: int
) -> None:
    found = audited(edited(secagg_run, tmp_path / "run", without(of(kind, number, 2))))
    assert f"round {number}: client 2 was not told {kind.__name__}, and was there" in evidence(found, "passed-over")


LOST = seen(LeaveOut(), 4)
IS_BACK = seen(Back(), 4, "received")
TRAINED = [seen(TrainRound(), number) for number in (1, 2, 3, 4)]
OTHERS = [seen(Evaluate(), number) for number in (1, 2, 3)]
VERDICT = seen(Verdict(True), 4)


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([*TRAINED, *OTHERS, VERDICT], True),
        ([*TRAINED, *OTHERS, seen(Finish(0, wanted=True), 4, number=3)], True),
        ([*OTHERS, VERDICT], True),
        ([*TRAINED, *OTHERS, seen(Evaluate(), 4), VERDICT], False),
        ([*TRAINED, *OTHERS, LOST, IS_BACK, VERDICT], False),
        ([*TRAINED, LOST, *OTHERS, IS_BACK, VERDICT], False),
        ([*TRAINED, LOST, IS_BACK, *OTHERS, VERDICT], False),
        ([LOST, IS_BACK, *TRAINED, *OTHERS, VERDICT], True),
        ([*TRAINED, *OTHERS, seen(Goodbye(complete=False), 4)], False),
        ([*TRAINED, *OTHERS, seen(Abort("over"), 4)], False),
        ([*TRAINED, *OTHERS], False),
        ([*TRAINED[:3], VERDICT], True),
        ([*TRAINED[:3], LOST, IS_BACK, VERDICT], False),
        ([LOST, *TRAINED[:3], IS_BACK, VERDICT], False),
    ],
    ids=[
        *("there", "there at the end", "never drawn", "asked", "lost then", "lost before", "back, untrained"),
        *("back, trained", "goodbye", "abort", "killed", "not trained", "lost in training", "lost before training"),
    ],
)
def test_who_was_there_is_told_by_what_it_is_told_next(messages: list[Observation], found: bool) -> None:
    check = PassedOver(audited_config(CLIENTS), CLIENTS)
    check.begin_session()
    for one in messages:
        check.observe(one)
    assert bool(check.findings()) == found


def test_who_is_not_drawn_is_not_asked_to_train() -> None:
    config = audited_config(5, client_fraction=0.4, max_corrupt=0.0, max_dropout=0.4)
    drawn = {int(party) for party in RunPlan(config, 5).participants(2)}
    check = PassedOver(config, 5)
    check.begin_session()
    for party in drawn:
        check.observe(seen(TrainRound(), party))
    for party in range(1, 6):
        check.observe(seen(SharedRows(np.zeros((1, 1), dtype="<f4"), np.zeros(1, dtype="<u4")), party))
    assert len(drawn) < 5
    assert not check.findings()
