"""One shared block at a client: its part in the block's sums, and what it takes of their results.

FedR, algorithm 1, "Client executes", lines 9 to 13, for each block. Keys of a round's sums are agreed on before the
local epochs. Where holders are counted, it is after them, right before the rows leave: the less time between the two,
the fewer clients drop out in between. A count stands for the rounds that follow, while the same clients take part
(`protocols.holders.interface`).
"""

import dataclasses

from protocols.alignment.interface import Positions, Union
from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders.interface import CountTask, Holders, StandingCount
from protocols.sums.interface import SumLayout
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal, sum_total_bytes
from secure_kg.federation.client.context import ClientContext
from secure_kg.federation.client.own_rows import OwnRows
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.messages import PackedRows, SharedBlock, SharedRows


class BlockExchange:
    """`positions`: of this client's rows among the shared ones."""

    def __init__(self, context: ClientContext, block: Block, positions: Positions) -> None:
        self._context, self.block = context, block
        self.union = Union(positions.union_size, positions.digest)
        _require_carriable(self.block, positions.union_size, context.plan.settings.ring_bits)
        layout = context.plan.row_layout(self.block, positions.union_size)
        key_of = context.releases.key_of if context.releases is not None else None
        self.rows = OwnRows(positions, self.block, context.learner, layout, key_of)
        self._running: tuple[SumTerms[SumLayout], CountTask | None, Holders | None] | None = None
        """The sum under way, the count before it, or the count that stands."""
        self._standing = StandingCount()
        total = sum_total_bytes(self.block.purpose, *layout.group.on_wire(layout.entries), context.plan.clients)
        # The largest messages that the server has reason to send, also to a dropout: rows, or sums of them.
        table = self.block.message_bytes(positions.union_size, layout.grid)
        context.conversation.admit(max(total, table))
        context.shared.append(self.rows)

    def prepare(self, round_id: RoundId, *, counting: bool) -> None:
        """Agree on the keys of a round's sums. The rows of all blocks are at their last means by then.

        `counting`: whether the server has holders counted in this round.
        """
        context, plan = self._context, self._context.plan
        state = context.states.of_nothing(self.block.purpose, round_id)
        if len(self.rows.positions.own):
            state = context.states.of_rows(context.learner, self.block.purpose)
        public, standing = plan.rows(round_id, self.block, self.union), None
        count = plan.count(round_id, self.block, self.union)
        if count is not None and counting:
            self._standing.forget()
            context.holders.prepare(context.step(), count)
        elif count is not None:
            standing, count = self._standing_for(count), None
        binding = standing.binding if standing is not None else b""
        terms = dataclasses.replace(public, model=context.model, state=state, counted=binding)
        context.prepare(self.block.aggregation, terms)
        self._running = terms, count, standing

    def _standing_for(self, count: CountTask) -> Holders:
        """A server cannot have rows added up whose holders this client has not counted, among these participants."""
        standing = self._standing.stands_for(count)
        if standing is None:
            raise PeerMisbehaved("the server has rows added up of which this client has counted no holders")
        return standing

    def forget_count(self) -> None:
        """This client was a dropout: the others may have counted without it."""
        self._standing.forget()

    def contribute(self) -> None:
        """Add the rows that enough clients hold to the sum that was prepared."""
        if self._running is None:
            raise RuntimeError("prepare() comes first")
        (terms, count, holders), self._running = self._running, None
        context = self._context
        if count is not None:
            holders = self._count(count)
            self._standing.keep(count, holders)

        def may_open(missing: frozenset[PartyId]) -> None:
            self.rows.may_open(terms, missing)
            if holders is not None:
                holders.may_open(missing)

        contribution = self.rows.contribution(holders)
        context.losses.note(context.contribute(self.block.aggregation, terms, contribution, may_open))

    def _count(self, count: CountTask) -> Holders:
        context = self._context
        return context.holders.count(context.step(), count, self.rows.positions.own)

    def take(self, round_id: RoundId, message: wire.Message) -> None:
        """News of the shared rows, in the one form that this block's sums have."""
        context, reader = self._context, self._context.reader(self.block.aggregation)
        match message:
            case SharedRows() | SharedBlock() | PackedRows() if reader is None:
                if (message.grid if isinstance(message, PackedRows) else None) != self.rows.layout.grid:
                    raise PeerMisbehaved("the server sent rows on another grid than the means of these sums lie on")
                self.rows.take(message.rows, message.averaged, round_id)
            case SumTotal() if reader is not None and 0 < message.of_round <= round_id:
                opened = reader.open(context.plan.rows(message.of_round, self.block, self.union), message)
                self.rows.take_sum(message, opened, context.plan.least_contributors(self.block))
            case _:
                raise UnexpectedMessage(f"the server sent {type(message).__name__}, which these sums have no use for")

    @property
    def read_by_clients_only(self) -> bool:
        """Whether the server cannot read this block's sums."""
        return self._context.reader(self.block.aggregation) is not None


def _require_carriable(block: Block, rows: int, ring_bits: int) -> None:
    """A union that no message could carry is not a union: a false size must not make this client allocate it."""
    if rows * (block.width + 1) * ring_bits // 8 > wire.MAX_FRAME_BYTES:
        raise PeerMisbehaved(f"the server announces a union of {rows} names, too many for one sum")
