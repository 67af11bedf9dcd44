"""The keystream against published vectors and against a reference that encrypts counter blocks one by one."""

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from vectors import unhex, vectors

from protocols.primitives import prg
from protocols.primitives.group import Ring, RingVector
from protocols.primitives.prg import add_keystream, subtract_keystream

RINGS = [Ring(32), Ring(64)]
KEY = bytes(range(32))
CHUNK = 1 << 19
"""Bytes of keystream made at a time; `test_the_chunk_is_as_long_as_these_tests_think` holds it in place."""


def counter_mode(key: bytes, start: int, size: int) -> bytes:
    """The CTR keystream by definition (SP 800-38A section 6.5): the encryption of successive 128-bit counters."""
    counters = b"".join((start + block).to_bytes(16, "big") for block in range(-(-size // 16)))
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(counters)[:size]


def test_the_reference_gives_the_published_ciphertext() -> None:
    case = vectors("aes256_ctr")["sp800_38a_f_5_5"]
    plaintext, ciphertext = unhex(*case["plaintext"]), unhex(*case["ciphertext"])
    stream = counter_mode(unhex(case["key"]), int(case["initial_counter"], 16), len(plaintext))
    assert bytes(a ^ b for a, b in zip(plaintext, stream, strict=True)) == ciphertext


@pytest.mark.parametrize("case", vectors("aes256_ctr")["cavp_var_key_256"])
@pytest.mark.parametrize("ring", RINGS)
def test_the_first_block_is_the_published_encryption_of_zero(case: dict[str, str], ring: Ring) -> None:
    vector = ring.zeros(16 // ring.element_bytes)
    add_keystream(unhex(case["key"]), vector, ring)
    assert vector.tobytes().hex() == case["encrypted_zero_block"]


def test_own_vector() -> None:
    own = vectors("prg")
    for ring in RINGS:
        short = ring.zeros(5)
        add_keystream(unhex(own["key"]), short, ring)
        assert short.tolist() == [int(entry) for entry in own[f"ring_{ring.bits}"]]
        long = ring.zeros(own["long_bytes"] // ring.element_bytes)
        add_keystream(unhex(own["key"]), long, ring)
        assert hashlib.sha256(long.tobytes()).hexdigest() == own["long_sha256"]


def test_the_chunk_is_as_long_as_these_tests_think() -> None:
    assert prg._CHUNK_BYTES == CHUNK


def lengths(ring: Ring) -> list[int]:
    """Short ones that end inside a block, and those around the ends of the first and second chunk."""
    chunk = CHUNK // ring.element_bytes
    return [0, 1, 3, 5, chunk - 1, chunk, chunk + 1, 2 * chunk + 7]


@pytest.mark.parametrize(("ring", "length"), [(ring, length) for ring in RINGS for length in lengths(ring)])
def test_equals_the_reference_on_both_sides_of_a_chunk(ring: Ring, length: int) -> None:
    stream = np.frombuffer(counter_mode(KEY, 0, length * ring.element_bytes), dtype=ring.dtype)
    start = np.arange(length, dtype=np.uint64).astype(ring.dtype) * ring.dtype.type(0x9E3779B1)
    added, taken = start.copy(), start.copy()
    add_keystream(KEY, added, ring)
    subtract_keystream(KEY, taken, ring)
    assert np.array_equal(added, start + stream)
    assert np.array_equal(taken, start - stream)


@given(st.binary(min_size=32, max_size=32), st.sampled_from(RINGS), st.integers(0, 70), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_any_key_equals_the_reference_and_what_is_added_can_be_subtracted(
    key: bytes, ring: Ring, length: int, seed: int
) -> None:
    start = np.random.default_rng(seed).integers(0, 2**ring.bits, length, dtype=ring.dtype)
    vector = start.copy()
    add_keystream(key, vector, ring)
    stream = np.frombuffer(counter_mode(key, 0, length * ring.element_bytes), dtype=ring.dtype)
    assert np.array_equal(vector, start + stream)
    subtract_keystream(key, vector, ring)
    assert np.array_equal(vector, start)


@given(st.binary(min_size=32, max_size=32), st.integers(0, 255))
@settings(deadline=None, max_examples=50)
def test_keys_that_differ_in_one_bit_give_unrelated_streams(key: bytes, bit: int) -> None:
    ring = Ring(64)
    other = (int.from_bytes(key, "little") ^ (1 << bit)).to_bytes(32, "little")
    first, second = ring.zeros(64), ring.zeros(64)
    add_keystream(key, first, ring)
    add_keystream(other, second, ring)
    assert not np.any(first == second)
    assert len(set((first - second).tolist())) == 64


@pytest.mark.parametrize("ring", RINGS)
def test_a_strided_vector_is_masked_like_a_packed_one(ring: Ring) -> None:
    length = CHUNK // ring.element_bytes + 3
    packed, backing = ring.zeros(length), ring.zeros(2 * length)
    add_keystream(KEY, packed, ring)
    add_keystream(KEY, backing[::2], ring)
    assert np.array_equal(backing[::2], packed)
    assert not backing[1::2].any()


@pytest.mark.parametrize("size", [0, 16, 24, 31, 33, 64])
@pytest.mark.parametrize("combine", [add_keystream, subtract_keystream])
def test_keys_of_another_length_are_refused(size: int, combine: Callable[[bytes, RingVector, Ring], None]) -> None:
    vector = Ring(32).zeros(4)
    with pytest.raises(ValueError, match="32 bytes"):
        combine(bytes(size), vector, Ring(32))
    assert not vector.any()


@pytest.mark.parametrize(
    ("ring", "dtype"),
    [
        (ring, dtype)
        for ring in RINGS
        for dtype in ["<u4", "<u8", "<i4", "<i8", "<f4", "<f8", ">u4", ">u8", "u1"]
        if np.dtype(dtype) != ring.dtype
    ],
)
def test_a_vector_of_another_type_is_refused_and_left_alone(ring: Ring, dtype: str) -> None:
    # Masks of 32 bits on entries of 64, or masks added as floats, would leave the input visible.
    vector = np.zeros(4, dtype=dtype)
    with pytest.raises(ValueError, match="is not a vector"):
        add_keystream(KEY, vector, ring)
    with pytest.raises(ValueError, match="is not a vector"):
        subtract_keystream(KEY, vector, ring)
    assert not vector.any()


def test_one_key_covers_a_limited_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prg.MAX_STREAM_BYTES == 16 * 2**32
    monkeypatch.setattr(prg, "MAX_STREAM_BYTES", 64)
    add_keystream(KEY, Ring(64).zeros(8), Ring(64))
    vector = Ring(64).zeros(9)
    with pytest.raises(ValueError, match="longer than one key may cover"):
        add_keystream(KEY, vector, Ring(64))
    assert not vector.any()
