"""How often a client waits for the server in a round: a secure one has at most one round trip more than its twin."""

from pathlib import Path
from typing import Any

import pytest
import torch

from protocols.foundation.identifiers import PartyId
from secure_kg.data.graph import ClientGraph, Part
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import TrainStats
from tests.support.federation_in_threads import nations, run_federation, small_config
from tests.support.virtual_time import VirtualTime

CLIENTS, WORK = 3, 100.0
"""Units of time: local epochs and rankings take far longer than messages."""


class _Trainer(KgeLearner):
    time: VirtualTime
    party: PartyId

    def train(self, round_id: int) -> TrainStats:
        self.time.work(self.party, WORK)
        return super().train(round_id)

    def evaluate(self, part: Part, trained: TrainStats | None = None) -> RankingMetrics:
        self.time.work(self.party, WORK)
        return super().evaluate(part, trained)


def timed(path: Path, **settings: Any) -> dict[tuple[str, int], float]:
    time = VirtualTime()

    def trainer(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        made = _Trainer(graph, config.training, torch.device("cpu"), config.seed, number)
        made.time, made.party = time, PartyId(number)
        return made

    config = small_config(rounds=6, eval_every=3, checkpoint_every=0, **settings)
    run = run_federation(
        config, nations(CLIENTS), path, trainer_of=trainer, transport_of=time.transport_of, turns=time
    )
    run.done()
    return time.turns


def trips(turns: dict[tuple[str, int], float], work: str, number: int) -> float:
    """A round trip is two messages, one after the other."""
    return (turns[work, number] - (WORK if (work, number) != ("round", 1) else 0.0)) / 2


@pytest.mark.parametrize(("aggregation", "most"), [("plain", 1), ("secagg", 2), ("secret", 2)])
@pytest.mark.parametrize("strategy", ["fedr", "fede"])
def test_a_secure_round_has_one_round_trip_more_than_its_plain_twin(
    tmp_path: Path, aggregation: str, most: int, strategy: str
) -> None:
    """The first round agrees on first rows and counts holders; it trains nothing."""
    turns = timed(tmp_path / "run", aggregation=aggregation, strategy=strategy)
    assert [trips(turns, "round", number) for number in range(2, 7)] == [most] * 5


def test_the_same_measure_sees_a_round_in_which_holders_are_counted(tmp_path: Path) -> None:
    """Keys for the count, its input, survivors and total: a control that the clocks count what they should."""
    turns = timed(tmp_path / "run", aggregation="secagg")
    assert trips(turns, "round", 1) > 4


@pytest.mark.parametrize(("aggregation", "most"), [("plain", 1), ("secagg", 2)])
def test_so_has_an_evaluation(tmp_path: Path, aggregation: str, most: int) -> None:
    turns = timed(tmp_path / "run", aggregation=aggregation)
    assert [trips(turns, "evaluation", number) for number in (3, 6)] == [most] * 2
