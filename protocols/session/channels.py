"""Channels between clients: one key per pair and session, from which all encryption between them derives.

Parties:     n clients, 1 server that relays.
Adversary:   the server, semi-honest; or active, where clients sign their keys under pinned identities (`Credentials`).
Reveals:     to the server who takes part in the session.
Assumes:     X25519 (CDH), HKDF-SHA256, AES-256-GCM; Ed25519 against an active server.
Not covered: an active server without credentials: it can stand between any two clients.
Reference:   Bonawitz et al. 2017, figure 4, the channel keys c_u; here one per session instead of one per sum.

The channel key encrypts what clients tell each other (shares, the group key, lent tables) and nothing else. It is not a
mask key and is never shared out: recovering a dropout opens the mask key of one sum, not what protects the others.

    start() -> AdvertiseChannel        receive(ChannelDirectory)        seal_for(...), open_from(...)
"""

import struct
from collections.abc import Collection, Mapping
from typing import Final, cast

from protocols.foundation.digests import digest
from protocols.foundation.errors import PeerMisbehaved, ProtocolError, UnexpectedMessage
from protocols.foundation.identifiers import SETUP, PartyId, SessionId
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.primitives.identity import Statement
from protocols.primitives.keys import AgreementKey, ExtractedSecret, KeyContext
from protocols.session.credentials import Credentials
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.session.pair_secrets import PairSecrets

PROTOCOL: Final = "secure-kg/secagg"
"""In every key and signature of a session, and so in those of its sums."""
VERSION: Final = 3
SEALED_OVERHEAD_BYTES: Final = OVERHEAD_BYTES
"""By how much `seal_for` makes a secret longer."""


def channel_statement(session: SessionId, party: PartyId, channel_key: bytes) -> Statement:
    return Statement(PROTOCOL, VERSION, session, SETUP, party, "advertise channel", channel_key)


def setup_transcript(session: SessionId, channel_keys: Mapping[PartyId, bytes], greeting: bytes = b"") -> bytes:
    """One digest of the set-up as a party saw it. It holds the party's own fresh key, so no old session can return.

    `greeting`: digest of what the server told everybody before the set-up. Clients that were told different things
    share no keys.
    """
    entries = [struct.pack("<Q", party) + key for party, key in sorted(channel_keys.items())]
    return digest(PROTOCOL.encode(), struct.pack("<Q", VERSION), session, greeting, *entries)


class ClientChannels:
    """One client in one session. `clients` and `credentials` are its own configuration, never the server's word."""

    def __init__(
        self,
        party: PartyId,
        clients: Collection[PartyId],
        session: SessionId,
        credentials: Credentials | None = None,
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
        self._greeting = greeting
        self._key: AgreementKey | None = AgreementKey()
        self._started = False
        self._transcript: bytes | None = None
        self._channels: PairSecrets | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(party={self.party}, ready={self._transcript is not None})"

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
        self._channels, self._key = PairSecrets(self._key, keys, self._session), None

    @property
    def transcript(self) -> bytes:
        """Digest of the set-up as this client saw it."""
        if self._transcript is None:
            raise UnexpectedMessage("the set-up is not complete")
        return self._transcript

    @property
    def peers(self) -> frozenset[PartyId]:
        """The other clients to which this one has a channel."""
        if self._channels is None:
            raise UnexpectedMessage("the set-up is not complete")
        return frozenset(peer for peer in self._clients if peer != self.party and peer in self._channels)

    def seal_for(self, peer: PartyId, use: str, secret: bytes) -> bytes:
        """Encrypt `secret` for `peer` alone, once per `use` and session."""
        shared, context = self._channel(self.party, peer, use)
        return shared.seal(context, secret)

    def open_from(self, peer: PartyId, use: str, sealed: bytes) -> bytes:
        """What `peer` has encrypted for this client and for `use`; `PeerMisbehaved` if it has not."""
        shared, context = self._channel(peer, self.party, use)
        return shared.open(context, sealed)

    def _channel(self, sender: PartyId, receiver: PartyId, use: str) -> tuple[ExtractedSecret, KeyContext]:
        peer = receiver if sender == self.party else sender
        if self._transcript is None or self._channels is None:
            raise UnexpectedMessage("the set-up is not complete")
        if peer not in self.peers:
            raise PeerMisbehaved(f"there is no channel to client {peer}")
        context = KeyContext(
            PROTOCOL, VERSION, self._session, SETUP, sender, receiver, f"channel/{use}", binding=self._transcript
        )
        return self._channels.secret(peer), context

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
