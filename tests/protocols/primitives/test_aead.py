"""Authenticated encryption: published vectors, and nothing but the sealed message itself opens."""

import secrets

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.aead import OVERHEAD_BYTES, open_sealed, seal
from tests.support.vectors import unhex, vectors

KEY = bytes(range(32))
REFUSAL = "^a sealed message that does not open$"


@pytest.mark.parametrize("case", vectors("aes256_gcm")["vectors"], ids=lambda case: case["case"])
def test_published_vectors(case: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    key, nonce, associated = unhex(case["key"]), unhex(case["nonce"]), unhex(case["associated"])
    sealed = unhex(case["nonce"], case["ciphertext"], case["tag"])
    assert open_sealed(key, sealed, associated).hex() == case["plaintext"]
    monkeypatch.setattr(secrets, "token_bytes", lambda size: nonce[:size])
    assert seal(key, unhex(case["plaintext"]), associated) == sealed


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=100), st.binary(max_size=40))
@settings(deadline=None)
def test_what_is_sealed_opens(key: bytes, plaintext: bytes, associated: bytes) -> None:
    sealed = seal(key, plaintext, associated)
    assert len(sealed) == len(plaintext) + OVERHEAD_BYTES
    assert open_sealed(key, sealed, associated) == plaintext


def test_the_overhead_is_nonce_and_tag() -> None:
    assert OVERHEAD_BYTES == 28


def test_every_seal_has_a_nonce_of_its_own() -> None:
    sealed = [seal(KEY, b"the same", b"") for _ in range(1000)]
    assert len({message[:12] for message in sealed}) == 1000
    assert len({message[12:] for message in sealed}) == 1000


def test_every_flipped_bit_is_noticed() -> None:
    sealed = seal(KEY, b"plain text", b"place")
    for bit in range(8 * len(sealed)):
        forged = bytearray(sealed)
        forged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(PeerMisbehaved, match=REFUSAL):
            open_sealed(KEY, bytes(forged), b"place")


def test_every_other_length_is_noticed() -> None:
    sealed = seal(KEY, b"plain text", b"place")
    for size in range(len(sealed)):
        with pytest.raises(PeerMisbehaved, match=REFUSAL):
            open_sealed(KEY, sealed[:size], b"place")
    with pytest.raises(PeerMisbehaved, match=REFUSAL):
        open_sealed(KEY, sealed + b"\x00", b"place")


@pytest.mark.parametrize("associated", [b"", b"plac", b"place2", b"Place", b"other"])
def test_a_message_does_not_open_in_another_place(associated: bytes) -> None:
    with pytest.raises(PeerMisbehaved, match=REFUSAL):
        open_sealed(KEY, seal(KEY, b"plain text", b"place"), associated)


def test_a_message_does_not_open_with_another_key() -> None:
    for bit in (0, 100, 255):
        other = (int.from_bytes(KEY, "little") ^ (1 << bit)).to_bytes(32, "little")
        with pytest.raises(PeerMisbehaved, match=REFUSAL) as caught:
            open_sealed(other, seal(KEY, b"plain text", b""), b"")
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


@pytest.mark.parametrize("size", [0, 16, 24, 31, 33, 64])
def test_keys_of_another_length_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        seal(bytes(size), b"", b"")
    with pytest.raises(ValueError, match="32 bytes"):
        open_sealed(bytes(size), bytes(40), b"")
