"""Tables that clients lend each other under secret sums: whether they were due, and reached those they were for.

A server that keeps to the protocol has a table lent only to a client that it cannot bring up to date itself: to one
that was not there when the checkpoint was written from which the session goes on, or to one that was left out since, if
sums that it missed are of another session or too long ago.
"""

from collections.abc import Collection

from protocols.session.conversation import LeaveOut
from protocols.sums.totals import SumTotal
from protocols.transport.tap import frame_hash
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.messages import LendTable, LentTable, Welcome
from secure_kg.federation.server.shared_table import MOST_KEPT


class Lending:
    """One session with `clients` clients that share `blocks`."""

    def __init__(self, clients: int, blocks: Collection[Block]) -> None:
        self._clients = frozenset(range(1, clients + 1))
        self._up_to_date: set[int] = set(self._clients)
        self._rounds_done = 0
        self._kept: dict[str, set[int]] = {block.purpose: set() for block in blocks}
        """By purpose: rounds whose sums were sent in this session."""
        self._for_whom: dict[int, int] = {}
        """By lender: for whom it was asked last."""
        self._asked: set[tuple[int, int, int]] = set()
        """Lender, receiver and round."""
        self._lent: set[tuple[int, int, str]] = set()
        """Lender, receiver and fingerprint."""

    def fault_of_request(self, observation: Observation) -> str:
        """What is wrong with a request to lend, empty if it is none or was due. `observe` must come after this."""
        message, lender = observation.message, observation.peer
        if not isinstance(message, LendTable) or observation.direction != "sent":
            return ""
        if (lender, message.to, observation.round) in self._asked:
            return f"asked twice to lend its table to client {message.to}: both would be encrypted under one key"
        if message.to in self._up_to_date:
            return f"asked to lend its table to client {message.to}, which had all of it"
        if not self._rounds_done and all(len(rounds) <= MOST_KEPT for rounds in self._kept.values()):
            return f"asked to lend its table to client {message.to}, though all sums were still kept for it"
        return ""

    def reached_its_receiver(self, observation: Observation, table: LentTable) -> bool:
        """Whether a table that is passed on is what its lender gave for this client."""
        return (table.by, observation.peer, frame_hash(table.sealed)) in self._lent

    def observe(self, observation: Observation) -> None:
        peer = observation.peer
        match observation.message:
            case Welcome(rounds_done=done, saved_by=saved_by):
                self._rounds_done = done
                self._up_to_date = set(self._clients & set(saved_by) if done else self._clients)
            case LeaveOut():
                self._up_to_date.discard(peer)
            case SumTotal(purpose=purpose, of_round=of_round) if purpose in self._kept:
                self._kept[purpose].add(of_round)
            case LendTable(to=to):
                self._for_whom[peer] = to
                self._asked.add((peer, to, observation.round))
            case LentTable(sealed=sealed) if observation.direction == "received":
                self._lent.add((peer, self._for_whom.get(peer, 0), frame_hash(sealed)))
            case LentTable():
                self._up_to_date.add(peer)
