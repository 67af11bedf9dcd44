"""Selection from comparisons alone, against sorting; and that it sees nothing but bits."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.scores.topk.frames import most_comparisons, require_sendable
from protocols.scores.topk.selection import FEW, FEW_OF_MANY, SAMPLE, best, few_candidates, pivot_place
from tests.support.score_batches import terms_of


def selected(keys: npt.NDArray[np.int64], top: int, few: int) -> tuple[list[int], list[int]]:
    """The places found, and how many comparisons each step had."""
    selecting, sizes = best(np.arange(len(keys)), top, few), []
    try:
        first, second = next(selecting)
        while True:
            assert len(first) == len(second) > 0
            assert not (first == second).any()
            sizes.append(len(first))
            first, second = selecting.send(keys[first] > keys[second])
    except StopIteration as end:
        return end.value.tolist(), sizes


def by_sorting(keys: npt.NDArray[np.int64], top: int) -> list[int]:
    return np.argsort(-keys)[:top].tolist()


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 600), st.integers(1, 700), st.sampled_from([2, 3, 20, FEW_OF_MANY, FEW]), st.integers(0, 2**32))
def test_is_that_of_sorting(length: int, top: int, few: int, seed: int) -> None:
    keys = np.random.default_rng(seed).permutation(length)
    assert selected(keys, top, few)[0] == by_sorting(keys, top)


@pytest.mark.parametrize("few", [FEW_OF_MANY, FEW])
@pytest.mark.parametrize("top", [1, 10, 100, 1999, 2000, 2001])
@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_is_that_of_sorting_in_the_worst_of_orders(order: str, top: int, few: int) -> None:
    """Keys that were not shuffled: the sample says nothing of the rest, and it takes longer, but ends."""
    keys = np.arange(2000) if order == "ascending" else np.arange(2000)[::-1]
    assert selected(keys, top, few)[0] == by_sorting(keys, top)


@pytest.mark.parametrize("length", range(1, 8))
@pytest.mark.parametrize("few", [2, 3])
def test_small_ones_with_next_to_no_sample(length: int, few: int) -> None:
    rng = np.random.default_rng(length)
    for top in range(1, length + 2):
        for _ in range(20):
            keys = rng.permutation(length)
            assert selected(keys, top, few)[0] == by_sorting(keys, top)


@pytest.mark.parametrize(("length", "queries"), [(15_000, 1), (75_000, 1), (15_000, 16), (300, 64)])
def test_takes_few_steps_and_no_step_beyond_what_frames_allow(length: int, queries: int) -> None:
    rng = np.random.default_rng(0)
    most = most_comparisons(terms_of(5, length))
    steps = []
    for _ in range(20):
        keys = rng.permutation(length)
        found, sizes = selected(keys, 10, few_candidates(queries))
        assert found == by_sorting(keys, 10)
        assert max(sizes) <= most
        assert sum(sizes) <= 2 * length + 3 * FEW**2
        steps.append(len(sizes))
    assert np.median(steps) <= 7


@given(st.integers(2, SAMPLE), st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_pivot_is_one_of_the_sample(sample: int, count: int, top: int) -> None:
    assert 0 <= pivot_place(sample, max(count, sample + 1), top) < sample


@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize("length", [1, 2, 3, 100, 256, 257, 600])
def test_no_step_is_larger_than_frames_allow(length: int, queries: int) -> None:
    """Whatever is asked for; of hidden queries `most_comparisons` is asked with more queries than there are."""
    rng, most = np.random.default_rng(length), most_comparisons(terms_of(3, length))
    for top in {1, 10, length // 2 + 1, length, length + 1}:
        for _ in range(5):
            sizes = selected(rng.permutation(length), top, few_candidates(queries))[1]
            assert max(sizes, default=0) <= most


def test_messages_of_small_unions_are_small() -> None:
    """So that many queries fit a batch."""
    require_sendable(terms_of(5, 100, queries=1000))
    with pytest.raises(ValueError, match="fewer queries at a time"):
        require_sendable(terms_of(5, 75_000, queries=1000))


def test_what_is_compared_depends_on_the_ranks_alone() -> None:
    """Keys of one order, however far apart, take the same comparisons: what a simulator makes of N and k."""
    rng = np.random.default_rng(4)
    ranks = rng.permutation(1000)
    values = np.sort(rng.integers(-(2**62), 2**62, 1000))[ranks]
    assert selected(ranks, 7, 64) == selected(values, 7, 64)


def test_large_batches_compare_fewer_with_each_other() -> None:
    assert [few_candidates(queries) for queries in (1, 4, 5, 64)] == [FEW, FEW, FEW_OF_MANY, FEW_OF_MANY]
