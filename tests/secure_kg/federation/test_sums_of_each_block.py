"""The aggregation of a block decides on its sums: whom they stand against, how holders are counted, who suffices."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.registry import AGGREGATIONS
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput
from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.errors import UserError
from tests.support import toy_learner
from tests.support.audited_runs import audited, ids, observed
from tests.support.federation_in_threads import Run, nations, run_federation, small_config

CLIENTS = 4


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    toy_learner.register()
    yield
    del STRATEGIES[toy_learner.NAME]


def config(**changes: Any) -> RunConfig:
    return small_config(**{"strategy": "toy", "clients": CLIENTS, "transcript": True, **changes})


def share(entity: str, dense: str) -> None:
    """Have the toy learner's two blocks summed by these aggregations, whatever the run's is."""
    rows, vector = toy_learner.blocks(config(), toy_learner.STRATEGY)
    blocks = (dataclasses.replace(rows, aggregation=entity), dataclasses.replace(vector, aggregation=dense))
    toy_learner.register(dataclasses.replace(toy_learner.KIND, blocks=lambda *_: blocks))


def run_toy(settings: RunConfig, path: Path) -> Run:
    def learner(graph: Any, own: RunConfig, number: int) -> Any:
        return RunPlan(own, CLIENTS).learner.make(own, graph, number, None)

    return run_federation(settings, nations(CLIENTS, by="entities"), path, trainer_of=learner)


@pytest.mark.parametrize(("entity", "dense", "weak"), [("secagg", "plain", "dense"), ("plain", "secret", "entity")])
def test_against_an_active_server_every_block_must_stand(tmp_path: Path, entity: str, dense: str, weak: str) -> None:
    share(entity, dense)
    settings = config(adversary="active", keys="keys", transcript=False)
    with pytest.raises(UserError, match=f"needs secagg or secret sums of block {weak}: .* protects nothing") as refused:
        RunPlan(settings, CLIENTS).blocks  # noqa: B018
    assert "\n" not in str(refused.value)
    run = run_toy(settings, tmp_path / "run")
    assert isinstance(run.server_error, UserError)
    assert f"block {weak}" in str(run.server_error)
    assert run.trainers == {}, "nobody got as far as its data"


def test_blocks_that_stand_are_no_reason_to_refuse() -> None:
    share("secagg", "secret")
    assert len(RunPlan(config(adversary="active", keys="keys"), CLIENTS).blocks) == 2
    share("secagg", "plain")
    assert len(RunPlan(config(), CLIENTS).blocks) == 2, "a semi-honest server may be shown a block in clear"


def test_a_client_refuses_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server has settings of its own under which the block is allowed, and says nothing."""
    share("secagg", "plain")
    settings = config(transcript=False)
    active = dataclasses.replace(settings, adversary="active", keys="keys")
    monkeypatch.setattr(RunConfig, "digest", lambda self: bytes(32))
    own = dict.fromkeys(range(1, CLIENTS + 1), active)

    def learner(graph: Any, own: RunConfig, number: int) -> Any:
        return STRATEGIES["toy"].learner.make(own, graph, number, None)

    graphs = nations(CLIENTS, by="entities")
    run = run_federation(settings, graphs, tmp_path / "run", client_config=own, trainer_of=learner)
    assert run.outcome is None
    assert all("block dense" in str(problem) for problem in run.client_errors.values())
    assert run.client_errors


@pytest.mark.long
@pytest.mark.parametrize(
    ("aggregation", "entity", "dense"),
    [("plain", "secagg", "plain"), ("secagg", "plain", "secagg"), ("plain", "secret", "secagg")],
)
def test_holders_are_counted_as_the_rows_are_summed(tmp_path: Path, aggregation: str, entity: str, dense: str) -> None:
    usual = run_toy(config(aggregation="plain", alignment="plain", transcript=False), tmp_path / "usual")
    share(entity, dense)
    settings = config(aggregation=aggregation)
    run = run_toy(settings, tmp_path / "run")
    run.done()
    for number, learner in run.trainers.items():
        for block in ("entity", "dense"):
            np.testing.assert_array_equal(learner.export_block(block), usual.trainers[number].export_block(block))
    sent = {
        purpose: {type(one.message) for one in observed(tmp_path / "run") if _adds(one.message, purpose)}
        for purpose in (HOLDERS, "rows")
    }
    kind = ClearInput if entity == "plain" else MaskedInput
    assert sent == {HOLDERS: {kind}, "rows": {kind}}
    found = ids(audited(tmp_path / "run"), "high")
    assert "undeclared-message" not in found
    assert ("clear-holders" in found) == (entity == "plain")
    assert Disclosed.of(settings).of_count == (AGGREGATIONS[entity].count.disclosure,)


def _adds(message: Any, purpose: str) -> bool:
    return isinstance(message, ClearInput | MaskedInput) and message.purpose == purpose
