"""Servers that have the results of clients that have not trained since opened again, over other clients."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.cheating.entry import Played
from benchmarks.cheating.evaluations import figures_of_victim
from benchmarks.cheating.meddling import Cheat, ServerDied
from benchmarks.cheating.results import loss_of_victim
from benchmarks.cheating.spoils import NOTHING, sums_read, total_of
from benchmarks.cheating.stage import VICTIM, Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.errors import PeerLost
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import LeaveOut
from secure_kg.federation.plan.messages import Evaluate, TrainRound
from secure_kg.federation.plan.run_plan import AGREEING_ROUND
from secure_kg.federation.server.server import FederationServer
from secure_kg.federation.server.shared_table import ReadableTable

SAVED: Final = 2
"""The round whose checkpoint comes before its evaluation."""
LAST: Final = 5
"""The round for which the victim and one more are drawn; all others were drawn before, and not for this one."""
DRAWN_WITH_VICTIM: Final = 1
NUDGED_AFTER: Final = 3
"""The round after which nobody trains any more, and every mean is moved by the least that a float can be."""


class _SavesFirst(FederationServer):
    """Has the checkpoint of a round written before its evaluation, so that it says nothing of it, and dies."""

    def _look_back(self, round_id: RoundId) -> None:
        if round_id < SAVED:
            super()._look_back(round_id)
            return
        self._checkpoint(round_id)
        self._evaluate(round_id)
        raise ServerDied


class SavesFirst(Cheat):
    server = _SavesFirst


class _EvaluatesOn(FederationServer):
    """Lets nobody train and sends no rows: clients have what they had trained when they wrote the checkpoint."""

    def _round(self, round_id: RoundId) -> None:
        self._people.round = round_id

    def _bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
        pass


class EvaluatesOn(Cheat):
    """Without the victim, which is never told of the evaluation."""

    server = _EvaluatesOn

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if to == VICTIM and isinstance(message, Evaluate):
            raise PeerLost(f"client {to} is called a dropout", to)
        return (message,)


def checkpoint_first(path: Path) -> Played:
    """Its success: the victim's loss of the round and its number of triples, which both evaluations tell."""
    stage = Stage(path, stage_config(rounds=SAVED + 1, eval_every=1))
    first, second = stage.perform(SavesFirst()), stage.perform(EvaluatesOn())
    with_it = total_of(sums_read(stage, first), "valid", SAVED)
    without = total_of(sums_read(stage, second), "valid", SAVED + 1)
    spoils = loss_of_victim(with_it, without, first, SAVED)
    return Played(stage, spoils.got, spoils.record())


class LeavesUnread(Cheat):
    """Answers of some clients are read only after these were called too slow."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        match message:
            case Evaluate() if self.round == LAST - 1 and to == DRAWN_WITH_VICTIM:
                self.unread.add(to)
            case TrainRound() if self.round == LAST:
                self.unread.add(to)
            case LeaveOut():
                self.unread.discard(to)
        return (message,)


def idle_results(path: Path) -> Played:
    """The last round comes to nothing. Its evaluation is over those who were not drawn for it: they have not moved.

    The evaluation before was over the same clients and the victim: its success is the victim's figures of that one.
    """
    config = stage_config(
        rounds=LAST,
        eval_every=LAST - 1,
        checkpoint_every=0,
        client_fraction=0.4,
        max_corrupt=0.1,
        max_dropout=0.4,
        grace=3.0,
    )
    stage = Stage(path, config)
    session = stage.perform(LeavesUnread())
    sums = sums_read(stage, session)
    with_it, without = total_of(sums, "valid", LAST - 1), total_of(sums, "valid", LAST)
    if with_it is None or without is None or with_it[1] - without[1] != {VICTIM}:
        return Played(stage, False, NOTHING.record())
    spoils = figures_of_victim(with_it[0], without[0], session.trainers[VICTIM], "valid", 0)
    return Played(stage, spoils.got, spoils.record())


class _NudgesForIdle(FederationServer):
    """Has the clients that are not drawn for the next round evaluated twice, with a table in between that is new."""

    def _evaluate(self, round_id: RoundId) -> None:
        if round_id < NUDGED_AFTER:
            return  # what is opened now could be opened later over the same clients only
        later = RoundId(round_id + 1)
        idle = set(self._clients) - set(self._plan.participants(later))
        self._results_of(round_id, idle)
        self._nudge(later)
        self._results_of(later, idle - {PartyId(VICTIM)})
        raise ServerDied

    def _results_of(self, round_id: RoundId, parties: set[PartyId]) -> None:
        self._people.round = round_id
        self._bring(self._clients, round_id)
        with self._transport.phase(round_id, "evaluate"):
            self._people.tell(parties, Evaluate())
        self._add_up_results(round_id, "valid", parties)

    def _nudge(self, round_id: RoundId) -> None:
        table = self._table
        if not isinstance(table, ReadableTable):
            raise TypeError("a table that cannot be read")
        some = table.averaged > AGREEING_ROUND  # clients scale first means, and would not scale these
        nudged = np.nextafter(table.rows, np.float32(100), dtype=np.float32)
        table.rows = np.where(some[:, None], nudged, table.rows)
        table.averaged = np.where(some, np.uint32(round_id), table.averaged).astype(np.uint32)
        table.newest = int(round_id)


class NudgesForIdle(Cheat):
    server = _NudgesForIdle


def nudged_idle_results(path: Path) -> Played:
    """Its success: the victim's figures, by which the two sums differ. No rank changes by so little."""
    config = stage_config(
        clients=8,
        rounds=8,
        eval_every=1,
        checkpoint_every=0,
        client_fraction=0.25,
        min_holders=2,
        max_corrupt=0.0,
        max_dropout=0.4,
    )
    stage = Stage(path, config)
    session = stage.perform(NudgesForIdle())
    sums = sums_read(stage, session)
    with_it, without = total_of(sums, "valid", NUDGED_AFTER), total_of(sums, "valid", NUDGED_AFTER + 1)
    if with_it is None or without is None or with_it[1] - without[1] != {VICTIM}:
        return Played(stage, False, NOTHING.record())
    spoils = figures_of_victim(with_it[0], without[0], session.trainers[VICTIM], "valid", 0)
    return Played(stage, spoils.got, spoils.record())
