"""Shares of noise in whole federations: as much as is said, none before there is data, no sum that has too little."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.sums.noise_shares import NoiseShares
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.run_plan import AGREEING_ROUND, RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES, Strategy
from secure_kg.federation.server.set_up import check_feasible
from secure_kg.foundation.errors import UserError
from tests.support import toy_learner
from tests.support.federation_in_threads import Run, Vanished, nations, run_federation, small_config

pytestmark = pytest.mark.long

CLIENTS, WIDTH, VICTIM = 4, 3000, 2
SHARES = NoiseShares(0.5, clients=CLIENTS, corrupt=1, first_round=AGREEING_ROUND + 1)


@pytest.fixture(autouse=True)
def _toy() -> Iterator[None]:
    toy_learner.register()
    yield
    del STRATEGIES[toy_learner.NAME]


def with_noise(noise: str) -> None:
    """The toy's rows, and a dense block of its own that is wide enough for a variance."""

    def blocks(settings: RunConfig, strategy: Strategy) -> tuple[Block, ...]:
        entity, dense = toy_learner.blocks(settings, strategy)
        return dataclasses.replace(entity, noise=noise), dataclasses.replace(dense, width=WIDTH, noise=noise)

    toy_learner.register(dataclasses.replace(toy_learner.KIND, blocks=blocks))


def run_toy(path: Path, rounds: int, noise: str, dies_in: int = 0) -> Run:
    with_noise(noise)
    config = small_config(
        strategy="toy", clients=CLIENTS, max_corrupt=0.25, rounds=rounds, eval_every=rounds, grace=2.0, min_holders=1
    )

    def learner(graph: Any, own: RunConfig, number: int) -> Any:
        made = RunPlan(own, CLIENTS).learner.make(own, graph, number, None)
        made._values["dense"] = made._values["dense"].new_zeros(1, WIDTH)
        train = made.train

        def mortal(round: int) -> Any:
            if number == VICTIM and round == dies_in:
                raise Vanished
            return train(round)

        made.train = mortal
        return made

    return run_federation(config, nations(CLIENTS, by="entities"), path, trainer_of=learner)


def dense(run: Run) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = run.trainers[1].export_block("dense")[0]
    return found


def test_the_round_that_agrees_on_first_rows_has_no_noise_and_the_next_has_it_all(tmp_path: Path) -> None:
    first = run_toy(tmp_path / "first", 1, SHARES.text)
    first.done()
    assert not dense(first).any()
    second = run_toy(tmp_path / "second", 2, SHARES.text)
    second.done()
    mean = np.mean([number / 16 for number in range(1, CLIENTS + 1)])
    # The mean of four contributions with four shares, of which three make up the deviation.
    deviation = SHARES.deviation * np.sqrt(4 / 3) / CLIENTS
    found = dense(second)
    assert found.std() == pytest.approx(deviation, rel=6 / np.sqrt(2 * WIDTH))
    assert abs(found.mean() - mean) < 6 * deviation / np.sqrt(WIDTH)
    for trainer in second.trainers.values():
        assert np.array_equal(trainer.export_block("dense")[0], found)


@pytest.mark.parametrize("dropouts", [0, 1])
def test_a_sum_with_less_noise_than_it_needs_is_not_opened(tmp_path: Path, dropouts: int) -> None:
    noise = dataclasses.replace(SHARES, dropouts=dropouts)
    run = run_toy(tmp_path / "run", 2, noise.text, dies_in=2)
    assert run.server_error is None
    assert run.outcome is not None
    reasons = [abandoned.reason for abandoned in run.outcome.abandoned_sums]
    if dropouts:
        assert reasons == []
        assert dense(run).any()
    else:
        # The first block's sum, and with it the round's others: each client has what it trained by itself.
        assert len(reasons) == 1
        assert "1 clients are missing from a sum whose noise allows for 0" in reasons[0]
        assert np.array_equal(dense(run), np.full(WIDTH, np.float32(1 / 16)))


def test_noise_that_has_no_place_in_the_ring_is_refused_before_the_run() -> None:
    plan = RunPlan(small_config(strategy="toy", clients=CLIENTS), CLIENTS)
    with_noise(NoiseShares(1e-9, clients=CLIENTS).text)
    with pytest.raises(UserError, match="units wide"):
        check_feasible(plan)
