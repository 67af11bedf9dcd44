"""Servers that have the victim train on while the others stand still, so that the next sum shows how far it has come.

All tables they send are true. What they choose is for whom a sum goes on, and who is asked for a checkpoint.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat, ServerDied
from benchmarks.cheating.sessions import Dies, union_of
from benchmarks.cheating.spoils import NOTHING, Spoils, compared, held_rows, sums_read, total_of
from benchmarks.cheating.stage import CLIENTS, VICTIM, Session, Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.registry import AGGREGATIONS
from protocols.session.conversation import Abandon
from protocols.sums.interface import Total
from protocols.sums.secagg.messages import KeyDirectory
from protocols.sums.secagg.server import SecAggServer
from protocols.sums.secagg.terms import BoundTerms
from secure_kg.federation.plan import twins
from secure_kg.federation.server.server import FederationServer

LAST_COMMON: Final = 2
"""The last round whose sum is held before the victim goes on alone."""
LAST_ALONE: Final = 12
EXCUSE: Final = "too few clients are left"


def alone(round_id: int) -> bool:
    return LAST_COMMON < round_id <= LAST_ALONE


class _GivesUp(FederationServer):
    """Agrees on the keys of a sum, after which clients train, and abandons it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._standing.is_due = lambda task, present: True  # type: ignore[method-assign]

    def _add_up_blocks(self, round_id: RoundId) -> dict[str, twins.Result]:
        if not alone(round_id):
            return super()._add_up_blocks(round_id)
        people, plan, table, sums = self._people, self._plan, self._table, self._sums
        if table is None:
            raise RuntimeError("nothing is shared")
        terms = plan.rows(round_id, table.block, table.union)
        count = plan.count(round_id, table.block, table.union)
        if count is None:
            raise RuntimeError("holders are not counted")
        sums._holders.prepare(people.session, count)
        sums._sums[table.block.aggregation].prepare(people.session, terms)
        self._ledger.abandoned_in_a_row = 0
        sums._abandon(terms, HOLDERS, SumAbandoned(EXCUSE), ())
        return {}


class EndsAtTheKeys(FederationServer):
    """Gathers the keys of a sum, sends the directory, and abandons the sum. Whoever has a directory trains.

    Holders were counted in rounds before; clients let that count stand.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        due = self._standing.is_due
        self._standing.is_due = lambda task, present: (  # type: ignore[method-assign]
            not alone(task.round) and due(task, present)
        )

    def _add_up_blocks(self, round_id: RoundId) -> dict[str, twins.Result]:
        if not alone(round_id):
            return super()._add_up_blocks(round_id)
        people, plan, table, sums = self._people, self._plan, self._table, self._sums
        if table is None or self._keys is None:
            raise RuntimeError("nothing is shared under masks")
        vectors, terms = self._keys.vectors, plan.rows(round_id, table.block, table.union)
        masked = AGGREGATIONS[table.block.aggregation].masked_terms(terms)
        if masked is None or vectors._transcript is None:
            raise RuntimeError("nothing is shared under masks")
        bound = BoundTerms(people.conversation.session, vectors._transcript, plan.parameters(CLIENTS), masked)
        vectors._step(SecAggServer(bound, frozenset(people.present), signed=True), people.session, masked)
        self._ledger.abandoned_in_a_row = 0
        sums._abandon(terms, "rows", SumAbandoned(EXCUSE), ())
        return {}


class TrainedAlone(Cheat):
    """The sum goes on for the victim, which trains for it. All others are told that it was abandoned."""

    server = EndsAtTheKeys

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if alone(self.round) and to != VICTIM:
            if isinstance(message, KeyDirectory) and message.purpose == "rows":
                return (Abandon("rows", EXCUSE),)
            if isinstance(message, Abandon):
                return ()
        return (message,)


class _SavedByOne(_GivesUp):
    """All train for sums that are abandoned; then the others are called too slow for the checkpoint, and it dies."""

    def _checkpoint_due(self, done: int) -> bool:
        return done in (LAST_COMMON, LAST_ALONE)

    def _checkpoint(self, round_id: RoundId) -> None:
        if round_id == LAST_ALONE:
            self._people.dropout({party for party in self._clients if party != VICTIM}, "checkpoint")
        super()._checkpoint(round_id)
        if round_id == LAST_ALONE:
            raise ServerDied


class SavedByOne(Cheat):
    server = _SavedByOne


def trained_alone(path: Path) -> Played:
    # A client bears more sums abandoned in a row, the rarer its checkpoints are.
    stage = Stage(path, stage_config(rounds=LAST_ALONE + 1, eval_every=LAST_ALONE + 1, checkpoint_every=LAST_ALONE + 1))
    session = stage.perform(TrainedAlone())
    return _played(stage, session, session)


def past_for_one(path: Path) -> Played:
    stage = Stage(path, stage_config(rounds=LAST_ALONE + 3, eval_every=LAST_ALONE + 3, checkpoint_every=LAST_ALONE))
    first, second = stage.perform(SavedByOne()), stage.perform(Dies(LAST_ALONE + 2))
    return _played(stage, first, second)


def _played(stage: Stage, first: Session, second: Session) -> Played:
    """It has got something if it knows the victim's rows better than by the mean of the sum that they are in."""
    spoils = rows_of_victim(stage, first, second)
    rounds = {str(number): len(trainer.trained) for number, trainer in sorted(first.trainers.items())}
    better = spoils.median is not None and spoils.guess is not None and spoils.median < spoils.guess
    return Played(stage, better, {**spoils.record(), "rounds_trained": rounds})


def rows_of_victim(stage: Stage, first: Session, second: Session) -> Spoils:
    """The sum after the victim's rounds alone, less what the others must have given: the last means before them."""
    before = total_of(sums_read(stage, first), "rows", LAST_COMMON)
    given = None if first is second else union_of(stage)
    after = total_of(sums_read(stage, second, given), "rows", LAST_ALONE + 1)
    trained = second.trained(VICTIM, LAST_ALONE + 1)
    held = held_rows(stage, VICTIM, trained) if trained is not None else None
    if before is None or after is None or held is None or after[1] != frozenset(range(1, CLIENTS + 1)):
        return NOTHING
    positions, truth = held
    summed = after[0].counts[positions] > 0
    counts = after[0].counts[positions][summed, None]
    total, means = _rows(after[0])[positions][summed], _means(before[0])[positions][summed]
    return compared(total - (counts - 1) * means, truth[summed], total / counts)


def _rows(total: Total) -> npt.NDArray[np.float64]:
    return total.real.reshape(len(total.counts), -1)


def _means(total: Total) -> npt.NDArray[np.float64]:
    return _rows(total) / np.maximum(total.counts[:, None], 1)
