"""All shared blocks of a run at a client: joining them, and routing what the server sends to the block it is of."""

from collections.abc import Callable

from protocols.alignment.interface import Positions
from protocols.alignment.psu import names as union_names
from protocols.alignment.psu.vote import AlignmentRefused
from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, ProtocolError, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.registry import AGGREGATIONS
from protocols.sums.totals import SumTotal
from secure_kg.federation.client.block_exchange import BlockExchange
from secure_kg.federation.client.context import ClientContext
from secure_kg.federation.client.first_rows import first_rows, private_seed, public_first_rows
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.messages import (
    Aligned,
    LentTable,
    PackedRows,
    SharedBlock,
    SharedRows,
    lent_table_bytes,
)
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.foundation.errors import SettingsError
from secure_kg.runs.alignment_files import keep_objection, load_positions, save_positions


def join(context: ClientContext, aligned: bytes, run: str) -> "SharedBlocks":
    """Algorithm 1, lines 1 and 2: the places of this client's rows among the shared ones, and the rows to start from.

    `aligned`: digest of the alignment that the run has already; empty if it has none yet. `run`: its name here.
    """
    exchanges = []
    for block in context.plan.blocks:
        if not block.aligned:
            exchanges.append(BlockExchange(context, block, Positions.fixed(block.fixed_union)))
            continue
        names = context.learner.block_names(block.name)
        if aligned:
            positions = load_positions(context.folder, aligned, names)
        else:
            positions = _align(context, names, run)
            save_positions(context.folder, positions, names)
        exchanges.append(_with_first_rows(context, block, positions, names))
    if context.plan.aligned_block is not None:
        context.conversation.send(SERVER, Aligned(), SETUP)
    return SharedBlocks(context, exchanges)


def _with_first_rows(
    context: ClientContext, block: Block, positions: Positions, names: tuple[str, ...]
) -> BlockExchange:
    exchange, private = BlockExchange(context, block, positions), context.plan.private
    if block.public and private is not None:
        if positions.union_size > private.union_rows:
            raise SettingsError(f"--union-bound: {positions.union_size} names, and noise was reckoned for fewer")
        seed_of_all = context.plan.settings.seed
        exchange.rows.start_public(public_first_rows(positions.union_size, seed_of_all, block.width, block.span))
        return exchange
    seed = private_seed(context.learner.graph, context.plan.settings.seed)
    exchange.rows.start(first_rows(names, seed, block.width, block.span))
    return exchange


def _align(context: ClientContext, names: tuple[str, ...], run: str) -> Positions:
    config, keys, clients = context.plan.settings, context.keys, context.plan.clients
    session, state = context.step(), context.states.of_names(names, run)
    try:
        positions = twins.align_as_client(config, session, keys, clients, names, state)
        if config.reveal_names and keys is not None:
            revealed = context.states.of_names(names, f"{run}/names")
            union_names.reveal(context.step(), keys.vectors, clients, positions, names, revealed)
    except AlignmentRefused as problem:
        keep_objection(context.folder, problem.objection)
        raise
    except SumAbandoned as problem:
        raise ProtocolError(f"the names could not be aligned: {problem}") from None
    return positions


class SharedBlocks:
    """The exchanges of all shared blocks, in the plan's order."""

    def __init__(self, context: ClientContext, exchanges: list[BlockExchange]) -> None:
        self._context, self._exchanges = context, exchanges
        self._lent: set[tuple[int, int]] = set()
        self._awaited: dict[str, RoundId] = {}
        """By purpose: the round of the last sum that this client has helped to open, until it hears of its result."""
        if sealed := self._sealed:
            sizes = [lent_table_bytes(one.union.size, one.block.width) for one in sealed]
            context.conversation.admit(sum(sizes))

    @property
    def any(self) -> bool:
        return bool(self._exchanges)

    @property
    def means(self) -> dict[str, Rows]:
        """By block: the means of this client's rows that it was sent last, before they are scaled."""
        return {one.block.name: one.rows.means for one in self._exchanges}

    @property
    def _sealed(self) -> list[BlockExchange]:
        """Blocks whose sums only clients can read."""
        return [one for one in self._exchanges if one.read_by_clients_only]

    def prepare(self, round_id: RoundId, *, counting: bool) -> None:
        """Begin a round at the applied rows, and agree on the keys of its sums. `counting`: and count holders.

        All blocks go back to their last means before the first of them is committed to: what one block has been trained
        to since must not make an input of another look new.
        """
        for one in self._exchanges:
            one.rows.begin_round()
        for one in self._exchanges:
            one.prepare(round_id, counting=counting)

    def contribute(self, round_id: RoundId, added: Callable[[RoundId], None]) -> None:
        """Add this client's blocks to the sums that were prepared. `added`: called with the round after each."""
        for one in self._exchanges:
            one.contribute()
            added(round_id)
            self._awaited[one.block.purpose] = round_id

    def advertise(self, round_id: RoundId) -> None:
        """Advertise the keys of the sums that come after those of a round, by the plan.

        The server then begins them without asking for keys. Of a sum that does not come, or that begins without this
        client, the key is thrown away.
        """
        context, plan = self._context, self._context.plan
        if context.keys is None:
            return
        coming = [(plan.results(round_id, "valid"), plan.settings.aggregation)] if plan.evaluation_due(round_id) else []
        after = RoundId(round_id + 1)
        if after <= plan.settings.rounds and context.party in plan.participants(after):
            of_blocks = [(plan.rows(after, one.block, one.union), one.block.aggregation) for one in self._exchanges]
            coming += of_blocks
        for terms, aggregation in coming:
            if (masked := AGGREGATIONS[aggregation].masked_terms(terms)) is not None:
                context.keys.vectors.advertise(context.step(), masked)

    def take(self, round_id: RoundId, message: wire.Message) -> None:
        """News of the shared blocks."""
        if isinstance(message, LentTable):
            self._take_lent(round_id, message)
            return
        exchange = next((one for one in self._exchanges if _is_of(message, one.block)), None)
        if exchange is None:
            raise UnexpectedMessage(f"the server sent {type(message).__name__} of a block that is not shared")
        exchange.take(round_id, message)
        self._note_result(exchange)

    def _note_result(self, exchange: BlockExchange) -> None:
        """What this client has contributed to the sum must have been averaged in it. An old table is no result."""
        awaited = self._awaited.get(exchange.block.purpose)
        if awaited is not None and exchange.rows.has_result_of(awaited):
            del self._awaited[exchange.block.purpose]

    def excuse(self, round_id: RoundId, purpose: str) -> None:
        """Expect no result of an abandoned sum. Word of another round's sum excuses nothing."""
        if self._awaited.get(purpose) == round_id:
            del self._awaited[purpose]

    def excuse_all(self) -> None:
        """Expect no result: this client was a dropout, and may have missed all of them, and counts of holders."""
        self._awaited = {}
        for one in self._exchanges:
            one.forget_count()

    def require_news(self) -> None:
        """`PeerMisbehaved` if the server goes on without having sent the result of a sum, or abandoned it.

        A server that keeps tables to itself has clients begin every round at the same rows, and reads in the sums how
        each of them is trained from there.
        """
        if self._awaited:
            raise PeerMisbehaved(f"the server goes on without the result of the sum of {min(self._awaited)}")

    def lend(self, round_id: RoundId, to: PartyId) -> None:
        """Encrypt the shared rows for a client that has missed sums. A false table would differ in its digest."""
        context = self._context
        if not self._sealed or context.keys is None or (to, round_id) in self._lent:
            raise UnexpectedMessage(f"the server asks for the table for client {to} in round {round_id}")
        self._lent.add((to, round_id))  # the key of a second one would be the same
        content = b"".join(one.rows.lend() for one in self._sealed)
        sealed = context.keys.vectors.session.seal_for(to, f"table/{round_id}", content)
        context.conversation.send(SERVER, LentTable(int(context.party), sealed), round_id)

    def _take_lent(self, round_id: RoundId, message: LentTable) -> None:
        context = self._context
        if not self._sealed or context.keys is None:
            raise UnexpectedMessage("the server sent LentTable, which these sums have no use for")
        session = context.keys.vectors.session
        content = session.open_from(PartyId(message.by), f"table/{round_id}", message.sealed)
        lengths = [one.rows.lent_bytes for one in self._sealed]
        if len(content) != sum(lengths):
            raise PeerMisbehaved("a table of another shape than the union")
        for one, length in zip(self._sealed, lengths, strict=True):
            one.rows.take_lent(content[:length], round_id)
            content = content[length:]
            self._note_result(one)


def _is_of(message: wire.Message, block: Block) -> bool:
    match message:
        case SharedRows() | SharedBlock() | PackedRows():
            return block.is_in(message)
        case SumTotal():
            return message.purpose == block.purpose
    return False
