"""Servers that tamper with totals which only clients can read: secret sums of rows, and counts of holders."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import structs

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import NOTHING, Spoils, compared, held_rows, sums_read
from benchmarks.cheating.stage import CLIENTS, COLLUDER, VICTIM, Stage, stage_config
from protocols.alignment.interface import Union
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.session.group_key import GroupKey
from protocols.sums.interface import Contribution, SumLayout, Total
from protocols.sums.secret.aggregation import open_total, secret_terms
from protocols.sums.secret.check import checked_numbers, possible_entries, with_checks
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.row_sum import mean_rows
from secure_kg.federation.plan.run_plan import RunPlan

TARGET: Final = 3


def group_key_of(stage: Stage, number: int) -> GroupKey:
    """A client on the server's side tells it the key that all clients have."""
    keys = stage.last.clients[number].keys
    if keys is None:
        raise RuntimeError("no session, so there is no key")
    return keys.key


def row_terms(stage: Stage, round_id: int, length: int) -> SumTerms[SumLayout]:
    """The sum of rows of a round, as the server reckons it: its length tells the size of the union."""
    config, width = stage.config, stage.config.training.dim
    union_size = next(entries // (width + 1) for entries in possible_entries(length) if entries % (width + 1) == 0)
    plan, block = RunPlan(config, CLIENTS), Block("rows", width, config.aggregation)
    return plan.rows(round_id, block, Union(union_size, b""))


def read_by(key: GroupKey, terms: SumTerms[SumLayout], total: SumTotal) -> Total:
    vectors = secret_terms(terms)
    return terms.layout.decode(checked_numbers(key, vectors, open_total(key, vectors, total), terms.layout.entries))


class TwoTotals(Cheat):
    """Everybody but the victim gets a false total of the round before and then the true one, whose digest counts.

    With the group key the server puts into the false total what it likes under the masks, checks included.
    """

    def __init__(self, counted: int) -> None:
        """`counted`: how many clients the false total is said to be of. If it is one, its means are beyond the clip."""
        super().__init__()
        self.counted = counted
        self.true: SumTotal | None = None
        self.attacked: SumTotal | None = None
        """The sum the server was after, as it adds it up for the clients."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, SumTotal) or message.purpose != "rows" or self.round != TARGET or self.stage is None:
            return (message,)
        if message.of_round != TARGET - 1:
            self.attacked = message if message.of_round == TARGET else self.attacked
            return (message,)
        self.true = message
        return (message,) if to == VICTIM else (self._false(message, self.stage), message)

    def _false(self, true: SumTotal, stage: Stage) -> SumTotal:
        terms, key = row_terms(stage, true.of_round, len(true.vector)), group_key_of(stage, COLLUDER)
        vectors = secret_terms(terms)
        masks = true.vector - open_total(key, vectors, true)
        return structs.replace(true, vector=masks + with_checks(key, vectors, of_most(terms.layout, self.counted)))


def of_most(layout: SumLayout, counted: int) -> npt.NDArray[np.unsignedinteger]:
    """A sum of as much as all clients may give, said to be that of `counted` clients."""
    most, total = np.full(layout.real_entries, layout.bound, dtype=np.float32), layout.group.zeros(layout.entries)
    for number in range(CLIENTS):
        counts = np.full(layout.count_entries, number < counted, dtype=np.int64)
        total += layout.encode(Contribution(most, counts)).vector
    return total


def two_totals(path: Path, counted: int = 1) -> Played:
    config = stage_config(aggregation="secret", rounds=3, eval_every=3, checkpoint_every=3)
    stage, cheat = Stage(path, config), TwoTotals(counted)
    stage.perform(cheat)
    spoils = _rows_of_victim(stage, cheat)
    return Played(stage, spoils.got, spoils.record())


def _rows_of_victim(stage: Stage, cheat: TwoTotals) -> Spoils:
    trained = stage.last.trained(VICTIM, TARGET)
    mine = held_rows(stage, VICTIM, trained) if trained is not None else None
    if mine is None or cheat.true is None or cheat.attacked is None:
        return NOTHING
    key, positions, truth = group_key_of(stage, COLLUDER), mine[0], mine[1]
    total = read_by(key, row_terms(stage, TARGET, len(cheat.attacked.vector)), cheat.attacked)
    before = read_by(key, row_terms(stage, TARGET - 1, len(cheat.true.vector)), cheat.true)
    all_hold = total.counts[positions] == CLIENTS
    rows = total.real.reshape(len(total.counts), -1)[positions][all_hold]
    # Rows inside the clip are trained: one step of Adam takes them inwards by the learning rate.
    given = stage.config.clip - (stage.config.training.lr if cheat.counted > 1 else 0.0)
    computed = rows - (CLIENTS - 1) * given
    return compared(computed, truth[all_hold], mean_rows(before)[positions][all_hold])


class FalseHolders(Cheat):
    """The total of the holders' count is changed in every row, so that a lone holder should believe in others."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, SumTotal) or message.purpose != HOLDERS:
            return (message,)
        changed = message.vector.copy()
        changed[:-1] = (changed[:-1].astype(np.uint64) + np.uint64(1)) % np.uint64(2**61 - 1)
        return (structs.replace(message, vector=changed),)


def false_holders(path: Path) -> Played:
    """Relations are divided without overlap: every row has one holder, and none may be added up."""
    stage = Stage(path, stage_config(by="relations", rounds=2, eval_every=2, min_holders=2))
    stage.perform(FalseHolders())
    lone = lone_rows(stage)
    return Played(stage, lone > 0, {"rows_of_one_holder_in_a_sum": lone})


def lone_rows(stage: Stage) -> int:
    """Rows of the sums that the server could read, to which somebody has contributed although all have one holder."""
    counts = 0
    for session in stage.sessions:
        for one in sums_read(stage, session):
            if one.purpose == "rows" and one.layout is not None and one.vector is not None:
                counts = max(counts, int((one.layout.decode(one.vector).counts > 0).sum()))
    return counts
