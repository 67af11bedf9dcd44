"""The shared blocks of a run as the server keeps them, and bringing clients what they lack of them."""

from collections.abc import Collection, Iterator
from typing import Any

import numpy.typing as npt

from protocols.alignment.interface import Union
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.registry import AGGREGATIONS
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.messages import LendTable, LentTable, lent_table_bytes
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.twins import Result
from secure_kg.federation.server.gathering import Gathering
from secure_kg.federation.server.shared_table import ReadableTable, SealedTable, SharedTable

_STEP = "shared rows"


class SharedTables:
    """One table per shared block, in the plan's order."""

    def __init__(self, people: Gathering, plan: RunPlan | None, union: Union | None) -> None:
        """`plan`: None as long as there are no tables. `union`: of the aligned block, if there is one."""
        self._people = people
        self._tables = [] if plan is None else [_table(plan, block, union) for block in plan.blocks]
        self._has: dict[str, dict[PartyId, int]] = {table.block.name: {} for table in self._tables}
        """By block: up to which round each client has its rows."""
        self._asked: set[tuple[PartyId, PartyId, RoundId]] = set()
        """Loans: lender, receiver and round."""

    def __iter__(self) -> Iterator[SharedTable]:
        return iter(self._tables)

    @property
    def unions(self) -> list[tuple[Block, Union]]:
        """What is shared, and its rows."""
        return [(table.block, table.union) for table in self._tables]

    @property
    def aligned(self) -> SharedTable | None:
        """Of the block whose rows stand under names."""
        return next((table for table in self._tables if table.block.aligned), None)

    @property
    def any_sealed(self) -> bool:
        """Whether the server cannot read all of them."""
        return any(isinstance(table, SealedTable) for table in self._tables)

    def add(self, round_id: RoundId, results: dict[str, Result]) -> None:
        """Take in a round's sums, by their purpose."""
        for table in self._tables:
            if table.block.purpose in results:
                table.add(round_id, results[table.block.purpose])

    def forget(self, parties: Collection[PartyId]) -> None:
        """Note that dropouts may have missed what was sent to them."""
        for has in self._has.values():
            for party in parties:
                has.pop(party, None)

    def bring(self, parties: Collection[PartyId], round_id: RoundId) -> None:
        """Send those of `parties` that are present what they lack."""
        people = self._people
        if not self._tables:
            return
        with people.transport.phase(round_id, _STEP):
            far_behind = set[PartyId]()
            for table in self._tables:
                far_behind |= self._send_news(table, set(parties) & people.present)
            if far_behind:
                sealed = [table for table in self._tables if isinstance(table, SealedTable)]
                people.conversation.admit(sum(lent_table_bytes(one.union.size, one.block.width) for one in sealed))
            for party in sorted(far_behind):
                self._lend_to(party, people.present - far_behind, round_id)

    def _send_news(self, table: SharedTable, parties: set[PartyId]) -> set[PartyId]:
        """Bring one table up to date; returns those who lack more than is kept."""
        lacking: dict[int, set[PartyId]] = {}
        has = self._has[table.block.name]
        for party in parties:
            lacking.setdefault(has.get(party, 0), set()).add(party)
            has[party] = table.newest
        far_behind = set[PartyId]()
        for since, those in sorted(lacking.items()):
            if not table.reaches_back_to(since):
                far_behind |= those
                continue
            for news in table.news_since(since):
                self._people.tell(those, news)
        return far_behind

    def _lend_to(self, party: PartyId, lenders: Collection[PartyId], round_id: RoundId) -> None:
        """Have the tables encrypted for a client that lacks more than is kept, by one that has applied all of them.

        A client that drops out after a loan may need another one in the same round. Nobody lends twice to the same
        client in a round, since the key would be the same: another one is asked, or the client waits for the next.
        """
        people = self._people
        for lender in sorted(lenders):
            if (lender, party, round_id) in self._asked:
                continue
            self._asked.add((lender, party, round_id))
            people.tell({lender}, LendTable(int(party)))
            if lent := people.gather(LentTable, _STEP, among={lender}):
                people.tell({party}, lent[lender])
                return
        people.dropout({party}, _STEP)  # nobody has what it lacks

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """For a checkpoint: the tables that the server can read."""
        readable = [table for table in self._tables if isinstance(table, ReadableTable)]
        return {name: array for table in readable for name, array in table.state().items()}

    def restore(self, arrays: dict[str, npt.NDArray[Any]], done: int, saved_by: Collection[int]) -> None:
        """Go on from a checkpoint of round `done`, of which the clients `saved_by` have written their parts."""
        for table in self._tables:
            if isinstance(table, ReadableTable):
                table.load_state(arrays)
            if isinstance(table, SealedTable):
                table.forget_before(done)
                self._has[table.block.name] = {PartyId(party): done for party in saved_by}


def _table(plan: RunPlan, block: Block, union: Union | None) -> SharedTable:
    if block.aligned and union is None:
        raise RuntimeError("an aligned block needs an alignment")
    rows = union if block.aligned and union is not None else block.fixed_union
    if AGGREGATIONS[block.aggregation].sealed:
        return SealedTable(block, rows)
    return ReadableTable(block, rows, plan.row_layout(block, rows.size).grid)
