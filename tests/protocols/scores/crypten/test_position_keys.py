"""Keys whose order is that of the answers, and the words that the asker reads of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.foundation.errors import EncodingOverflow, PeerMisbehaved
from protocols.scores.crypten.position_keys import PositionKeys
from protocols.scores.crypten.selection import comparisons
from protocols.scores.plain import in_clear
from protocols.scores.ranking import keys_of, rank
from protocols.scores.terms import MOST_CLIENTS, MOST_POSITIONS
from tests.support.score_batches import some_scores, terms_of


def keys_in_clear(keys: PositionKeys, seed: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Keys by their definition, in numbers without a limit, and what `rank` makes of the same scores."""
    terms = keys.terms
    sums = in_clear(some_scores(terms, seed, share), terms)
    means = keys_of(sums, terms)[0].astype(object)
    given = sums.counts > 0
    ranked = rank(sums, frozenset(), terms).positions[0]
    mark = 1 << keys.position_bits
    return np.where(given, (means + keys.largest_mean) * mark + keys.tails, keys.tails - mark), ranked


@given(
    st.integers(3, 6), st.integers(1, 40), st.integers(1, 50), st.integers(0, 1000), st.sampled_from([0.0, 0.2, 0.8])
)
def test_the_order_of_the_keys_is_that_of_the_answers(
    clients: int, positions: int, top: int, seed: int, share: float
) -> None:
    keys = PositionKeys(terms_of(clients, positions, top=top))
    clear, ranked = keys_in_clear(keys, seed, share)
    assert len(set(clear.tolist())) == positions
    assert min(clear) > keys.least
    assert max(clear) - keys.least < 2**63
    best = sorted(clear.tolist(), reverse=True)[: keys.answers]
    mark = 1 << keys.position_bits
    words = np.array([[0 if key < 0 else key % mark + mark for key in best]], dtype=np.int64)
    assert keys.read(words)[0].tolist() == ranked.tolist()


def test_the_largest_batch_fits_and_larger_bounds_do_not_change_that() -> None:
    for bound in (1.0, 16.0, 1e5):
        PositionKeys(terms_of(MOST_CLIENTS, MOST_POSITIONS, bound=bound))


def test_keys_that_could_overflow_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PositionKeys, "position_bits", 24)
    with pytest.raises(EncodingOverflow, match="do not fit 63 bits"):
        PositionKeys(terms_of(MOST_CLIENTS, MOST_POSITIONS))


@pytest.mark.parametrize(
    "row",
    [
        [0, 8 + 7],  # an answer after none
        [8 + 7, 8 + 7],  # twice the same
        [7, 0],  # without its mark
        [8 + 2, 0],  # position 5 of 5
        [16 + 7, 0],
        [-1, 0],
        [-(2**63), 0],
    ],
)
def test_words_that_are_none_are_refused(row: list[int]) -> None:
    keys = PositionKeys(terms_of(3, 5, top=2))
    assert keys.read(np.array([[8 + 7, 8 + 3]]))[0].tolist() == [0, 4]
    with pytest.raises(PeerMisbehaved, match="do not fit together"):
        keys.read(np.array([row], dtype=np.int64))


def test_how_many_comparisons_a_query_has() -> None:
    assert comparisons(1, 1) == (0, 0)
    assert comparisons(2, 1) == (1, 1)
    assert comparisons(2, 2) == (1, 1)
    assert comparisons(4, 2) == (5, 3)  # twice one, then two and one
    assert comparisons(15_000, 10) == (120_016, 60)
