"""Runs between organisations: the result of mpirun to the last bit, also after parties have died and come again."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launch import fedr_secagg
from secure_kg.federation.client.take_part import Participation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.config import TrainingConfig
from tests.support.jobs_in_threads import run_in_threads
from tests.support.members_in_threads import MembersInThreads
from tests.support.organisations import Organisations

SETTINGS = RunConfig(
    dataset="nations", rounds=6, eval_every=3, checkpoint_every=3, grace=5.0, training=TrainingConfig(dim=8)
)
OPTIONS = ("--preset", "paper", "--dataset", "nations", "--rounds", "6", "--eval-every", "3", "--checkpoint-every", "3",
           "--dim", "8", "--out", "compared")  # fmt: skip
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Organisations]:
    found = Organisations.found(tmp_path, SETTINGS)
    yield found
    found.end()


def compared(place: Organisations, *options: str) -> dict[str, Any]:
    """The summary of the same run by the usual launcher, on the same parts."""
    ended = run_in_threads(4, *OPTIONS, "--client-data", str(place.data), *options, cwd=place.path,
                           launcher=fedr_secagg.main)  # fmt: skip
    assert ended.code == 0, ended.errors
    found: dict[str, Any] = json.loads((place.path / "compared" / "summary.json").read_text())
    return found


FIGURES = ("mrr", "hits@1", "hits@10", "valid_mrr", "best_round", "rounds", "shared_rows", "test_clients")


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: summary[name] for name in FIGURES}


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
    assert dropout["returned"] is not None
    assert place.summary()["abandoned_sums"] == []  # nobody was asked to repeat a sum over others


def test_a_server_that_dies_and_comes_again_changes_nothing(place: Organisations) -> None:
    run = MembersInThreads(place)
    first = run.serve(killed_by="round    3/6")
    members = [run.join(number) for number in (1, 2, 3)]
    assert first.is_killed()
    assert run.serve().result().complete
    assert {member.result() for member in members} == {Participation.ALL_PRESENT}
    assert figures(place.summary()) == figures(compared(place))
