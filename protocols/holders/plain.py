"""Counting the holders of rows in clear: twin of `protocols.holders.secret`. The server sees which rows each client
holds.

Parties:     n clients, 1 server.
Adversary:   none.
Reveals:     to the server which rows, by position, each client holds. To every client how many hold each row, though it
             looks at its own rows only.
Assumes:     authentic channels.
Not covered: any privacy towards the server; a server that names other counts.
Reference:   FedE (Chen et al., IJCKG 2021), algorithm 1, where every client sends its entities to the server.
Deviations:  rows with few holders are left out of the sums, as in the secure twin.
"""

from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import (
    PURPOSE,
    CountTask,
    HolderClient,
    Holders,
    HolderServer,
    binding_of,
    require_positions,
    send_total,
)
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.interface import Contribution, SumLayout
from protocols.sums.plain import PlainSumClient, PlainSumServer
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal, sum_total_bytes

_RING_BITS: Final[Literal[32]] = 32
_NO_REALS: Final = np.zeros(0)


def count_terms(task: CountTask) -> SumTerms[SumLayout]:
    """Of the sum in which each client adds one to each row it holds."""
    layout = SumLayout(0, task.union_size, 1.0, max_count=1, parties=len(task.participants), ring_bits=_RING_BITS)
    return SumTerms(task.round, PURPOSE, task.participants, layout)


class PlainHolderClient(HolderClient):
    def __init__(self) -> None:
        super().__init__()
        self._sums = PlainSumClient()

    def prepare(self, session: ClientSession, task: CountTask) -> None:
        """Nothing to agree on."""

    def count(self, session: ClientSession, task: CountTask, held: npt.NDArray[np.int64]) -> Holders:
        with self.spent.measure():
            require_positions(held, task)
            counts = np.zeros(task.union_size, dtype=np.int64)
            counts[held] = 1
            terms = count_terms(task)
        report = self._sums.contribute(session, terms, Contribution(_NO_REALS, counts))
        self.spent.add(report.encoding)
        entry_bytes = terms.layout.group.element_bytes
        session.conversation.admit(sum_total_bytes(PURPOSE, task.union_size, entry_bytes, task.participants))
        with session.phase(task.round, PURPOSE):
            total = session.receive(SumTotal, task.round, PURPOSE)
        if total.vector.shape != (task.union_size,):
            raise PeerMisbehaved("a count of another length")
        contributors = frozenset(PartyId(party) for party in total.contributors)
        with self.spent.measure():
            enough = terms.layout.decode(total.vector).counts[held] >= task.least
            return Holders(enough, contributors, binding_of(total))


class PlainHolderServer(HolderServer):
    """`min_contributors`: as in `PlainSumServer`."""

    def __init__(self, min_contributors: int = 1) -> None:
        self._sums = PlainSumServer(min_contributors)

    def prepare(self, session: ServerSession, task: CountTask) -> None:
        self._sums.prepare(session, count_terms(task))

    def collect(self, session: ServerSession, task: CountTask) -> frozenset[PartyId]:
        collected = self._sums.collect(session, count_terms(task))
        send_total(session, task, collected.contributors, collected.total.counts.astype("<u4"))
        return collected.contributors
