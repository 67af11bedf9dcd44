"""A client's part of the set-up: one channel per pair and session, from which all later encryption derives.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.secagg`.

The channel key encrypts what clients tell each other (shares, and the key of `protocols.group_key`) and nothing else.
It is not the mask key and is never shared out: recovering a dropped client opens the mask key of one sum, not what
protects the others.

    start() -> AdvertiseChannel        receive(ChannelDirectory)        begin(...) -> SecAggClient, once per sum
"""

from collections.abc import Collection
from typing import cast

from protocols.errors import PeerMisbehaved, ProtocolError, UnexpectedMessage
from protocols.identifiers import SETUP, PartyId, RoundId, SessionId
from protocols.primitives.aead import open_sealed, seal
from protocols.primitives.group import Group
from protocols.primitives.keys import AgreementKey, KeyContext, derive_key
from protocols.secagg.channels import Channels
from protocols.secagg.client import SecAggClient
from protocols.secagg.messages import AdvertiseChannel, ChannelDirectory
from protocols.secagg.openings import Openings
from protocols.secagg.params import SumParameters
from protocols.secagg.terms import (
    PROTOCOL,
    VERSION,
    Credentials,
    Terms,
    channel_statement,
    digest,
    setup_transcript,
)


class ClientSession:
    """One client in one session. `clients` and `credentials` are its own configuration, never the server's word."""

    def __init__(
        self,
        party: PartyId,
        clients: Collection[PartyId],
        session: SessionId,
        credentials: Credentials | None = None,
        openings: Openings | None = None,
        greeting: bytes = b"",
    ) -> None:
        """`greeting`: digest of what the server told this client before; clients told other things share no keys."""
        if party not in clients:
            raise ValueError("a client must be among the clients of its session")
        if credentials is not None and credentials.directory.get(party) != credentials.identity.public:
            raise ValueError(f"the key directory has another identity for client {party}")
        self.party = party
        self._clients = frozenset(clients)
        self._session = session
        self._credentials = credentials
        self._openings = openings if openings is not None else Openings()
        self._greeting = greeting
        self._key: AgreementKey | None = AgreementKey()
        self._started = False
        self._transcript: bytes | None = None
        self._channels: Channels | None = None
        self._last_round = SETUP
        self._purposes_of_round: set[str] = set()

    def __repr__(self) -> str:
        return f"ClientSession(party={self.party}, ready={self._transcript is not None})"

    def start(self) -> AdvertiseChannel:
        if self._started or self._key is None:
            raise UnexpectedMessage("a second start: one object is one session")
        self._started = True
        statement = channel_statement(self._session, self.party, self._key.public)
        return AdvertiseChannel(self._key.public, self._credentials.sign(statement) if self._credentials else b"")

    def receive(self, directory: ChannelDirectory) -> None:
        """Take everybody's key. Clients that are missing take no part in this session."""
        if not self._started or self._key is None:
            raise self._ended(UnexpectedMessage("a channel directory where none is due"))
        keys = cast("dict[PartyId, bytes]", directory.channel_keys)
        try:
            self._check(keys, directory)
        except PeerMisbehaved as problem:
            raise self._ended(problem) from None
        self._transcript = setup_transcript(self._session, keys, self._greeting)
        self._channels, self._key = Channels(self._key, keys), None

    def begin(
        self,
        round_id: RoundId,
        purpose: str,
        participants: Collection[PartyId],
        parameters: SumParameters,
        group: Group,
        length: int,
        model: bytes = b"",
        state: bytes = b"",
    ) -> SecAggClient:
        """This client's part in one sum. Once per round and purpose, and never for an earlier round.

        `state`: its commitment to what its input depends on (`openings`).
        """
        if self._transcript is None or self._channels is None:
            raise UnexpectedMessage("a sum before the set-up is complete")
        members = frozenset(participants)
        if self.party not in members or len(members) != len(participants) or not members <= self._clients:
            raise PeerMisbehaved("the participants are not a set of this session's clients with me")
        if parameters.participants != len(members):
            raise ValueError(f"parameters for {parameters.participants} participants, but there are {len(members)}")
        if self._credentials is not None and not parameters.complete:
            raise ValueError("signed survivors are the whole sum's: an active server needs the complete graph")
        if round_id < self._last_round or (round_id == self._last_round and purpose in self._purposes_of_round):
            raise PeerMisbehaved(f"a second sum '{purpose}' for round {round_id}")
        if round_id > self._last_round:
            self._last_round, self._purposes_of_round = round_id, set()
        self._purposes_of_round.add(purpose)
        ordered = tuple(sorted(members))
        if ordered == participants and isinstance(participants, tuple):
            ordered = participants  # the caller's own: a thousand clients in one process then share it
        terms = Terms(
            self._session, self._transcript, round_id, purpose, ordered, parameters, group, length, model=model
        )
        return SecAggClient(self.party, terms, self._channels, self._credentials, self._openings, state)

    @property
    def peers(self) -> frozenset[PartyId]:
        """The other clients to which this one has a channel."""
        if self._channels is None:
            raise UnexpectedMessage("the set-up is not complete")
        return frozenset(peer for peer in self._clients if peer != self.party and peer in self._channels)

    def seal_for(self, peer: PartyId, use: str, secret: bytes) -> bytes:
        """Encrypt `secret` for `peer` alone, once per `use` and session."""
        key, context = self._channel_key(self.party, peer, use)
        return seal(key, secret, context)

    def open_from(self, peer: PartyId, use: str, sealed: bytes) -> bytes:
        """What `peer` has encrypted for this client and for `use`; `PeerMisbehaved` if it has not."""
        key, context = self._channel_key(peer, self.party, use)
        return open_sealed(key, sealed, context)

    def _channel_key(self, sender: PartyId, receiver: PartyId, use: str) -> tuple[bytes, bytes]:
        peer = receiver if sender == self.party else sender
        if self._transcript is None or self._channels is None:
            raise UnexpectedMessage("the set-up is not complete")
        if peer not in self.peers:
            raise PeerMisbehaved(f"there is no channel to client {peer}")
        context = KeyContext(
            PROTOCOL, VERSION, self._session, SETUP, sender, receiver, f"channel/{use}", binding=self._transcript
        )
        return derive_key(self._channels.secret(peer), context), context.encode()

    def commit(self, use: str, secret: bytes) -> bytes:
        """A commitment to 256 random bits, bound to this session as this client saw its set-up."""
        if self._transcript is None:
            raise UnexpectedMessage("the set-up is not complete")
        return digest(b"commitment", use.encode(), self._transcript, secret)

    def forget(self) -> None:
        """Drop every secret of the session; no sum can begin any more. `SecAggClient.abort` ends one under way."""
        if self._channels is not None:
            self._channels.forget()
        self._key, self._transcript, self._channels = None, None, None

    def _check(self, keys: dict[PartyId, bytes], directory: ChannelDirectory) -> None:
        if self._key is None or keys.get(self.party) != self._key.public:
            raise PeerMisbehaved("the channel directory has another key for this client")
        if not keys.keys() <= self._clients:
            raise PeerMisbehaved("the channel directory names a client that is not configured")
        if len(set(keys.values())) != len(keys):
            raise PeerMisbehaved("two clients have the same key in the channel directory")
        if self._credentials is not None:
            for peer, key in keys.items():
                statement = channel_statement(self._session, peer, key)
                self._credentials.check(statement, directory.signatures.get(peer, b""))

    def _ended(self, problem: ProtocolError) -> ProtocolError:
        self.forget()
        return problem
