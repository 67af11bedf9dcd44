"""Keys of a site as bytes: its identity, certificates that it issues, and documents that it signs.

The same Ed25519 identity signs three kinds of things, and no signature of one kind can be shown as another: statements
of a session and documents begin with different labels, and certificates with the byte of an ASN.1 sequence. Files are
the caller's business.

Misuse: a document's signature says who wrote it and for which kind of use, not that it is the newest one.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from protocols.foundation.digests import digest, length_prefixed
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.primitives import certificates
from protocols.primitives.certificates import BACKDATED, Leaf, Use
from protocols.primitives.identity import IDENTITY_BYTES, SIGNATURE_BYTES, IdentityKey, fingerprint, verify
from protocols.session.credentials import Credentials
from protocols.session.identities import IdentityError

__all__ = [
    "BACKDATED", "IDENTITY_BYTES", "SIGNATURE_BYTES", "Leaf", "Use", "certificate_of", "certified", "claimed",
    "credentials_of", "expiry_of", "fingerprint", "issue", "issued_at", "leaf_in", "nobody", "public_of",
    "sign_document", "verify_document",
]  # fmt: skip

_DOCUMENT: Final = b"secure-kg signed document 1\x00"


def public_of(private_pem: bytes) -> bytes:
    """The public half, 32 bytes."""
    return _key(private_pem).public


def certificate_of(private_pem: bytes) -> bytes:
    """DER of the identity's own certificate, by which TLS knows it."""
    return certificates.identity_certificate(_key(private_pem))


def certified(certificate: bytes) -> bytes:
    """The identity in a certificate that `certificate_of` made; `IdentityError` for any other."""
    try:
        return certificates.certified_identity(certificate)
    except PeerMisbehaved as problem:
        raise IdentityError(str(problem)) from None


def issue(private_pem: bytes, use: Use, now: datetime) -> Leaf:
    """A fresh TLS key for one use, certified by the identity."""
    return certificates.issue_leaf(_key(private_pem), use, now)


def claimed(leaf: bytes) -> bytes:
    """The identity that a leaf names as its issuer, which `issued_at` checks; `IdentityError` if it names none."""
    try:
        return certificates.claimed_identity(leaf)
    except PeerMisbehaved as problem:
        raise IdentityError(str(problem)) from None


def issued_at(leaf: bytes, identity: bytes, use: Use, now: datetime) -> datetime:
    """When `identity` issued this leaf; `IdentityError` unless it did, for this use, and it is valid `now`."""
    try:
        return certificates.check_leaf(leaf, identity, use, now)
    except PeerMisbehaved as problem:
        raise IdentityError(str(problem)) from None


def expiry_of(leaf: bytes) -> datetime:
    """When a leaf expires, which `issued_at` has checked."""
    return certificates.leaf_end(leaf)


def leaf_in(pem: bytes) -> bytes:
    """DER of the certificate in a PEM text; `IdentityError` if there is none."""
    try:
        return certificates.leaf_of_pem(pem)
    except ValueError:
        raise IdentityError("no certificate in PEM form") from None


def sign_document(private_pem: bytes, kind: str, content: bytes) -> bytes:
    """The signature on `content` as a document of this kind."""
    return _key(private_pem).sign(_document(kind, content))


def verify_document(public: bytes, kind: str, content: bytes, signature: bytes) -> None:
    """Return only if the holder of `public` has signed `content` as a document of this kind; else `IdentityError`."""
    try:
        verify(public, _document(kind, content), signature)
    except PeerMisbehaved:
        raise IdentityError("a signature that does not fit") from None


def credentials_of(private_pem: bytes, directory: Mapping[PartyId, bytes]) -> Credentials:
    """What a client signs and checks with; `directory` has the identities of all clients by number."""
    key = _key(private_pem)
    if key.public not in directory.values():
        raise IdentityError("the identity of this private key is not in the key directory")
    return Credentials(key, dict(directory))


def nobody(federation: bytes, number: int) -> bytes:
    """32 bytes in the place of a revoked identity: a digest, to which nobody has a private key."""
    return digest(b"secure-kg nobody's identity", federation, number.to_bytes(8, "little"))


def _document(kind: str, content: bytes) -> bytes:
    return _DOCUMENT + length_prefixed(kind.encode(), content)


def _key(private_pem: bytes) -> IdentityKey:
    try:
        return IdentityKey.from_pem(private_pem)
    except ValueError as problem:
        raise IdentityError(str(problem)) from None
