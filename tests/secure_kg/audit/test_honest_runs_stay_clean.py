"""Dropouts, draws, sums abandoned and resumed jobs are no cheating: no check of the server calls them that."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from protocols.foundation.identifiers import PartyId, RoundId
from secure_kg.audit.audit import Audit
from secure_kg.audit.view.read import Observation
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.sampling import participants
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server import server
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import TrainStats
from tests.support.audited_runs import (
    audited,
    audited_config,
    edited,
    ids,
    recorded_run,
    replacing,
    resumed_run,
    with_fields,
)
from tests.support.dying_clients import VICTIM, dying_after
from tests.support.federation_in_threads import SMALL, Told, Vanished, nations, run_federation

pytestmark = pytest.mark.long

GRACE = 1.0
IN_CLEAR = {"clear-holders", "clear-rows", "clear-test-results", "clear-validation-results"}


@pytest.fixture(autouse=True)
def _short_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SETUP_GRACE", 3.0)


def trainers(at: int, act: Callable[[int], None]) -> Callable[[ClientGraph, RunConfig, int], KgeLearner]:
    """Trainers that do something before they train round `at`."""

    def make(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        trainer = KgeLearner(graph, config.training, torch.device("cpu"), config.seed, number)
        train = trainer.train

        def act_and_train(round_id: RoundId) -> TrainStats:
            if round_id == at:
                act(number)
            return train(round_id)

        trainer.train = act_and_train  # type: ignore[assignment,method-assign]
        return trainer

    return make


def stop(_: int) -> None:
    raise TrainingDiverged("made to stop here")


def vanish(number: int) -> None:
    if number == VICTIM:
        raise Vanished


def check(found: Audit, name: str) -> str:
    (one,) = (result.looked_at for result in found.checks if result.id == name)
    return one


def test_a_run_that_was_resumed_for_more_rounds(two_sessions: Path) -> None:
    found = audited(two_sessions)
    assert ids(found, "high", "medium") == set()
    assert check(found, "verdicts") == "16 verdicts sent"
    assert check(found, "goes-on-from-checkpoint") == "2 sessions"


@pytest.mark.parametrize("aggregation", ["secagg", "secret", "plain"])
def test_a_run_that_broke_off_and_went_on_without_one_client(tmp_path: Path, aggregation: str) -> None:
    """Round 3 is done again, but not over other clients than before: its sum is abandoned."""
    config = audited_config(4, rounds=5, eval_every=2, checkpoint_every=2, grace=GRACE, aggregation=aggregation)
    broken = run_federation(config, nations(4), tmp_path / "run", trainer_of=trainers(4, stop))
    assert broken.outcome is None
    resumed = run_federation(config, nations(4), tmp_path / "run", resume=True, trainer_of=trainers(3, vanish))
    assert resumed.outcome is not None
    found = audited(tmp_path / "run")
    assert ids(found, "high") == (IN_CLEAR if aggregation == "plain" else set())
    assert len(found.run.recordings) == 2


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_clients_that_are_slow_and_come_back(tmp_path: Path, aggregation: str) -> None:
    """Two in four in round 2: the sum is abandoned. Both miss an evaluation at least, and are evaluated later."""

    told = Told()

    def dawdle(number: int) -> None:
        if number <= 2:
            told.wait_for("client 1 dropped out", "client 2 dropped out")

    config = audited_config(4, rounds=4, eval_every=1, patience=9, grace=GRACE, aggregation=aggregation)
    run = run_federation(config, nations(4), tmp_path / "run", trainer_of=trainers(2, dawdle), report=told)
    assert run.outcome is not None
    assert run.outcome.abandoned_sums
    found = audited(tmp_path / "run")
    assert ids(found, "high") == set()
    assert "sums-given-up" in ids(found, "info")


@pytest.mark.parametrize(("aggregation", "messages"), [("secret", 18), ("secret", 26), ("plain", 13)])
def test_a_client_that_dies(tmp_path: Path, aggregation: str, messages: int) -> None:
    config = audited_config(4, rounds=3, eval_every=1, patience=9, grace=GRACE, aggregation=aggregation)
    run_federation(config, nations(4), tmp_path / "run", transport_of=dying_after(messages))
    found = ids(audited(tmp_path / "run"), "high")
    if aggregation == "plain":  # holders are counted before the client dies, and nobody refuses a sum in clear
        assert found == IN_CLEAR | {"few-holder-rows"}
    else:
        assert found == set()


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_a_round_in_which_all_drawn_clients_are_slow(tmp_path: Path, aggregation: str) -> None:
    """Nobody is left who could be told that its sums were abandoned, and what comes late begins no new sum."""
    changes: dict[str, Any] = {"client_fraction": 0.4, "max_corrupt": 0.0, "max_dropout": 0.4, "patience": 9}
    config = audited_config(5, rounds=4, eval_every=2, deadline=2 * GRACE, aggregation=aggregation, **changes)
    drawn = participants([PartyId(number) for number in range(1, 6)], 0.4, 2, config.seed, RoundId(3))

    told = Told()

    def dawdle(number: int) -> None:
        if number in drawn:
            told.wait_for(*(f"client {party} dropped out" for party in drawn))

    run = run_federation(config, nations(5), tmp_path / "run", trainer_of=trainers(3, dawdle), report=told)
    assert run.outcome is not None
    assert {(one.client, one.round) for one in run.outcome.dropouts} == {(int(party), 3) for party in drawn}
    found = audited(tmp_path / "run")
    assert ids(found, "high") == set()
    assert len({(total.round, total.purpose) for total in found.sums.sums}) == len(found.sums.sums)


@pytest.mark.parametrize("fraction", [0.5, 0.8])
def test_clients_that_are_drawn_in_turns(tmp_path: Path, fraction: float) -> None:
    """Some are evaluated twice without having been drawn in between."""
    changes: dict[str, Any] = {"client_fraction": fraction, "max_corrupt": 0.0, "checkpoint_every": 2}
    config = audited_config(5, rounds=5, eval_every=1, patience=9, **changes)
    run_federation(config, nations(5), tmp_path / "run", trainer_of=trainers(4, stop))
    run_federation(config, nations(5), tmp_path / "run", resume=True).done()
    assert ids(audited(tmp_path / "run"), "high") == set()


def test_a_run_that_stops_early(tmp_path: Path) -> None:
    still = type(SMALL)(dim=8, negatives=14, batch_size=256, local_epochs=1, lr=1e-30)
    run = recorded_run(tmp_path / "run", rounds=9, eval_every=1, patience=2, training=still)
    found = audited(run)
    assert ids(found, "high", "medium") == set()
    assert check(found, "verdicts") == "12 verdicts sent"


def test_a_resumed_run_under_secret_sums(tmp_path: Path) -> None:
    assert ids(audited(resumed_run(tmp_path / "run", aggregation="secret")), "high", "medium") == set()


def test_a_client_that_is_lent_the_table(tmp_path: Path) -> None:
    """It dies before the checkpoint and is there again in the next session, which keeps no secret sum of the first."""
    run = tmp_path / "run"
    changes: dict[str, Any] = {"eval_every": 2, "checkpoint_every": 2, "grace": GRACE, "aggregation": "secret"}
    run_federation(audited_config(4, rounds=2, **changes), nations(4), run, transport_of=dying_after(26))
    run_federation(audited_config(4, rounds=4, **changes), nations(4), run, resume=True)
    found = audited(run)
    assert ids(found, "high") == set()
    assert any(entry.kind == "LentTable" and entry.direction == "sent" for entry in found.ledger.entries)

    def others(one: Observation) -> Any:
        return with_fields(one.message, sealed=bytes(len(one.message.sealed)))  # type: ignore[attr-defined]

    false = replacing(lambda one: one.kind == "LentTable" and one.direction == "sent", others)
    assert "false-totals" in ids(audited(edited(run, tmp_path / "false", false)), "high")
