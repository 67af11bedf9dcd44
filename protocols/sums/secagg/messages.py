"""The messages of the masked sum, one type per step, under the names of Bonawitz et al. 2017, figure 4.

For every sum, in this order, after a session's set-up (`protocols.session.messages`):

    step                 client to server       server to client
    advertise keys       AdvertiseKeys          KeyDirectory          (a key may be advertised ahead of its sum)
    share keys           ShareKeys              EncryptedShares       (relayed while clients do other work)
    masked input         MaskedInput            Survivors
    consistency check    SurvivorSignature      SignedSurvivors       (only against an active server)
    unmasking            UnmaskShares

A signature is empty against a semi-honest server and 64 bytes against an active one; the receiver's own configuration
says which it must be. Share values never travel in clear before the unmasking step.
"""

from typing import Any, ClassVar, Final, Literal

import numpy as np

from protocols.foundation import wire
from protocols.foundation.frame_sizes import array_bytes, binary_bytes, frame_bytes, text_bytes
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.primitives.group import VECTOR_TYPES
from protocols.primitives.identity import SIGNATURE_BYTES
from protocols.primitives.keys import PUBLIC_KEY_BYTES
from protocols.primitives.shamir import SHARE_BYTES
from protocols.session.conversation import MAX_PURPOSE
from protocols.session.messages import COMMITMENT_BYTES, require_parties, require_signature

STATE_BYTES: Final = 32
ANNOUNCED_BYTES: Final = 32
"""Behind a state: over whom its client has helped to open a sum of the same inputs, if it has (`openings`)."""
STATE_LENGTHS: Final = (0, STATE_BYTES, STATE_BYTES + ANNOUNCED_BYTES)
PEERS_BYTES: Final = 32
SEALED_SHARES_BYTES: Final = 2 * SHARE_BYTES + OVERHEAD_BYTES
"""A share of the mask key and one of the self-mask seed, encrypted for one neighbour."""


def _require_purpose(purpose: str) -> None:
    wire.require(len(purpose) <= MAX_PURPOSE, "purpose too long")


@wire.message(0x011B)
class AdvertiseKeys(wire.Message, frozen=True):
    """Client to server: the public half of the key this one sum's pairwise masks come from.

    It may be sent before the sum begins, with what the client says last in the round before. `state`: empty. In records
    of format 3 and earlier it is what `ShareKeys` has now.
    """

    AHEAD: ClassVar[Literal["", "client", "server"]] = "server"

    purpose: str
    mask_key: bytes
    state: bytes
    signature: bytes

    def __post_init__(self) -> None:
        _require_purpose(self.purpose)
        wire.require(len(self.mask_key) == PUBLIC_KEY_BYTES, "public key of wrong length")
        wire.require(len(self.state) in STATE_LENGTHS, "state of wrong length")
        require_signature(self.signature)


@wire.message(0x011C)
class KeyDirectory(wire.Message, frozen=True):
    """Server to client: the mask keys of those of its neighbours that advertised one.

    `states`: none. In records of format 3 and earlier they are what `EncryptedShares` has now.
    """

    purpose: str
    mask_keys: dict[int, bytes]
    states: dict[int, bytes]
    signatures: dict[int, bytes]

    def __post_init__(self) -> None:
        _require_purpose(self.purpose)
        require_parties(self.mask_keys, PUBLIC_KEY_BYTES)
        require_parties(self.states, *STATE_LENGTHS)
        wire.require(not self.states or self.states.keys() == self.mask_keys.keys(), "keys and states do not fit")
        require_parties(self.signatures, 0, SIGNATURE_BYTES)


@wire.message(0x011D)
class ShareKeys(wire.Message, frozen=True):
    """Client to server: for every such neighbour, encrypted for it alone, a share of mask key and self-mask seed.

    `seed_commitment` lets the server notice a seed put together from false shares; the public mask key does the same
    for the mask key. `state`: a commitment to all that the client's input depends on, the same only if that is the
    same, and behind it what the client announces of an earlier opening (`openings`). The keys under which the shares
    are encrypted are bound to it, and against an active server `signature` covers it and the mask key.
    """

    purpose: str
    sealed: dict[int, bytes]
    seed_commitment: bytes
    state: bytes
    signature: bytes

    def __post_init__(self) -> None:
        _require_purpose(self.purpose)
        require_parties(self.sealed, SEALED_SHARES_BYTES)
        wire.require(len(self.seed_commitment) == COMMITMENT_BYTES, "commitment of wrong length")
        wire.require(len(self.state) in STATE_LENGTHS, "state of wrong length")
        require_signature(self.signature)


@wire.message(0x011E)
class EncryptedShares(wire.Message, frozen=True):
    """Server to client: what its neighbours encrypted for it, and their states. Whoever is missing takes no part in the
    masks.
    """

    AHEAD: ClassVar[Literal["", "client", "server"]] = "client"

    purpose: str
    sealed: dict[int, bytes]
    states: dict[int, bytes]
    signatures: dict[int, bytes]

    def __post_init__(self) -> None:
        _require_purpose(self.purpose)
        require_parties(self.sealed, SEALED_SHARES_BYTES)
        require_parties(self.states, *STATE_LENGTHS)
        wire.require(self.states.keys() == self.sealed.keys(), "shares and states of different clients")
        require_parties(self.signatures, 0, SIGNATURE_BYTES)


@wire.message(0x0116, wire.MAX_FRAME_BYTES)
class MaskedInput(wire.Message, frozen=True):
    """Client to server: the input plus self mask plus pairwise masks, in the sum's group and as its vectors travel.

    `peers`: digest of whom it shares masks with, so that one left out on the way is noticed before it spoils the sum.
    """

    purpose: str
    vector: np.ndarray[Any, Any]
    peers: bytes

    def __post_init__(self) -> None:
        _require_purpose(self.purpose)
        wire.require_array(self.vector, *VECTOR_TYPES, ndim=1)
        wire.require(len(self.peers) == PEERS_BYTES, "digest of wrong length")


@wire.message(0x0117)
class Survivors(wire.Message, frozen=True):
    """Server to client: which of the neighbours that sent it shares have sent no input.

    The survivors are all the others, so that no list can name a client as both.
    """

    purpose: str
    dropped: list[int]

    def __post_init__(self) -> None:
        _require_purpose(self.purpose)


@wire.message(0x0118)
class SurvivorSignature(wire.Message, frozen=True):
    """Client to server: its signature on the set of survivors it was told."""

    purpose: str
    signature: bytes

    def __post_init__(self) -> None:
        _require_purpose(self.purpose)
        wire.require(len(self.signature) == SIGNATURE_BYTES, "signature of wrong length")


@wire.message(0x0119)
class SignedSurvivors(wire.Message, frozen=True):
    """Server to client: the others' signatures, which must be on the same set."""

    purpose: str
    signatures: dict[int, bytes]

    def __post_init__(self) -> None:
        _require_purpose(self.purpose)
        require_parties(self.signatures, SIGNATURE_BYTES)


@wire.message(0x011A)
class UnmaskShares(wire.Message, frozen=True):
    """Client to server: a share of the mask key of every dropped, of the seed of every surviving neighbour and own."""

    purpose: str
    mask_key_shares: dict[int, bytes]
    seed_shares: dict[int, bytes]

    def __post_init__(self) -> None:
        _require_purpose(self.purpose)
        require_parties(self.mask_key_shares, SHARE_BYTES)
        require_parties(self.seed_shares, SHARE_BYTES)
        both = self.mask_key_shares.keys() & self.seed_shares.keys()
        wire.require(not both, "both shares of one client")


@wire.message(0x0114)
class ShareKeysWithoutState(wire.Message, frozen=True):
    """`ShareKeys` in records of format 3 and earlier, where adverts have the states."""

    purpose: str
    sealed: dict[int, bytes]
    seed_commitment: bytes

    def __post_init__(self) -> None:
        self.as_now()

    def as_now(self) -> ShareKeys:
        return ShareKeys(self.purpose, self.sealed, self.seed_commitment, b"", b"")


@wire.message(0x0115)
class EncryptedSharesWithoutStates(wire.Message, frozen=True):
    """`EncryptedShares` in records of format 3 and earlier."""

    purpose: str
    sealed: dict[int, bytes]

    def __post_init__(self) -> None:
        self.as_now()

    def as_now(self) -> EncryptedShares:
        return EncryptedShares(self.purpose, self.sealed, dict.fromkeys(self.sealed, b""), {})


def masked_input_bytes(purpose: str, entries: int, entry_bytes: int) -> int:
    """The size of a `MaskedInput` frame."""
    return frame_bytes(text_bytes(purpose), array_bytes(entries, entry_bytes), binary_bytes(PEERS_BYTES))
