"""Audits of a run that shares two blocks: each table and each sum by its own purpose, also where things go wrong."""

import dataclasses
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId
from protocols.foundation.wire import Frame
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.session.conversation import Abandon, LeaveOut
from protocols.sums.totals import SumTotal
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from secure_kg.audit.view.attending import Attending
from secure_kg.audit.view.lending import Lending
from secure_kg.audit.view.read import Observation, open_run
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.messages import LendTable, SharedBlock, Welcome
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.federation.server.shared_table import MOST_KEPT
from tests.support import toy_learner
from tests.support.audited_runs import Edit, audited, audited_config, edited, ids, with_fields, without
from tests.support.federation_in_threads import Run, nations, run_federation

pytestmark = pytest.mark.long

CLIENTS = 5
DENSE = "rows/dense"
SLOW_IN, SECONDS, GRACE = 3, 2.5, 1.0


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    toy_learner.register()
    yield
    del STRATEGIES[toy_learner.NAME]


def toy_config(**changes: Any) -> RunConfig:
    defaults: dict[str, Any] = {"strategy": "toy", "max_corrupt": 0.0, "rounds": 4, "eval_every": 2, "grace": GRACE}
    return audited_config(CLIENTS, **{**defaults, **changes})


def run_toy(config: RunConfig, path: Path, **more: Any) -> Run:
    def learner(graph: Any, own: RunConfig, number: int) -> Any:
        return RunPlan(own, CLIENTS).learner.make(own, graph, number, None)

    return run_federation(config, nations(CLIENTS, by="entities"), path, trainer_of=learner, **more)


def resumed(path: Path, aggregation: str) -> Path:
    for rounds, resume in ((2, False), (4, True)):
        config = toy_config(rounds=rounds, checkpoint_every=2, aggregation=aggregation)
        run_toy(config, path, resume=resume).done()
    return path


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_a_resumed_run_is_clean_and_each_kept_block_is_missed(tmp_path: Path, aggregation: str) -> None:
    run = resumed(tmp_path / "run", aggregation)
    assert ids(audited(run), "high", "medium") == set()
    kept = edited(run, tmp_path / "kept", without(lambda one: isinstance(one.message, SharedBlock)), session=2)
    (finding,) = (one for one in audited(kept).findings if one.id == "tables-withheld")
    assert f"session 2, round 3: client 1 was told TrainRound without the result of the sum of {DENSE} of round 2" in (
        finding.evidence
    )


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_no_block_is_called_false_where_the_first_session_is_not_there(tmp_path: Path, aggregation: str) -> None:
    run = edited(resumed(tmp_path / "run", aggregation), tmp_path / "later", lambda observations: observations)
    open_run(run).recordings[0].path.unlink()
    found = ids(audited(run), "high")
    assert "resumed-from-nowhere" in found
    assert not found & {"false-totals", "tables-withheld", "passed-over"}


def moved_after(number: int) -> Edit:
    def edit(observations: Iterable[Observation]) -> Iterator[Observation]:
        for one in observations:
            if isinstance(one.message, SharedBlock) and one.round > number:
                moved = with_fields(one.message, rows=one.message.rows + np.float32(0.125))
                one = dataclasses.replace(one, message=moved)
            yield one

    return edit


def test_but_a_false_table_after_the_first_is_found(tmp_path: Path) -> None:
    run = edited(resumed(tmp_path / "run", "secagg"), tmp_path / "later", moved_after(3), session=2)
    open_run(run).recordings[0].path.unlink()
    (finding,) = (one for one in audited(run).findings if one.id == "false-totals")
    assert all(f", {DENSE}: " in line for line in finding.evidence)


# --- sums of a round that are abandoned together ------------------------------------------------------------------


class SlowToOpen(InProcessTransport):
    """Its answer that opens the sum of the first block comes too late in one round."""

    def _post(self, to: PartyId, frame: Frame) -> None:
        if (int(self._round), self._phase) == (SLOW_IN, "unmasking/rows"):
            time.sleep(SECONDS)
        super()._post(to, frame)


def slow_to_open(*clients: int) -> Any:
    def transport(network: InProcessNetwork, number: int) -> Transport:
        party = PartyId(number)
        return SlowToOpen(network, party, [PartyId(0)]) if number in clients else network.endpoint(party)

    return transport


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_a_round_whose_first_sum_too_few_have_opened_costs_that_round(tmp_path: Path, aggregation: str) -> None:
    """Those who have opened it wait in the second sum when they are told that the first was abandoned, too."""
    config = toy_config(aggregation=aggregation, deadline=8.0)
    run = run_toy(config, tmp_path / "run", transport_of=slow_to_open(2, 3, 4))
    assert not run.client_errors
    assert run.outcome is not None
    first = run.outcome.abandoned_sums[0]  # on a busy machine some are not back for the next round
    assert (first.round, first.purpose) == (SLOW_IN, "rows")
    found = audited(tmp_path / "run")
    assert ids(found, "high") == set()
    assert "sums-given-up" in ids(found, "info")


def seen(message: Any, peer: int, direction: Any = "sent", number: int = 3) -> Observation:
    return Observation(0, 0, direction, peer, number, "", message, 0, b"")


def test_the_count_of_holders_takes_the_aligned_block_along() -> None:
    attending = Attending(RunPlan(toy_config(), CLIENTS).blocks)
    attending.observe(seen(Abandon(HOLDERS, "too few"), 1))
    assert attending.abandoned == {(3, HOLDERS), (3, "rows")}
    alone = Attending([Block("dense", 3, "secagg", aligned=False)])
    alone.observe(seen(Abandon(HOLDERS, "too few"), 1))
    assert alone.abandoned == {(3, HOLDERS)}


@pytest.mark.parametrize(("kept", "fault"), [(MOST_KEPT, "still kept"), (MOST_KEPT + 1, "")])
def test_a_loan_is_due_when_sums_of_any_block_are_no_longer_kept(kept: int, fault: str) -> None:
    lending = Lending(CLIENTS, [Block("dense", 3, "secret", aligned=False)])
    lending.observe(seen(Welcome(bytes(16), bytes(32), 0, [], b"", "run"), 1, number=0))
    for number in range(1, kept + 1):
        total = SumTotal(DENSE, number, [1, 2, 4], np.zeros(4, dtype=np.uint32))
        lending.observe(seen(total, 1, number=number))
        lending.observe(seen(SumTotal("valid", number, [1], np.zeros(4, dtype=np.uint32)), 1, number=number))
    lending.observe(seen(LeaveOut(), 3))
    told = lending.fault_of_request(seen(LendTable(3), 1))
    assert fault in told
    assert bool(fault) == bool(told)
