"""Servers that have the same results, or nearly the same, summed twice under two names."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs

from benchmarks.cheating.entry import Played
from benchmarks.cheating.evaluations import FinishesAtOnce, figures_of_victim
from benchmarks.cheating.meddling import Cheat, ServerDied
from benchmarks.cheating.sessions import union_of
from benchmarks.cheating.spoils import NOTHING, Read, Spoils, compared, sums_read, total_of
from benchmarks.cheating.stage import CLIENTS, SMALL, VICTIM, Session, Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.interface import Total
from protocols.sums.secagg.messages import AdvertiseKeys
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.plan.messages import Finish, TrainRound, Verdict
from secure_kg.federation.server.server import FederationServer
from secure_kg.federation.server.shared_table import ReadableTable
from secure_kg.runs.outcome import ServerOutcome

NUDGED_FROM: Final = 2
"""The round of the checkpoint from which results are asked for twice."""
VERDICTS_UNTIL: Final = 6


class _TooSlowAtTheEnd(FederationServer):
    """Calls the victim too slow before the test results are added up."""

    def _bring(self, parties: Iterable[PartyId], round_id: RoundId) -> None:
        super()._bring(frozenset(parties), round_id)
        if round_id == self._config.rounds + 1:
            self._people.dropout({PartyId(VICTIM)}, "finish")


class LossTwice(Cheat):
    """The last evaluation is held with the victim, the test without it. Nobody trains between them."""

    server = _TooSlowAtTheEnd


def loss_twice(path: Path) -> Played:
    stage = Stage(path, stage_config())
    session = stage.perform(LossTwice())
    sums, rounds = sums_read(stage, session), stage.config.rounds
    with_it, without = total_of(sums, "valid", rounds), total_of(sums, "test", rounds + 1)
    spoils = loss_of_victim(with_it, without, session, rounds)
    return Played(stage, spoils.got, spoils.record())


def loss_of_victim(with_it: Read, without: Read, session: Session, round_id: int) -> Spoils:
    """The difference of two sums against the victim's loss of a round and the triples that it is of."""
    stats = session.trainers[VICTIM].losses.get(round_id)
    if with_it is None or without is None or stats is None or VICTIM in without[1]:
        return NOTHING
    then, later = _loss(with_it[0]), _loss(without[0])
    return compared(then - later, np.array([stats.loss * stats.triples, stats.triples]), then / CLIENTS)


def _loss(total: Total) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    metrics = RankingMetrics.of(total)
    return np.array([metrics.loss_sum, float(metrics.loss_triples)])


class _Nudges(FinishesAtOnce):
    """Goes to the results from a table in which every mean is moved by the least that a float can be."""

    def _finish(self, done: RoundId) -> ServerOutcome:
        table = self._table
        if isinstance(table, ReadableTable):
            later, some = RoundId(done + 1), table.averaged > 0
            nudged = np.nextafter(table.rows, np.float32(100), dtype=np.float32)
            table.rows = np.where(some[:, None], nudged, table.rows)
            table.averaged = np.where(some, np.uint32(later), table.averaged).astype(np.uint32)
            table.newest = later
        return super()._finish(RoundId(done + 1))


class _NoBest(Cheat):
    """No evaluation is called the best, so that clients are tested with the rows they have. It dies in a round."""

    def __init__(self, dies_in: int = 0) -> None:
        super().__init__()
        self._dies_in = dies_in

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        match message:
            case TrainRound() if self.round == self._dies_in:
                raise ServerDied
            case Verdict():
                return (structs.replace(message, improved=False),)
            case Finish():
                return (structs.replace(message, best_round=0),)
        return (message,)


class ResultsAtOnce(_NoBest):
    server = FinishesAtOnce


class NudgedResults(_NoBest):
    """Without the victim."""

    server = _Nudges

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if sender == VICTIM and isinstance(message, AdvertiseKeys) and message.purpose == "test":
            self.call_dropout(VICTIM)
        return message


def nudged_rows(path: Path) -> Played:
    stage = Stage(path, stage_config(rounds=6))
    stage.perform(_NoBest(dies_in=NUDGED_FROM + 1))
    first = stage.perform(ResultsAtOnce())
    _forget_end(stage)
    second = stage.perform(NudgedResults())
    union = union_of(stage)
    with_it = total_of(sums_read(stage, first, union), "test", NUDGED_FROM + 1)
    without = total_of(sums_read(stage, second, union), "test", NUDGED_FROM + 2)
    if with_it is None or without is None or VICTIM in without[1]:
        return Played(stage, False, NOTHING.record())
    spoils = figures_of_victim(with_it[0], without[0], first.trainers[VICTIM], "test", 0)
    return Played(stage, spoils.got, spoils.record())


class VerdictForOne(Cheat):
    """Only the victim is ever told to keep a copy: that of round 1. It dies after the checkpoint."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        match message:
            case TrainRound() if self.round == VERDICTS_UNTIL + 1:
                raise ServerDied
            case Verdict() if self.round >= VERDICTS_UNTIL:
                return ()
            case Verdict():
                return (structs.replace(message, improved=to == VICTIM and self.round == 1),)
        return (message,)


class _ResultsOfCopies(Cheat):
    """Each client is asked for the copy that it has."""

    copy_of_victim = 1

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, Finish):
            return (structs.replace(message, best_round=self.copy_of_victim if to == VICTIM else 0),)
        return (message,)


class FirstCopy(_ResultsOfCopies):
    server = FinishesAtOnce


class _OneVerdictMore(FinishesAtOnce):
    """Tells the victim that the round of the checkpoint was the best, and goes to the results."""

    def _finish(self, done: RoundId) -> ServerOutcome:
        self._people.round = done
        self._people.tell({PartyId(VICTIM)}, Verdict(True))
        return super()._finish(RoundId(done + 1))


class LaterCopy(_ResultsOfCopies):
    server = _OneVerdictMore
    copy_of_victim = VERDICTS_UNTIL


def verdict_for_one(path: Path) -> Played:
    """Its success: what changes in the victim's test figures from one copy to the other."""
    training = replace(SMALL, batch_size=64, local_epochs=5, lr=0.02)
    stage = Stage(path, stage_config(rounds=9, eval_every=1, checkpoint_every=VERDICTS_UNTIL, training=training))
    stage.perform(VerdictForOne())
    first = stage.perform(FirstCopy())
    _forget_end(stage)
    second, union = stage.perform(LaterCopy()), union_of(stage)
    then = total_of(sums_read(stage, first, union), "test", VERDICTS_UNTIL + 1)
    later = total_of(sums_read(stage, second, union), "test", VERDICTS_UNTIL + 2)
    figures = [session.trainers[VICTIM].ranked.get(("test", "tail"), []) for session in (first, second)]
    if then is None or later is None or not (figures[0] and figures[1]) or VICTIM not in then[1] & later[1]:
        return Played(stage, False, NOTHING.record())
    change = np.array([later[0].real[0] - then[0].real[0], *(later[0].counts - then[0].counts)[1:4]])
    old, new = figures[0][0], figures[1][0]
    hits = [new.hits1 - old.hits1, new.hits3 - old.hits3, new.hits10 - old.hits10]
    spoils = compared(change, np.array([new.reciprocal - old.reciprocal, *hits]), np.zeros(4))
    return Played(stage, spoils.got, spoils.record())


def _forget_end(stage: Stage) -> None:
    """As if the run had not been finished."""
    (stage.run / "summary.json").unlink(missing_ok=True)
