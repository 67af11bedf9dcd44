"""Servers that tamper with the shared rows they send: to all but one, in two versions, in another order, or alike."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import structs

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import NOTHING, Spoils, compared, held_rows, sums_read, total_of
from benchmarks.cheating.stage import CLIENTS, VICTIM, Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId
from protocols.sums.secagg.messages import AdvertiseKeys, MaskedInput
from secure_kg.federation.plan.messages import SharedRows
from secure_kg.federation.server.shared_table import ReadableTable
from secure_kg.learning.config import TrainingConfig

BEYOND: Final = 1000.0
POISON: Final = 2.5


class Pretence(Cheat):
    """A cheat whose own program must believe what it tells."""

    def pretend(self, told: SharedRows) -> None:
        """As if the server's table were this: it reckons its own part of a sum from the table."""
        table = self.server_object._table if self.server_object is not None else None
        if isinstance(table, ReadableTable):
            table.rows, table.averaged = told.rows.copy(), told.averaged.copy()


class TwoTables(Pretence):
    """Everybody but the victim gets a false table that is marked newest, and then the true one, whose digest counts.

    The others' rows are then constants as far as the server is concerned, and what is left of the sum is the victim's.
    """

    target = 3
    """The round whose sum is attacked. In the first nobody trains, and its means are scaled when they are taken."""

    def __init__(self, fill: float, rounds_ahead: int = 0) -> None:
        """`fill`: every value of the false table. `rounds_ahead`: how far in the future it is said to be averaged."""
        super().__init__()
        self.fill, self._ahead, self._inputs = fill, rounds_ahead, 0
        self.true: SharedRows | None = None
        """What the victim was sent last before the round."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, SharedRows) or self.round != self.target or self._trained():
            return (message,)
        self.true = message
        return (message,) if to == VICTIM else (self.false(message), message)

    def _trained(self) -> bool:
        """Whether the attacked sum is over: what is sent for its evaluation is another matter."""
        return self._inputs >= CLIENTS

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if self.round == self.target and isinstance(message, MaskedInput) and message.purpose == "rows":
            self._inputs += 1
        return message

    def false(self, true: SharedRows) -> SharedRows:
        newest = int(true.averaged.max()) + self._ahead
        averaged = np.full_like(true.averaged, newest)
        return structs.replace(true, rows=np.full_like(true.rows, self.fill), averaged=averaged)


class InsideTheClip(TwoTables):
    """Means are sent as averaged in no round, so that nobody takes them: clients keep rows of their own.

    All but the victim then get a table inside the clip. What they add to it in one round of training is little, beside
    what the victim's rows and the others' differ by.
    """

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, SharedRows) or not 1 < self.round <= self.target or self._trained():
            return (message,)
        nobody = structs.replace(message, averaged=np.zeros_like(message.averaged))
        self.pretend(nobody)
        if self.round < self.target:
            return (nobody,)
        self.true = nobody
        newest = np.full_like(message.averaged, self.target - 1)
        false = structs.replace(message, rows=np.full_like(message.rows, self.fill), averaged=newest)
        return (nobody,) if to == VICTIM else (false, nobody)


class TablesInTurn(TwoTables):
    """The false table in one round, in which the victim is called a dropout, and the true one again in the next."""

    target = 4

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if sender == VICTIM and self.round == self.target - 1 and isinstance(message, AdvertiseKeys):
            self.call_dropout(VICTIM)
        return super().receive(sender, message)

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, SharedRows) or self._trained():
            return (message,)
        if self.round == self.target - 1:
            self.true, false = message, self.false(message)
            self.pretend(false)
            return (message,) if to == VICTIM else (false,)
        if self.round == self.target and self.true is not None:
            self.pretend(self.true)
            return (self.true,)
        return (message,)


class DifferentTables(TwoTables):
    """The victim gets the true table, all others one with other means; nobody gets a second one."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, SharedRows) or self.round != self.target or self._trained():
            return (message,)
        self.true = message
        return (message if to == VICTIM else newest_filled(message, self.fill),)


def newest_filled(table: SharedRows, fill: float) -> SharedRows:
    """False means, of nothing but the rows that were averaged last: clients notice when others change."""
    rows = table.rows.copy()
    rows[table.averaged == table.averaged.max()] = fill
    return structs.replace(table, rows=rows)


class SameLie(Pretence):
    """A poisoned table, the same for everybody."""

    def __init__(self, in_round: int = 3) -> None:
        super().__init__()
        self.in_round = in_round
        self.true: SharedRows | None = None

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, SharedRows) and self.round == self.in_round:
            self.true = self.true if self.true is not None else message
            poisoned = newest_filled(message, POISON)
            self.pretend(poisoned)
            return (poisoned,)
        return (message,)


def config_of_tables(**changes: Any) -> Any:
    return stage_config(**{"rounds": 4, "eval_every": 4, "checkpoint_every": 4, **changes})


def two_tables(path: Path, cheat: TwoTables, lr: float = 0.01) -> Played:
    config = config_of_tables(training=replace(stage_config().training, lr=lr))
    stage = Stage(path, config)
    stage.perform(cheat)
    spoils = rows_of_victim(stage, cheat, config.clip, config.training)
    return Played(stage, spoils.got, spoils.record())


def rows_of_victim(stage: Stage, cheat: TwoTables, clip: float, training: TrainingConfig) -> Spoils:
    """The sum less what the others must have given, against what the victim has given."""
    read = total_of(sums_read(stage, stage.last), "rows", cheat.target)
    trained = stage.last.trained(VICTIM, cheat.target)
    mine = held_rows(stage, VICTIM, trained) if trained is not None else None
    if read is None or mine is None or cheat.true is None:
        return NOTHING
    total, contributors = read
    others, (positions, truth) = len(contributors) - 1, mine
    all_hold = total.counts[positions] == len(contributors)
    if VICTIM not in contributors or len(contributors) < CLIENTS - 1 or not all_hold.any():
        return NOTHING
    sums = total.real.reshape(len(total.counts), -1)[positions][all_hold]
    # A table inside the clip is trained: one step of Adam takes the others' rows inwards by the learning rate.
    given = clip if cheat.fill > clip else cheat.fill - training.lr
    computed = sums - others * given
    guess = cheat.true.rows[positions][all_hold]
    return compared(computed, np.clip(truth[all_hold], -clip, clip), guess)


def same_lie(path: Path) -> Played:
    """Its success: that the clients train from the poison."""
    stage = Stage(path, config_of_tables())
    stage.perform(SameLie())
    poisoned = sum(
        any(np.count_nonzero(rows == np.float32(POISON)) > rows.size // 2 for rows in trainer.put)
        for trainer in stage.last.trainers.values()
    )
    return Played(stage, poisoned == CLIENTS, {"clients_that_took_the_poison": poisoned})
