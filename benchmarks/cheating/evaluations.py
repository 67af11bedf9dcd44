"""Servers that ask for figures more often than the run gives reason to, or tell clients different verdicts."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import structs

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import NOTHING, Spoils, compared, held_rows, sums_read, total_of
from benchmarks.cheating.stage import CLIENTS, VICTIM, Stage, WatchedTrainer, stage_config
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.interface import Total
from protocols.sums.secagg.messages import AdvertiseKeys
from secure_kg.data.graph import Part
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.plan.messages import Verdict
from secure_kg.federation.server.server import FederationServer
from secure_kg.runs import checkpoint

_FIGURES: Final = 1
"""Of the real entries, the first: the sum of reciprocal ranks. Then come counts of triples and hits."""
_HITS: Final = 4


class _TrainsTwice(FederationServer):
    """After its second round it lets nobody train any more, and goes on to evaluate."""

    def _round(self, round_id: RoundId) -> None:
        if round_id <= 2:
            super()._round(round_id)
        self._people.round = round_id


class EvaluationOnDemand(Cheat):
    """Evaluations of later rounds without training between them, one of them without the victim."""

    server = _TrainsTwice

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if sender == VICTIM and self.round == 3 and isinstance(message, AdvertiseKeys) and message.purpose == "valid":
            self.call_dropout(VICTIM)
        return message


def evaluation_on_demand(path: Path) -> Played:
    stage = Stage(path, stage_config(eval_every=1, checkpoint_every=0))
    stage.perform(EvaluationOnDemand())
    sums = sums_read(stage, stage.last)
    with_it, without = total_of(sums, "valid", 2), total_of(sums, "valid", 3)
    if with_it is None or without is None or VICTIM in without[1]:
        return Played(stage, False, NOTHING.record())
    spoils = figures_of_victim(with_it[0], without[0], stage.last.trainers[VICTIM], "valid", 1)
    return Played(stage, spoils.got, spoils.record())


def figures_of_victim(with_it: Total, without: Total, trainer: WatchedTrainer, part: Part, which: int) -> Spoils:
    """The difference of two sums against the victim's own figures. `which`: of its rankings of `part`, from zero."""
    tails, heads = trainer.ranked[part, "tail"], trainer.ranked[part, "head"]
    if len(tails) <= which:
        return NOTHING
    tail, head = tails[which], heads[which]
    own = RankingMetrics(tail, tail + head).contribution()
    return compared(
        _figures(with_it.real - without.real, with_it.counts - without.counts),
        _figures(own.real, own.counts),
        _figures(with_it.real / CLIENTS, with_it.counts / CLIENTS),
    )


def _figures(real: npt.NDArray[np.floating], counts: npt.NDArray[np.number]) -> npt.NDArray[np.float64]:
    return np.concatenate([real[:_FIGURES], counts[:_HITS]]).astype(np.float64)


class FinishesAtOnce(FederationServer):
    """Goes from its last checkpoint straight to the results."""

    def _over(self, done: int) -> bool:
        return True


class NoBestAfter(Cheat):
    """No evaluation after `last` is called the best, so that clients keep the copy they have."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self._last = last

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, Verdict):
            return (structs.replace(message, improved=self.round <= self._last),)
        return (message,)


class ResultsAgain(Cheat):
    """A finished run, resumed from the checkpoint before the last: results once more, without the victim."""

    server = FinishesAtOnce

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if sender == VICTIM and isinstance(message, AdvertiseKeys) and message.purpose == "test":
            self.call_dropout(VICTIM)
        return message


def results_again(path: Path) -> Played:
    rounds = 3
    stage = Stage(path, stage_config(rounds=rounds, eval_every=1, checkpoint_every=1))
    first = stage.perform(NoBestAfter(rounds - 1))
    checkpoint.mark_complete(stage.run, rounds - 1, range(1, CLIENTS + 1))
    second = stage.perform(ResultsAgain())
    with_it = total_of(sums_read(stage, first), "test", rounds + 1)
    without = total_of(sums_read(stage, second), "test", rounds)
    if with_it is None or without is None or VICTIM in without[1]:
        return Played(stage, False, NOTHING.record())
    spoils = figures_of_victim(with_it[0], without[0], first.trainers[VICTIM], "test", 0)
    return Played(stage, spoils.got, spoils.record())


class FalseVerdicts(Cheat):
    """The victim is told that the first evaluation was the best, the others that the last was."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, Verdict):
            return (structs.replace(message, improved=to != VICTIM or self.round == 2),)
        return (message,)


def false_verdicts(path: Path) -> Played:
    """Its success: that the victim is tested with rows of another round than the others."""
    stage = Stage(path, stage_config())
    stage.perform(FalseVerdicts())
    tested: dict[int, dict[int, npt.NDArray[np.float32]]] = {}
    for number in (1, VICTIM):
        model = stage.run / "clients" / str(number) / "model.safetensors"
        if model.exists():
            rows = checkpoint.load_arrays(model)[0]["relation"]
            held = held_rows(stage, number, rows)
            tested[number] = dict(zip(held[0].tolist(), held[1], strict=True)) if held is not None else {}
    common = tested.get(1, {}).keys() & tested.get(VICTIM, {}).keys()
    differ = sum(not np.array_equal(tested[1][place], tested[VICTIM][place]) for place in common)
    return Played(stage, differ > 0, {"rows_tested_in_different_versions": differ, "common_rows": len(common)})
