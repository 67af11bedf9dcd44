"""The pairwise-masked sum as a conversation: the secure twin of `protocols.plain.sums`."""

import time
from collections.abc import Collection

from protocols.conversation import Conversation
from protocols.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.secagg.client import MIN_PARTICIPANTS, SecAggClient
from protocols.secagg.messages import AdvertiseKeys, KeyDirectory, MaskedInput
from protocols.secagg.server import MaskedSum, directory_of
from protocols.sums import Contribution, ContributionReport, SumClient, SumLayout, SumServer, Total
from protocols.transport.deadline import Deadline


class SecAggSumClient(SumClient):
    """`clients` and `min_participants` come from this client's own configuration."""

    def __init__(self, clients: Collection[PartyId], min_participants: int = MIN_PARTICIPANTS) -> None:
        self._clients = frozenset(clients)
        self._min_participants = min_participants
        self._masker: SecAggClient | None = None

    def setup(self, conversation: Conversation, deadline: Deadline) -> None:
        party = conversation.transport.party
        masker = SecAggClient(party, self._clients, conversation.session, self._min_participants)
        with conversation.transport.phase(SETUP, "advertise keys"):
            conversation.send(SERVER, masker.start(), SETUP)
            masker.receive(conversation.receive(SERVER, KeyDirectory, SETUP, deadline))
        self._masker = masker

    def contribute(
        self,
        conversation: Conversation,
        round_id: RoundId,
        purpose: str,
        participants: Collection[PartyId],
        layout: SumLayout,
        contribution: Contribution,
    ) -> ContributionReport:
        if self._masker is None:
            raise RuntimeError("setup() comes first")
        started = time.perf_counter()
        encoded = layout.encode(contribution)
        encoded_at = time.perf_counter()
        masked = self._masker.mask(round_id, purpose, participants, layout.ring, encoded.vector)
        masked_at = time.perf_counter()
        with conversation.transport.phase(round_id, f"input/{purpose}"):
            conversation.send(SERVER, masked, round_id)
        return ContributionReport(encoded.clipped, encoded.max_error, encoded_at - started, masked_at - encoded_at)


class SecAggSumServer(SumServer):
    def __init__(self, clients: Collection[PartyId]) -> None:
        self._clients = frozenset(clients)

    def setup(self, conversation: Conversation, deadline: Deadline) -> None:
        with conversation.transport.phase(SETUP, "advertise keys"):
            adverts = conversation.gather_all(self._clients, AdvertiseKeys, SETUP, deadline)
            conversation.broadcast(self._clients, directory_of(adverts), SETUP)

    def collect(
        self,
        conversation: Conversation,
        round_id: RoundId,
        purpose: str,
        participants: Collection[PartyId],
        layout: SumLayout,
        deadline: Deadline,
    ) -> Total:
        running = MaskedSum(layout.ring, layout.entries, purpose, participants)
        with conversation.transport.phase(round_id, f"input/{purpose}"):
            inputs = conversation.gather_all(participants, MaskedInput, round_id, deadline)
        started = time.perf_counter()
        for party, masked in sorted(inputs.items()):
            running.add(party, masked)
        total = layout.decode(running.total())
        self.unmask_seconds += time.perf_counter() - started
        return total
