"""Slots of large integers: sums of packed words are the packed sums, for as many addends as there is room for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.scores.encrypted.packing import Slots

WORDS = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31, 2**32 - 1])


@given(st.integers(1, 13), st.integers(36, 300), st.data())
@settings(deadline=None, max_examples=60)
def test_slots_add_up_modulo_two_to_the_32(addends: int, bits: int, data: st.DataObject) -> None:
    slots = Slots(addends, bits)
    length = data.draw(st.integers(0, 20))
    vectors = [data.draw(st.lists(WORDS, min_size=length, max_size=length)) for _ in range(addends)]
    packed = [slots.pack(np.array(vector, dtype=np.uint32)) for vector in vectors]
    sums = [sum(column) for column in zip(*packed, strict=True)]
    assert all(one < 1 << slots.used_bits <= 1 << bits for one in sums)
    expected = [sum(column) % 2**32 for column in zip(*vectors, strict=True)]
    assert slots.unpack(sums, length).tolist() == expected


@given(st.lists(WORDS, min_size=1, max_size=70), st.integers(1, 13))
@settings(deadline=None)
def test_the_first_word_is_in_the_lowest_slot(words: list[int], addends: int) -> None:
    slots = Slots(addends, 2046)
    per, width = slots.per_integer, slots.slot_bits
    by_hand = [
        sum(word << (width * place) for place, word in enumerate(words[start : start + per]))
        for start in range(0, len(words), per)
    ]
    assert slots.pack(np.array(words, dtype=np.uint32)) == by_hand
    assert len(by_hand) == slots.integers(len(words))


@pytest.mark.parametrize(
    ("addends", "slot_bits"), [(1, 32), (2, 33), (3, 34), (4, 34), (5, 35), (8, 35), (9, 36), (13, 36)]
)
def test_slots_have_room_for_all_carries_and_no_more(addends: int, slot_bits: int) -> None:
    assert Slots(addends, 2046).slot_bits == slot_bits
    assert addends * (2**32 - 1) < 1 << slot_bits
    assert addends == 1 or addends * (2**32 - 1) >= 1 << (slot_bits - 1)


def test_one_addend_too_many_spoils_the_neighbour() -> None:
    """Why there are carry bits: without them the sum of a slot runs into the next one."""
    slots = Slots(4, 2046)
    packed = slots.pack(np.full(slots.per_integer, 2**32 - 1, dtype=np.uint32))
    good, bad = slots.unpack([4 * packed[0]], slots.per_integer), Slots(1, 2046)
    assert (good == 2**32 - 4).all()
    narrow = bad.pack(np.full(bad.per_integer, 2**32 - 1, dtype=np.uint32))
    wrong = bad.unpack([(4 * narrow[0]) % (1 << bad.used_bits)], bad.per_integer)
    assert np.count_nonzero(wrong != 2**32 - 4) >= bad.per_integer - 1


def test_what_is_no_sum_is_refused() -> None:
    slots = Slots(5, 100)
    with pytest.raises(OverflowError, match="more than 70 bits"):
        slots.unpack([1 << slots.used_bits], 2)
    for addends, bits in ((0, 100), (5, 34)):
        with pytest.raises(ValueError, match="no slot"):
            Slots(addends, bits)
