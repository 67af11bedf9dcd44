"""Identities: published vectors, statements with one meaning each, and what must never leave a key object."""

import copy
import pickle
from dataclasses import fields, replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.primitives.identity import IdentityKey, Statement, fingerprint, verify
from protocols.primitives.keys import KeyContext
from tests.support.vectors import unhex, vectors

RFC_8032 = vectors("ed25519")["vectors"]
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
"""L of RFC 8032 section 5.1."""


def key_of(secret: bytes) -> IdentityKey:
    return IdentityKey(Ed25519PrivateKey.from_private_bytes(secret))


# --- signatures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", RFC_8032, ids=lambda case: case["case"])
def test_rfc_8032_section_7_1(case: dict[str, str]) -> None:
    key = key_of(unhex(case["secret"]))
    assert key.public.hex() == case["public"]
    assert key.sign(unhex(case["message"])).hex() == case["signature"]
    verify(unhex(case["public"]), unhex(case["message"]), unhex(case["signature"]))


def refused(public: bytes, statement: bytes, signature: bytes, text: str = "does not fit") -> None:
    with pytest.raises(PeerMisbehaved, match=text):
        verify(public, statement, signature)


def test_every_flipped_bit_is_noticed() -> None:
    case = RFC_8032[2]
    public, message, signature = (unhex(case[name]) for name in ("public", "message", "signature"))
    for bit in range(512):
        refused(public, message, (int.from_bytes(signature, "little") ^ (1 << bit)).to_bytes(64, "little"))
    for bit in range(256):
        refused((int.from_bytes(public, "little") ^ (1 << bit)).to_bytes(32, "little"), message, signature)
    for bit in range(16):
        refused(public, (int.from_bytes(message, "little") ^ (1 << bit)).to_bytes(2, "little"), signature)
    refused(public, message + b"\x00", signature)
    refused(public, b"", signature)


def test_a_signature_has_one_form_only() -> None:
    # S and S + L fit the same equation; RFC 8032 section 5.1.7 has the second refused.
    case = RFC_8032[1]
    signature = unhex(case["signature"])
    scalar = int.from_bytes(signature[32:], "little") + GROUP_ORDER
    refused(unhex(case["public"]), unhex(case["message"]), signature[:32] + scalar.to_bytes(32, "little"))


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_identities_of_another_length_are_refused(size: int) -> None:
    refused(bytes(size), b"", bytes(64), f"an identity of {size} bytes")
    with pytest.raises(ValueError, match="32 bytes"):
        fingerprint(bytes(size))


@pytest.mark.parametrize("size", [0, 32, 63, 65, 128])
def test_signatures_of_another_length_are_refused(size: int) -> None:
    refused(IdentityKey.generate().public, b"", bytes(size), f"a signature of {size} bytes")


def test_verification_gives_nothing_to_forget_to_look_at() -> None:
    key = IdentityKey.generate()
    assert verify(key.public, b"statement", key.sign(b"statement")) is None  # type: ignore[func-returns-value]
    refused(IdentityKey.generate().public, b"statement", key.sign(b"statement"))
    refused(b"\xff" * 32, b"statement", key.sign(b"statement"))


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_key_comes_back_from_its_file() -> None:
    key = IdentityKey.generate()
    back = IdentityKey.from_pem(key.to_pem())
    assert back.public == key.public
    verify(key.public, b"statement", back.sign(b"statement"))
    assert key.to_pem().startswith(b"-----BEGIN PRIVATE KEY-----\n")
    assert IdentityKey.generate().public != key.public


def pem(private: Any) -> bytes:
    return bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


OTHER_FILES = {
    "empty": b"",
    "text": b"not a key",
    "truncated": IdentityKey.generate().to_pem()[:60],
    "garbled": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    "binary": bytes(range(256)),
    "X25519": pem(X25519PrivateKey.generate()),
    "Ed448": pem(Ed448PrivateKey.generate()),
    "P-256": pem(generate_private_key(SECP256R1())),
    "public": Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    "encrypted": Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
    ),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_any_other_file_is_refused_in_one_line(name: str) -> None:
    is_a_key = name in ("X25519", "Ed448", "P-256")
    text = "a private key, but not an Ed25519 one" if is_a_key else "not an unencrypted private key in PEM form"
    with pytest.raises(ValueError, match=f"^{text}$"):
        IdentityKey.from_pem(OTHER_FILES[name])


def test_a_key_does_not_show_or_give_away_its_private_half() -> None:
    private = Ed25519PrivateKey.generate()
    key, hidden = IdentityKey(private), private.private_bytes_raw()
    for shown in (repr(key), str(key), f"{key}", f"{[key]!r}"):
        assert hidden.hex() not in shown
        assert repr(hidden) not in shown
        assert key.public.hex()[:8] in shown
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="not serialised"):
            pickle.dumps(key, protocol)
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not serialised"):
            duplicate(key)
    assert not hasattr(key, "__dict__")


# --- statements -----------------------------------------------------------------------------------------------------

_number = st.integers(0, 2**64 - 1) | st.integers(0, 3)
_text = st.text(max_size=8) | st.text("a/", max_size=4)
statements = st.builds(
    Statement,
    protocol=_text,
    version=_number,
    session=st.binary(max_size=20).map(SessionId),
    round=_number.map(RoundId),
    party=_number.map(PartyId),
    purpose=_text,
    content=st.binary(max_size=8),
)


def test_own_vector() -> None:
    own = vectors("statement")
    session, content = (unhex(own["statement"][name]) for name in ("session", "content"))
    statement = Statement(**own["statement"] | {"session": SessionId(session), "content": content})
    assert statement.encode().hex() == own["encoding"]
    assert fingerprint(unhex(own["public"])) == own["fingerprint"]


@given(statements, statements)
@settings(deadline=None)
def test_different_statements_have_different_encodings(left: Statement, right: Statement) -> None:
    assert (left.encode() == right.encode()) == (left == right)


@given(st.text(max_size=12), st.integers(0, 12), st.integers(0, 12))
@settings(deadline=None)
def test_text_cannot_move_from_one_field_to_the_next(text: str, first: int, second: int) -> None:
    def cut(at: int) -> Statement:
        return Statement(text[:at], 1, SessionId(b"s"), RoundId(0), PartyId(1), text[at:], b"")

    assert (cut(first).encode() == cut(second).encode()) == (cut(first) == cut(second))


STATEMENT = Statement("protocol", 1, SessionId(bytes(16)), RoundId(3), PartyId(1), "purpose", b"content")
CHANGES: dict[str, Any] = {
    "protocol": "protocol2",
    "version": 2,
    "session": SessionId(bytes(15) + b"\x01"),
    "round": RoundId(4),
    "party": PartyId(2),
    "purpose": "purpose2",
    "content": b"content2",
}


def test_a_signature_holds_for_no_other_statement() -> None:
    assert CHANGES.keys() == {field.name for field in fields(Statement)}
    key = IdentityKey.generate()
    signature = key.sign(STATEMENT.encode())
    verify(key.public, STATEMENT.encode(), signature)
    for name, value in CHANGES.items():
        refused(key.public, replace(STATEMENT, **{name: value}).encode(), signature)


@given(st.builds(KeyContext, _text, _number, st.binary(max_size=20).map(SessionId), _number, _number, _number, _text))
@settings(deadline=None)
def test_no_key_context_is_a_statement(context: KeyContext) -> None:
    label = STATEMENT.encode()[:4]
    assert not context.encode().startswith(label)
    # A context could only begin like this with a text of that many bytes.
    assert int.from_bytes(label, "little") > 2**30


def test_the_content_is_not_shown() -> None:
    assert "content" not in repr(STATEMENT)


def test_fingerprints_are_for_people() -> None:
    prints = {fingerprint(IdentityKey.generate().public) for _ in range(50)}
    assert len(prints) == 50
    for shown in prints:
        assert [len(part) for part in shown.split(" ")] == [4] * 8
        assert set(shown) <= set("0123456789abcdef ")
