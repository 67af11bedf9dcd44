"""Servers that begin again: with another alignment, in another run, or after a round that no run has."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
from msgspec import structs

import protocols.alignment.psu.union as private_union
from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat, ServerDied
from benchmarks.cheating.sessions import REPEATED, Dies
from benchmarks.cheating.spoils import NOTHING, Spoils, compared, held_rows, refusals, sums_read, total_of
from benchmarks.cheating.stage import VICTIM, Session, Stage, stage_config
from benchmarks.cheating.unions import CollidingPlaces, substituted
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.interface import Total
from secure_kg.federation.plan.messages import TrainRound, Welcome
from secure_kg.federation.plan.run_plan import AGREEING_ROUND
from secure_kg.federation.server.server import FederationServer
from secure_kg.models.shapes import initial_range
from secure_kg.runs import checkpoint
from secure_kg.runs.alignment_files import AlignedRun

NEARLY: Final = 1 + 1e-6
"""By which factor a learning rate is another one, and its rows hardly are."""
_SAME_ROW: Final = 1e-3
"""Rows of two runs that differ by less are taken for the same one."""
_ROUNDING: Final = 1e-3
"""By which share of its range a row may seem to leave it."""
IMPOSSIBLE: Final = 1 << 32
"""A round whose number no frame can have."""


class _ForgetsAlignment(FederationServer):
    """Goes on from its checkpoint, and says that the run has no alignment yet."""

    def _last_session(self) -> tuple[checkpoint.Complete, AlignedRun | None]:
        return super()._last_session()[0], None


class AlignedAgainMidway(CollidingPlaces):
    """The second alignment puts a name of one holder on the position of a name of others."""

    server = _ForgetsAlignment

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, TrainRound) and self.round > REPEATED:
            raise ServerDied
        return (message,)


def aligned_again_midway(path: Path) -> Played:
    """Its success: the row of a lone holder, by which the sums of one round under two alignments differ."""
    stage = Stage(path, stage_config(rounds=6))
    held, alone = _lone_and_held(stage)
    first = stage.perform(Dies(REPEATED + 1))
    cheat = AlignedAgainMidway((held, alone))
    with substituted(private_union, "answer_of", cheat.answer):
        second = stage.perform(cheat)
    spoils = _row_of_lone_holder(stage, first, second, alone)
    return Played(stage, spoils.got, spoils.record())


def _holders(stage: Stage) -> dict[str, set[int]]:
    holders = defaultdict[str, set[int]](set)
    for number, graph in enumerate(stage.graphs, start=1):
        for name in graph.relations:
            holders[name].add(number)
    return holders


def _lone_and_held(stage: Stage) -> tuple[str, str]:
    """A name that enough clients hold for its row to be added up, and one of a single other client."""
    holders, least = _holders(stage), stage.config.least_holders
    pairs = (
        (held, alone)
        for alone in holders
        for held in holders
        if len(holders[alone]) == 1 and len(holders[held]) >= least and not holders[held] & holders[alone]
    )
    return next(pairs)


def _row_of_lone_holder(stage: Stage, first: Session, second: Session, name: str) -> Spoils:
    """Positions are others in the second session: the server looks for the one row that it has not seen before."""
    sums = [total_of(sums_read(stage, session), "rows", REPEATED) for session in (first, second)]
    if sums[0] is None or sums[1] is None:
        return NOTHING
    then, again = (_by_row(total[0]) for total in sums if total is not None)
    gone, new = then - again, again - then
    number = min(_holders(stage)[name])
    trained = second.trained(number, REPEATED)
    if len(gone) != 1 or len(new) != 1 or trained is None:
        return NOTHING
    (old, counted), (changed, _) = gone.pop(), new.pop()
    truth = trained[list(stage.graphs[number - 1].relations).index(name)]
    return compared(np.array(changed) - np.array(old), truth, np.array(old) / counted)


def _by_row(total: Total) -> set[tuple[tuple[float, ...], int]]:
    rows = total.real.reshape(len(total.counts), -1)
    return {(tuple(row.tolist()), int(count)) for row, count in zip(rows, total.counts, strict=True) if count}


class _TooSlow(FederationServer):
    """Calls the victim too slow before a round."""

    in_round: ClassVar[int] = REPEATED

    def _bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
        super()._bring(parties, round_id)
        if round_id == self.in_round:
            self._people.dropout({PartyId(VICTIM)}, "shared rows")


class _TooSlowAtFirst(_TooSlow):
    in_round = AGREEING_ROUND


class WithoutVictimAnew(Cheat):
    server = _TooSlow


class FirstRowsWithoutVictim(Cheat):
    server = _TooSlowAtFirst


def restarted_job(path: Path) -> Played:
    """A job that broke off is started anew in another folder: with the same seed and data all inputs are the same."""
    config = stage_config()
    broken = Stage(path / "broken", config)
    first = broken.perform(Dies(REPEATED + 1))
    stage = Stage(path / "anew", config, earlier=broken)
    second = stage.perform(WithoutVictimAnew())
    spoils = _rows_of_victim(broken, first, stage, second)
    return Played(stage, spoils.got, spoils.record())


def nearly_the_same_job(path: Path) -> Played:
    """A job that came to its end, and once more with another learning rate. In one round the victim is too slow."""
    config = stage_config()
    again = replace(config, training=replace(config.training, lr=config.training.lr * NEARLY))
    done = Stage(path / "done", config)
    first = done.perform(Cheat())
    stage = Stage(path / "again", again, earlier=done)
    second = stage.perform(WithoutVictimAnew())
    spoils = _rows_of_victim(done, first, stage, second)
    return Played(stage, spoils.got, spoils.record())


def _rows_of_victim(broken: Stage, first: Session, stage: Stage, second: Session) -> Spoils:
    """The difference of a round's sums. Which position is which in the other run, the sums of the round before tell."""
    sums_then, sums_anew = sums_read(broken, first), sums_read(stage, second)
    sums = [total_of(sums, "rows", number) for sums in (sums_then, sums_anew) for number in (REPEATED - 1, REPEATED)]
    trained = first.trained(VICTIM, REPEATED)
    held = held_rows(broken, VICTIM, trained) if trained is not None else None
    if held is None or any(one is None for one in sums):
        return NOTHING
    before, then, before_anew, anew = (one[0] for one in sums if one is not None)
    distances = np.abs(_rows(before)[held[0], None] - _rows(before_anew)[None]).max(axis=-1)
    pairs = [
        (index, place, nearest)
        for index, (place, nearest) in enumerate(zip(held[0].tolist(), distances.argmin(axis=1).tolist(), strict=True))
        if before.counts[place] and distances[index, nearest] < _SAME_ROW and anew.counts[nearest]
    ]
    if not pairs:
        return NOTHING
    own, places, places_anew = (list(numbers) for numbers in zip(*pairs, strict=True))
    total = _rows(then)[places]
    return compared(total - _rows(anew)[places_anew], held[1][own], total / np.maximum(then.counts[places, None], 1))


def wider_first_rows(path: Path) -> Played:
    """A job that came to its end, and once more with rows of one number more. First rows are sent without the victim.

    First rows follow from graph, seed and name: those of the second run begin with the numbers of the first, to scale.
    """
    config = stage_config()
    wider = replace(config, training=replace(config.training, dim=config.training.dim + 1))
    done = Stage(path / "done", config)
    first = done.perform(Cheat())
    stage = Stage(path / "wider", wider, earlier=done)
    second = stage.perform(FirstRowsWithoutVictim())
    spoils = _first_rows_of_victim(done, first, stage, second)
    return Played(stage, spoils.got, spoils.record())


def _first_rows_of_victim(done: Stage, first: Session, stage: Stage, second: Session) -> Spoils:
    """The difference of first sums. Two positions are the same row if what is left of them could be a first row."""
    with_it = total_of(sums_read(done, first), "rows", AGREEING_ROUND)
    without = total_of(sums_read(stage, second), "rows", AGREEING_ROUND)
    put = first.trainers[VICTIM].put
    held = held_rows(done, VICTIM, put[0]) if put else None
    if with_it is None or without is None or held is None:
        return NOTHING
    span, span_anew = (initial_range(one.config.training.margin, one.config.training.dim) for one in (done, stage))
    total, counts = _rows(with_it[0])[held[0]], with_it[0].counts[held[0]]
    anew, counts_anew = _rows(without[0])[:, : total.shape[1]] * (span / span_anew), without[0].counts
    left = total[:, None] - anew[None]
    fits = (np.abs(left).max(axis=-1) <= span * (1 + _ROUNDING)) & (counts_anew > 0)
    fits &= counts[:, None] - counts_anew[None] == 1
    one = fits.sum(axis=1) == 1
    found = left[one, fits[one].argmax(axis=1)]
    return compared(found, held[1][one], total[one] / counts[one, None])


def _rows(total: Total) -> npt.NDArray[np.float64]:
    return total.real.reshape(len(total.counts), -1)


class ImpossibleGreeting(Cheat):
    """All are told that so many rounds are done that no frame of theirs could name the next one."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, Welcome):
            return (message,)
        impossible = structs.replace(message)
        structs.force_setattr(impossible, "rounds_done", IMPOSSIBLE)  # whatever the program thinks of it
        return (impossible,)


def impossible_greeting(path: Path) -> Played:
    """Its success: clients that end without a word."""
    stage = Stage(path, stage_config(rounds=2, deadline=5.0))
    session = stage.perform(ImpossibleGreeting())
    wordless = session.clients.keys() - {int(number) for number in refusals(stage)} | session.crashed.keys()
    return Played(stage, bool(wordless), {"clients_that_ended_without_a_word": sorted(wordless)})
