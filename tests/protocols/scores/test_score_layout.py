"""The vector of a batch and its check, against Python's integers; and changes that a server might make."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.group import MODULUS, GroupVector, PrimeField
from protocols.primitives.prg import combine_keystreams
from protocols.scores import layout as module
from protocols.scores.interface import encode
from protocols.scores.layout import ScoreLayout
from protocols.scores.plain import in_clear
from protocols.scores.terms import RING, ScoreTerms
from tests.support.score_batches import some_scores, terms_of

KEY = bytes(range(32))
TERMS = terms_of(5, 10, queries=3)


def total_of(terms: ScoreTerms, seed: int = 0, share: float = 0.6) -> GroupVector:
    """Of all scorers, added up in the ring."""
    layout, scores = ScoreLayout(terms), some_scores(terms, seed, share)
    total = RING.zeros(layout.entries)
    for party in terms.scorers:
        RING.add_into(total, layout.vector(encode(scores[party], terms), KEY))
    return total


def check_by_integers(vector: GroupVector, terms: ScoreTerms) -> int:
    """The linear form with nothing of the field's own arithmetic."""
    layout = ScoreLayout(terms)
    factors = np.zeros(layout.checked_entries, dtype=np.uint64)
    combine_keystreams(factors, PrimeField(), [KEY])
    entries = [int(entry) for entry in vector[: layout.checked_entries]]
    cells = [entry - (1 << 32) if entry >= 1 << 31 else entry for entry in entries[: terms.cells]]
    numbers = cells + entries[terms.cells :]
    return sum(int(factor) * number for factor, number in zip(factors, numbers, strict=True)) % MODULUS


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 12), st.integers(1, 40), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_a_total_reads_as_the_sum_of_its_vectors(clients: int, positions: int, queries: int, seed: int) -> None:
    terms = terms_of(clients, positions, queries=queries)
    scores = some_scores(terms, seed)
    scores.pop(terms.asker)
    found = ScoreLayout(terms).read_checked(total_of(terms, seed), KEY)
    expected = in_clear(scores, terms)
    assert np.array_equal(found.sums, expected.sums)
    assert np.array_equal(found.counts, expected.counts)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_the_check_is_the_linear_form_over_the_integers(positions: int, queries: int, seed: int) -> None:
    terms = terms_of(3, positions, queries=queries)
    layout, scores = ScoreLayout(terms), some_scores(terms, seed)
    vector = layout.vector(encode(scores[terms.scorers[0]], terms), KEY)
    limbs = vector[layout.checked_entries :].tolist()
    assert all(0 <= limb < 1 << 16 for limb in limbs)
    assert sum(limb << 16 * place for place, limb in enumerate(limbs)) == check_by_integers(vector, terms)


def test_blocks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that end within the scores, at their end, and within the counts."""
    vector = total_of(TERMS)
    for block in (1, 7, TERMS.cells, TERMS.cells + 1):
        monkeypatch.setattr(module, "_BLOCK", block)
        ScoreLayout(TERMS).read_checked(vector, KEY)


LARGEST = round(TERMS.codec.largest_value * TERMS.codec.scale)


@pytest.mark.parametrize("cell", [LARGEST, -LARGEST])
def test_sums_at_the_bound_read_back(cell: int) -> None:
    layout = ScoreLayout(TERMS)
    scores = some_scores(TERMS, share=1.1)
    encoded = encode(scores[TERMS.scorers[0]], TERMS)
    encoded.cells[:] = cell
    total = RING.zeros(layout.entries)
    for _ in TERMS.scorers:
        RING.add_into(total, layout.vector(encoded, KEY))
    found = layout.read_checked(total, KEY)
    assert (found.sums == len(TERMS.scorers) * cell).all()
    assert (found.counts == len(TERMS.scorers)).all()


def plus_one(place: int) -> Callable[[GroupVector], None]:
    def change(total: GroupVector) -> None:
        total[place] += np.uint32(1)

    return change


def swap(total: GroupVector) -> None:
    total[[0, 1]] = total[[1, 0]]


def negate(total: GroupVector) -> None:
    total[: TERMS.cells] = -total[: TERMS.cells]


def wrap(total: GroupVector) -> None:
    """By 2^31: the largest change that there is."""
    total[0] ^= np.uint32(1 << 31)


def clear(total: GroupVector) -> None:
    """Sums and counts of one position, and nothing else."""
    total[: TERMS.cells].reshape(TERMS.queries, -1)[:, 3] = 0
    total[TERMS.cells : ScoreLayout(TERMS).checked_entries].view(np.uint8)[3] = 0


CHANGES: dict[str, Callable[[GroupVector], None]] = {
    "first score": plus_one(0),
    "last score": plus_one(TERMS.cells - 1),
    "first count": plus_one(TERMS.cells),
    "padding of counts": plus_one(ScoreLayout(TERMS).checked_entries - 1),
    "lowest limb": plus_one(ScoreLayout(TERMS).checked_entries),
    "highest limb": plus_one(ScoreLayout(TERMS).entries - 1),
    "two swapped": swap,
    "negated": negate,
    "wrapped": wrap,
    "position left out": clear,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_total_does_not_pass(change: Callable[[GroupVector], None]) -> None:
    layout, total = ScoreLayout(TERMS), total_of(TERMS)
    change(total)
    with pytest.raises(PeerMisbehaved, match="none of these contributors"):
        layout.read_checked(total, KEY)


def test_the_check_is_linear_and_so_passes_multiples() -> None:
    """It is the asker's masks that a server cannot multiply along with the total."""
    layout = ScoreLayout(TERMS)
    total = total_of(TERMS, share=0.3)
    mask = np.random.default_rng(0).integers(0, 1 << 32, layout.entries, dtype=np.uint32)
    assert np.array_equal(layout.read_checked(2 * total, KEY).sums, 2 * layout.read(total).sums)
    with pytest.raises(PeerMisbehaved, match="none of these contributors"):
        layout.read_checked(2 * (total + mask) - mask, KEY)


def test_limbs_that_stand_for_the_same_check_change_nothing_that_is_read() -> None:
    """2^16 of one limb is 1 of the next: the one change that passes."""
    layout, total = ScoreLayout(TERMS), total_of(TERMS)
    before = layout.read_checked(total, KEY)
    total[layout.checked_entries] += np.uint32(1 << 16)
    total[layout.checked_entries + 1] -= np.uint32(1)
    after = layout.read_checked(total, KEY)
    assert np.array_equal(before.sums, after.sums)
    assert np.array_equal(before.counts, after.counts)


def test_a_total_under_other_factors_does_not_pass() -> None:
    with pytest.raises(PeerMisbehaved, match="none of these contributors"):
        ScoreLayout(TERMS).read_checked(total_of(TERMS), bytes(32))


def test_impossible_counts_are_refused() -> None:
    layout, total = ScoreLayout(TERMS), RING.zeros(ScoreLayout(TERMS).entries)
    total[TERMS.cells] = len(TERMS.scorers) + 1
    with pytest.raises(PeerMisbehaved, match="none of these contributors"):
        layout.read(total)
