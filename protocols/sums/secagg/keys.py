"""The keys of a session, as a client and as the server hold them: channels between clients, and a key of all of them.

Secret sums, counts of holders and private set unions run over one such bundle.
"""

from dataclasses import dataclass

from protocols.session import group_key
from protocols.session.client_session import ClientSession
from protocols.session.group_key import GroupKey
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.vectors import VectorClient, VectorServer


@dataclass(frozen=True, slots=True)
class ClientKeys:
    """Channels to the other clients, and the key that all of them have."""

    vectors: VectorClient
    key: GroupKey

    @classmethod
    def agree(cls, session: ClientSession, vectors: VectorClient) -> "ClientKeys":
        """The set-up of a session: channels first, then the group key over them."""
        vectors.setup(session)
        return cls(vectors, group_key.join(session, vectors.session))


@dataclass(frozen=True, slots=True)
class ServerKeys:
    """The server's side of the same: who has channels, and a commitment to the key that the server lacks."""

    vectors: VectorServer
    commitment: bytes

    @classmethod
    def agree(cls, session: ServerSession, vectors: VectorServer) -> "ServerKeys":
        vectors.setup(session)
        return cls(vectors, group_key.serve(session))
