"""The keystream against published vectors and against a reference that encrypts counter blocks one by one.

The reference knows nothing of chunks: for the field it walks over the words of the stream as Python integers.
"""

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.primitives import prg
from protocols.primitives.group import MODULUS, Group, GroupVector, PrimeField, Ring
from protocols.primitives.prg import Keystream, add_keystream, combine_keystreams, subtract_keystream
from protocols.primitives.residues import Residues
from tests.support.uniformity import ENTRIES, HIGH, LOW, chi_squares
from tests.support.vectors import unhex, vectors

RINGS = [Ring(32), Ring(64)]
FIELD = PrimeField()
RESIDUES = [Residues(4294828033), Residues(40961)]
GROUPS: list[Group] = [*RINGS, FIELD, *RESIDUES]
KEY = bytes(range(32))
CHUNK = 1 << 18
FIRST = 2  # the counter block of the first keystream block: GCM keeps 0 and 1 for its tag
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
def test_the_reference_begins_with_the_published_encryption_of_zero(case: dict[str, str]) -> None:
    assert counter_mode(unhex(case["key"]), 0, 16).hex() == case["encrypted_zero_block"]


@pytest.mark.parametrize("ring", RINGS)
def test_the_first_block_is_the_published_one(ring: Ring) -> None:
    """Test case 14 of the GCM specification encrypts zeros under our nonce: its ciphertext is our keystream."""
    (case,) = [case for case in vectors("aes256_gcm")["vectors"] if case["case"] == "14"]
    assert unhex(case["nonce"]) == bytes(12)
    assert unhex(case["plaintext"]) == bytes(16)
    vector = ring.zeros(16 // ring.element_bytes)
    add_keystream(unhex(case["key"]), vector, ring)
    assert vector.tobytes() == unhex(case["ciphertext"])


def test_the_stream_is_that_of_the_librarys_own_counter_mode() -> None:
    length = 3 * CHUNK // 4 + 5
    vector = Ring(32).zeros(length)
    add_keystream(KEY, vector, Ring(32))
    counter = modes.CTR(FIRST.to_bytes(16, "big"))
    assert vector.tobytes() == Cipher(algorithms.AES(KEY), counter).encryptor().update(bytes(4 * length))


@pytest.mark.parametrize("group", GROUPS)
def test_many_keystreams_at_once_are_those_of_one_after_the_other(group: Group) -> None:
    keys = [bytes([number]) * 32 for number in range(5)]
    together, apart = group.zeros(CHUNK // 4 + 7), group.zeros(CHUNK // 4 + 7)
    combine_keystreams(together, group, keys[:3], keys[3:])
    for key in keys[:3]:
        add_keystream(key, apart, group)
    for key in keys[3:]:
        subtract_keystream(key, apart, group)
    assert np.array_equal(together, apart)
    combine_keystreams(together, group, keys[3:], keys[:3])
    assert not together.any()
    combine_keystreams(together, group)
    assert not together.any()
    combine_keystreams(group.zeros(0), group, keys)


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


def lengths(ring: Group) -> list[int]:
    """Short ones that end inside a block, and those around the ends of the first and second chunk."""
    chunk = CHUNK // ring.element_bytes
    return [0, 1, 3, 5, chunk - 1, chunk, chunk + 1, 2 * chunk + 7]


@pytest.mark.parametrize(("ring", "length"), [(ring, length) for ring in RINGS for length in lengths(ring)])
def test_equals_the_reference_on_both_sides_of_a_chunk(ring: Ring, length: int) -> None:
    stream = np.frombuffer(counter_mode(KEY, FIRST, length * ring.element_bytes), dtype=ring.dtype)
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
    stream = np.frombuffer(counter_mode(key, FIRST, length * ring.element_bytes), dtype=ring.dtype)
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


@pytest.mark.parametrize("ring", GROUPS)
def test_a_strided_vector_is_masked_like_a_packed_one(ring: Group) -> None:
    length = CHUNK // ring.element_bytes + 3
    packed, backing = ring.zeros(length), ring.zeros(2 * length)
    add_keystream(KEY, packed, ring)
    add_keystream(KEY, backing[::2], ring)
    assert np.array_equal(backing[::2], packed)
    assert not backing[1::2].any()


@pytest.mark.parametrize("size", [0, 16, 24, 31, 33, 64])
@pytest.mark.parametrize("combine", [add_keystream, subtract_keystream])
@pytest.mark.parametrize("group", GROUPS)
def test_keys_of_another_length_are_refused(
    size: int, combine: Callable[[bytes, GroupVector, Group], None], group: Group
) -> None:
    vector = group.zeros(4)
    with pytest.raises(ValueError, match="32 bytes"):
        combine(bytes(size), vector, group)
    assert not vector.any()


@pytest.mark.parametrize(
    ("ring", "dtype"),
    [
        (ring, dtype)
        for ring in GROUPS
        for dtype in ["<u4", "<u8", "<i4", "<i8", "<f4", "<f8", ">u4", ">u8", "u1"]
        if np.dtype(dtype) != ring.dtype
    ],
)
def test_a_vector_of_another_type_is_refused_and_left_alone(ring: Group, dtype: str) -> None:
    # Masks of 32 bits on entries of 64, or masks added as floats, would leave the input visible.
    vector = np.zeros(4, dtype=dtype)
    with pytest.raises(ValueError, match="is not a vector"):
        add_keystream(KEY, vector, ring)
    with pytest.raises(ValueError, match="is not a vector"):
        subtract_keystream(KEY, vector, ring)
    assert not vector.any()


def test_one_key_covers_a_limited_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prg.MAX_STREAM_BYTES < 16 * (2**32 - FIRST)  # where the counter of 32 bits would begin again
    monkeypatch.setattr(prg, "MAX_STREAM_BYTES", 64)
    add_keystream(KEY, Ring(64).zeros(8), Ring(64))
    vector = Ring(64).zeros(9)
    with pytest.raises(ValueError, match="longer than one key may cover"):
        add_keystream(KEY, vector, Ring(64))
    assert not vector.any()


# --- the field ------------------------------------------------------------------------------------------------------


def accepted(words: list[int]) -> list[int]:
    """What the field makes of a stream of 64-bit words, by definition."""
    return [word % 2**61 for word in words if word % 2**61 != 2**61 - 1]


def field_stream(key: bytes, length: int) -> list[int]:
    return accepted(np.frombuffer(counter_mode(key, FIRST, 8 * length), dtype="<u8").tolist())[:length]


def test_own_vector_of_the_field() -> None:
    own = vectors("field")
    vector = FIELD.zeros(len(own["keystream"]))
    add_keystream(unhex(own["key"]), vector, FIELD)
    assert vector.tolist() == [int(entry) for entry in own["keystream"]]


@pytest.mark.parametrize("length", lengths(FIELD))
def test_the_field_equals_the_reference_on_both_sides_of_a_chunk(length: int) -> None:
    stream = field_stream(KEY, length)
    start = [(number * 0x9E3779B97F4A7C15) % MODULUS for number in range(length)]
    added, taken = np.array(start, dtype=np.uint64), np.array(start, dtype=np.uint64)
    add_keystream(KEY, added, FIELD)
    subtract_keystream(KEY, taken, FIELD)
    assert added.tolist() == [(a + b) % MODULUS for a, b in zip(start, stream, strict=True)]
    assert taken.tolist() == [(a - b) % MODULUS for a, b in zip(start, stream, strict=True)]


@given(st.binary(min_size=32, max_size=32), st.lists(st.integers(0, MODULUS - 1), max_size=40))
@settings(deadline=None)
def test_any_key_masks_the_field_like_the_reference(key: bytes, start: list[int]) -> None:
    vector = np.array(start, dtype=np.uint64)
    add_keystream(key, vector, FIELD)
    stream = field_stream(key, len(start))
    assert vector.tolist() == [(a + b) % MODULUS for a, b in zip(start, stream, strict=True)]
    subtract_keystream(key, vector, FIELD)
    assert vector.tolist() == start


class CraftedStream:
    """A keystream of given words, in place of the cipher's."""

    def __init__(self, words: list[int]) -> None:
        self.rest = np.array(words, dtype="<u8").tobytes()

    def update_into(self, data: bytes, buffer: bytearray) -> int:
        assert len(data) <= len(self.rest), "more words were asked for than needed"
        buffer[: len(data)], self.rest = self.rest[: len(data)], self.rest[len(data) :]
        return len(data)


HIGH_BITS = [bits << 61 for bits in range(8)]
REJECTED = [bits | MODULUS for bits in HIGH_BITS]


@pytest.mark.parametrize("combine", [add_keystream, subtract_keystream])
@pytest.mark.parametrize(
    "words",
    [
        [REJECTED[0], 5, 6, 7],
        [5, REJECTED[7], 6, 7],
        [5, 6, REJECTED[3], 7],
        [*REJECTED, 5, MODULUS - 1, 7],
        [5, *REJECTED[:3], 6, *REJECTED[3:], MODULUS - 1],
        [0, REJECTED[1], REJECTED[2], MODULUS - 1, REJECTED[4], MODULUS + 1],
    ],
)
def test_a_rejected_word_is_replaced_by_the_stream_that_follows(
    monkeypatch: pytest.MonkeyPatch, combine: Callable[[bytes, GroupVector, Group], None], words: list[int]
) -> None:
    stream = CraftedStream(words)
    monkeypatch.setattr(prg, "_keystream", lambda key: stream)
    vector = np.array([1, 1, 1], dtype=np.uint64)
    combine(KEY, vector, FIELD)
    sign = 1 if combine is add_keystream else -1
    assert vector.tolist() == [(1 + sign * element) % MODULUS for element in accepted(words)]
    assert stream.rest == b""


def test_rejection_does_not_depend_on_where_chunks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    per_chunk = CHUNK // 8
    length = 2 * per_chunk + 5
    words = [(number * 0x9E3779B97F4A7C15) % 2**64 for number in range(length + 20)]
    for place in [0, per_chunk - 1, per_chunk, per_chunk + 1, 2 * per_chunk - 1, 2 * per_chunk, length - 1, length + 1]:
        words[place] |= MODULUS
    expected = accepted(words)[:length]
    assert expected != [word % 2**61 for word in words[:length]]
    monkeypatch.setattr(prg, "_keystream", lambda key: CraftedStream(words))
    vector = FIELD.zeros(length)
    add_keystream(KEY, vector, FIELD)
    assert vector.tolist() == expected


@given(st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([*REJECTED, *HIGH_BITS, MODULUS - 1]), max_size=20))
@settings(deadline=None)
def test_elements_of_words(words: list[int]) -> None:
    elements = FIELD.from_words(np.array(words, dtype=np.uint64))
    assert elements.tolist() == accepted(words)
    FIELD.require(elements, len(accepted(words)))
    for ring in RINGS:
        given_words = np.array(words, dtype=np.uint64).astype(ring.dtype)
        assert ring.from_words(given_words.copy()).tolist() == given_words.tolist()


def test_field_masks_are_uniform() -> None:
    vector = FIELD.zeros(8 * ENTRIES)
    add_keystream(KEY, vector, FIELD)
    assert vector.max() < MODULUS
    # The last byte holds only five bits of an element; moved up it is full.
    statistics = [*chi_squares(vector)[:7], chi_squares(vector << np.uint64(3))[7]]
    assert all(LOW < statistic < HIGH for statistic in statistics)
    # The quarters of the field, to which a sum of masks that is no field sum is not fair.
    other = vector.copy()
    add_keystream(bytes(32), other, FIELD)
    for masks in (vector, other):
        quarters = np.bincount((masks // np.uint64(2**59)).astype(np.int64), minlength=4)
        assert np.abs(quarters - len(masks) / 4).max() < 8 * (len(masks) * 3 / 16) ** 0.5


def test_an_entry_outside_the_field_is_refused_and_nothing_is_masked() -> None:
    for value in (MODULUS, MODULUS + 1, 2**64 - 1):
        vector = np.array([0, 0, value], dtype=np.uint64)
        with pytest.raises(ValueError, match="is not a vector"):
            add_keystream(KEY, vector, FIELD)
        assert vector.tolist() == [0, 0, value]


# --- residues -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", RESIDUES)
@pytest.mark.parametrize("length", [0, 1, 5, CHUNK // 4 - 1, CHUNK // 4 + 1, CHUNK // 2 + 7])
def test_residues_equal_the_reference_on_both_sides_of_a_chunk(group: Residues, length: int) -> None:
    # Of a word as many low bits count as the modulus has; three in eight are left out of 16 bits for 40961.
    words = np.frombuffer(counter_mode(KEY, FIRST, 4 * (2 * length + 100)), dtype="<u4")
    low = words.astype(np.int64) % 2 ** group.modulus.bit_length()
    stream = low[low < group.modulus][:length]
    assert len(stream) == length
    start = np.arange(length, dtype=np.int64) * 0x9E3779B1 % group.modulus
    added, taken = start.astype("<u4"), start.astype("<u4")
    add_keystream(KEY, added, group)
    subtract_keystream(KEY, taken, group)
    assert np.array_equal(added, (start + stream) % group.modulus)
    assert np.array_equal(taken, (start - stream) % group.modulus)
    group.require(added, length)


def test_masks_modulo_a_prime_are_uniform() -> None:
    group = RESIDUES[0]
    vector = group.zeros(8 * ENTRIES)
    add_keystream(KEY, vector, group)
    assert all(LOW < statistic < HIGH for statistic in chi_squares(vector))


# --- streams that go on ---------------------------------------------------------------------------------------------


@given(st.binary(min_size=32, max_size=32), st.lists(st.sampled_from([0, 1, 2, 7, 32_767, 32_768, 40_000]), max_size=4))
@settings(deadline=None)
def test_pieces_of_a_stream_are_the_keystream_in_order(key: bytes, lengths: list[int]) -> None:
    stream = Keystream(key)
    pieces = [stream.words(length) for length in lengths]
    whole = Ring(64).zeros(sum(lengths))
    add_keystream(key, whole, Ring(64))
    assert np.array_equal(np.concatenate([*pieces, whole[:0]]), whole)


def test_a_stream_ends_where_a_vector_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prg, "MAX_STREAM_BYTES", 80)
    stream = Keystream(bytes(32))
    stream.words(4)
    with pytest.raises(ValueError, match="more words than one key may give"):
        stream.words(7)
    assert len(stream.words(6)) == 6


def test_a_stream_is_not_serialised() -> None:
    with pytest.raises(TypeError, match="not serialised"):
        Keystream(bytes(32)).__reduce__()
