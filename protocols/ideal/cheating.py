"""Real sessions in which the server cheats: one sum as it should be, then one in which some clients are told lies.

Clients have pinned identities and sign what matters (`protocols.sums.secagg`, active server). A lie is a change of
messages on their way from the honest server's code to the clients. A client that notices says so, as in a training job
(`RefuseShares` where it is another client's word that does not fit, else `Failed`), and is out of the sum; the server
goes on with the others as far as it gets.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

import msgspec

from protocols.foundation import wire
from protocols.foundation.errors import PeerFailed, PeersRefused, ProtocolError
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.ideal.real import Falls, Parties, ServerSide, at_once, soon
from protocols.ideal.real_sessions import KnownSums, Session
from protocols.primitives.identity import IdentityKey
from protocols.primitives.keys import AgreementKey
from protocols.session.conversation import MAX_REASON, Conversation, Failed, M
from protocols.session.credentials import Credentials
from protocols.session.patience import Patience
from protocols.sums.secagg.messages import EncryptedShares, KeyDirectory, Survivors
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer


class Cheat(ABC):
    """What a server sends in place of what it should."""

    @abstractmethod
    def instead(self, to: PartyId, message: wire.Message) -> wire.Message: ...


@dataclass(frozen=True)
class ForgedMaskKey(Cheat):
    """`victim` is told a mask key of the server's own in place of that of `owner`."""

    victim: PartyId
    owner: PartyId

    def instead(self, to: PartyId, message: wire.Message) -> wire.Message:
        if to != self.victim or not isinstance(message, KeyDirectory):
            return message
        forged = {**message.mask_keys, int(self.owner): AgreementKey().public}
        return msgspec.structs.replace(message, mask_keys=forged)


@dataclass(frozen=True)
class FlippedShares(Cheat):
    """A bit of what `owner` has sealed for `victim` is changed."""

    victim: PartyId
    owner: PartyId

    def instead(self, to: PartyId, message: wire.Message) -> wire.Message:
        if to != self.victim or not isinstance(message, EncryptedShares):
            return message
        true = message.sealed[int(self.owner)]
        return msgspec.structs.replace(
            message, sealed={**message.sealed, int(self.owner): bytes([true[0] ^ 1]) + true[1:]}
        )


@dataclass(frozen=True)
class TwoSurvivorSets(Cheat):
    """Some clients are told that `missing` has dropped out, the others that it has not. It has not."""

    told: frozenset[PartyId]
    missing: PartyId

    def instead(self, to: PartyId, message: wire.Message) -> wire.Message:
        if to not in self.told or not isinstance(message, Survivors):
            return message
        return msgspec.structs.replace(message, dropped=sorted({*message.dropped, int(self.missing)}))


def signed_parties(count: int, model: ThreatModel) -> Parties:
    """Clients with identities that are pinned by all of them."""
    clients = Parties.of(count, model).clients
    identities = {party: IdentityKey.generate() for party in clients}
    directory = {party: identity.public for party, identity in identities.items()}
    return Parties(clients, model, {party: Credentials(own, directory) for party, own in identities.items()})


class _Cheating(Conversation):
    """The server's side of a sum in which it cheats. A client that fails counts as one that dropped out."""

    def __init__(self, straight: Conversation, cheat: Cheat) -> None:
        super().__init__(straight.transport, straight.session)
        self._cheat = cheat

    def deliver(self, messages: dict[PartyId, M], round_id: RoundId) -> set[PartyId]:
        changed = {party: self._cheat.instead(party, message) for party, message in messages.items()}
        return super().deliver(changed, round_id)

    def gather_each(
        self,
        senders: Collection[PartyId],
        expected: type[M],
        round_id: RoundId,
        patience: Patience,
        step: str,
        purpose: str | None = None,
    ) -> Iterator[tuple[PartyId, M]]:
        """Of every sender one message, read before the first is given on: what is in the view depends on no clock."""
        missing, answers = set(senders), list[tuple[PartyId, M]]()
        while missing:
            sender, frame = self.transport.receive(missing, soon())
            missing.discard(sender)
            with contextlib.suppress(PeerFailed):
                message = self._open(sender, frame).message
                if isinstance(message, expected):
                    answers.append((sender, message))
        yield from answers


@dataclass(frozen=True)
class CheatedSumSession(Session):
    """Masked sums against an active server, who cheats in the last of them."""

    parties: Parties
    sums: KnownSums = field(repr=False)
    cheat: Cheat
    falls: Falls = field(default_factory=Falls)

    def serve(self, side: ServerSide) -> None:
        server = SecAggSumServer(self.parties.vector_server())
        server.setup(side.session)
        for number, (terms, _) in enumerate(self.sums, start=1):
            last = number == len(self.sums)
            talk = side.session.conversation
            session = replace(side.session, conversation=_Cheating(talk, self.cheat)) if last else side.session
            with contextlib.suppress(ProtocolError) if last else contextlib.nullcontext():
                server.prepare(session, terms)
                server.collect(session, terms)

    def take_part(self, conversation: Conversation) -> None:
        """A client that finds a contradiction says where and ends, as `secure_kg.federation.client.client` does."""
        me, done = conversation.transport.party, SETUP
        client = SecAggSumClient(self.parties.vector_client(me))
        client.setup(at_once(conversation))
        for terms, inputs in self.sums:
            try:
                client.prepare(at_once(conversation), terms)
                client.contribute(at_once(conversation), terms, inputs[me])
            except PeersRefused:
                return  # it has said so
            except ProtocolError as problem:
                conversation.send(SERVER, Failed(str(problem)[:MAX_REASON]), done)
                return
            done = terms.round
