"""Clients with channels, and group keys for them: in threads with a server, or in one thread without."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from protocols.foundation.identifiers import PartyId, SessionId
from protocols.session import group_key
from protocols.session.conversation import Conversation
from protocols.session.credentials import Credentials
from protocols.session.group_key import GroupKey
from protocols.session.messages import ChannelDirectory
from protocols.session.patience import Patience
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from tests.support.in_threads import SESSION, Part, at_once, at_server
from tests.support.sum_conversations import ACTIVE, SEMI_HONEST, Foreseen, Silences, credentials


@dataclass(frozen=True)
class Kind:
    """How clients are protected from their server."""

    model: ThreatModel
    credentials: Callable[[PartyId], Credentials | None]

    def client(self, clients: Collection[PartyId], me: PartyId) -> VectorClient:
        return VectorClient(clients, self.model, credentials=self.credentials(me))

    def server(self, clients: Collection[PartyId]) -> VectorServer:
        return VectorServer(len(clients), self.model)

    def sessions(self, clients: Collection[PartyId], session: SessionId = SESSION) -> dict[PartyId, SecAggSession]:
        """Each client's session, set up by an honest server."""
        made = {party: SecAggSession(party, clients, session, self.credentials(party)) for party in clients}
        adverts = {int(party): client.start() for party, client in made.items()}
        directory = ChannelDirectory(
            {party: advert.channel_key for party, advert in adverts.items()},
            {party: advert.signature for party, advert in adverts.items()},
        )
        for client in made.values():
            client.receive(directory)
        return made


KINDS = {"semi-honest": Kind(SEMI_HONEST, lambda me: None), "signed": Kind(ACTIVE, credentials)}


def joining(kind: Kind, clients: Collection[PartyId]) -> Part:
    def join(conversation: Conversation) -> GroupKey:
        vectors = kind.client(clients, conversation.transport.party)
        vectors.setup(at_once(conversation))
        return group_key.join(at_once(conversation), vectors.session)

    return join


def serving_key(
    kind: Kind, clients: Collection[PartyId], patience: Patience | None = None, silent: Silences | None = None
) -> Part:
    def serve(conversation: Conversation) -> bytes:
        vectors, waiting, notice = kind.server(clients), patience or Foreseen(), silent or Silences()
        vectors.setup(at_server(conversation, clients, waiting, notice))
        return group_key.serve(at_server(conversation, clients, waiting, notice))

    return serve


def a_key(number: int = 0, session: SessionId = SESSION) -> GroupKey:
    """A key as `join` would give it; those of different numbers have nothing to do with each other."""
    return GroupKey(bytes([number]) * 32, session, bytes([number + 100]) * 32)
