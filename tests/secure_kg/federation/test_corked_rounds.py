"""What leaves together in a round, and that nothing is kept while a party works."""

from pathlib import Path

import pytest
import torch

from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.foundation.wire import Frame
from protocols.sums.secagg.messages import KeyDirectory
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.messages import SharedRows, TrainRound
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import TrainStats
from tests.support.federation_in_threads import nations, run_federation, small_config

CLIENTS, ROUNDS = 3, 4
Together = tuple[PartyId, list[type[wire.Message] | None]]


@pytest.mark.parametrize("aggregation", ["plain", "secagg"])
def test_news_and_the_word_to_train_leave_together_and_before_anybody_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aggregation: str
) -> None:
    """In rounds after the first: that one has no news, and counts holders."""
    ends: dict[PartyId, Transport] = {}
    together: list[Together] = []
    trained: list[tuple[int, list[PartyId]]] = []

    class Trainer(KgeLearner):
        number = SERVER

        def train(self, round_id: int) -> TrainStats:
            trained.append((round_id, ends[self.number]._cork.peers))
            return super().train(round_id)

    def trainer(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        made = Trainer(graph, config.training, torch.device("cpu"), config.seed, number)
        made.number = PartyId(number)
        return made

    def end(network: InProcessNetwork, number: int) -> Transport:
        ends[PartyId(number)] = network.endpoint(PartyId(number))
        return ends[PartyId(number)]

    def noted(transport: InProcessTransport, to: PartyId, frames: list[Frame]) -> None:
        if transport.party == SERVER:
            together.append((to, [wire.kind_of(frame) for frame in frames]))
        straight(transport, to, frames)

    straight = InProcessTransport._post_together
    monkeypatch.setattr(InProcessTransport, "_post_together", noted)
    config = small_config(rounds=ROUNDS, eval_every=ROUNDS, checkpoint_every=0, aggregation=aggregation)
    run_federation(config, nations(CLIENTS), tmp_path / "run", trainer_of=trainer, transport_of=end).done()
    for client in range(1, CLIENTS + 1):
        left = [kinds[:2] for to, kinds in together if to == client]
        assert left.count([SharedRows, TrainRound]) == ROUNDS - 1
        # With the keys, if all that were advertised ahead had come by then.
        assert all(kinds[2:] in ([], [KeyDirectory]) for _, kinds in together if kinds[0] is SharedRows)
    assert sorted({round_id for round_id, _ in trained}) == list(range(2, ROUNDS + 1))
    assert [kept for _, kept in trained if kept] == []
