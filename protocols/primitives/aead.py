"""Authenticated encryption: AES-256-GCM (NIST SP 800-38D) with a random nonce of 96 bits in front of the ciphertext.

Misuse: random nonces are safe for at most 2^32 messages under one key; a nonce that repeats gives away the difference
of two messages and lets anybody forge. A sealed message is bound to `associated` and to nothing else: put session,
round, sender, receiver and purpose there (or into the key), or a message can be replayed in another place. Its length
is not hidden. GCM does not commit to the key: do not conclude from a message that opens that nobody can open it to
something else with another key.
"""

import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.prg import KEY_BYTES

_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
OVERHEAD_BYTES: Final = _NONCE_BYTES + _TAG_BYTES


def seal(key: bytes, plaintext: bytes, associated: bytes) -> bytes:
    """nonce || ciphertext || tag: `OVERHEAD_BYTES` more than the plaintext. `associated` is bound, not contained."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + _cipher(key).encrypt(nonce, plaintext, associated)


def open_sealed(key: bytes, sealed: bytes, associated: bytes) -> bytes:
    """The plaintext, or `PeerMisbehaved` with one text for every reason: a caller learns nothing from a forgery."""
    cipher = _cipher(key)
    if len(sealed) >= OVERHEAD_BYTES:
        try:
            return cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], associated)
        except InvalidTag:
            pass
    raise PeerMisbehaved("a sealed message that does not open")


def _cipher(key: bytes) -> AESGCM:
    # AESGCM itself would take a shorter key and be AES-128.
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes")
    return AESGCM(key)
