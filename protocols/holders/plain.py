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

from collections.abc import Collection
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.holders.interface import (
    PURPOSE,
    CountTask,
    HolderClient,
    Holders,
    HolderServer,
    require_positions,
    send_total,
)
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.turns import Silent
from protocols.sums.interface import Contribution, SumLayout, SumTask
from protocols.sums.plain import PlainSumClient, PlainSumServer
from protocols.sums.totals import SumTotal, sum_total_bytes

_RING_BITS: Final[Literal[32]] = 32
_NO_REALS: Final = np.zeros(0)


def sum_task(task: CountTask) -> SumTask:
    layout = SumLayout(0, task.union_size, 1.0, max_count=1, parties=len(task.participants), ring_bits=_RING_BITS)
    return SumTask(task.round, PURPOSE, task.participants, layout)


class PlainHolderClient(HolderClient):
    def __init__(self) -> None:
        super().__init__()
        self._sums = PlainSumClient()

    def prepare(self, conversation: Conversation, task: CountTask, deadline: Deadline) -> None:
        """Nothing to agree on."""

    def count(
        self, conversation: Conversation, task: CountTask, held: npt.NDArray[np.int64], deadline: Deadline
    ) -> Holders:
        with self.spent.measure():
            require_positions(held, task)
            counts = np.zeros(task.union_size, dtype=np.int64)
            counts[held] = 1
            sums = sum_task(task)
        report = self._sums.contribute(conversation, sums, Contribution(_NO_REALS, counts), deadline)
        self.spent.add(report.encoding)
        conversation.admit(sum_total_bytes(PURPOSE, task.union_size, sums.layout.ring.element_bytes, task.participants))
        with conversation.transport.phase(task.round, PURPOSE):
            total = conversation.receive(SERVER, SumTotal, task.round, deadline, PURPOSE)
        if total.vector.shape != (task.union_size,):
            raise PeerMisbehaved("a count of another length")
        contributors = frozenset(PartyId(party) for party in total.contributors)
        with self.spent.measure():
            return Holders(sums.layout.decode(total.vector).counts[held] >= task.least, contributors)


class PlainHolderServer(HolderServer):
    """`min_contributors`: as in `PlainSumServer`."""

    def __init__(self, min_contributors: int = 1) -> None:
        self._sums = PlainSumServer(min_contributors)

    def prepare(
        self,
        conversation: Conversation,
        task: CountTask,
        present: Collection[PartyId],
        patience: Patience,
        silent: Silent,
    ) -> None:
        self._sums.prepare(conversation, sum_task(task), present, patience, silent)

    def collect(
        self,
        conversation: Conversation,
        task: CountTask,
        patience: Patience,
        silent: Silent,
        present: Collection[PartyId],
    ) -> None:
        collected = self._sums.collect(conversation, sum_task(task), patience, silent, present)
        counts = collected.total.counts.astype("<u4")
        send_total(conversation, task, collected.contributors, counts, present, silent)
