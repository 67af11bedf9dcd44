"""Keys of 64 bits, in Python's integers: order, room, and the answer in their lowest bits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import EncodingOverflow, PeerMisbehaved
from protocols.scores.terms import MOST_CLIENTS, MOST_POSITIONS, ScoreTerms
from protocols.scores.topk.keys import KeyLayout, largest_score
from protocols.scores.topk.words import Words
from tests.support.score_batches import terms_of


def signed(words: Words) -> list[int]:
    return [int(word) for word in words.reshape(-1).view(np.int64)]


def keys_of(layout: KeyLayout, means: list[int], given_: list[int]) -> list[int]:
    """From one client's shares, which are the numbers themselves."""
    made = np.array([means], dtype=np.int64).view(np.uint64)
    return signed(layout.keys(made, np.array(given_, dtype=np.uint64), leads=True))


def widest(terms: ScoreTerms) -> KeyLayout:
    return KeyLayout(terms, largest_score(terms))


@pytest.mark.parametrize("clients", range(3, MOST_CLIENTS + 1))
@pytest.mark.parametrize("positions", [1, 2, 3, 15_000, 75_000, MOST_POSITIONS])
@pytest.mark.parametrize("by_distance", [False, True])
def test_no_difference_of_two_keys_leaves_63_bits(clients: int, positions: int, by_distance: bool) -> None:
    """The largest and the least key that there are, of scores as large as is allowed.

    A hidden query by distance has no mean above zero, and one of -largest even where nobody gave a score.
    """
    layout = widest(terms_of(clients, positions))
    best, without = (0, -layout.largest_mean) if by_distance else (layout.largest_mean, 0)
    step, names = 1 << layout.low_bits, 2 * ((1 << layout.position_bits) - 1)
    highest = best * step + names + 1
    lowest = (without - layout.largest_mean - 1) * step
    assert highest - lowest < 1 << 63
    assert lowest >= -(1 << 63)
    if 1 < positions < MOST_POSITIONS:
        found = keys_of(layout, [best] + [without] * (positions - 1), [1] + [0] * (positions - 1))
        assert found[0] == highest
        assert found[-1] == lowest + names - 2 * (positions - 1)


@pytest.mark.parametrize("clients", [3, 7, 12])
@pytest.mark.parametrize("positions", [2, 75_000])
def test_scores_beyond_the_room_are_refused(clients: int, positions: int) -> None:
    terms = terms_of(clients, positions)
    KeyLayout(terms, largest_score(terms))
    with pytest.raises(EncodingOverflow, match="do not fit"):
        KeyLayout(terms, largest_score(terms) + 1)


@pytest.mark.parametrize("clients", range(3, MOST_CLIENTS + 1))
def test_encoded_scores_fit_a_union_of_any_size(clients: int) -> None:
    try:
        layout = KeyLayout.of_scores(terms_of(clients, MOST_POSITIONS))
    except EncodingOverflow:
        layout = KeyLayout.of_scores(terms_of(clients, 75_000))
    assert layout.largest > 1 << 20


@settings(max_examples=60, deadline=None)
@given(
    st.integers(3, 12),
    st.lists(st.tuples(st.sampled_from([-1000, -999, -500, 0, 1, 500, 1000]), st.booleans()), min_size=1, max_size=40),
)
def test_order_is_by_mean_then_by_position_and_none_without_a_score_before_one(
    clients: int, entries: list[tuple[int, bool]]
) -> None:
    layout = widest(terms_of(clients, len(entries)))
    means = [thousandths * layout.largest_mean // 1000 if gave else 0 for thousandths, gave in entries]
    keys = keys_of(layout, means, [int(gave) for _, gave in entries])
    assert len(set(keys)) == len(keys)
    order = sorted(range(len(entries)), key=lambda position: -keys[position])
    expected = sorted(range(len(entries)), key=lambda one: (not entries[one][1], -means[one], one))
    assert order == expected
    low = np.array(keys, dtype=np.int64).view(np.uint64)[order] & np.uint64((1 << layout.low_bits) - 1)
    assert layout.answer(low).tolist() == [position for position in expected if entries[position][1]]


def test_shares_of_keys_add_up_to_keys() -> None:
    layout = KeyLayout.of_scores(terms_of(3, 5, queries=2))
    rng = np.random.default_rng(0)
    means = rng.integers(-1000, 1000, (2, 5))
    given_ = np.array([1, 0, 1, 1, 0])
    means[:, given_ == 0] = 0
    parts = [rng.integers(0, 2**64, (2, 5), dtype=np.uint64) for _ in range(2)]
    givens = [rng.integers(0, 2**64, 5, dtype=np.uint64) for _ in range(2)]
    parts.append(means.view(np.uint64) - parts[0] - parts[1])
    givens.append(given_.astype(np.uint64) - givens[0] - givens[1])
    pairs = zip(parts, givens, strict=True)
    total = sum(layout.keys(part, one, number == 0) for number, (part, one) in enumerate(pairs))
    whole = layout.keys(means.view(np.uint64), given_.astype(np.uint64), leads=True)
    assert np.array_equal(total, whole)


@pytest.mark.parametrize("clients", range(2, MOST_CLIENTS + 1))
def test_tables_of_every_count(clients: int) -> None:
    terms = terms_of(max(3, clients), 5)
    terms = replace(terms, clients=terms.clients[:clients], asker=9 if clients < 3 else terms.asker)
    weights, given_ = KeyLayout.of_scores(terms).tables().tolist()
    assert weights[0] == given_[0] == 0
    for count in range(1, clients + 1):
        assert weights[count] * count == terms.common_multiple
        assert given_[count] == 1


@pytest.mark.parametrize(
    ("low", "problem"), [(1 << 4, "is none"), (2 * (7 - 5) + 1, "outside"), (2 * (7 - 7), "outside")]
)
def test_an_answer_that_is_none_is_refused(low: int, problem: str) -> None:
    layout = KeyLayout.of_scores(terms_of(3, 5))
    assert layout.low_bits == 4
    with pytest.raises(PeerMisbehaved, match=problem):
        layout.answer(np.array([low], dtype=np.uint64))
