"""Runs between organisations: the result of mpirun to the last bit, also after parties have died and come again."""

import dataclasses
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launch import audit, keygen
from launch.hosts.job import Job, Plan
from protocols.foundation.errors import LinkRefused
from secure_kg.federation.client.take_part import Participation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import DataError, UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.query_config import QueryConfig
from secure_kg.privacy.run_config import PrivacyConfig
from secure_kg.runs.run_folder import RunFolder
from tests.support.members_in_threads import MembersInThreads
from tests.support.organisations import Organisations
from tests.support.toy_host import ToyHost

SETTINGS = RunConfig(
    dataset="nations", rounds=6, eval_every=3, checkpoint_every=3, grace=5.0, training=TrainingConfig(dim=8)
)
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def place(tmp_path: Path) -> Organisations:
    return Organisations.found(tmp_path, SETTINGS)


def compared(place: Organisations) -> dict[str, Any]:
    """The summary of the same run in the usual host's way, on the same parts."""
    settings, keys = place.coordinator.roster.settings, None
    if settings.adversary == "active":
        keys = str(place.path / "keys")
        assert keygen.main(["--clients", str(place.members), "--out", keys]) == 0
    config = dataclasses.replace(settings, client_data=str(place.data), keys=keys)
    out = place.path / "compared"
    job = Job(Plan(config, out, False, place.members + 1), "", (), lambda summary, path: None, lambda line: None)
    assert ToyHost().run(job) == 0
    summary = RunFolder(out).summary()
    assert summary is not None
    return summary.to_json()


FIGURES = ("mrr", "hits@10", "valid_mrr", "best_round", "rounds", "shared_rows", "test_clients")


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: summary.get(name) for name in FIGURES}


def test_a_run_ends_with_the_result_of_mpirun(place: Organisations) -> None:
    run = MembersInThreads(place)
    server, members = run.serve(), [run.join(number) for number in (1, 2, 3)]
    served = server.result()
    assert served.complete
    assert {member.result() for member in members} == {Participation.ALL_PRESENT}
    assert figures(place.summary()) == figures(compared(place))
    assert run.shown == [place.run]
    assert not (place.run / "clients").exists()
    assert place.summary()["max_fixed_point_error"] is None
    assert {path.name for path in place.path.glob("runs2/run/clients/*")} == {"2"}
    assert (place.path / "site2/keys/client-2.record/openings.jsonl").exists()


@pytest.mark.parametrize("dies_at", [2, 30])
def test_a_member_that_dies_and_comes_again_at_once_changes_nothing(place: Organisations, dies_at: int) -> None:
    run = MembersInThreads(place)
    server = run.serve()
    others = [run.join(number) for number in (1, 3)]
    assert run.join(2, dies_at=dies_at).is_killed()
    again = run.join(2)
    assert server.result().complete
    assert {member.result() for member in (*others, again)} == {Participation.ALL_PRESENT}
    assert any("all go on together" in line for line in server.said)
    summary = place.summary()
    assert (summary["dropouts"], summary["abandoned_sums"]) == ([], [])
    assert figures(summary) == figures(compared(place))


def test_a_member_that_is_stopped_and_comes_again_is_a_dropout_for_as_long(place: Organisations) -> None:
    run = MembersInThreads(place)
    server = run.serve()
    others = [run.join(number) for number in (1, 3)]
    assert run.join(2, dies_at=30, in_order=True).is_killed()
    again = run.join(2)
    assert server.result().complete
    assert {member.result() for member in (*others, again)} == {Participation.ALL_PRESENT}
    (dropout,) = place.summary()["dropouts"]
    assert (dropout["client"], dropout["round"]) == (2, 3)
    assert dropout.get("returned") is not None
    assert place.summary()["abandoned_sums"] == []  # nobody was asked to repeat a sum over others


def test_a_server_that_dies_and_comes_again_changes_nothing(place: Organisations) -> None:
    run = MembersInThreads(place)
    first = run.serve(killed_by="round    3/6")
    members = [run.join(number) for number in (1, 2, 3)]
    assert first.is_killed()
    assert run.serve().result().complete
    assert {member.result() for member in members} == {Participation.ALL_PRESENT}
    assert figures(place.summary()) == figures(compared(place))


TINY = dataclasses.replace(SETTINGS, training=TrainingConfig(dim=4), rounds=4, eval_every=2)
EVERYTHING = {
    "active": dataclasses.replace(TINY, adversary="active", keys="later"),
    "fede": dataclasses.replace(TINY, strategy="fede"),
    "secret": dataclasses.replace(TINY, aggregation="secret"),
    "plain": dataclasses.replace(TINY, aggregation="plain", alignment="plain"),
    "local": dataclasses.replace(TINY, strategy="local", aggregation="plain"),
    "drawn": dataclasses.replace(TINY, client_fraction=0.7, rounds=6),
    "recorded": dataclasses.replace(TINY, transcript=True),
    "fedcqa": RunConfig(dataset="nations", strategy="fedcqa", aggregation="secret", by="relations", rounds=2,
                        eval_every=2, queries=QueryConfig(dim=4)),
    "private": dataclasses.replace(TINY, strategy="all-rows", privacy=PrivacyConfig(dp="sgd", epsilon=8.0, delta=1e-5)),
}  # fmt: skip


@pytest.mark.parametrize(
    "what", ["active", *(pytest.param(one, marks=pytest.mark.slow) for one in EVERYTHING if one != "active")]
)
def test_everything_that_runs_under_mpirun(tmp_path: Path, what: str) -> None:
    place = Organisations.found(tmp_path, EVERYTHING[what])
    run = MembersInThreads(place)
    server, members = run.serve(), [run.join(number) for number in (1, 2, 3)]
    assert server.result().complete
    assert {member.result() for member in members} == {Participation.ALL_PRESENT}
    assert_alike(place, what)


def assert_alike(place: Organisations, what: str) -> None:
    """The run ended as it does in the usual host."""
    if what == "private":  # whose noise is drawn by each run anew
        return
    usual, found = figures(compared(place)), figures(place.summary())
    if (read := RunFolder(place.path / "runs1/run").read_by_clients()) is not None:  # which the server could not
        assert found["mrr"] is None
        found |= {"mrr": read.figures["mrr"], "hits@10": read.figures["hits@10"], "valid_mrr": read.valid_mrr}
    assert found == usual


@pytest.mark.slow
@pytest.mark.parametrize("dies_at", [6, 14, 33])
@pytest.mark.parametrize("what", EVERYTHING)
def test_everything_outlives_the_death_of_a_member(tmp_path: Path, what: str, dies_at: int) -> None:
    place = Organisations.found(tmp_path, dataclasses.replace(EVERYTHING[what], checkpoint_every=1))
    run = MembersInThreads(place)
    server, others = run.serve(), [run.join(number) for number in (1, 3)]
    dying = run.join(2, dies_at=dies_at)
    if dying.is_killed():
        dying = run.join(2)
    assert server.result().complete
    assert {member.result() for member in (*others, dying)} == {Participation.ALL_PRESENT}
    summary = place.summary()
    assert (summary["dropouts"], summary["abandoned_sums"]) == ([], [])
    assert_alike(place, what)


def test_a_member_that_never_comes_and_one_that_comes_too_late(place: Organisations) -> None:
    run = MembersInThreads(place, wait=0.5)
    members = [run.join(number) for number in (1, 2)]
    server = run.serve(come_again=0.5)
    until(lambda: any("shared relation rows" in line for line in server.said))
    late = run.join(3)
    assert not server.result().complete
    assert {member.result() for member in members} == {Participation.SOME_MISSING}
    with pytest.raises(UserError, match="the server has ended the job: this run is over"):
        late.result()
    (dropout,) = place.summary()["dropouts"]
    assert (dropout["client"], dropout["step"], dropout.get("returned")) == (3, "not connected", None)


def test_a_run_again_under_its_seed_begins_without_nobody(place: Organisations) -> None:
    """Sites would refuse its sums over fewer members, one after the other."""
    run = MembersInThreads(place, wait=0.5)
    server = run.serve(without_nobody=True)
    early = [run.join(number) for number in (1, 2)]
    until(lambda: any("2 of 3 members" in line and "for all: without one" in line for line in server.said))
    time.sleep(1.0)
    assert not (place.run / "config.toml").exists()
    members = [*early, run.join(3)]
    assert server.result().complete
    assert {member.result() for member in members} == {Participation.ALL_PRESENT}


def test_where_no_names_are_aligned_a_late_member_is_taken_in(tmp_path: Path) -> None:
    alone = {"strategy": "local", "aggregation": "plain"}
    settings = dataclasses.replace(SETTINGS, **alone, rounds=300, checkpoint_every=10, patience=100)
    place = Organisations.found(tmp_path, settings)
    run = MembersInThreads(place, wait=0.5)
    members = [run.join(number) for number in (1, 2)]
    server = run.serve()
    until(lambda: any("round    3/300" in line for line in server.said))
    members.append(run.join(3))
    assert server.result().complete
    assert {member.result() for member in members} == {Participation.ALL_PRESENT}
    assert "returned" in place.summary()["dropouts"][0]


def test_a_revoked_member_is_a_dropout_from_the_beginning(place: Organisations) -> None:
    coordinator = place.coordinator
    member = coordinator.roster.members[2]
    place.coordinator = coordinator.publish(coordinator.revoke(member, certificates_only=False))
    run = MembersInThreads(place)
    members = [run.join(number) for number in (1, 2)]
    assert not run.serve().result().complete
    assert {member.result() for member in members} == {Participation.SOME_MISSING}
    assert place.summary()["dropouts"][0]["step"] == "revoked"


def test_what_is_wrong_with_a_members_data_stays_with_it(place: Organisations, tmp_path: Path) -> None:
    run = MembersInThreads(place, wait=30)
    members = [run.join(number) for number in (1, 2)]
    server = run.serve(come_again=0.2)
    odd = run.join(3, data=tmp_path / "secret-project.nt")
    with pytest.raises(DataError, match="secret-project"):
        odd.result()
    server.result()
    assert any(line == "client 3: its data cannot be read; the details are with the client" for line in server.said)
    assert "secret-project" not in " ".join(server.said)
    assert {member.result() for member in members} == {Participation.SOME_MISSING}


def test_a_member_with_other_settings_is_refused(place: Organisations, tmp_path: Path) -> None:
    run = MembersInThreads(place, wait=1)
    members = [run.join(number) for number in (1, 2)]
    server = run.serve()
    coordinator = place.coordinator
    other = dataclasses.replace(coordinator.roster, settings=dataclasses.replace(SETTINGS, rounds=7, clients=3))
    place.coordinator = dataclasses.replace(coordinator, roster=other)
    with pytest.raises(LinkRefused, match="another federation"):
        run.join(3).result()
    server.result()
    for member in members:
        member.result()


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


@pytest.mark.parametrize("in_order", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_an_audit_does_not_accuse_a_server_that_has_regrouped(tmp_path: Path, *, in_order: bool) -> None:
    place = Organisations.found(tmp_path, dataclasses.replace(SETTINGS, transcript=True))
    run = MembersInThreads(place)
    server, others = run.serve(), [run.join(number) for number in (1, 3)]
    assert run.join(2, dies_at=30, in_order=in_order).is_killed()
    again = run.join(2)
    assert server.result().complete
    for member in (*others, again):
        member.result()
    for number in (1, 2, 3):  # what members hand to an auditor
        for receipt in (place.path / f"runs{number}/run/clients/{number}").glob("receipt-*"):
            kept = place.run / "clients" / str(number) / receipt.name
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(receipt, kept)
    assert len(list(place.run.glob("transcript-*.bin"))) == 2
    assert audit.main([str(place.run), "--out", str(tmp_path / "audit")]) == 0
