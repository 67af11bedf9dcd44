"""A key that all clients of a session have and the server has not.

One client draws 256 bits and encrypts them for each of the others over the channels of the session; the server carries
the ciphertexts. If that client drops out the server asks another one. Every later key is derived from this one and
bound to its protocol, round and use.

Parties:     n >= 2 clients with channels to each other (`protocols.sums.secagg.session`), 1 server.
Adversary:   the server, semi-honest; active if the channels are signed. No client on its side.
Reveals:     to the server who drew the key, and a commitment to it.
Assumes:     AES-256-GCM, HKDF-SHA256, SHA-256; the channels.
Not covered: a client that passes the key on. Every client has it, so one on the server's side is enough to give it
             away; protocols that use the key say what is lost then, and do not rest on it alone. Whoever drew it may
             have drawn it badly: clients are trusted with it anyway. An active server can have several keys drawn and
             deal them out; a sum to which clients with different keys contribute is noise to each of them, because
             key and commitment enter the keys of its masks. The same happens, without malice, to a client that drew a
             key too late: whoever is reported as a dropout here has no part in the sums.
Reference:   FedCQA, algorithm 1, where clients "negotiate" a secret in a way that is left open.
Deviations:  the paper reuses one secret for all rounds; here every round's keys are derived afresh.
"""

import secrets
from typing import Final

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId, SessionId
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.primitives.keys import KeyContext, derive_key
from protocols.primitives.prg import KEY_BYTES
from protocols.session.channels import ClientChannels
from protocols.session.client_session import ClientSession
from protocols.session.messages import COMMITMENT_BYTES
from protocols.session.server_session import ServerSession
from protocols.session.turns import ask_in_turn

PROTOCOL: Final = "secure-kg/group-key"
VERSION: Final = 1
_USE: Final = "group key"
_SEALED_BYTES: Final = KEY_BYTES + OVERHEAD_BYTES
STEP: Final = "group key"


@wire.message(0x0131)
class DrawGroupKey(wire.Message, frozen=True):
    """Server to one client: draw the key of this session."""


@wire.message(0x0132)
class SealedGroupKeys(wire.Message, frozen=True):
    """That client to server: the key, encrypted for each of the other clients."""

    commitment: bytes
    sealed: dict[int, bytes]

    def __post_init__(self) -> None:
        wire.require(len(self.commitment) == COMMITMENT_BYTES, "commitment of wrong length")
        wire.require(all(party > 0 for party in self.sealed), "a party that is no client")
        wire.require(all(len(entry) == _SEALED_BYTES for entry in self.sealed.values()), "an entry of wrong length")


@wire.message(0x0133)
class SealedGroupKey(wire.Message, frozen=True):
    """Server to another client: who drew the key, and what it has encrypted for the receiver."""

    drawn_by: int
    commitment: bytes
    sealed: bytes

    def __post_init__(self) -> None:
        wire.require(self.drawn_by > 0, "a party that is no client")
        wire.require(len(self.commitment) == COMMITMENT_BYTES, "commitment of wrong length")
        wire.require(len(self.sealed) == _SEALED_BYTES, "an entry of wrong length")


class GroupKey:
    """The key as a client holds it. It is used for nothing but deriving keys."""

    __slots__ = ("_secret", "_session", "commitment")

    def __init__(self, secret: bytes, session: SessionId, commitment: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        self._secret, self._session = secret, session
        self.commitment = commitment

    def derive(self, use: str, round_id: RoundId, party: PartyId = SERVER, binding: bytes = b"") -> bytes:
        """A 256-bit key for one use in one round. `party`: whose it is, if every client is to have one of its own."""
        context = KeyContext(PROTOCOL, VERSION, self._session, round_id, party, party, use, self.commitment + binding)
        return derive_key(self._secret, context)

    def __repr__(self) -> str:
        return "GroupKey()"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a key is not serialised")


def join(session: ClientSession, channels: ClientChannels) -> GroupKey:
    """The client's side: draw the key if asked to, else take it from whoever did."""
    with session.phase(SETUP, STEP):
        message = session.receive(wire.Message, SETUP)
        match message:
            case DrawGroupKey():
                secret = secrets.token_bytes(KEY_BYTES)
                commitment = channels.commit(_USE, secret)
                sealed = {int(peer): channels.seal_for(peer, _USE, secret) for peer in sorted(channels.peers)}
                session.send(SealedGroupKeys(commitment, sealed), SETUP)
            case SealedGroupKey():
                secret, commitment = _opened(channels, message), message.commitment
            case _:
                raise UnexpectedMessage(f"the server sent {type(message).__name__} where a group key was due")
    return GroupKey(secret, session.conversation.session, commitment)


def _opened(channels: ClientChannels, message: SealedGroupKey) -> bytes:
    try:
        secret = channels.open_from(PartyId(message.drawn_by), _USE, message.sealed)
    except PeerMisbehaved:
        raise PeerMisbehaved(f"the group key of client {message.drawn_by} cannot be opened") from None
    if channels.commit(_USE, secret) != message.commitment:
        raise PeerMisbehaved(f"the group key of client {message.drawn_by} is not the one it has committed to")
    return secret


def serve(session: ServerSession) -> bytes:
    """The server's side: ask one client after the other until one has drawn the key; returns the commitment to it."""
    with session.phase(SETUP, STEP):
        asked = session.present

        def check(by: PartyId, drawn: SealedGroupKeys) -> None:
            if unserved := {party for party in asked if party > by} - drawn.sealed.keys():
                raise PeerMisbehaved(f"client {by} has encrypted no group key for client {min(unserved)}", by)

        by, drawn = ask_in_turn(session, DrawGroupKey(), SealedGroupKeys, STEP, check)
        others = {party for party in asked if party > by}  # those with a lower number were asked in vain
        messages = {party: SealedGroupKey(int(by), drawn.commitment, drawn.sealed[int(party)]) for party in others}
        session.dropout(session.conversation.deliver(messages, SETUP), STEP)
        return drawn.commitment
