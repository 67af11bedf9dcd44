"""Identities that outlive a session: Ed25519 signatures (RFC 8032) on statements with one meaning each.

Misuse: a public key stands for a party only if it came from somewhere trustworthy, such as a configuration whose
fingerprints people have compared; one that arrives together with the signature proves nothing. Sign the encoding of a
`Statement` and nothing else: a signature on bare bytes could be shown elsewhere as one on something different. A
signature says nothing about time, so a statement's session must be fresh. `verify` does not look for keys made weak on
purpose: the holder of such a key can deny what it signed, but cannot sign for others.
"""

import hashlib
import struct
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from protocols.foundation.digests import length_prefixed
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId, RoundId, SessionId

IDENTITY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
# Where an encoded KeyContext has the length of a short text, these four bytes would be one of two gigabytes.
_LABEL: Final = b"secure-kg signed statement 1\x00"
_FINGERPRINT_BYTES: Final = 16


class IdentityKey:
    """An Ed25519 key pair. `to_pem` is its only serialisation; the repr shows the public half."""

    __slots__ = ("_private", "public")

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public: bytes = private.public_key().public_bytes_raw()

    @classmethod
    def generate(cls) -> "IdentityKey":
        """A fresh key from the operating system's randomness."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, pem: bytes) -> "IdentityKey":
        """The key that `to_pem` wrote; `ValueError` for anything else."""
        try:
            private = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            # Also a key under a password, which is a TypeError there.
            raise ValueError("not an unencrypted private key in PEM form") from None
        if not isinstance(private, Ed25519PrivateKey):
            raise ValueError("a private key, but not an Ed25519 one")
        return cls(private)

    def to_pem(self) -> bytes:
        """PKCS8 without encryption: whoever reads it is this party. Keep it in a file only its owner can read."""
        return self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, statement: bytes) -> bytes:
        """The signature on `Statement.encode()`."""
        return self._private.sign(statement)

    def certify(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        """The certificate, signed; for `protocols.primitives.certificates`, which says what may stand in one."""
        return builder.sign(self._private, None)

    def __repr__(self) -> str:
        return f"IdentityKey(public={self.public.hex()[:8]}…)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a private key is not serialised")


def verify(public: bytes, statement: bytes, signature: bytes) -> None:
    """Return only if `signature` is one by the holder of `public` on `statement`; `PeerMisbehaved` otherwise."""
    if len(public) != IDENTITY_BYTES:
        raise PeerMisbehaved(f"an identity of {len(public)} bytes")
    if len(signature) != SIGNATURE_BYTES:
        raise PeerMisbehaved(f"a signature of {len(signature)} bytes")
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, statement)
    except (InvalidSignature, ValueError):
        raise PeerMisbehaved("a signature that does not fit its statement") from None


def fingerprint(public: bytes) -> str:
    """128 bits of the SHA-256 of a public key for people to compare: eight groups of four hexadecimal digits."""
    if len(public) != IDENTITY_BYTES:
        raise ValueError(f"an identity has {IDENTITY_BYTES} bytes")
    digits = hashlib.sha256(public).digest()[:_FINGERPRINT_BYTES].hex()
    return " ".join(digits[start : start + 4] for start in range(0, len(digits), 4))


@dataclass(frozen=True, slots=True)
class Statement:
    """What a party signs: `content` as its word on `purpose` in this round of this session of this protocol."""

    protocol: str
    version: int
    session: SessionId
    round: RoundId
    party: PartyId
    purpose: str
    content: bytes = field(repr=False)

    def encode(self) -> bytes:
        """A fixed label and length-prefixed fields, so that no two statements, and no key context, give these bytes."""
        numbers = struct.pack("<3Q", self.version, self.round, self.party)
        return _LABEL + length_prefixed(
            self.protocol.encode(), self.purpose.encode(), self.session, numbers, self.content
        )
