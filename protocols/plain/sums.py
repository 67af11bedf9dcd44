"""The sum in clear: twin of `protocols.secagg`. The server sees each client's vector."""

import time
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from protocols import wire
from protocols.conversation import Conversation
from protocols.errors import EncodingOverflow, PeerMisbehaved
from protocols.identifiers import SERVER, PartyId, RoundId
from protocols.sums import Contribution, ContributionReport, SumClient, SumLayout, SumServer, Total
from protocols.transport.deadline import Deadline

MAX_PURPOSE = 64


@wire.message(0x0201)
class ClearInput(wire.Message, frozen=True):
    """Client to server: a contribution in clear, as wide per entry as the ring of its secure twin."""

    purpose: str
    real: np.ndarray[Any, Any]
    counts: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require_array(self.real, "<f4", "<f8", ndim=1)
        wire.require_array(self.counts, "<u4", "<u8", ndim=1)
        wire.require(bool(np.isfinite(self.real).all()), "values that are not finite")


class PlainSumClient(SumClient):
    def setup(self, conversation: Conversation, deadline: Deadline) -> None:
        """Nothing to agree on."""

    def contribute(
        self,
        conversation: Conversation,
        round_id: RoundId,
        purpose: str,
        participants: Collection[PartyId],
        layout: SumLayout,
        contribution: Contribution,
    ) -> ContributionReport:
        contribution.check(layout)
        real_type, count_type = _dtypes(layout)
        with np.errstate(over="ignore"):
            real = contribution.real.astype(real_type)
        if not np.isfinite(real).all():
            raise EncodingOverflow(f"a value to be summed does not fit a float of {layout.ring_bits} bits")
        message = ClearInput(purpose, real, contribution.counts.astype(count_type))
        with conversation.transport.phase(round_id, f"input/{purpose}"):
            conversation.send(SERVER, message, round_id)
        return ContributionReport()


class PlainSumServer(SumServer):
    def setup(self, conversation: Conversation, deadline: Deadline) -> None:
        """Nothing to agree on."""

    def collect(
        self,
        conversation: Conversation,
        round_id: RoundId,
        purpose: str,
        participants: Collection[PartyId],
        layout: SumLayout,
        deadline: Deadline,
    ) -> Total:
        with conversation.transport.phase(round_id, f"input/{purpose}"):
            inputs = conversation.gather_all(participants, ClearInput, round_id, deadline)
        started = time.perf_counter()
        real: npt.NDArray[np.float64] = np.zeros(layout.real_entries, dtype=np.float64)
        counts: npt.NDArray[np.int64] = np.zeros(layout.count_entries, dtype=np.int64)
        # In the order of the parties, so that the rounding of the sum does not depend on who was first.
        for party in sorted(inputs):
            message = inputs[party]
            fits = message.real.shape == real.shape and message.counts.shape == counts.shape
            if message.purpose != purpose or not fits:
                raise PeerMisbehaved(f"client {party} contributed to another sum")
            real += message.real
            counts += message.counts.astype(np.int64)
        self.unmask_seconds += time.perf_counter() - started
        return Total(real, counts)


def _dtypes(layout: SumLayout) -> tuple[str, str]:
    return ("<f4", "<u4") if layout.ring_bits == 32 else ("<f8", "<u8")
