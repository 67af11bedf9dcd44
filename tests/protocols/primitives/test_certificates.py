"""Certificates: those that an identity issues are accepted, every other one is refused, however nearly it is one."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives import certificates
from protocols.primitives.certificates import (
    BACKDATED,
    LEAF_DAYS,
    certified_identity,
    check_leaf,
    claimed_identity,
    identity_certificate,
    issue_leaf,
    leaf_host,
    leaf_of_pem,
)
from protocols.primitives.identity import IdentityKey

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
KEY, OTHER = IdentityKey.generate(), IdentityKey.generate()
LEAF = leaf_of_pem(issue_leaf(KEY, "client", NOW).certificate_pem)
OWN = identity_certificate(KEY)

Change = Callable[[x509.CertificateBuilder], x509.CertificateBuilder]


def made(change: Change = lambda builder: builder, leave_out: str = "", days: float = LEAF_DAYS) -> bytes:
    """A leaf of the identity as `issue_leaf` makes it, but for one thing."""
    private = Ed25519PrivateKey.generate()
    builder = (
        x509.CertificateBuilder().subject_name(certificates._leaf_name("client"))
        .issuer_name(certificates._identity_name(KEY.public)).serial_number(7).not_valid_before(NOW - BACKDATED)
        .not_valid_after(NOW + timedelta(days=days)).public_key(private.public_key())
    )  # fmt: skip
    for extension, critical in certificates._leaf_extensions(KEY.public, "client", private.public_key()):
        if type(extension).__name__ != leave_out:
            builder = builder.add_extension(extension, critical)
    return KEY.certify(change(builder)).public_bytes(Encoding.DER)


def test_what_an_identity_issues_is_accepted_for_as_long_as_it_is_valid() -> None:
    assert certified_identity(OWN) == KEY.public == claimed_identity(LEAF)
    assert identity_certificate(KEY) == OWN
    for moment in (NOW - BACKDATED, NOW, NOW + timedelta(days=LEAF_DAYS)):
        assert check_leaf(LEAF, KEY.public, "client", moment) == NOW
    for moment in (NOW - BACKDATED - timedelta(seconds=1), NOW + timedelta(days=LEAF_DAYS, seconds=1)):
        with pytest.raises(PeerMisbehaved, match=r"not valid yet|has expired"):
            check_leaf(LEAF, KEY.public, "client", moment)
    assert check_leaf(made(), KEY.public, "client", NOW) == NOW


@pytest.mark.parametrize(
    "leaf",
    [
        made(leave_out="SubjectAlternativeName"),
        made(leave_out="BasicConstraints"),
        made(leave_out="ExtendedKeyUsage"),
        made(leave_out="AuthorityKeyIdentifier"),
        made(days=LEAF_DAYS + 1),
        made(lambda one: one.add_extension(x509.OCSPNoCheck(), False)),
        made(lambda one: one.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3"), b"x"), True)),
        made(lambda one: one.add_extension(x509.BasicConstraints(True, None), True), "BasicConstraints"),
        made(lambda one: one.add_extension(x509.BasicConstraints(False, None), False), "BasicConstraints"),
        made(lambda one: one.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH,
             ExtendedKeyUsageOID.SERVER_AUTH]), False), "ExtendedKeyUsage"),
        made(lambda one: one.add_extension(x509.SubjectAlternativeName([x509.DNSName(leaf_host(KEY.public, "client")),
             x509.DNSName("server.example")]), False), "SubjectAlternativeName"),
        LEAF[:-1],
        LEAF + b"\0",
        OWN,
        b"",
        b"\x30" * 3000,
        identity_certificate(OTHER),
        leaf_of_pem(issue_leaf(OTHER, "client", NOW).certificate_pem),
        leaf_of_pem(issue_leaf(KEY, "server", NOW).certificate_pem),
    ],
)  # fmt: skip
def test_a_leaf_that_differs_in_anything_is_refused(leaf: bytes) -> None:
    with pytest.raises(PeerMisbehaved):
        check_leaf(leaf, KEY.public, "client", NOW)


def test_a_key_of_another_kind_or_the_identity_itself_is_no_tls_key() -> None:
    def with_key(public: object) -> bytes:
        builder = (
            x509.CertificateBuilder().subject_name(certificates._leaf_name("client"))
            .issuer_name(certificates._identity_name(KEY.public)).serial_number(7).not_valid_before(NOW)
            .not_valid_after(NOW + timedelta(days=1)).public_key(public)  # type: ignore[arg-type]
        )  # fmt: skip
        return KEY.certify(builder).public_bytes(Encoding.DER)

    for public in (ec.generate_private_key(ec.SECP256R1()).public_key(),
                   x509.load_der_x509_certificate(OWN).public_key()):  # fmt: skip
        with pytest.raises(PeerMisbehaved, match="TLS key"):
            check_leaf(with_key(public), KEY.public, "client", NOW)


def test_a_leaf_that_somebody_else_has_signed_in_the_identitys_name_is_refused() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    other = Ed25519PrivateKey.generate()
    for signer, algorithm in ((private, hashes.SHA256()), (other, None)):
        builder = (
            x509.CertificateBuilder().subject_name(certificates._leaf_name("client"))
            .issuer_name(certificates._identity_name(KEY.public)).serial_number(7).not_valid_before(NOW - BACKDATED)
            .not_valid_after(NOW + timedelta(days=1)).public_key(other.public_key())
        )  # fmt: skip
        leaf = builder.sign(signer, algorithm).public_bytes(Encoding.DER)  # type: ignore[arg-type]
        with pytest.raises(PeerMisbehaved, match=r"signed|another encoding"):
            check_leaf(leaf, KEY.public, "client", NOW)


@given(st.integers(0, 10_000), st.integers(1, 255), st.sampled_from([LEAF, OWN]))
def test_no_byte_of_a_certificate_can_be_changed(at: int, by: int, certificate: bytes) -> None:
    at %= len(certificate)
    changed = certificate[:at] + bytes([certificate[at] ^ by]) + certificate[at + 1 :]
    read = certified_identity if certificate is OWN else lambda leaf: check_leaf(leaf, KEY.public, "client", NOW)
    with pytest.raises(PeerMisbehaved):
        read(changed)


def test_what_the_signature_does_not_cover_is_fixed_too() -> None:
    """Its last bit is zero in one of some signatures; a bit string that leaves it out stands for the same bytes."""
    leaf = LEAF
    while leaf[-1] & 1:
        leaf = leaf_of_pem(issue_leaf(KEY, "client", NOW).certificate_pem)
    assert leaf[-66:-64] == b"\x41\x00"
    changed = leaf[:-65] + b"\x01" + leaf[-64:]
    assert x509.load_der_x509_certificate(changed).signature == x509.load_der_x509_certificate(leaf).signature
    with pytest.raises(PeerMisbehaved, match="another encoding"):
        check_leaf(changed, KEY.public, "client", NOW)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_certificate_are_refused(content: bytes) -> None:
    for read in (claimed_identity, certified_identity):
        with pytest.raises(PeerMisbehaved):
            read(content)


def test_a_leaf_has_no_way_into_a_repr() -> None:
    leaf = issue_leaf(KEY, "client", NOW)
    assert "PRIVATE" not in repr(leaf)
