"""Servers that read the victim's update between the sums before and after a round without it.

`secure_kg.attacks.interpolation` has the computation. It works best if every round begins at the same rows, and a
server that keeps the tables to itself would have that.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import NEAR, held_rows, sums_read, total_of
from benchmarks.cheating.stage import VICTIM, Rows, Session, Stage, stage_config
from protocols.foundation.identifiers import PartyId, RoundId
from secure_kg.attacks.interpolation import WEIGHTS, LeftOver, Values, left_over, means
from secure_kg.attacks.single_holder import OpenedRows
from secure_kg.attacks.static_perturbation import explained
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer

WITHOUT: Final = 5
"""The round that is held without the victim."""
LAST_TABLE: Final = 2
"""The last round whose means anybody is sent, where they are kept."""
_REACH: Final = len(WEIGHTS) // 2


@dataclass(frozen=True, slots=True)
class Interpolated:
    """What was found of an update, against the truth. Errors are root mean squares."""

    client: int | None = None
    error: float | None = None
    error_of_guessing: float | None = None
    """Of the mean update of all clients."""
    explained: float = 0.0
    """The squared correlation of how the update differs from the mean one with what was found of that."""
    entries: int = 0

    @property
    def got(self) -> bool:
        return self.error is not None and self.error <= NEAR * (self.error_of_guessing or 0.0)


class TooSlowOnce(Cheat):
    """Calls the victim too slow in one round, and is honest in all else."""

    def __init__(self, without: int = WITHOUT, last_table: int | None = None) -> None:
        """`last_table`: the last round whose means it sends to anybody; None: all are sent."""
        super().__init__()

        class Server(FederationServer):
            def _bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
                if last_table is None or round_id <= last_table + 1:
                    super()._bring(parties, round_id)
                if round_id == without:
                    self._people.dropout({PartyId(VICTIM)}, "shared rows")

        self.server = Server


def interpolated_dropout(stage: Stage, session: Session, without: int, last_table: int | None = None) -> Interpolated:
    """The victim's update around the round `without`, from the sums, against what its trainer says.

    In that round the victim has trained nothing: the truth is interpolated from its updates, too.
    """
    rounds = range(without - _REACH, without + _REACH + 1)
    sums = sums_read(stage, session)
    opened = {number: _opened_rows(sums, number) for number in range(rounds[0] - 1, rounds[-1] + 1)}
    begins = {number: number - 1 if last_table is None else min(number - 1, last_table) for number in rounds}
    for number in begins.values():
        opened.setdefault(number, _opened_rows(sums, number))
    known = {number: one for number, one in opened.items() if one is not None}
    trained = {number: session.trained(VICTIM, number) for number in rounds if number != without}
    if len(known) < len(opened) or any(rows is None for rows in trained.values()):
        return Interpolated()
    bases = [means(known[begins[number]]) for number in rounds]
    found = left_over([known[number] for number in rounds], bases)
    return _judged(stage, found, {n: rows for n, rows in trained.items() if rows is not None}, rounds, bases)


def _judged(
    stage: Stage,
    found: LeftOver | None,
    trained: dict[int, Rows],
    rounds: range,
    bases: list[Values],
) -> Interpolated:
    held = held_rows(stage, VICTIM, next(iter(trained.values())))
    if found is None or held is None:
        return Interpolated()
    own = {position: row for row, position in enumerate(held[0].tolist())}
    mine = np.array([own[position] for position in found.positions.tolist()], dtype=np.int64)
    truth = np.zeros_like(found.update)
    for weight, number, base in zip(WEIGHTS, rounds, bases, strict=True):
        if number in trained:
            truth += weight * (trained[number][mine] - base[found.positions])
    error, guess = (float(np.sqrt(np.square(one - truth).mean())) for one in (found.update, found.mean))
    right = explained(truth - found.mean, found.deviation)
    return Interpolated(found.client, error, guess, right, truth.size)


def _opened_rows(sums: list[OpenedSum], number: int) -> OpenedRows | None:
    if (read := total_of(sums, "rows", number)) is None:
        return None
    total, contributors = read
    return OpenedRows(contributors, total.real.reshape(len(total.counts), -1), total.counts)


def config_of_rounds() -> RunConfig:
    rounds = WITHOUT + _REACH + 1
    return stage_config(rounds=rounds, eval_every=rounds, checkpoint_every=0)


def one_dropout(path: Path) -> Played:
    """All tables are sent as they are."""
    return _played(path, None)


def withheld_tables(path: Path) -> Played:
    """Nobody is sent a table after the second round's."""
    return _played(path, LAST_TABLE)


def _played(path: Path, last_table: int | None) -> Played:
    stage = Stage(path, config_of_rounds())
    session = stage.perform(TooSlowOnce(WITHOUT, last_table))
    spoils = interpolated_dropout(stage, session, WITHOUT, last_table)
    return Played(stage, spoils.got, asdict(spoils))
