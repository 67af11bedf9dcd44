"""A client that has helped to open a sum goes on only with its result, or with word that it was abandoned."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from protocols.foundation.identifiers import PartyId, RoundId
from secure_kg.federation.client.lineage import lineage
from secure_kg.federation.client.own_count import OwnCount
from secure_kg.federation.client.shared_blocks import SharedBlocks
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.shared_tables import SharedTables
from secure_kg.learning.config import TrainingConfig
from tests.support.federation_in_threads import nations, run_federation, small_config


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_a_server_that_keeps_the_tables_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aggregation: str
) -> None:
    original = SharedTables.bring

    def keep(self: SharedTables, parties: Collection[PartyId], round_id: RoundId) -> None:
        if round_id < 3:
            original(self, parties, round_id)

    monkeypatch.setattr(SharedTables, "bring", keep)
    run = run_federation(small_config(aggregation=aggregation), nations(4), tmp_path / "run")
    assert run.outcome is None
    assert any("goes on without the result of the sum of rows" in str(error) for error in run.client_errors.values())


def test_word_of_an_abandoned_sum_is_taken_once() -> None:
    count = OwnCount(RunPlan(RunConfig(rounds=9, eval_every=2), clients=3), PartyId(1))
    count.begin(4)
    assert count.abandoned(4, "rows")
    assert not count.abandoned(4, "rows")
    assert count.abandoned(4, "holders")
    assert count.abandoned(4, "valid")
    assert not count.abandoned(4, "valid")
    count.begin(5)
    assert count.abandoned(5, "rows")
    assert not count.abandoned(5, "whatever")


def test_no_word_is_taken_of_a_sum_that_has_not_begun_or_is_long_over() -> None:
    count = OwnCount(RunPlan(RunConfig(rounds=9, eval_every=2), clients=3), PartyId(1))
    assert not count.abandoned(1, "rows")
    count.begin(4)
    assert not any(count.abandoned(number, purpose) for number in (3, 5) for purpose in ("rows", "holders", "valid"))
    assert not count.abandoned(5, "test")
    assert count.finish(5)
    assert not any(count.abandoned(number, "test") for number in (4, 6, 100))
    assert count.abandoned(5, "test")


def test_first_rows_have_one_lineage_for_all_models() -> None:
    """Rows of another width begin with the same numbers."""

    def of(dim: int, round_id: int, model: str = "TransE") -> str:
        return lineage(RunPlan(RunConfig(training=TrainingConfig(dim=dim, model=model)), 3), "rows", round_id, 0)

    assert of(8, 1) == of(9, 1) == of(8, 1, "DistMult")
    assert of(8, 2) != of(9, 2)
    assert of(8, 2) != of(8, 2, "DistMult")


def test_all_blocks_are_at_their_means_before_the_first_is_committed_to() -> None:
    """Else what one block was trained to makes an input of another look new."""
    steps: list[str] = []

    class Exchange:
        read_by_clients_only = False

        def __init__(self, name: str) -> None:
            self.name, self.rows = name, self

        def begin_round(self) -> None:
            steps.append(f"begin {self.name}")

        def prepare(self, round_id: RoundId, *, counting: bool) -> None:
            steps.append(f"commit {self.name}")

    exchanges: Any = [Exchange("a"), Exchange("b")]
    context: Any = None
    SharedBlocks(context, exchanges).prepare(RoundId(2), counting=True)
    assert steps == ["begin a", "begin b", "commit a", "commit b"]
