"""Bytes that one client sends up in a round, an evaluation and the set-up of a federation, in closed form.

`protocols.costs.byte_counts` has the counts of each protocol; here they are put together as a run does it, per step and
under the names by which the transport counts. Secret sums send as many bytes up as masked ones, and a verdict more in
an evaluation. `docs/overhead.md` explains the figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from protocols.costs import byte_counts
from protocols.costs.byte_counts import MaskedSum
from protocols.foundation import frame_sizes
from protocols.foundation.identifiers import PartyId
from protocols.registry import AGGREGATIONS
from protocols.sums.interface import SumLayout
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig


@dataclass(frozen=True, slots=True)
class Uploads:
    """What client `party` of `clients` sends; everybody is everybody's neighbour and nobody drops out."""

    aggregation: str
    clients: int
    party: int
    rows: int
    """Of the union."""
    width: int
    """Of a shared row."""
    ring_bits: int = 32
    min_holders: int | None = None
    """None: that of a run without the option."""
    signed: bool = False

    @property
    def neighbours(self) -> frozenset[PartyId]:
        return frozenset(PartyId(number) for number in range(1, self.clients + 1) if number != self.party)

    @property
    def least_holders(self) -> int:
        return self._plan.settings.least_holders

    @property
    def _plan(self) -> RunPlan:
        settings = RunConfig(
            aggregation=self.aggregation, clients=self.clients, min_holders=self.min_holders, ring_bits=self.ring_bits
        )
        return RunPlan(settings, self.clients)

    def round(self, *, counting: bool = True) -> dict[str, int]:
        """A training round: the count of holders, unless any number of them will do or the last count stands, and the
        sum of rows.
        """
        layout = self._plan.row_layout(Block("rows", self.width, self.aggregation), self.rows)
        counted = self._count() if counting and self.least_holders > 1 else {}
        return counted | self._sum("rows", layout)

    def evaluation(self, number: int) -> dict[str, int]:
        """The `number`-th of the run, from one: a sum of metrics."""
        judged = {"verdict": frame_sizes.frame_bytes(1, frame_sizes.number_bytes(number))}
        return self.metrics("valid") | (judged if AGGREGATIONS[self.aggregation].sealed else {})

    def metrics(self, purpose: str) -> dict[str, int]:
        return self._sum(purpose, self._plan.result_layout())

    def setup(self, names: Sequence[str], union_bound: int) -> dict[str, int]:
        """Keys and alignment: in clear under plain sums, else by one attempt of the private set union, and its vote."""
        if not AGGREGATIONS[self.aggregation].needs_keys:
            return {"union": byte_counts.clear_names(names)}
        party = PartyId(self.party)
        union = byte_counts.private_union(union_bound, party, self.neighbours, signed=self.signed)
        drawn = {"group key": byte_counts.group_key(self.neighbours)} if self.party == 1 else {}
        vote = byte_counts.union_vote(party, self.neighbours, signed=self.signed)
        advert = {"advertise channel": byte_counts.channel_advert(self.signed)}
        return advert | drawn | union.bytes_up() | vote.bytes_up()

    def _count(self) -> dict[str, int]:
        if not AGGREGATIONS[self.aggregation].needs_keys:
            return byte_counts.clear_count(self.rows)
        party, least = PartyId(self.party), self.least_holders
        return byte_counts.secret_count(self.rows, party, self.neighbours, least, self.signed).bytes_up()

    def _sum(self, purpose: str, layout: SumLayout) -> dict[str, int]:
        protocol = AGGREGATIONS[self.aggregation]
        entries, entry_bytes = layout.group.on_wire(layout.entries + protocol.extra_entries(layout))
        if not protocol.needs_keys:
            return byte_counts.clear_input(purpose, entries, entry_bytes)
        party = PartyId(self.party)
        sums = MaskedSum(purpose, entries, entry_bytes, party, self.neighbours, signed=self.signed, guarded=True)
        return sums.bytes_up()
