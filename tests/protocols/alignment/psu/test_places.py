"""Places: each tag of the union finds its own position, every other tag some position, and that is all they tell."""

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.places import places_of, positions_in
from protocols.alignment.psu.table import Peeled, PeelFailed, PeelRound, peel_in_rounds
from protocols.primitives.group import FieldArray
from tests.support.set_unions import random_tags, total_of, unresolved

pytestmark = pytest.mark.long

SALT = b"a salt of these tests"


def peeled_of(tags: FieldArray, layout: TableLayout) -> Peeled:
    return peel_in_rounds(total_of([tags], layout), layout)


@given(st.integers(1, 200), st.integers(0, 2**32))
@settings(deadline=None)
def test_the_union_fills_its_positions_one_to_one(size: int, seed: int) -> None:
    tags = random_tags(size, seed)
    layout = TableLayout.for_bound(size, SALT)
    while len(unresolved(layout.cells_of(*tags.T))):  # one in 1000
        layout = TableLayout(4 * layout.third, SALT)
    places = places_of(peeled_of(tags, layout), layout)
    assert places.dtype == np.uint32
    assert places.shape == (layout.cells,)
    assert places.max() < size
    assert sorted(positions_in(places, size, tags, layout)) == list(range(size))


def test_a_large_union_in_a_full_table() -> None:
    """Some fifty rounds of peeling, with tags that depend on each other throughout."""
    size = 50_000
    tags, layout = random_tags(size, 1), TableLayout.for_bound(size, SALT)
    peeled = peeled_of(tags, layout)
    assert len(peeled.rounds) > 20
    places = places_of(peeled, layout)
    assert np.array_equal(np.sort(positions_in(places, size, tags, layout)), np.arange(size))


def test_a_round_can_be_set_at_once() -> None:
    """What the proof rests on: the cell a tag was alone in belongs to no other tag of its round or of a later one."""
    layout = TableLayout.for_bound(20_000, SALT)
    rounds = peeled_of(random_tags(20_000, 2), layout).rounds
    assert len(rounds) > 10
    for number, peeled in enumerate(rounds):
        alone = peeled.cells[peeled.alone, np.arange(len(peeled.alone))]
        uses = np.bincount(np.concatenate([later.cells for later in rounds[number:]], axis=1).reshape(-1))
        assert (uses[alone] == 1).all()


def test_places_are_dealt_out_afresh_every_time() -> None:
    tags, layout = random_tags(1000, 3), TableLayout.for_bound(1000, SALT)
    peeled = peeled_of(tags, layout)
    first, second = (positions_in(places_of(peeled, layout), 1000, tags, layout) for _ in range(2))
    assert (first == second).sum() < 20


def test_every_order_of_a_small_union_is_equally_likely() -> None:
    tags, layout = random_tags(4, 4), TableLayout.for_bound(4, SALT)
    peeled, draws = peeled_of(tags, layout), 4800
    seen = Counter(tuple(positions_in(places_of(peeled, layout), 4, tags, layout).tolist()) for _ in range(draws))
    assert seen.keys() == set(permutations(range(4)))
    statistic = sum((times - draws / 24) ** 2 for times in seen.values()) / (draws / 24)
    assert statistic < 90  # 23 degrees of freedom: 10^-9 to fail by chance


@pytest.mark.parametrize("size", [64, 20_000], ids=["most cells free", "most cells set"])
def test_other_tags_have_positions_as_well_and_uniform_ones(size: int) -> None:
    others = random_tags(64_000, 5)
    tags, layout = random_tags(size, 6), TableLayout.for_bound(size, SALT)
    positions = positions_in(places_of(peeled_of(tags, layout), layout), size, others, layout)
    assert positions.min() >= 0
    assert positions.max() < size
    observed = np.bincount(positions % 50, minlength=50)
    expected = np.array([np.sum(np.arange(size) % 50 == rest) for rest in range(50)]) * len(others) / size
    # Tags that share cells share numbers, so the counts vary a little more than independent ones would.
    assert ((observed - expected) ** 2 / expected).sum() < 50 + 12 * 100**0.5


def test_each_cell_is_uniform_over_many_draws() -> None:
    """Those that tags have set and those that are free alike."""
    size, draws = 8, 3000
    tags = random_tags(size, 7)
    layout = TableLayout(8, SALT)
    peeled = peeled_of(tags, layout)
    numbers = np.stack([places_of(peeled, layout) for _ in range(draws)])
    for cell in numbers.T:
        observed = np.bincount(cell, minlength=size)
        assert ((observed - draws / size) ** 2).sum() / (draws / size) < 60  # 7 degrees of freedom


def test_no_two_tags_of_the_union_ever_share_a_position_so_a_guess_can_be_ruled_out() -> None:
    """The documented leak, and its size: a wrong guess meets one of a client's own positions with probability a / m."""
    size, own = 1000, 300
    tags, guesses = random_tags(size, 8), random_tags(20_000, 9)
    layout = TableLayout.for_bound(size, SALT)
    places = places_of(peeled_of(tags, layout), layout)
    mine = set(positions_in(places, size, tags[:own], layout).tolist())
    assert not mine & set(positions_in(places, size, tags[own:], layout).tolist())
    ruled_out = sum(position in mine for position in positions_in(places, size, guesses, layout).tolist())
    assert abs(ruled_out / len(guesses) - own / size) < 0.06


def test_tags_wrongly_taken_for_tags_alone_are_noticed() -> None:
    """One cell for two tags of the same round: only weights that were chosen instead of drawn would come to that."""
    layout = TableLayout(1, SALT)
    tags = random_tags(2, 10)
    cells = layout.cells_of(*tags.T)
    weights = np.ones(2, dtype=np.uint64)
    together = Peeled((PeelRound(tags, weights, cells, np.array([0, 0])),))
    with pytest.raises(PeelFailed, match="taken for a tag alone"):
        places_of(together, layout)
    alone = PeelRound(tags[:1], weights[:1], cells[:, :1], np.array([0]))
    assert positions_in(places_of(Peeled((alone,)), layout), 1, tags[:1], layout).tolist() == [0]
    one_by_one = Peeled((alone, replace(alone, tags=tags[1:], cells=cells[:, 1:])))
    with pytest.raises(PeelFailed, match="taken for a tag alone"):
        places_of(one_by_one, layout)


def test_an_empty_union_has_no_places() -> None:
    with pytest.raises(ValueError, match="union of 0"):
        places_of(Peeled(()), TableLayout(1))
    assert positions_in(np.zeros(3, dtype=np.uint32), 1, random_tags(0, 0), TableLayout(1)).shape == (0,)
