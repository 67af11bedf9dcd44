"""What a server does against the protocol is found by name, whether or not the clients would have refused it."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.alignment.psu.attempts import UnionPlaces
from protocols.sums.secagg.messages import EncryptedShares, KeyDirectory, Survivors
from protocols.sums.totals import SumTotal
from secure_kg.audit.audit import Audit
from secure_kg.audit.view.read import Observation, open_run
from secure_kg.federation.plan.messages import (
    Evaluate,
    Finish,
    SaveCheckpoint,
    SharedRows,
    TrainRound,
    Verdict,
    Welcome,
)
from secure_kg.federation.server.server import FederationServer
from secure_kg.federation.server.shared_table import ReadableTable
from tests.support import federation_in_threads
from tests.support.audited_runs import (
    NET,
    after,
    audited,
    audited_config,
    edited,
    ids,
    observed,
    replacing,
    with_fields,
    without,
)
from tests.support.federation_in_threads import nations, run_federation

pytestmark = pytest.mark.long


def of(kind: type[Any], peer: int | None = None, number: int | None = None) -> Callable[[Observation], bool]:
    def choose(one: Observation) -> bool:
        fits = peer in (None, one.peer) and number in (None, one.round)
        return isinstance(one.message, kind) and one.direction == "sent" and fits

    return choose


def shifted(one: Observation) -> Any:
    assert isinstance(one.message, SharedRows)
    return with_fields(one.message, rows=one.message.rows + np.float32(0.125))


def evidence(found: Audit, name: str) -> str:
    (finding,) = (one for one in found.findings if one.id == name)
    return "\n".join(finding.evidence)


# --- tables and totals --------------------------------------------------------------------------------------------


def test_a_table_is_compared_though_a_right_one_follows(secagg_run: Path, tmp_path: Path) -> None:
    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            if of(SharedRows, 3, 2)(one):
                yield dataclasses.replace(one, message=shifted(one))
            yield one

    found = audited(edited(secagg_run, tmp_path / "run", edit))
    assert ids(found, "high") == {"false-totals", "different-global-models", NET}
    assert "round 2, client 3" in evidence(found, "false-totals")


@pytest.mark.parametrize(
    ("session", "number"), [(1, 2), (2, 4), (2, 5)], ids=["first session", "from a checkpoint", "later"]
)
def test_a_false_table_for_all_is_found_in_every_session(
    two_sessions: Path, tmp_path: Path, session: int, number: int
) -> None:
    run = edited(two_sessions, tmp_path / "run", replacing(of(SharedRows, None, number), shifted), session)
    found = audited(run)
    assert "different-global-models" not in ids(found)  # it is the same for all
    assert f"session {session}, round {number}" in evidence(found, "false-totals")


def test_a_table_of_an_earlier_state_is_found(secagg_run: Path, tmp_path: Path) -> None:
    old = next(one.message for one in observed(secagg_run) if of(SharedRows, 1, 2)(one))
    run = edited(secagg_run, tmp_path / "run", after(of(SharedRows, 1, 3), lambda _: old))
    found = audited(run)
    assert {"false-totals", "different-global-models"} <= ids(found, "high")
    assert "less recently" in evidence(found, "false-totals")


def test_a_table_before_any_sum_is_found(secagg_run: Path, tmp_path: Path) -> None:
    first = next(one.message for one in observed(secagg_run) if of(SharedRows, 1, 2)(one))

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            if of(TrainRound, None, 1)(one):
                yield dataclasses.replace(one, message=first)
            yield one

    found = audited(edited(secagg_run, tmp_path / "run", edit))
    assert "no sum has given any rows" in evidence(found, "false-totals")


def test_a_table_that_no_rule_gives_is_described(secagg_run: Path, tmp_path: Path) -> None:
    def absurd(one: Observation) -> Any:
        assert isinstance(one.message, SharedRows)
        return with_fields(one.message, rows=one.message.rows + np.float32(99), averaged=one.message.averaged + 7)

    found = audited(edited(secagg_run, tmp_path / "run", replacing(of(SharedRows, 2, 3), absurd)))
    told = evidence(found, "false-totals")
    assert "beyond the clip" in told
    assert "which is to come" in told


def test_a_client_from_which_the_rows_are_withheld_is_found(secagg_run: Path, tmp_path: Path) -> None:
    found = audited(edited(secagg_run, tmp_path / "run", without(of(SharedRows, 2))))
    assert "client 2 got nothing" in evidence(found, "different-global-models")


@pytest.mark.parametrize("changes", [{"vector": None}, {"contributors": [1, 2, 4]}], ids=["vector", "contributors"])
def test_a_secret_total_that_is_sent_again_is_compared(
    secret_run: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    def again(one: Observation) -> Any:
        assert isinstance(one.message, SumTotal)
        new = {name: one.message.vector + np.uint32(1) if value is None else value for name, value in changes.items()}
        return with_fields(one.message, **new)

    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:  # the right one comes last
            if of(SumTotal, 4, 3)(one) and one.purpose == "rows":
                yield dataclasses.replace(one, message=again(one))
            yield one

    found = audited(edited(secret_run, tmp_path / "run", edit))
    assert {"false-totals", "different-global-models"} <= ids(found, "high")


class Steering(FederationServer):
    """Adds something of its own to the rows before round 3."""

    def _bring(self, parties: Any, round_id: Any) -> None:
        if round_id == 3 and isinstance(self._table, ReadableTable):
            self._table.rows = self._table.rows + np.float32(0.125)
        super()._bring(parties, round_id)


def test_a_server_that_steers_is_found_in_its_own_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(federation_in_threads, "FederationServer", Steering)
    run_federation(audited_config(4), nations(4), tmp_path / "run")
    found = audited(tmp_path / "run")
    assert found.exit_code == 3
    assert "round 3, client 1" in evidence(found, "false-totals")


# --- greetings and checkpoints ------------------------------------------------------------------------------------


def greeted(**changes: Any) -> Callable[[Observation], Any]:
    return lambda one: with_fields(one.message, **changes)


def test_a_greeting_of_ones_own_is_found(two_sessions: Path, tmp_path: Path) -> None:
    run = edited(two_sessions, tmp_path / "run", replacing(of(Welcome, 2), greeted(rounds_done=2)), session=2)
    assert ids(audited(run), "high") == {"different-greetings", NET}


@pytest.mark.parametrize(
    ("rounds", "told"), [(1, "has no checkpoint"), (2, "checkpoint of round 3 was complete"), (4, "has no checkpoint")]
)
def test_a_session_from_another_round_than_the_last_checkpoint_is_found(
    two_sessions: Path, tmp_path: Path, rounds: int, told: str
) -> None:
    run = edited(two_sessions, tmp_path / "run", replacing(of(Welcome), greeted(rounds_done=rounds)), session=2)
    assert told in evidence(audited(run), "resumed-from-nowhere")


def test_a_first_session_that_is_not_there_is_found(two_sessions: Path, tmp_path: Path) -> None:
    run = edited(two_sessions, tmp_path / "run", lambda observations: observations)
    open_run(run).recordings[0].path.unlink()
    found = ids(audited(run), "high")
    assert "resumed-from-nowhere" in found
    assert not found & {"false-totals", "false-verdict", "evaluated-on-demand"}


def test_a_client_that_is_said_to_have_saved_is_looked_for(two_sessions: Path, tmp_path: Path) -> None:
    run = edited(two_sessions, tmp_path / "run", without(lambda one: one.kind == "Saved" and one.peer == 3), session=1)
    assert "client 3 has not written" in evidence(audited(run), "resumed-from-nowhere")


# --- evaluations and verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "session", "told"),
    [
        (after(of(Evaluate, 2, 2), lambda one: Evaluate()), 1, "were there already"),
        (after(of(TrainRound, 2, 1), lambda one: Evaluate()), 1, "not due"),
        (without(of(TrainRound, 3, 4)), 2, "without training since round 3"),
        (without(of(TrainRound, 3, 5)), 2, "without training since round 4"),
        (after(of(Finish, 1), lambda one: Finish(0, wanted=True)), 2, "a second time"),
        (after(of(Finish, 1), lambda one: Evaluate()), 2, "after the end"),
    ],
    ids=["twice", "not due", "untrained after a checkpoint", "untrained", "two ends", "after the end"],
)
def test_an_evaluation_on_demand_is_found(
    two_sessions: Path, tmp_path: Path, edit: Any, session: int, told: str
) -> None:
    found = audited(edited(two_sessions, tmp_path / "run", edit, session))
    assert "evaluated-on-demand" in ids(found, "high")
    assert told in evidence(found, "evaluated-on-demand")


def test_an_evaluation_of_the_checkpoint_itself_is_found(two_sessions: Path, tmp_path: Path) -> None:
    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            if of(TrainRound, 2, 4)(one):
                yield dataclasses.replace(one, message=Evaluate(), round=3)
            yield one

    found = audited(edited(two_sessions, tmp_path / "run", edit, session=2))
    assert "those of round 3 were there already" in evidence(found, "evaluated-on-demand")


@pytest.mark.parametrize(("session", "number"), [(1, 2), (1, 3), (2, 4), (2, 5)])
def test_a_false_verdict_is_found(two_sessions: Path, tmp_path: Path, session: int, number: int) -> None:
    flipped = replacing(
        of(Verdict, None, number),
        lambda one: with_fields(one.message, improved=not one.message.improved),  # type: ignore[attr-defined]
    )
    found = audited(edited(two_sessions, tmp_path / "run", flipped, session))
    assert ids(found, "high") == {"false-verdict", NET}
    assert f"session {session}, round {number}" in evidence(found, "false-verdict")


def test_a_verdict_without_results_is_found(secagg_run: Path, tmp_path: Path) -> None:
    run = edited(secagg_run, tmp_path / "run", after(of(TrainRound, 1, 2), lambda _: Verdict(True)))
    assert "no results were opened" in evidence(audited(run), "false-verdict")


def test_different_verdicts_are_found_where_the_server_reads_none(secret_run: Path, tmp_path: Path) -> None:
    flipped = replacing(
        of(Verdict, 3),
        lambda one: with_fields(one.message, improved=not one.message.improved),  # type: ignore[attr-defined]
    )
    found = audited(edited(secret_run, tmp_path / "run", flipped))
    assert "verdict on round 3" in evidence(found, "different-global-models")


# --- the union ----------------------------------------------------------------------------------------------------


def test_places_that_put_names_into_one_row_are_found(secagg_run: Path, tmp_path: Path) -> None:
    def one_row(one: Observation) -> Any:
        assert isinstance(one.message, UnionPlaces)
        return with_fields(one.message, places=np.zeros_like(one.message.places))

    found = audited(edited(secagg_run, tmp_path / "run", replacing(of(UnionPlaces), one_row)))
    assert "share 1 positions" in evidence(found, "false-places")


def test_a_union_of_another_size_is_found(secagg_run: Path, tmp_path: Path) -> None:
    def larger(one: Observation) -> Any:
        assert isinstance(one.message, UnionPlaces)
        return with_fields(one.message, size=one.message.size + 1)

    found = audited(edited(secagg_run, tmp_path / "run", replacing(of(UnionPlaces), larger)))
    assert "and the table has" in evidence(found, "false-places")


def test_a_failure_that_was_none_is_found(secagg_run: Path, tmp_path: Path) -> None:
    def again(one: Observation) -> Any:
        return UnionPlaces(one.purpose, 0, np.zeros(0, dtype=np.uint32))

    found = audited(edited(secagg_run, tmp_path / "run", replacing(of(UnionPlaces), again)))
    assert "told to begin again" in evidence(found, "union-repeated")


# --- who is in a sum ----------------------------------------------------------------------------------------------


def test_different_stories_of_who_dropped_out_are_found(secagg_run: Path, tmp_path: Path) -> None:
    def told(one: Observation) -> Any:
        return with_fields(one.message, dropped=[2])

    run = edited(secagg_run, tmp_path / "run", replacing(of(Survivors, 3, 2), told))
    found = audited(run)
    assert "different-survivors" in ids(found, "high")
    assert "client 1 was told that nobody dropped out" in evidence(found, "different-survivors")


def test_a_client_called_dropped_after_it_has_sent_its_vector_is_found(secagg_run: Path, tmp_path: Path) -> None:
    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            if isinstance(one.message, Survivors) and one.round == 2 and one.purpose == "rows":
                if one.peer != 2:
                    yield dataclasses.replace(one, message=with_fields(one.message, dropped=[2]))
                continue
            yield one

    found = audited(edited(secagg_run, tmp_path / "run", edit))
    assert "client 2 had sent its input, and was left out" in evidence(found, "answers-ignored")


def test_a_client_whose_key_is_not_passed_on_is_found(secagg_run: Path, tmp_path: Path) -> None:
    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            if isinstance(one.message, KeyDirectory) and one.round == 2 and one.purpose == "rows":
                if one.peer == 4:
                    continue
                fields = {name: getattr(one.message, name) for name in one.message.__struct_fields__}
                less = {
                    name: {party: part for party, part in value.items() if party != 4}
                    for name, value in fields.items()
                    if isinstance(value, dict)
                }
                yield dataclasses.replace(one, message=with_fields(one.message, **less))
                continue
            yield one

    found = audited(edited(secagg_run, tmp_path / "run", edit))
    assert "client 4 had sent its keys, and was left out" in evidence(found, "answers-ignored")


def test_a_checkpoint_that_clients_never_heard_of_is_none(two_sessions: Path, tmp_path: Path) -> None:
    run = edited(two_sessions, tmp_path / "run", without(of(SaveCheckpoint, None, 3)), session=1)
    assert "has no checkpoint" in evidence(audited(run), "resumed-from-nowhere")


@pytest.mark.parametrize(
    ("kind", "field"), [(EncryptedShares, "states"), (EncryptedShares, "sealed")], ids=["states", "shares"]
)
def test_what_is_changed_on_its_way_between_clients_is_found(
    secagg_run: Path, tmp_path: Path, kind: type[Any], field: str
) -> None:
    def changed(one: Observation) -> Any:
        parts = dict(getattr(one.message, field))
        return with_fields(one.message, **{field: {**parts, 2: bytes(len(parts[2]))}})

    def choose(one: Observation) -> bool:
        return of(kind, 3, 2)(one) and one.purpose == "rows"

    found = audited(edited(secagg_run, tmp_path / "run", replacing(choose, changed)))
    assert "client 3 was sent a" in evidence(found, "relayed-otherwise")
