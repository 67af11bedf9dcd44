"""Servers that read a sum when the first client has helped to open it, and by then have told that client otherwise.

The other answers count as late, or as answers in a sum that was abandoned, unless somebody asks what an honest program
would have done. Nobody is called a dropout.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, Literal

from benchmarks.cheating.entry import Played
from benchmarks.cheating.left_undone import READ
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import sums_read, total_of
from benchmarks.cheating.stage import Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Abandon
from protocols.sums.secagg.messages import UnmaskShares
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.messages import SharedRows, TrainRound
from secure_kg.federation.server.server import FederationServer

EXCUSE: Final = "too few clients are left"
Word = Literal["abandoned", "old table"]


class _KeepsOldTable(FederationServer):
    """Reads the sum of rows of a round, and goes on as if there had been none."""

    def _add_up_blocks(self, round_id: RoundId) -> dict[str, twins.Result]:
        results = super()._add_up_blocks(round_id)
        return {} if round_id == READ else results


class _KeepsNoVerdict(FederationServer):
    """Reads the results of a round, and goes on as if there had been none."""

    def _add_up_results(self, round_id: RoundId, part: str, among: Collection[PartyId]) -> twins.Result | None:
        result = super()._add_up_results(round_id, part, among)
        return None if round_id == READ and part == "valid" else result


class FirstOfAll(Cheat):
    """Tells the first client that helps to open a sum something, before the others have answered."""

    def __init__(self, purpose: str, word: Word) -> None:
        super().__init__()
        self.server = _KeepsOldTable if purpose == "rows" else _KeepsNoVerdict
        self._purpose, self._word = purpose, word
        self._table: SharedRows | None = None
        self._told: set[PartyId] = set()

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, SharedRows):
            self._table = message
        goes_on = isinstance(message, TrainRound) and self.round == READ + 1 and to not in self._told
        if goes_on and self._purpose == "rows" and self._table is not None:
            return (self._table, message)  # what clients take for the result
        return (message,)

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        helps = isinstance(message, UnmaskShares) and message.purpose == self._purpose and self.round == READ
        if helps and not self._told and self.server_object is not None:
            self._told.add(sender)
            talk = self.server_object._people.conversation
            if self._word == "abandoned":
                talk.send(sender, Abandon(self._purpose, EXCUSE), RoundId(READ))
            elif self._table is not None:
                talk.send(sender, self._table, RoundId(READ + 1))
        return message


def rows_for_one(path: Path, word: Word) -> Played:
    """Its success: it has read the rows of a round, and those of the next one, which began at the same table."""
    stage = Stage(path, stage_config(rounds=READ + 2, eval_every=READ + 2, checkpoint_every=0))
    sums = sums_read(stage, stage.perform(FirstOfAll("rows", word)))
    read = [total_of(sums, "rows", number) is not None for number in (READ, READ + 1)]
    return Played(stage, all(read), {"sums_that_began_alike": sum(read)})


def results_for_one(path: Path) -> Played:
    """Its success: results that it has read, and of which it tells nobody."""
    stage = Stage(path, stage_config(rounds=READ + 1, eval_every=1))
    read = total_of(sums_read(stage, stage.perform(FirstOfAll("valid", "abandoned"))), "valid", READ) is not None
    return Played(stage, read and stage.last.outcome is not None, {"read_results": read})
