"""Servers that use the right to resume: to repeat rounds, to tell clients different pasts, to make a session vanish."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from msgspec import structs

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat, ServerDied
from benchmarks.cheating.spoils import NOTHING, Spoils, compared, held_rows, sums_read, total_of
from benchmarks.cheating.stage import CLIENTS, SMALL, VICTIM, Session, Stage, stage_config
from benchmarks.cheating.tables import POISON, SameLie
from protocols.alignment.interface import Union
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.secagg.messages import AdvertiseKeys
from secure_kg.federation.plan.messages import TrainRound, Welcome
from secure_kg.federation.server.server import FederationServer
from secure_kg.runs import checkpoint
from secure_kg.runs.alignment_files import load_aligned

REPEATED = 3
"""The round after the checkpoint, which a resumed job computes again."""
FAR_ROUND = 5
"""A round after the second checkpoint: clients that go back to the first one begin it elsewhere."""


class Dies(Cheat):
    """Honest, until it ends itself at the beginning of a round."""

    def __init__(self, in_round: int) -> None:
        super().__init__()
        self._in_round = in_round

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, TrainRound) and self.round == self._in_round:
            raise ServerDied
        return (message,)


class LiesAndDies(SameLie):
    """Poisons the clients' rows, and ends itself in the round after."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, TrainRound) and self.round > self.in_round:
            raise ServerDied
        return super().send(to, message)


class WithoutVictim(Cheat):
    """The repeated round is held without the victim."""

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if sender == VICTIM and self.round == REPEATED and isinstance(message, AdvertiseKeys):
            self.call_dropout(VICTIM)
        return message


class AnotherPast(Cheat):
    """The victim alone is told that it has saved nothing and that fewer rounds are done: its input is another one."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, Welcome) or to != VICTIM:
            return (message,)
        others = [number for number in message.saved_by if number != VICTIM]
        return (structs.replace(message, rounds_done=message.rounds_done - 1, saved_by=others),)


def union_of(stage: Stage) -> Union | None:
    aligned = load_aligned(stage.run / "server")
    return aligned.union if aligned is not None else None


def round_without_victim(path: Path) -> Played:
    stage = Stage(path, stage_config())
    first, second = stage.perform(Dies(4)), stage.perform(WithoutVictim())
    spoils = difference_of_rows(stage, first, second, both=False)
    return Played(stage, spoils.got, spoils.record())


def another_past(path: Path) -> Played:
    stage = Stage(path, stage_config(training=replace(SMALL, local_epochs=5)))
    first, second = stage.perform(Dies(4)), stage.perform(AnotherPast())
    spoils = difference_of_rows(stage, first, second, both=True)
    return Played(stage, spoils.got, spoils.record())


class _SkipsRounds(FederationServer):
    """Goes from the checkpoint before the last straight to the last round that was done."""

    def _round(self, round_id: RoundId) -> None:
        self._people.round = round_id
        if round_id >= FAR_ROUND:
            super()._round(round_id)

    def _look_back(self, round_id: RoundId) -> None:
        if round_id >= FAR_ROUND:
            super()._look_back(round_id)


class SkipsRounds(Cheat):
    server = _SkipsRounds


def another_past_for_all(path: Path) -> Played:
    """Its success: a round is opened again over the same clients, who begin it elsewhere, and gives another sum."""
    stage = Stage(path, stage_config(rounds=FAR_ROUND + 1, eval_every=FAR_ROUND + 1))
    first = stage.perform(Dies(FAR_ROUND + 1))
    checkpoint.mark_complete(stage.run, FAR_ROUND - 3, range(1, CLIENTS + 1))
    second = stage.perform(SkipsRounds())
    then = total_of(sums_read(stage, first), "rows", FAR_ROUND)
    again = total_of(sums_read(stage, second, union_of(stage)), "rows", FAR_ROUND)
    if then is None:
        raise RuntimeError("the first session has no sum of the round that is to be repeated")
    opened = again is not None and again[1] == then[1]
    changed = float(np.abs(then[0].real - again[0].real).max()) if again is not None else None
    return Played(stage, opened and bool(changed), {"opened_again": opened, "largest_difference": changed})


def difference_of_rows(stage: Stage, first: Session, second: Session, both: bool) -> Spoils:
    """Of the two sums of the repeated round, against the victim's rows; `both`: against those of both sessions."""
    union = union_of(stage)
    sums = [
        total_of(sums_read(stage, session, given), "rows", REPEATED)
        for session, given in ((first, None), (second, union))
    ]
    then, again = first.trained(VICTIM, REPEATED), second.trained(VICTIM, REPEATED)
    held = held_rows(stage, VICTIM, then) if then is not None else None
    if sums[0] is None or sums[1] is None or held is None or (both and again is None):
        return NOTHING
    positions, truth = held
    if both and again is not None:
        truth = truth - again
    difference = (sums[0][0].real - sums[1][0].real).reshape(len(sums[0][0].counts), -1)[positions]
    return compared(difference, truth, np.zeros_like(truth))


def poisoned(session: Session) -> int:
    """How many clients have trained from the poison."""
    return sum(
        any(np.count_nonzero(rows == np.float32(POISON)) > rows.size // 2 for rows in trainer.put)
        for trainer in session.trainers.values()
    )


def vanished_session(path: Path) -> Played:
    """A session with poisoned rows, of which the server keeps nothing; the clients' receipts stay where they are."""
    stage = Stage(path, stage_config(rounds=5, checkpoint_every=2))
    first = stage.perform(LiesAndDies(in_round=4))
    for trace in [*stage.run.glob("transcript-*.bin"), stage.run / "checkpoint.json", *stage.run.glob("server/*")]:
        trace.unlink(missing_ok=True)
    second = stage.perform(Cheat())
    took = poisoned(first)
    return Played(stage, took > 0, {"clients_poisoned_in_the_session": took, "run_went_on": second.outcome is not None})


def false_rows_after_a_resume(path: Path) -> Played:
    stage = Stage(path, stage_config(rounds=5))
    stage.perform(Dies(3))
    second = stage.perform(SameLie(in_round=4))
    return Played(stage, poisoned(second) > 0, {"clients_poisoned": poisoned(second)})
