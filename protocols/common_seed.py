"""One client's 32 bytes for all clients, past the server.

Rows that clients share must start alike for all who hold them. If their start could be computed from a name and a
public seed, the server could compare the first sums with the rows of names it guesses. Clients therefore start from a
seed that one of them offers and the server carries encrypted.

Parties:     n >= 2 clients that share a group key (or have none, in the plain twin), 1 server.
Adversary:   the server, semi-honest, or active with signed channels. No client on its side. In the twin: none.
Reveals:     to the server who has offered the seed; without a group key, the seed.
Assumes:     AES-256-GCM; the group key.
Not covered: how the offer was made. One that is derived from data is as secret as these data are. Freshness: the same
             client may offer the same seed in another session, for a run that is to be repeated exactly. An active
             server can have several seeds offered and deal out different ones: clients then start from different rows,
             a matter of integrity only.
Reference:   FedR, algorithm 1, line 2, where the server draws the first rows.
Deviations:  the server has no say in them.
"""

from collections.abc import Collection
from typing import Final

from protocols import wire
from protocols.conversation import Conversation
from protocols.errors import PeerMisbehaved, UnexpectedMessage
from protocols.group_key import GroupKey
from protocols.identifiers import SERVER, SETUP, PartyId
from protocols.patience import Patience
from protocols.primitives.aead import OVERHEAD_BYTES, open_sealed, seal
from protocols.sums import Silent
from protocols.transport.deadline import Deadline
from protocols.turns import ask_in_turn

SEED_BYTES: Final = 32
_STEP: Final = "common seed"


@wire.message(0x0151)
class AskForSeed(wire.Message, frozen=True):
    """Server to one client: offer a seed."""


@wire.message(0x0152)
class CommonSeed(wire.Message, frozen=True):
    """That client to server, and server to the others: the seed, encrypted under the group key if there is one."""

    content: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.content) in (SEED_BYTES, SEED_BYTES + OVERHEAD_BYTES), "a seed of wrong length")


def join(conversation: Conversation, offer: bytes, key: GroupKey | None, deadline: Deadline) -> bytes:
    """The client's side: `offer` if it is asked for it, else what another client has offered."""
    if len(offer) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes")
    with conversation.transport.phase(SETUP, _STEP):
        message = conversation.receive(SERVER, wire.Message, SETUP, deadline)
        match message:
            case AskForSeed():
                conversation.send(SERVER, CommonSeed(_sealed(offer, key)), SETUP)
                return offer
            case CommonSeed():
                return _opened(message.content, key)
    raise UnexpectedMessage(f"the server sent {type(message).__name__} where a common seed was due")


def serve(conversation: Conversation, present: Collection[PartyId], patience: Patience, silent: Silent) -> None:
    """The server's side: the seed of the first client that offers one, to all others."""
    with conversation.transport.phase(SETUP, _STEP):
        asked = frozenset(present)
        by, seed = ask_in_turn(conversation, asked, AskForSeed(), CommonSeed, patience, silent, _STEP)
        others = {party for party in asked if party > by}  # those with a lower number were asked in vain
        if lost := conversation.broadcast(others, seed, SETUP):
            silent(lost, _STEP)


def _sealed(seed: bytes, key: GroupKey | None) -> bytes:
    return seed if key is None else seal(key.derive(_STEP, SETUP), seed, _STEP.encode())


def _opened(content: bytes, key: GroupKey | None) -> bytes:
    if (len(content) == SEED_BYTES) != (key is None):
        raise PeerMisbehaved("a common seed in clear where it must be encrypted, or the other way round")
    if key is None:
        return content
    try:
        return open_sealed(key.derive(_STEP, SETUP), content, _STEP.encode())
    except PeerMisbehaved:
        raise PeerMisbehaved("the common seed cannot be opened: it was forged, or another group key was used") from None
