"""Servers that leave undone what they owe all clients alike, or one that is there: results, tables, requests.

Nobody is called a dropout for it, except where a second sum without the victim is to be compared with the first.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from benchmarks.cheating.absences import NeverTold
from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import NOTHING, Spoils, compared, held_rows, sums_read, total_of
from benchmarks.cheating.stage import VICTIM, Session, Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Abandon
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.messages import Evaluate, TrainRound
from secure_kg.federation.server.server import FederationServer

READ: Final = 3
"""The round whose sum is opened and kept."""
EXCUSE: Final = "the shares of the self mask of client 4 are false"


class _OpensAndAbandons(FederationServer):
    """Opens the sum of a round, and then says that it was abandoned."""

    def _add_up_blocks(self, round_id: RoundId) -> dict[str, twins.Result]:
        results = super()._add_up_blocks(round_id)
        if round_id != READ:
            return results
        for purpose in results:
            self._people.tell(self._plan.participants(round_id), Abandon(purpose, EXCUSE))
        return {}


class OpensAndAbandons(NeverTold):
    """The next round begins at the same rows, and is held without the victim."""

    server = _OpensAndAbandons


def opened_and_abandoned(path: Path) -> Played:
    stage = Stage(path, stage_config(rounds=READ + 2, eval_every=READ + 2, checkpoint_every=0))
    session = stage.perform(OpensAndAbandons(TrainRound, READ + 1))
    spoils = _rows_of_victim(stage, session)
    read = total_of(sums_read(stage, session), "rows", READ) is not None
    return Played(stage, spoils.got, {**spoils.record(), "read_what_it_calls_abandoned": read})


def _rows_of_victim(stage: Stage, session: Session) -> Spoils:
    """The difference of two sums that began at the same rows, against those of the victim in the first."""
    sums = sums_read(stage, session)
    with_it, without = total_of(sums, "rows", READ), total_of(sums, "rows", READ + 1)
    trained = session.trained(VICTIM, READ)
    held = held_rows(stage, VICTIM, trained) if trained is not None else None
    if with_it is None or without is None or held is None or VICTIM in without[1]:
        return NOTHING
    positions, truth = held
    totals = [total.real.reshape(len(total.counts), -1)[positions] for total in (with_it[0], without[0])]
    counts = with_it[0].counts[positions]
    added = counts - without[0].counts[positions] == 1
    means = totals[0][added] / counts[added, None]
    return compared((totals[0] - totals[1])[added], truth[added], means)


class _KeepsTables(FederationServer):
    def _bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
        if round_id < READ:
            super()._bring(parties, round_id)


class KeepsTables(Cheat):
    """Nobody is sent a table any more from some round on."""

    server = _KeepsTables


def kept_tables(path: Path, aggregation: str = "secagg") -> Played:
    """Its success: a sum of rows that were trained from where the round before had begun."""
    stage = Stage(path, stage_config(aggregation=aggregation))
    session = stage.perform(KeepsTables())
    opened = [one for one in sums_read(stage, session) if one.purpose == "rows" and one.round > READ]
    return Played(stage, bool(opened), {"sums_opened_without_the_table": len(opened)})


class _PassesOver(FederationServer):
    """Does not wait for what the victim was not asked for."""

    def _add_up_results(self, round_id: RoundId, part: str, among: Collection[PartyId]) -> twins.Result | None:
        if round_id == READ:
            among = set(among) - {PartyId(VICTIM)}
        return super()._add_up_results(round_id, part, among)


class PassesOver(Cheat):
    """The victim is not asked for the results of a round, and goes on with the others."""

    server = _PassesOver

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        asked = isinstance(message, Evaluate) and self.round == READ
        return () if asked and to == VICTIM else (message,)


def passed_over(path: Path) -> Played:
    """Its success: the number of the victim's validation triples, by which two evaluations differ."""
    stage = Stage(path, stage_config(rounds=READ + 1, eval_every=1))
    session = stage.perform(PassesOver())
    sums = sums_read(stage, session)
    with_it, without = total_of(sums, "valid", READ + 1), total_of(sums, "valid", READ)
    truth = len(stage.graphs[VICTIM - 1].valid)
    computed = int(with_it[0].counts[0] - without[0].counts[0]) if with_it is not None and without is not None else None
    return Played(stage, computed == truth, {"computed": computed, "validation_triples_of_the_victim": truth})
