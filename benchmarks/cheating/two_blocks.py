"""A learner with two shared blocks, and a server that has one of them make the inputs of the other look new.

A block's commitment is to all parameters. If a block were committed to while another one is still as it was trained
for a sum that came to nothing, the same rows would have another commitment, and could be summed over other clients.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import NOTHING, Spoils, compared, held_rows, sums_read, total_of
from benchmarks.cheating.stage import VICTIM, Rows, Session, Stage, WatchedTrainer, stage_config
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Abandon
from secure_kg.data.graph import ClientGraph
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.learners import KGE, LearnerKind
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES, Strategy
from secure_kg.federation.server.server import FederationServer
from secure_kg.learning.learner import Settings, TrainStats

NAME: Final = "two-blocks"
DENSE: Final = "dense"
WIDTH: Final = 3
OPENED: Final = 3
"""The round whose sums are opened, and then called abandoned; the next one is held without the victim."""


class TwoBlocks(WatchedTrainer):
    """Pulls each relation's row half-way to a row of its own, and moves a dense vector by an amount of its own.

    What a round makes of its rows follows from them alone: two rounds from the same rows end at the same ones.
    """

    def __init__(self, graph: ClientGraph, config: Settings, number: int) -> None:
        super().__init__(graph, config, number)
        self._goal, self._dense = self.export_block("relation"), np.zeros((1, WIDTH), dtype=np.float32)

    def train(self, round: int) -> TrainStats:
        pulled: Rows = ((self.export_block("relation") + self._goal) / 2).astype(np.float32)
        with torch.no_grad():
            self.model.relation.copy_(torch.from_numpy(pulled))
        self._dense += np.float32(self._client / 16)
        self.trained[round], self.losses[round] = pulled, TrainStats(0.0, len(self.graph.train), 1)
        return self.losses[round]

    def export_block(self, block: str) -> Rows:
        return self._dense.copy() if block == DENSE else super().export_block(block)

    def load_block(self, block: str, rows: Rows) -> None:
        if block == DENSE:
            self._dense = rows.astype(np.float32)
        else:
            super().load_block(block, rows)

    def digest(self) -> bytes:
        return hashlib.sha256(super().digest() + self._dense.tobytes()).digest()

    def parameters_state(self) -> dict[str, Tensor]:
        return {**super().parameters_state(), DENSE: torch.from_numpy(self._dense.copy())}

    def load_parameters(self, state: dict[str, Tensor]) -> None:
        super().load_parameters(state)
        self._dense = state[DENSE].numpy().copy()


def make(settings: Settings, graph: ClientGraph, client: int, device: torch.device) -> TwoBlocks:
    """A client's learner."""
    return TwoBlocks(graph, settings, client)


def _blocks(settings: RunConfig, strategy: Strategy) -> tuple[Block, ...]:
    """The rows of relations first, then the dense vector."""
    rows = KGE.blocks(settings, strategy)
    return *rows, Block(DENSE, WIDTH, settings.aggregation, aligned=False)


@contextmanager
def registered() -> Iterator[None]:
    """The learner among the others, for as long as a run of it is played and audited."""
    kind = LearnerKind(f"{__name__}:make", _blocks, RankingMetrics)
    STRATEGIES[NAME] = Strategy(NAME, "Two blocks", "relation rows and a dense row", "relation", learner=kind)
    try:
        yield
    finally:
        del STRATEGIES[NAME]


def two_block_stage(path: Path, **changes: Any) -> Stage:
    """While `registered`."""
    return Stage(path, stage_config(strategy=NAME, **changes), trainer=TwoBlocks)


class _CallsAbandoned(FederationServer):
    """Opens the sums of a round, says that they were abandoned, and calls the victim too slow for the next one."""

    def _add_up_blocks(self, round_id: RoundId) -> dict[str, twins.Result]:
        results = super()._add_up_blocks(round_id)
        if round_id != OPENED:
            return results
        for block in self._plan.blocks:
            self._people.tell(self._clients, Abandon(block.purpose, "too few clients are left"))
        self._people.dropout({PartyId(VICTIM)}, "shared rows")
        return {}


class CallsAbandoned(Cheat):
    server = _CallsAbandoned


def first_of_two_blocks(path: Path) -> Played:
    """Its success: the victim's rows, by which the sums of two rounds from the same rows differ."""
    stage = two_block_stage(path, rounds=OPENED + 1, eval_every=OPENED + 1, checkpoint_every=0)
    session = stage.perform(CallsAbandoned())
    spoils = _rows_of_victim(stage, session)
    return Played(stage, spoils.got, spoils.record())


def _rows_of_victim(stage: Stage, session: Session) -> Spoils:
    sums = sums_read(stage, session)
    with_it, without = total_of(sums, "rows", OPENED), total_of(sums, "rows", OPENED + 1)
    trained = session.trained(VICTIM, OPENED)
    held = held_rows(stage, VICTIM, trained) if trained is not None else None
    if with_it is None or without is None or held is None or with_it[1] - without[1] != {VICTIM}:
        return NOTHING
    then, later = with_it[0], without[0]
    both = (later.counts[held[0]] > 0) & (then.counts[held[0]] - later.counts[held[0]] == 1)
    places, truth = held[0][both], held[1][both]
    rows = [total.real.reshape(len(total.counts), -1)[places] for total in (then, later)]
    return compared(rows[0] - rows[1], truth, rows[0] / then.counts[places, None])
