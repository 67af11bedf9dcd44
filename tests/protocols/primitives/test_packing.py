"""Streams of bits are what a naive reference says, come back as they were, and nothing else is taken for one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.primitives.group import NARROWEST, WIDEST, PrimeField, Ring
from protocols.primitives.packing import entries_in, pack, packed_bytes, unpack

WIDTHS = st.integers(1, 63)
BLOCK = 64 * 128
"""Entries that are packed at a time."""


def naively(entries: list[int], width: int) -> bytes:
    number = sum(entry << (place * width) for place, entry in enumerate(entries))
    return number.to_bytes(-(-len(entries) * width // 8), "little")


@given(st.data())
def test_a_stream_is_that_of_one_large_number(data: st.DataObject) -> None:
    width = data.draw(WIDTHS)
    entries = data.draw(st.lists(st.integers(0, 2**width - 1), max_size=200))
    words = np.array(entries, dtype="<u8")
    stream = pack(words, width)
    assert stream.tobytes() == naively(entries, width)
    assert unpack(stream, len(entries), width, np.dtype("<u8")).tolist() == entries


@pytest.mark.parametrize("width", [16, 17, 20, 24, 31, 33, 63])
@pytest.mark.parametrize("length", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 65])
def test_long_vectors_are_packed_block_by_block(width: int, length: int) -> None:
    words = np.random.default_rng(width).integers(0, 2**width, length, dtype=np.uint64)
    stream = pack(words, width)
    assert np.array_equal(unpack(stream, length, width, np.dtype("<u8")), words)
    bits = np.unpackbits(stream, bitorder="little")
    assert not bits[length * width :].any()
    place = length - 3
    mine = bits[place * width : (place + 1) * width]
    assert int(words[place]) == sum(int(bit) << power for power, bit in enumerate(mine))


@given(st.integers(NARROWEST, WIDEST), st.integers(0, 1000))
def test_the_length_of_a_stream_tells_how_many_entries_it_has(bits: int, entries: int) -> None:
    ring = Ring(bits)
    sent = ring.to_wire(ring.zeros(entries))
    assert ring.on_wire(entries) == (len(sent), sent.itemsize)
    assert ring.length_on_wire(sent) == entries
    if ring.packed:
        assert len(sent) == packed_bytes(entries, bits)
        assert entries_in(len(sent), bits) == entries


@pytest.mark.parametrize("bits", [17, 20, 31, 61])
def test_streams_of_another_length_or_type_and_bits_behind_the_end_are_refused(bits: int) -> None:
    ring = Ring(bits)
    right = ring.to_wire(np.array([1, 2, 2**bits - 1], dtype=ring.dtype))
    assert ring.from_wire(right, 3).tolist() == [1, 2, 2**bits - 1]
    behind = right.copy()
    behind[-1] |= 0x80
    wrong: list[np.ndarray[Any, Any]] = [
        right[:-1],
        np.append(right, np.uint8(0)),
        behind,
        right.view("<i1"),
        right.astype(ring.dtype),
        ring.zeros(3),
        right.reshape(1, -1),
    ]
    for array in wrong:
        with pytest.raises(ValueError, match="stream"):
            ring.from_wire(array, 3)
    with pytest.raises(ValueError, match="stream"):
        ring.from_wire(right, 4)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_whole_words_travel_as_they_are(bits: int) -> None:
    ring = Ring(bits)
    vector = ring.zeros(3)
    assert ring.to_wire(vector) is vector
    assert ring.from_wire(vector, 3) is vector
    for other in (vector.view(np.uint8), vector[:2], vector.astype("<u1")):
        with pytest.raises(ValueError, match="is not a vector"):
            ring.from_wire(other, 3)
    assert PrimeField().on_wire(5) == (5, 8)
