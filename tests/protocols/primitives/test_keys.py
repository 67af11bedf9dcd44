"""Key agreement and derivation: published vectors, separation of contexts, and what must never leave a key object."""

import copy
import hashlib
import hmac
import pickle
from dataclasses import fields, replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.primitives.aead import open_sealed
from protocols.primitives.keys import PUBLIC_KEY_BYTES, AgreementKey, ExtractedSecret, KeyContext, derive_key
from tests.support.vectors import unhex, vectors

SMALL_ORDER = [unhex(key) for key in vectors("x25519_small_order")["public_keys"]]
SECRET = bytes(range(32))


def key_of(scalar: bytes) -> AgreementKey:
    return AgreementKey(X25519PrivateKey.from_private_bytes(scalar))


# --- X25519 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", vectors("x25519")["section_5_2"])
def test_rfc_7748_section_5_2(case: dict[str, str]) -> None:
    assert key_of(unhex(case["scalar"])).agree(unhex(case["u"])).hex() == case["result"]


def test_rfc_7748_section_5_2_iterated() -> None:
    case = vectors("x25519")["section_5_2_iterated"]
    scalar = point = unhex(case["start"])
    results = {}
    for step in range(1, 1001):
        scalar, point = key_of(scalar).agree(point), scalar
        results[str(step)] = scalar.hex()
    assert {step: results[step] for step in case["after"]} == case["after"]


def test_rfc_7748_section_6_1() -> None:
    case = {name: unhex(value) for name, value in vectors("x25519")["section_6_1"].items()}
    alice, bob = key_of(case["alice_private"]), key_of(case["bob_private"])
    assert (alice.public, bob.public) == (case["alice_public"], case["bob_public"])
    assert alice.agree(bob.public) == bob.agree(alice.public) == case["shared"]


def test_fresh_keys_differ_and_agree() -> None:
    keys = [AgreementKey() for _ in range(4)]
    assert len({key.public for key in keys}) == 4
    secrets = {keys[low].agree(keys[high].public) for low in range(4) for high in range(low)}
    assert len(secrets) == 6
    assert keys[0].agree(keys[3].public) == keys[3].agree(keys[0].public)


@pytest.mark.parametrize("key", SMALL_ORDER, ids=lambda key: key.hex()[:8])
def test_a_key_of_small_order_is_refused(key: bytes) -> None:
    for encoding in (key, key[:-1] + bytes([key[-1] | 0x80])):
        with pytest.raises(PeerMisbehaved, match="small order"):
            AgreementKey().agree(encoding)


@pytest.mark.parametrize("size", [0, 1, 31, 33, 64])
def test_a_key_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(PeerMisbehaved, match=f"{size} bytes"):
        AgreementKey().agree(b"\x09" * size)
    assert size != PUBLIC_KEY_BYTES


def test_a_key_does_not_show_or_give_away_its_private_half() -> None:
    private = X25519PrivateKey.generate()
    key, hidden = AgreementKey(private), private.private_bytes_raw()
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


def test_a_key_comes_back_from_its_shared_secret() -> None:
    key, peer = AgreementKey(), AgreementKey()
    secret = key.secret_for_sharing()
    assert len(secret) == 32
    back = AgreementKey.from_secret(secret)
    assert back.public == key.public
    assert back.agree(peer.public) == peer.agree(key.public)
    assert back.secret_for_sharing() == secret


@given(st.binary(min_size=32, max_size=32))
@settings(deadline=None)
def test_a_secret_is_the_raw_private_key(secret: bytes) -> None:
    key = AgreementKey.from_secret(secret)
    assert key.public == X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    assert key.secret_for_sharing() == secret
    assert secret.hex() not in repr(key)


@pytest.mark.parametrize("size", [0, 31, 33, 40, 64])
def test_a_secret_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        AgreementKey.from_secret(bytes(size))


# --- HKDF -----------------------------------------------------------------------------------------------------------


class GivenInfo(KeyContext):
    """A context whose encoding is the info of a published vector, carried in `purpose` as hexadecimal."""

    def encode(self) -> bytes:
        return unhex(self.purpose)


@pytest.mark.parametrize("case", vectors("hkdf_sha256")["vectors"], ids=lambda case: case["case"])
def test_rfc_5869(case: dict[str, str]) -> None:
    context = GivenInfo("", 0, SessionId(unhex(case["salt"])), RoundId(0), PartyId(0), PartyId(0), case["info"])
    key = derive_key(unhex(case["ikm"]), context)
    assert len(key) == 32
    assert key == unhex(case["okm"])[:32]


# --- contexts -------------------------------------------------------------------------------------------------------

_number = st.integers(0, 2**64 - 1) | st.integers(0, 3)
_text = st.text(max_size=8) | st.text("a/", max_size=4)
contexts = st.builds(
    KeyContext,
    protocol=_text,
    version=_number,
    session=st.binary(max_size=20).map(SessionId),
    round=_number.map(RoundId),
    first=_number.map(PartyId),
    second=_number.map(PartyId),
    purpose=_text,
    binding=st.binary(max_size=8),
)


def reference_key(secret: bytes, context: KeyContext) -> bytes:
    """RFC 5869 with one block of output, on Python's own HMAC."""
    extracted = hmac.digest(bytes(context.session), secret, hashlib.sha256)
    return hmac.digest(extracted, context.encode() + b"\x01", hashlib.sha256)


def test_own_vector() -> None:
    own = vectors("key_context")
    session, binding = (unhex(own["context"][name]) for name in ("session", "binding"))
    context = KeyContext(**own["context"] | {"session": SessionId(session), "binding": binding})
    assert context.encode().hex() == own["encoding"]
    assert derive_key(unhex(own["secret"]), context).hex() == own["key"]
    unbound = replace(context, binding=b"")
    assert unbound.encode().hex() == own["unbound"]["encoding"]
    assert derive_key(unhex(own["secret"]), unbound).hex() == own["unbound"]["key"]


def test_a_context_is_unbound_unless_told() -> None:
    assert KeyContext("", 0, SessionId(b""), RoundId(0), PartyId(0), PartyId(0), "").binding == b""


@given(contexts, contexts)
@settings(deadline=None)
def test_different_contexts_have_different_encodings(left: KeyContext, right: KeyContext) -> None:
    assert (left.encode() == right.encode()) == (left == right)


@given(st.text(max_size=12), st.integers(0, 12), st.integers(0, 12))
@settings(deadline=None)
def test_text_cannot_move_from_one_field_to_the_next(text: str, first: int, second: int) -> None:
    def split(at: int) -> KeyContext:
        return KeyContext(text[:at], 1, SessionId(b"s"), RoundId(0), PartyId(1), PartyId(2), text[at:])

    assert (split(first).encode() == split(second).encode()) == (split(first) == split(second))


@given(st.binary(max_size=40), contexts)
@settings(deadline=None)
def test_keys_are_hkdf_of_the_encoding(secret: bytes, context: KeyContext) -> None:
    assert derive_key(secret, context) == reference_key(secret, context)


@given(st.binary(max_size=40), st.binary(max_size=60), contexts)
@settings(deadline=None)
def test_many_keys_of_one_extracted_secret_are_those_of_hkdf(secret: bytes, text: bytes, context: KeyContext) -> None:
    extracted = ExtractedSecret(secret, context.session)
    assert extracted.derive(context) == reference_key(secret, context)
    sealed = extracted.seal(context, text)
    assert open_sealed(reference_key(secret, context), sealed, context.encode()) == text
    assert extracted.open(context, sealed) == text
    with pytest.raises(PeerMisbehaved):
        extracted.open(replace(context, round=RoundId(context.round ^ 1)), sealed)


def test_an_extracted_secret_is_of_one_session_and_shows_nothing() -> None:
    extracted = ExtractedSecret(SECRET, CONTEXT.session)
    with pytest.raises(ValueError, match="another session"):
        extracted.derive(replace(CONTEXT, session=SessionId(bytes(15) + b"\x01")))
    assert repr(extracted) == "ExtractedSecret()"
    with pytest.raises(TypeError, match="not serialised"):
        pickle.dumps(extracted)


CONTEXT = KeyContext("protocol", 1, SessionId(bytes(16)), RoundId(3), PartyId(1), PartyId(2), "purpose")
CHANGES: dict[str, Any] = {
    "protocol": "protocol2",
    "version": 2,
    "session": SessionId(bytes(15) + b"\x01"),
    "round": RoundId(4),
    "first": PartyId(0),
    "second": PartyId(3),
    "purpose": "purpose2",
    "binding": b"\x00",
}


def test_every_field_changes_the_key() -> None:
    assert CHANGES.keys() == {field.name for field in fields(KeyContext)}
    keys = {derive_key(SECRET, replace(CONTEXT, **{name: value})) for name, value in CHANGES.items()}
    keys.add(derive_key(SECRET, CONTEXT))
    keys.add(derive_key(bytes(32), CONTEXT))
    keys.add(derive_key(SECRET, replace(CONTEXT, first=CONTEXT.second, second=CONTEXT.first)))
    assert len(keys) == len(CHANGES) + 3
