"""Servers that say too early that something is over: a sum before it begins, or the run for the victim alone."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.cheating.entry import Played
from benchmarks.cheating.interpolating import LAST_TABLE, WITHOUT, config_of_rounds, interpolated_dropout
from benchmarks.cheating.left_undone import READ
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import sums_read, total_of
from benchmarks.cheating.stage import VICTIM, Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Abandon
from protocols.sums.secagg.messages import AdvertiseKeys
from protocols.transport.tap import Tap, TranscriptRecord, read_transcript
from secure_kg.audit.view.read import Observation, Recording
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.messages import Evaluate, Finish, TrainRound, Verdict
from secure_kg.federation.server.server import FederationServer
from secure_kg.runs.recording import seal_record
from secure_kg.runs.run_folder import read_json, write_json

_EXCUSE: Final = "too few clients are left"
_LAST: Final = READ + 1
_FLOOD: Final = 1000


class _AbandonsAfterwards(FederationServer):
    """Opens all sums of rows, calls them abandoned, and holds one round without the victim.

    It has holders counted in every round: clients then wait for something else while it says so.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._standing.is_due = lambda task, present: True  # type: ignore[method-assign]

    def _bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
        super()._bring(parties, round_id)
        if round_id == WITHOUT:
            self._people.dropout({PartyId(VICTIM)}, "shared rows")

    def _add_up_blocks(self, round_id: RoundId) -> dict[str, twins.Result]:
        results = super()._add_up_blocks(round_id)
        if not LAST_TABLE < round_id < self._config.rounds:
            return results
        for purpose in results:
            self._people.tell(self._plan.participants(round_id), Abandon(purpose, _EXCUSE))
        return {}


class Beforehand(Cheat):
    """Says so as soon as clients are to train for them, too."""

    server = _AbandonsAfterwards

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        over = isinstance(message, TrainRound) and self.round > LAST_TABLE
        return (message, Abandon("rows", _EXCUSE)) if over else (message,)


class _ExcusesByNextRound(FederationServer):
    """Keeps the tables, and tells clients of the sum that is to come that it was abandoned."""

    def _bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
        if round_id <= LAST_TABLE + 1:
            super()._bring(parties, round_id)
        if round_id == WITHOUT:
            self._people.dropout({PartyId(VICTIM)}, "shared rows")
        if round_id > LAST_TABLE:
            self._people.tell(self._people.present, Abandon("rows", _EXCUSE))

    def _add_up_blocks(self, round_id: RoundId) -> dict[str, twins.Result]:
        results = super()._add_up_blocks(round_id)
        return results if round_id <= LAST_TABLE else {}


class ExcusedByNextRound(Cheat):
    server = _ExcusesByNextRound


class AbandonsAfterwards(Cheat):
    server = _AbandonsAfterwards


def abandoned_beforehand(path: Path) -> Played:
    return _interpolated(path, Beforehand())


def excused_by_next_round(path: Path) -> Played:
    return _interpolated(path, ExcusedByNextRound())


def reordered(path: Path) -> Played:
    """In the record, clients begin the next round before the sum of this one is called abandoned."""
    played = _interpolated(path, AbandonsAfterwards())
    assert isinstance(played.stage, Stage)
    transcript = next(played.stage.run.glob("transcript-*.bin"))
    records = list(read_transcript(transcript))
    order = list(_reordered(list(Recording(transcript))))
    _write_anew(played.stage, transcript, [records[index] for index in order])
    return Played(played.stage, played.got, {**played.evidence, "moved": order != sorted(order)})


def _reordered(seen: list[Observation]) -> Iterator[int]:
    """Before each word of an abandoned sum: what clients have sent up to their first keys of the next round."""
    moved = set[int]()
    for index, one in enumerate(seen):
        if index in moved:
            continue
        if isinstance(one.message, Abandon) and one.direction == "sent":
            for last in range(index, len(seen)):
                keys = seen[last]
                if last in moved or not isinstance(keys.message, AdvertiseKeys) or keys.round != one.round + 1:
                    continue
                for number in range(index, last + 1):
                    if number not in moved and (seen[number].direction, seen[number].peer) == ("received", keys.peer):
                        moved.add(number)
                        yield number
        yield index


def _write_anew(stage: Stage, transcript: Path, records: list[TranscriptRecord]) -> None:
    """With a fresh chain, and a summary that fits it."""
    transcript.unlink()
    tap = Tap(transcript)
    for record in records:
        tap.write(record.direction, record.peer, record.round, record.phase, record.frame)
    summary = stage.run / "summary.json"
    if summary.exists():
        write_json(summary, {**read_json(summary), "transcript": seal_record(tap, tap.seal()).to_json()})
    tap.close()


def _interpolated(path: Path, cheat: Cheat) -> Played:
    stage = Stage(path, config_of_rounds())
    session = stage.perform(cheat)
    spoils = interpolated_dropout(stage, session, WITHOUT, LAST_TABLE)
    return Played(stage, spoils.got, asdict(spoils))


class _SendsHomeEarly(FederationServer):
    """Tells the victim that the run is over, and evaluates the others once more."""

    early = False

    def _evaluate(self, round_id: RoundId) -> None:
        if round_id == _LAST:
            self._bring(self._clients, round_id)
            self._people.round = self._plan.results_round(round_id)
            self._people.tell({PartyId(VICTIM)}, Finish(self._stopping.best_round, wanted=False))
            self._people.round, self.early = round_id, True
        super()._evaluate(round_id)

    def _add_up_results(self, round_id: RoundId, part: str, among: Collection[PartyId]) -> twins.Result | None:
        return super()._add_up_results(round_id, part, set(among) - {PartyId(VICTIM)} if self.early else among)


class SentHomeEarly(Cheat):
    server = _SendsHomeEarly

    def __init__(self) -> None:
        super().__init__()
        self._told = False

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if to == VICTIM and self._told and isinstance(message, Evaluate | Verdict | Finish):
            return ()
        self._told = self._told or (to == VICTIM and isinstance(message, Finish))
        return (message,)


def sent_home_early(path: Path) -> Played:
    """Its success: the number of the victim's validation triples, by which two evaluations differ."""
    stage = Stage(path, stage_config(rounds=_LAST, eval_every=1, checkpoint_every=0))
    session = stage.perform(SentHomeEarly())
    sums = sums_read(stage, session)
    with_it, without = total_of(sums, "valid", READ), total_of(sums, "valid", _LAST)
    truth = len(stage.graphs[VICTIM - 1].valid)
    computed = int(with_it[0].counts[0] - without[0].counts[0]) if with_it is not None and without is not None else None
    return Played(stage, computed == truth, {"computed": computed, "validation_triples_of_the_victim": truth})


class _SendsHomeMidway(FederationServer):
    """Tells the victim that the run is over, holds all later rounds without it, and never calls it a dropout."""

    def _round(self, round_id: RoundId) -> None:
        if round_id == READ:
            self._bring(self._clients, round_id)
            self._people.round = round_id
            self._people.tell({PartyId(VICTIM)}, Finish(self._stopping.best_round, wanted=False))
            self._people.attendance.present.discard(PartyId(VICTIM))
        super()._round(round_id)


class SentHomeMidway(Cheat):
    server = _SendsHomeMidway


def sent_home_midway(path: Path) -> Played:
    """Its success: a sum of rows without the victim, after one with it."""
    stage = Stage(path, stage_config(rounds=_LAST, eval_every=1, checkpoint_every=0))
    session = stage.perform(SentHomeMidway())
    rows = {one.round: VICTIM in one.contributors for one in sums_read(stage, session) if one.purpose == "rows"}
    with_it, without = (sorted(number for number, there in rows.items() if there is wanted) for wanted in (True, False))
    return Played(stage, bool(with_it and without), {"rounds_with_it": with_it, "rounds_without_it": without})


class _Floods(FederationServer):
    """Tells the victim of ever later sums that they were abandoned."""

    def _bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
        super()._bring(parties, round_id)
        if round_id == LAST_TABLE:
            for number in range(round_id + 1, round_id + 1 + _FLOOD):
                self._people.round = RoundId(number)
                self._people.tell({PartyId(VICTIM)}, Abandon("rows", _EXCUSE))
            self._people.round = round_id


class Floods(Cheat):
    server = _Floods


def flood_of_ends(path: Path) -> Played:
    """Its success: that the victim goes on, and so has taken all of it."""
    stage = Stage(path, stage_config())
    session = stage.perform(Floods())
    return Played(stage, VICTIM not in session.refused, {"told": _FLOOD, "reason": session.refused.get(VICTIM)})
