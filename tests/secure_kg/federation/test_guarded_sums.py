"""Whole runs in which a secret would be summed twice, a client has missed sums, or evaluations are lost."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from secure_kg.federation.client import shared_blocks
from secure_kg.federation.client.context import ClientContext
from secure_kg.federation.client.own_rows import OwnRows
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server import shared_table
from secure_kg.federation.server.server import FederationServer
from secure_kg.learning.config import TrainingConfig
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import summarise
from tests.support.dying_clients import VICTIM, dying_after
from tests.support.federation_in_threads import Run, Told, nations, relation_rows, run_federation, small_config

pytestmark = pytest.mark.long

STILL = TrainingConfig(dim=8, negatives=14, batch_size=256, local_epochs=1, lr=1e-30)
"""No evaluation is better than the first: the best copy stays what it is."""


def quick(**changes: Any) -> RunConfig:
    return small_config(**{"rounds": 4, "eval_every": 2, "checkpoint_every": 2, "grace": 5.0, **changes})


def applied(monkeypatch: pytest.MonkeyPatch) -> dict[int, OwnRows]:
    """The rows of every client, as they are after a run."""
    kept: dict[int, OwnRows] = {}
    original = shared_blocks.join

    def keep(context: ClientContext, *more: Any) -> shared_blocks.SharedBlocks:
        blocks = original(context, *more)
        kept.update({int(context.party): rows for rows in context.shared})
        return blocks

    monkeypatch.setattr(shared_blocks, "join", keep)
    return kept


def test_a_client_absent_at_the_checkpoint_is_lent_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of the old session can be read by no key of the new one, so another client gives it what it lacks."""
    config = quick(aggregation="secret")
    first = run_federation(config, nations(4), tmp_path / "run", transport_of=dying_after(25))
    assert first.gone == {VICTIM}
    assert first.outcome is not None
    lent: list[Any] = []
    take = OwnRows.take_lent
    monkeypatch.setattr(OwnRows, "take_lent", lambda self, *news: (lent.append(news), take(self, *news)))
    kept = applied(monkeypatch)
    resumed = run_federation(quick(aggregation="secret", rounds=8), nations(4), tmp_path / "run", resume=True)
    assert resumed.done().rounds == 8
    assert len(lent) == 1
    assert resumed.done().abandoned_sums == first.outcome.abandoned_sums
    assert len({rows.digest for rows in kept.values()}) == 1


def test_a_client_that_was_away_for_longer_than_sums_are_kept_is_lent_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server forgets whoever has which sums after round 4, and keeps only the last two."""
    monkeypatch.setattr(shared_table, "MOST_KEPT", 2)
    kept, original = applied(monkeypatch), FederationServer._round

    def forgetful(self: FederationServer, round_id: RoundId) -> None:
        if round_id == 5:
            self._tables.forget([PartyId(VICTIM)])
        original(self, round_id)

    monkeypatch.setattr(FederationServer, "_round", forgetful)
    run = run_federation(quick(aggregation="secret", rounds=6), nations(4), tmp_path / "run")
    unbroken = run_federation(quick(aggregation="secagg", rounds=6), nations(4), tmp_path / "unbroken")
    assert run.done().abandoned_sums == []
    assert len({rows.digest for rows in kept.values()}) == 1
    same_rows(run, unbroken)


def same_rows(run: Run, other: Run) -> None:
    for number, rows in relation_rows(run).items():
        np.testing.assert_array_equal(rows, relation_rows(other)[number])


def test_a_lent_table_that_is_false_ends_the_sum_and_not_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest of what a client has applied is that of its table, wherever it comes from."""
    config = quick(aggregation="secret")
    run_federation(config, nations(4), tmp_path / "run", transport_of=dying_after(25))

    def false(self: OwnRows) -> bytes:
        false = copy.deepcopy(self._applied)
        false.rows[np.flatnonzero(false.averaged)[0]] /= 2
        return false.to_bytes()

    monkeypatch.setattr(OwnRows, "lend", false)
    told = Told()
    config = quick(aggregation="secret", rounds=8)
    resumed = run_federation(config, nations(4), tmp_path / "run", resume=True, report=told)
    assert resumed.outcome is None
    assert told.said("the sum of rows was abandoned", "cannot be opened"), "no sum with the false table"
    assert any("changes rows that it does not call averaged" in line for line in resumed.on_consoles), "the next total"


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_test_results_of_the_same_models_are_not_opened_over_other_clients(tmp_path: Path, aggregation: Any) -> None:
    """A finished run that goes on without a client gives no results again: their difference would be that client's."""
    config = quick(aggregation=aggregation, training=STILL, eval_every=1, checkpoint_every=1)
    assert run_federation(config, nations(4), tmp_path / "run").done().test_clients == 4
    more = quick(aggregation=aggregation, training=STILL, eval_every=1, checkpoint_every=1, rounds=6)
    again = run_federation(more, nations(4), tmp_path / "run", resume=True, transport_of=dying_after(8))
    assert again.gone == {VICTIM}
    assert again.server_error is None
    outcome = again.outcome
    assert outcome is not None
    assert outcome.test is None
    assert outcome.test_clients == 0
    assert any("opened before over other clients" in one.reason for one in outcome.abandoned_sums)
    folder = RunFolder(tmp_path / "run")
    assert (folder.client(1) / "model.safetensors").exists()
    assert summarise(more, outcome, folder).figures["mrr"] is None


def test_an_evaluation_without_training_is_refused_and_costs_that_sum_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server asks for rounds 3 and 4 in name only: the clients' figures would be those of round 2 once more."""
    original = FederationServer._round

    def lazy(self: FederationServer, round_id: RoundId) -> None:
        if round_id in (3, 4):
            self._people.round = round_id
            return
        original(self, round_id)

    monkeypatch.setattr(FederationServer, "_round", lazy)
    run = run_federation(quick(rounds=8), nations(4), tmp_path / "run")
    (lost,) = run.done().abandoned_sums
    assert (lost.round, lost.purpose) == (4, "valid")
    assert "has not trained since its last evaluation" in lost.reason
    folder = RunFolder(tmp_path / "run")
    assert [line.round for line in folder.metrics()] == [2, 6, 8]
    assert all(result.refused_evaluations == 1 for result in folder.client_results())


def test_after_a_dropout_at_an_evaluation_the_next_trained_round_is_evaluated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Client 2 refuses to open the sum of round 2 as if it had opened it before; in round 4 all are evaluated."""
    original = ClientContext.contribute

    def refusing(self: ClientContext, aggregation: str, task: Any, *more: Any) -> Any:
        if self.party == VICTIM and (task.round, task.purpose) == (2, "valid"):
            return original(self, aggregation, task, *more[:1], _never)
        return original(self, aggregation, task, *more)

    monkeypatch.setattr(ClientContext, "contribute", refusing)
    run = run_federation(quick(), nations(4), tmp_path / "run")
    (lost,) = run.done().abandoned_sums
    assert (lost.round, lost.purpose) == (2, "valid")
    assert [line.round for line in RunFolder(tmp_path / "run").metrics()] == [4]
    assert run.done().best_round == 4


def _never(_: Any) -> None:
    raise SumAbandoned("the sum of valid of round 2 was opened before over other clients")
