"""An honest server whose clients drop out at the worst moments: the run goes on if it can, and no audit accuses it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from protocols.session.conversation import Abandon
from secure_kg.audit.view.read import Observation, open_run
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.messages import LendTable
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.federation.server import server
from tests.support import toy_learner
from tests.support.audited_runs import audited, audited_config, ids
from tests.support.federation_in_threads import Vanished, nations, run_federation

pytestmark = pytest.mark.long

GRACE = 1.0
AWAY = {1, 3}
LATER = 3
"""The round in which clients drop out."""

Learners = Callable[[ClientGraph, RunConfig, int], Any]


@pytest.fixture(autouse=True)
def _short_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SETUP_GRACE", 3.0)


@pytest.fixture
def toy() -> Iterator[None]:
    toy_learner.register()
    yield
    del STRATEGIES[toy_learner.NAME]


def learners(at: int, who: set[int], act: Callable[[], None]) -> Learners:
    """Learners of the run's own kind, of which some do something before they train round `at`."""

    def make(graph: ClientGraph, config: RunConfig, number: int) -> Any:
        kind = STRATEGIES[config.strategy].learner
        learner: Any = kind.make(config, graph, number, torch.device("cpu"))
        train = learner.train

        def act_and_train(round_id: int) -> Any:
            if round_id == at and number in who:
                act()
            return train(round_id)

        learner.train = act_and_train
        return learner

    return make


def vanish() -> None:
    raise Vanished


def sent(path: Path, kind: type[Any]) -> list[Observation]:
    """Messages of one kind that the server sent in the last session."""
    last = open_run(path).recordings[-1]
    return [one for one in last if isinstance(one.message, kind) and one.direction == "sent"]


@pytest.mark.slow  # rests on a grace of one second, which a busy machine does not keep
def test_a_client_that_needs_its_table_twice_in_a_round_gets_the_second_from_another_lender(tmp_path: Path) -> None:
    """Two clients miss a checkpoint, are lent the table when they return, and drop out in that very round.

    Too few are left without them. So the round waits for them, and they lack the table again. A lender that is asked
    a second time in a round refuses: the key would be the same.
    """
    path, graphs = tmp_path / "run", nations(6)

    def config(deadline: float) -> RunConfig:
        changes = {"rounds": 4, "eval_every": 3, "checkpoint_every": 2, "max_corrupt": 0.0, "max_dropout": 0.25}
        return audited_config(6, aggregation="secret", grace=GRACE, deadline=deadline, **changes)

    first = run_federation(config(3.0), graphs, path, trainer_of=learners(2, AWAY, vanish))
    assert first.gone == AWAY
    slow = learners(LATER, AWAY, lambda: time.sleep(2 * GRACE))
    run_federation(config(10.0), graphs, path, trainer_of=slow, resume=True).done()
    assert "lent-without-need" not in ids(audited(path))
    assert ids(audited(path), "high") == set()
    asked = [(one.peer, one.message.to) for one in sent(path, LendTable) if one.round == LATER]
    assert len(set(asked)) == len(asked)
    assert {receiver for _, receiver in asked} == AWAY
    assert len(asked) > len(AWAY), "nobody needed a second loan: the test has shown nothing"


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_sums_of_two_blocks_that_are_abandoned_together_have_one_reason(tmp_path: Path, aggregation: str) -> None:
    """All have agreed on keys of both blocks' sums when too few are left to add the first one up."""
    changes = {"strategy": "toy", "aggregation": aggregation, "max_corrupt": 0.0, "rounds": 4, "eval_every": 2}
    config = audited_config(5, grace=GRACE, deadline=2.0, **changes)
    trainer_of = learners(LATER, {1, 2, 3}, vanish)
    run = run_federation(config, nations(5, by="entities"), tmp_path / "run", trainer_of=trainer_of)
    assert run.gone == {1, 2, 3}
    abandoned = {one.purpose for one in sent(tmp_path / "run", Abandon) if one.round == LATER}
    assert abandoned == {"rows", "rows/dense"}
    assert ids(audited(tmp_path / "run"), "high") == set()
