"""Words: keystreams, permutations and the order of bits, against plain loops and known statistics."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.scores.topk import words as module
from protocols.scores.topk.words import AnyWords, in_tree_order, keystream, permutation

KEYS = [number.to_bytes(32, "little") for number in range(12_000)]


def backwards(word: int) -> int:
    """Bit by bit."""
    result = 0
    for bit in range(64):
        place = int(f"{bit:06b}"[::-1], 2)
        result |= (word >> bit & 1) << place
    return result


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_tree_order_is_that_of_a_plain_loop(numbers: list[int]) -> None:
    found = in_tree_order(np.array(numbers, dtype=np.uint64))
    assert found.tolist() == [backwards(number) for number in numbers]


def test_tree_order_of_every_single_bit() -> None:
    singles = [1 << bit for bit in range(64)]
    found = in_tree_order(np.array(singles, dtype=np.uint64))
    assert found.tolist() == [backwards(number) for number in singles]
    assert in_tree_order(found).tolist() == singles


@pytest.mark.parametrize("kind", ["<u1", "<u2", "<u4", "<u8"])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000])
def test_a_keystream_of_narrow_words_is_the_same_bytes(kind: str, count: int) -> None:
    words = keystream(KEYS[1], count, kind)
    assert words.dtype == np.dtype(kind)
    assert len(words) == count
    assert keystream(KEYS[1], 1000).tobytes().startswith(words.tobytes())
    assert keystream(KEYS[2], 1000).tobytes()[: words.nbytes] != words.tobytes() or count < 3


@pytest.mark.parametrize("length", [0, 1, 2, 1000])
def test_a_permutation_has_every_place_once(length: int) -> None:
    assert sorted(permutation(KEYS[0], length).tolist()) == list(range(length))
    assert np.array_equal(permutation(KEYS[0], length), permutation(KEYS[0], length))


def test_permutations_are_uniform() -> None:
    """All 24 of four places; of 23 degrees of freedom the statistic exceeds 72 once in half a million."""
    found = [tuple(permutation(key, 4).tolist()) for key in KEYS]
    counts = [found.count(order) for order in permutations(range(4))]
    mean = len(KEYS) / 24
    statistic = sum((count - mean) ** 2 for count in counts) / mean
    assert sum(counts) == len(KEYS)
    assert 4 < statistic < 72


def test_where_a_place_goes_is_uniform() -> None:
    """Of 100 places: 99 degrees of freedom, mean 99, standard deviation 14."""
    went = np.array([permutation(key, 100)[[0, 50, 99]] for key in KEYS])
    for column in went.T:
        counts = np.bincount(column, minlength=100)
        assert 40 < ((counts - 120.0) ** 2).sum() / 120 < 190


def test_equal_words_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal words would keep their order, and so tell something of what they stand for."""
    straight = keystream

    def often_equal(key: bytes, count: int) -> AnyWords:
        return straight(key, count) & np.uint64(7)

    monkeypatch.setattr(module, "keystream", often_equal)
    found = [tuple(permutation(key, 3).tolist()) for key in KEYS[:3000]]
    counts = [found.count(order) for order in permutations(range(3))]
    assert sum((count - 500) ** 2 for count in counts) / 500 < 31  # 5 degrees of freedom: once in 100,000
