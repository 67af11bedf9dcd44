"""The sum in clear: twin of `protocols.secagg`. The server sees each client's vector.

Everything but the masks is the same, fixed-point encoding included. So a run and its twin give the same result to the
last bit, any difference is a fault, and what the twins cost differs by cryptography alone. What the encoding itself
loses is measured by every client against its own values (`ContributionReport.max_error`).
"""

import time
from collections.abc import Collection
from typing import Any

import numpy as np

from protocols import wire
from protocols.conversation import Conversation
from protocols.errors import PeerMisbehaved
from protocols.identifiers import SERVER, PartyId, RoundId
from protocols.sums import Contribution, ContributionReport, SumClient, SumLayout, SumServer, Total
from protocols.transport.deadline import Deadline

MAX_PURPOSE = 64


@wire.message(0x0201)
class ClearInput(wire.Message, frozen=True):
    """Client to server, once per round and purpose: the encoded input, unmasked."""

    purpose: str
    vector: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require_array(self.vector, "<u4", "<u8", ndim=1)


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
        started = time.perf_counter()
        encoded = layout.encode(contribution)
        encoded_at = time.perf_counter()
        with conversation.transport.phase(round_id, f"input/{purpose}"):
            conversation.send(SERVER, ClearInput(purpose, encoded.vector), round_id)
        return ContributionReport(encoded.clipped, encoded.max_error, encoded_at - started)


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
        running = layout.ring.zeros(layout.entries)
        for party, message in sorted(inputs.items()):
            try:
                layout.ring.require(message.vector, layout.entries)
            except ValueError:
                raise PeerMisbehaved(f"client {party} contributed a vector of another length or ring") from None
            if message.purpose != purpose:
                raise PeerMisbehaved(f"client {party} contributed to another sum")
            layout.ring.add_into(running, message.vector)
        total = layout.decode(running)
        self.unmask_seconds += time.perf_counter() - started
        return total
