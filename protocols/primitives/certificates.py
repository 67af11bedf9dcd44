"""X.509 certificates that bind a TLS key to an Ed25519 identity: each identity is a certificate authority of its own.

An identity's certificate is self-signed, has no choices in it, and may issue leaves only (path length 0). A leaf holds
a short-lived TLS key for one use, client or server. `check_leaf` accepts exactly the leaves that `issue_leaf` makes:
every field that could be read in two ways is refused instead of interpreted.

Misuse: a leaf stands for the identity that issued it, and an identity for a party only if it came from somewhere
trustworthy. A certificate proves nothing without the TLS handshake that uses its key. What an identity signs as a
certificate begins with an ASN.1 sequence (byte 0x30), so it is neither a `Statement` nor a signed document.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, SignatureAlgorithmOID

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.identity import IdentityKey, fingerprint, verify

Use = Literal["client", "server"]
LARGEST_CERTIFICATE: Final = 2048
LEAF_DAYS: Final = 90
BACKDATED: Final = timedelta(hours=1)
"""How far the clock of a peer may be behind: a leaf is valid so long before it was issued."""
# An identity does not expire by itself: rosters that name it do. Fixed, so that a certificate has no choices in it.
_FROM: Final = datetime(2020, 1, 1, tzinfo=UTC)
_UNTIL: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)  # RFC 5280, 4.1.2.5: no known end
_USES: Final = {"client": ExtendedKeyUsageOID.CLIENT_AUTH, "server": ExtendedKeyUsageOID.SERVER_AUTH}
_ORGANISATION: Final = "secure-kg identity"
_SIGNED: Final = bytes.fromhex("300506032b6570034100")
"""DER between what is signed and the signature: Ed25519, and a bit string of 64 whole bytes."""

Extensions = Sequence[tuple[x509.ExtensionType, bool]]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A fresh TLS key and its certificate. Write `private_pem` only to a file that nobody but its owner can read."""

    private_pem: bytes = field(repr=False)
    certificate_pem: bytes


def identity_certificate(key: IdentityKey) -> bytes:
    """DER of the identity's own certificate; the same bytes each time."""
    name = _identity_name(key.public)
    builder = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
        .not_valid_before(_FROM).not_valid_after(_UNTIL).public_key(Ed25519PublicKey.from_public_bytes(key.public))
    )  # fmt: skip
    for extension, critical in _identity_extensions(key.public):
        builder = builder.add_extension(extension, critical)
    return key.certify(builder).public_bytes(Encoding.DER)


def certified_identity(certificate: bytes) -> bytes:
    """The public key of an identity's own certificate; `PeerMisbehaved` for any other certificate."""
    found = _parsed(certificate)
    key = found.public_key()
    if not isinstance(key, Ed25519PublicKey):
        raise PeerMisbehaved("an identity that is no Ed25519 key")
    public = key.public_bytes_raw()
    name = _identity_name(public)
    plain = found.subject == name and found.issuer == name and found.serial_number == 1
    if not plain or (found.not_valid_before_utc, found.not_valid_after_utc) != (_FROM, _UNTIL):
        raise PeerMisbehaved("an identity certificate with other names or another validity than it must have")
    _check_extensions(found, _identity_extensions(public))
    _check_signature(found, public)
    return public


def issue_leaf(key: IdentityKey, use: Use, now: datetime) -> Leaf:
    """A fresh TLS key for one use, certified by the identity for `LEAF_DAYS` from `now`."""
    private = Ed25519PrivateKey.generate()
    issued = now.astimezone(UTC).replace(microsecond=0)
    public = private.public_key()
    builder = (
        x509.CertificateBuilder().subject_name(_leaf_name(use)).issuer_name(_identity_name(key.public))
        .serial_number(x509.random_serial_number()).not_valid_before(issued - BACKDATED)
        .not_valid_after(issued + timedelta(days=LEAF_DAYS)).public_key(public)
    )  # fmt: skip
    for extension, critical in _leaf_extensions(key.public, use, public):
        builder = builder.add_extension(extension, critical)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Leaf(pem, key.certify(builder).public_bytes(Encoding.PEM))


def claimed_identity(leaf: bytes) -> bytes:
    """The identity that a leaf names as its issuer. Only `check_leaf` says whether it is."""
    names = _parsed(leaf).issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    try:
        (name,) = names
        return bytes.fromhex(str(name.value))
    except ValueError:
        raise PeerMisbehaved("a certificate that names no identity as its issuer") from None


def check_leaf(leaf: bytes, identity: bytes, use: Use, now: datetime) -> datetime:
    """When the leaf was issued; `PeerMisbehaved` unless `identity` issued it for this use and it is valid `now`.

    Its key may issue nothing: a leaf is no authority, and an identity's path length of 0 allows none below it.
    """
    found = _parsed(leaf)
    key = found.public_key()
    if not isinstance(key, Ed25519PublicKey) or key.public_bytes_raw() == identity:
        raise PeerMisbehaved("a TLS key that is no Ed25519 key of its own")
    if found.issuer != _identity_name(identity) or found.subject != _leaf_name(use):
        raise PeerMisbehaved("a certificate with other names than it must have")
    _check_signature(found, identity)
    _check_extensions(found, _leaf_extensions(identity, use, key))
    if found.not_valid_after_utc - found.not_valid_before_utc > BACKDATED + timedelta(days=LEAF_DAYS):
        raise PeerMisbehaved(f"a certificate for more than {LEAF_DAYS} days")
    if now < found.not_valid_before_utc:
        raise PeerMisbehaved("a certificate that is not valid yet")
    if now > found.not_valid_after_utc:
        raise PeerMisbehaved("a certificate that has expired")
    return found.not_valid_before_utc + BACKDATED  # not before: a time at the end of all times has none after it


def leaf_of_pem(pem: bytes) -> bytes:
    """DER of the certificate in a PEM text; `ValueError` if there is none."""
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def leaf_end(leaf: bytes) -> datetime:
    """When the leaf expires."""
    return _parsed(leaf).not_valid_after_utc


def leaf_host(identity: bytes, use: Use) -> str:
    """The name in a leaf: of the identity and the use, under a domain that never resolves (RFC 2606)."""
    return f"{fingerprint(identity).replace(' ', '')}.{use}.secure-kg.invalid"


def _parsed(certificate: bytes) -> x509.Certificate:
    if len(certificate) > LARGEST_CERTIFICATE:
        raise PeerMisbehaved(f"a certificate of {len(certificate)} bytes")
    try:
        found = x509.load_der_x509_certificate(certificate)
        found.public_key()
        len(found.extensions)  # read when first asked for, as are the names below
        if found.version is not x509.Version.v3:
            raise PeerMisbehaved("a certificate of another version than 3")
        _ = found.issuer, found.subject, found.not_valid_before_utc, found.not_valid_after_utc
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType,
            x509.InvalidVersion):  # fmt: skip
        raise PeerMisbehaved("no certificate that can be read") from None
    # What the signature does not cover is fixed: the outer algorithm, and the unused bits of the signature, none.
    if not certificate.endswith(found.tbs_certificate_bytes + _SIGNED + found.signature):
        raise PeerMisbehaved("a certificate in another encoding than it must have")
    return found


def _check_signature(found: x509.Certificate, identity: bytes) -> None:
    if found.signature_algorithm_oid != SignatureAlgorithmOID.ED25519:
        raise PeerMisbehaved("a certificate that is not signed with Ed25519")
    try:
        verify(identity, found.tbs_certificate_bytes, found.signature)
    except PeerMisbehaved:
        raise PeerMisbehaved("a certificate that its identity has not signed") from None


def _check_extensions(found: x509.Certificate, wanted: Extensions) -> None:
    """All of them and no others: an authority's flag, a further use or a further name has no place."""
    there = {(one.oid.dotted_string, one.critical): one.value for one in found.extensions}
    if there != {(value.oid.dotted_string, critical): value for value, critical in wanted}:
        raise PeerMisbehaved("a certificate with other extensions than it must have")


def _identity_name(public: bytes) -> x509.Name:
    return _name(_ORGANISATION, public.hex())


def _leaf_name(use: Use) -> x509.Name:
    return _name("secure-kg tls", use)


def _name(organisation: str, common: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation), x509.NameAttribute(NameOID.COMMON_NAME, common)]
    )


def _identity_extensions(public: bytes) -> Extensions:
    return (
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (_key_usage(certificates=True), True),
        (x509.SubjectKeyIdentifier.from_public_key(Ed25519PublicKey.from_public_bytes(public)), False),
    )


def _leaf_extensions(identity: bytes, use: Use, key: Ed25519PublicKey) -> Extensions:
    try:
        issuer = Ed25519PublicKey.from_public_bytes(identity)
    except ValueError:
        raise PeerMisbehaved("an identity that is no Ed25519 key") from None
    return (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_key_usage(certificates=False), True),
        (x509.ExtendedKeyUsage([_USES[use]]), False),
        (x509.SubjectAlternativeName([x509.DNSName(leaf_host(identity, use))]), False),
        (x509.SubjectKeyIdentifier.from_public_key(key), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), False),
    )


def _key_usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates, key_cert_sign=certificates, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, crl_sign=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
