"""Key agreement (X25519, RFC 7748) and key derivation (HKDF-SHA256, RFC 5869).

An agreed secret is never used as a key: `derive_key` binds every key to protocol, version, session, round, the two
parties, the purpose and what else the parties must have seen alike, in an encoding no two contexts share. Private keys
live in memory for one session at most and have no readable repr. They leave the process in one form only: a single-use
mask key as Shamir shares (`AgreementKey.secret_for_sharing`), so that its masks can be removed if its owner is lost.
"""

import struct
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from protocols.foundation.digests import length_prefixed
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.primitives.aead import open_sealed, seal
from protocols.primitives.prg import KEY_BYTES

PUBLIC_KEY_BYTES: Final = 32
SECRET_KEY_BYTES: Final = 32
_NUMBERS: Final = struct.Struct("<4Q")
_SHA256: Final = SHA256()


class AgreementKey:
    """An X25519 key pair from the operating system's randomness, good for one session.

    A key whose secret is shared out is good for one use only: once enough shares are brought together, everything
    ever derived from the key is open.
    """

    __slots__ = ("_private", "public")

    def __init__(self, private: X25519PrivateKey | None = None) -> None:
        self._private = private if private is not None else X25519PrivateKey.generate()
        self.public: bytes = self._private.public_key().public_bytes_raw()

    @classmethod
    def from_secret(cls, secret: bytes) -> "AgreementKey":
        """The key pair of a recombined secret. Compare `public` with what its owner advertised before using it."""
        if len(secret) != SECRET_KEY_BYTES:
            raise ValueError(f"a private key has {SECRET_KEY_BYTES} bytes")
        return cls(X25519PrivateKey.from_private_bytes(secret))

    def secret_for_sharing(self) -> bytes:
        """The raw private key. It only ever goes into Shamir shares, and only that of a single-use mask key does."""
        return self._private.private_bytes_raw()

    def agree(self, peer_public: bytes) -> bytes:
        """The shared secret with the holder of `peer_public`; input to `derive_key` only.

        A key of small order would make the secret a constant known to everybody: OpenSSL refuses it, and so do we.
        """
        if len(peer_public) != PUBLIC_KEY_BYTES:
            raise PeerMisbehaved(f"a public key of {len(peer_public)} bytes")
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(peer_public))
        except ValueError:
            raise PeerMisbehaved("a public key of small order") from None

    def __repr__(self) -> str:
        return f"AgreementKey(public={self.public.hex()[:8]}…)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a private key is not serialised")


@dataclass(frozen=True, slots=True)
class KeyContext:
    """What a derived key is for. Any difference in any field gives an independent key.

    The order of the parties counts: for a key that both are to have, both must name the same one first. `binding` holds
    hashes of what both must agree on, such as transcript and model; parties that do not get different keys.
    """

    protocol: str
    version: int
    session: SessionId
    round: RoundId
    first: PartyId
    second: PartyId
    purpose: str
    binding: bytes = b""

    def encode(self) -> bytes:
        """Length-prefixed fields, so that no two contexts give the same bytes."""
        numbers = _NUMBERS.pack(self.version, self.round, self.first, self.second)
        return length_prefixed(self.protocol.encode(), self.purpose.encode(), self.session, numbers, self.binding)


def derive_key(secret: bytes, context: KeyContext) -> bytes:
    """A 256-bit key for `context` from an agreed secret. The session is the salt as well as part of the info."""
    return HKDF(algorithm=_SHA256, length=KEY_BYTES, salt=context.session, info=context.encode()).derive(secret)


class ExtractedSecret:
    """An agreed secret from which many keys of one session are derived: the first half of HKDF is done once.

    `seal` and `open` encrypt under the key for a context, with the context as associated data.
    """

    __slots__ = ("_extracted", "_session")

    def __init__(self, secret: bytes, session: SessionId) -> None:
        extract = HMAC(session, _SHA256)  # RFC 5869, section 2.2
        extract.update(secret)
        self._extracted, self._session = extract.finalize(), session

    def derive(self, context: KeyContext) -> bytes:
        """The same as `derive_key`."""
        return self._derive(context)[0]

    def seal(self, context: KeyContext, plaintext: bytes) -> bytes:
        key, info = self._derive(context)
        return seal(key, plaintext, info)

    def open(self, context: KeyContext, sealed: bytes) -> bytes:
        """The plaintext; `PeerMisbehaved` if it was not sealed for this context."""
        key, info = self._derive(context)
        return open_sealed(key, sealed, info)

    def _derive(self, context: KeyContext) -> tuple[bytes, bytes]:
        """The key, and the encoded context."""
        if context.session != self._session:
            raise ValueError("a context of another session")
        info = context.encode()
        return HKDFExpand(algorithm=_SHA256, length=KEY_BYTES, info=info).derive(self._extracted), info

    def __repr__(self) -> str:
        return "ExtractedSecret()"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a secret is not serialised")
