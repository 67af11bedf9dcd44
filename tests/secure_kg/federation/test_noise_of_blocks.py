"""Noise of a block in whole federations: in the sums of its rows, in no others, and alike in all twins."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.foundation.errors import UnknownProtocol
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES, Strategy
from secure_kg.federation.server.set_up import check_feasible
from secure_kg.foundation.errors import UserError
from tests.support import toy_learner
from tests.support.federation_in_threads import Run, nations, run_federation, small_config
from tests.support.fixed_noise import FixedNoise, registered

CLIENTS = 3
UNITS = 1 << 20
CHOICES = {"plain": "plain", "secagg": "psu", "secret": "psu"}


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    toy_learner.register()
    yield
    del STRATEGIES[toy_learner.NAME]


def blocks_with(noise: str) -> Any:
    def blocks(settings: RunConfig, strategy: Strategy) -> tuple[Block, ...]:
        return tuple(dataclasses.replace(block, noise=noise) for block in toy_learner.blocks(settings, strategy))

    return blocks


def run_toy(path: Path, aggregation: str, noise: str = "none") -> Run:
    config = small_config(
        strategy="toy",
        clients=CLIENTS,
        max_corrupt=0.0,
        aggregation=aggregation,
        alignment=CHOICES[aggregation],
        rounds=2,
        eval_every=2,
    )
    toy_learner.register(dataclasses.replace(toy_learner.KIND, blocks=blocks_with(noise)))

    def learner(graph: Any, own: RunConfig, number: int) -> Any:
        return RunPlan(own, CLIENTS).learner.make(own, graph, number, None)

    run = run_federation(config, nations(CLIENTS, by="entities"), path, trainer_of=learner)
    run.done()
    return run


def dense(run: Run) -> np.ndarray[Any, Any]:
    return next(iter(run.trainers.values())).export_block("dense")


def test_a_block_has_no_noise_unless_it_is_named() -> None:
    shared = [strategy for strategy in STRATEGIES.values() if strategy.shared]
    found = [one.learner.blocks(small_config(strategy=one.name), one) for one in shared]
    assert len(found) > 2
    assert all(blocks and all(block.noise == "none" for block in blocks) for blocks in found)


def test_results_and_counts_are_summed_without_noise() -> None:
    with registered(FixedNoise()) as name:
        toy_learner.register(dataclasses.replace(toy_learner.KIND, blocks=blocks_with(name)))
        plan = RunPlan(small_config(strategy="toy", clients=CLIENTS), CLIENTS)
        assert [plan.row_layout(block, 4).noise_bound for block in plan.blocks] == [0.5, 0.5]
        assert plan.result_layout().noise_bound == 0


def test_noise_is_in_the_means_of_all_twins_alike(tmp_path: Path) -> None:
    # Rows stand elsewhere in every run: a pattern as wide as they are is the same for all.
    with registered(FixedNoise(UNITS, pattern=(-1, 1))) as name:
        runs = {choice: run_toy(tmp_path / choice, choice, name) for choice in CHOICES}
    without = run_toy(tmp_path / "without", "plain")
    for run in runs.values():
        for number, learner in run.trainers.items():
            for block in ("entity", "dense"):
                np.testing.assert_array_equal(
                    learner.export_block(block), runs["plain"].trainers[number].export_block(block)
                )
    # A dense block is one row that everybody holds: its mean has the noise of one client, in each of two rounds.
    plan = RunPlan(small_config(strategy="toy", clients=CLIENTS), CLIENTS)
    with registered(FixedNoise(UNITS)) as name:
        block = Block("dense", toy_learner.DENSE, "plain", aligned=False, noise=name)
        unit = plan.row_layout(block, 1).codec.unit
    change = (dense(runs["plain"]) - dense(without))[0] / (UNITS * unit)
    np.testing.assert_allclose(change, [-2, 2, -2], atol=1e-3)


def test_what_does_not_fit_or_has_no_name_is_refused_before_the_run() -> None:
    plan = RunPlan(small_config(strategy="toy", clients=CLIENTS), CLIENTS)
    with registered(FixedNoise(largest=1e12)) as name:
        toy_learner.register(dataclasses.replace(toy_learner.KIND, blocks=blocks_with(name)))
        with pytest.raises(UserError, match="do not fit"):
            check_feasible(plan)
    with pytest.raises(UnknownProtocol):
        check_feasible(plan)
