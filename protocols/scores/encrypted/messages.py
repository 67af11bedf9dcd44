"""The messages of encrypted scores. Both ciphers have the same ones, under numbers of their own.

    step     from       to               message
    key      asker      server, scorers  the public key of the asker
    input    scorer     server           masked scores, encrypted; takes the place of `MaskedInput`
    total    server     asker            the sum of what the contributors have encrypted, and of the correction
"""

from typing import Final

from protocols.foundation import wire
from protocols.foundation.frame_sizes import binary_bytes, frame_bytes, list_head_bytes, text_bytes
from protocols.scores.messages import PURPOSE, contributors_bytes, require_contributors
from protocols.scores.terms import ScoreTerms
from protocols.session.conversation import MAX_PURPOSE
from protocols.sums.secagg.messages import PEERS_BYTES

MAX_KEY_BYTES: Final = 1 << 18
MAX_CIPHERTEXT_BYTES: Final = 1 << 17


class AskerKey(wire.Message, frozen=True):
    """Asker to server, and server to scorers: the public key of the asker."""

    purpose: str
    key: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(0 < len(self.key) <= MAX_KEY_BYTES, "a key of impossible length")


class EncryptedScores(wire.Message, frozen=True):
    """Scorer to server: its masked vector under the asker's key. `peers`: as in `MaskedInput`."""

    purpose: str
    ciphertexts: list[bytes]
    peers: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        _require_ciphertexts(self.ciphertexts)
        wire.require(len(self.peers) == PEERS_BYTES, "digest of wrong length")


class EncryptedTotal(wire.Message, frozen=True):
    """Server to asker: the sum of the contributors' vectors under the asker's key."""

    purpose: str
    contributors: list[int]
    """In ascending order."""
    ciphertexts: list[bytes]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        require_contributors(self.contributors)
        _require_ciphertexts(self.ciphertexts)


def _require_ciphertexts(ciphertexts: list[bytes]) -> None:
    wire.require(len(ciphertexts) > 0, "no ciphertexts")
    wire.require(all(0 < len(one) <= MAX_CIPHERTEXT_BYTES for one in ciphertexts), "a ciphertext of impossible length")


@wire.message(0x0421)
class PaillierKey(AskerKey, frozen=True):
    """The modulus of a Paillier key, little endian."""


@wire.message(0x0422, wire.MAX_FRAME_BYTES)
class PaillierScores(EncryptedScores, frozen=True):
    """Paillier ciphertexts, little endian, each as long as the square of the modulus."""


@wire.message(0x0423, wire.MAX_FRAME_BYTES)
class PaillierTotal(EncryptedTotal, frozen=True):
    """The same for the total."""


# Numbers of messages with the same fields differ in two bits or more: one flipped bit makes no other message.
@wire.message(0x0432)
class BfvKey(AskerKey, frozen=True):
    """A BFV public key as SEAL saves it."""


@wire.message(0x0431, wire.MAX_FRAME_BYTES)
class BfvScores(EncryptedScores, frozen=True):
    """BFV ciphertexts as SEAL saves them."""


@wire.message(0x0434, wire.MAX_FRAME_BYTES)
class BfvTotal(EncryptedTotal, frozen=True):
    """The same for the total."""


def key_frame_bytes(key_bytes: int) -> int:
    """The size of a frame with a key of at most this length."""
    return frame_bytes(text_bytes(PURPOSE), binary_bytes(key_bytes))


def scores_frame_bytes(ciphertexts: int, ciphertext_bytes: int) -> int:
    """The largest size of a frame with a scorer's ciphertexts."""
    return frame_bytes(text_bytes(PURPOSE), _list_bytes(ciphertexts, ciphertext_bytes), binary_bytes(PEERS_BYTES))


def total_frame_bytes(terms: ScoreTerms, ciphertexts: int, ciphertext_bytes: int) -> int:
    """The largest size of a frame with a total."""
    return frame_bytes(text_bytes(PURPOSE), contributors_bytes(terms), _list_bytes(ciphertexts, ciphertext_bytes))


def _list_bytes(entries: int, entry_bytes: int) -> int:
    return list_head_bytes(entries) + entries * binary_bytes(entry_bytes)
