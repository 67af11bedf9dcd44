"""Servers that have clients lend each other the shared table under secret sums, where that is not called for.

Under secret sums no server can write a table, but a client can: it lends what it has applied to one that has missed
sums (`LendTable`, `LentTable`), encrypted for it. A client on the server's side may lend what it likes.
"""

import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import said
from benchmarks.cheating.stage import CLIENTS, COLLUDER, VICTIM, Stage, stage_config, thread_name
from benchmarks.cheating.unions import substituted
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.secagg.messages import MaskedInput
from protocols.sums.totals import SumTotal
from secure_kg.federation.client.own_rows import OwnRows
from secure_kg.federation.plan.messages import LendTable, LentTable, lent_table_bytes
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer

TARGET: Final = 3
"""The round that is attacked: before it, all clients lack the sum of the round before."""
LENDER: Final = 2
"""An honest client."""
OTHERS: Final = tuple(number for number in range(1, CLIENTS + 1) if number not in (COLLUDER, VICTIM))


class LendsToAll(FederationServer):
    """Before the attacked round the colluder lends its table to all but the victim, who gets the true sum."""

    lender: ClassVar[int] = COLLUDER
    receivers: ClassVar[tuple[int, ...]] = OTHERS
    reaches: ClassVar[int | None] = None
    """Who is sent what was lent; None: those for whom it was."""

    def _bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
        people, table, lender = self._people, self._table, PartyId(self.lender)
        if round_id == TARGET and table is not None and table.newest < TARGET:
            people.conversation.admit(lent_table_bytes(table.union.size, table.block.width))
            for receiver in self.receivers:
                people.tell({lender}, LendTable(receiver))
                if lent := people.gather(LentTable, "shared rows", among={lender}):
                    people.tell({PartyId(self.reaches or receiver)}, lent[lender])
        super()._bring(parties, round_id)


class LendsTwice(LendsToAll):
    """An honest client is asked twice for its table for the victim."""

    lender = LENDER
    receivers = (VICTIM, VICTIM)


class LendsToAnother(LendsToAll):
    """An honest client's table for another one reaches the victim."""

    lender = LENDER
    receivers = (CLIENTS,)
    reaches = VICTIM


class Lends(Cheat):
    """Runs one of these servers, and keeps the sums of rows that it adds up for the clients."""

    def __init__(self, server: type[FederationServer]) -> None:
        super().__init__()
        self.server = server
        self.sums: dict[int, SumTotal] = {}
        """By round."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, SumTotal) and message.purpose == "rows":
            self.sums[message.of_round] = message
        return (message,)


@contextmanager
def colluder_lends(value: float, averaged: int = TARGET - 1) -> Iterator[None]:
    """The colluder lends a table full of `value`, said to be averaged in the round `averaged`."""
    honest = OwnRows.lend

    def lend(self: OwnRows) -> bytes:
        if threading.current_thread().name != thread_name(COLLUDER):
            return honest(self)
        rows, rounds = self._applied.rows, self._applied.averaged
        return np.full_like(rounds, averaged).tobytes() + np.full_like(rows, value).tobytes()

    with substituted(OwnRows, "lend", lend):
        yield


def secret_config() -> RunConfig:
    return stage_config(aggregation="secret", rounds=TARGET, eval_every=TARGET, checkpoint_every=TARGET)


def false_tables(path: Path) -> Played:
    """Its success: a sum of the victim's rows and of rows that the others have trained from the colluder's table."""
    stage, cheat = Stage(path, secret_config()), Lends(LendsToAll)
    with colluder_lends(stage.config.clip):
        stage.perform(cheat)
    took, total = sum(_took(stage, number) for number in OTHERS), cheat.sums.get(TARGET)
    opened = total is not None and VICTIM in total.contributors
    return Played(stage, opened and took > 0, {"clients_that_took_the_table": took, "sum_with_the_victim": opened})


def _took(stage: Stage, number: int) -> bool:
    """Whether a client has put the colluder's table into its model."""
    trainer = stage.last.trainers.get(number)
    return trainer is not None and any(bool((rows == np.float32(stage.config.clip)).any()) for rows in trainer.put)


def lent_twice(path: Path) -> Played:
    stage = Stage(path, secret_config())
    stage.perform(Lends(LendsTwice))
    lent = len(said(stage.last, LentTable, sender=LENDER))
    return Played(stage, lent > 1, {"tables_under_one_key": lent})


def lent_to_another(path: Path) -> Played:
    """Its success: the victim gives an input to the sum of that round. Its key for it came ahead, and says nothing."""
    stage = Stage(path, secret_config())
    stage.perform(Lends(LendsToAnother))
    given = [one for one in said(stage.last, MaskedInput, sender=VICTIM) if one.round == TARGET]
    return Played(stage, bool(given), {"inputs_given_by_the_victim_afterwards": len(given)})
