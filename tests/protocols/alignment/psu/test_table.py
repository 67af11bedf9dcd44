"""Tables: the sum of written sets peels to their union or to nothing, and does not show who holds what."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.alignment.psu import table as table_module
from protocols.alignment.psu import union as union_module
from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.table import PeelFailed, peel, peel_in_rounds, write
from protocols.alignment.psu.tags import tags_of
from protocols.foundation import wire
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import SETUP, SessionId
from protocols.primitives.group import MODULUS, FieldArray
from protocols.primitives.prg import combine_keystreams
from protocols.sums.secagg.messages import MaskedInput
from tests.support.holders_statistics import HOLDERS, look_alike
from tests.support.set_unions import FIELD, added, as_pairs, random_tags, total_of, union_of, unresolved
from tests.support.uniformity import ENTRIES

pytestmark = pytest.mark.long

KEY = bytes(range(32))
SALT = b"a salt of these tests"


def peeled_with_patience(sets: list[FieldArray], layout: TableLayout) -> FieldArray:
    """One failure in 1000 is expected: what a caller does then is to take a larger table."""
    for _ in range(3):
        try:
            return peel(total_of(sets, layout), layout)
        except PeelFailed:
            layout = TableLayout(4 * layout.third, layout.salt)
    raise AssertionError("three tables in a row cannot be peeled")


# --- unions ---------------------------------------------------------------------------------------------------------


@st.composite
def client_sets(draw: st.DrawFn) -> list[FieldArray]:
    pool = random_tags(draw(st.integers(1, 60)), draw(st.integers(0, 2**32)))
    indices = st.lists(st.integers(0, len(pool) - 1), max_size=80)
    chosen = draw(st.lists(indices, min_size=1, max_size=10))
    return [pool[np.array(members, dtype=np.int64)] for members in chosen]


@given(client_sets())
@settings(deadline=None)
def test_the_sum_peels_to_the_union(sets: list[FieldArray]) -> None:
    """Empty, equal, disjoint and overlapping sets, a tag twice in one set, 1 to 10 clients."""
    expected = union_of(sets)
    result = peeled_with_patience(sets, TableLayout.for_bound(len(expected), SALT))
    assert result.dtype == np.uint64
    assert result.shape == (len(expected), 2)
    assert as_pairs(result) == expected


POOL = random_tags(1000, 11)
NAMED_CASES = {
    "nobody has anything": [POOL[:0]] * 3,
    "one client": [POOL],
    "one client with one tag": [POOL[:1]],
    "one of several clients": [POOL[:0], POOL, POOL[:0]],
    "identical": [POOL] * 5,
    "disjoint": [POOL[start : start + 100] for start in range(0, 1000, 100)],
    "nested": [POOL[:size] for size in (1, 10, 100, 1000)],
    "all duplicates of one tag": [np.repeat(POOL[:1], 1000, axis=0)] * 3,
    "edges of the field": [np.array([[a, b] for a in (0, 1, MODULUS - 1) for b in (0, 1, MODULUS - 1)], np.uint64)] * 2,
}


@pytest.mark.parametrize("sets", NAMED_CASES.values(), ids=NAMED_CASES)
def test_named_cases(sets: list[FieldArray]) -> None:
    expected = union_of(sets)
    assert as_pairs(peel(total_of(sets, layout := TableLayout.for_bound(1000, SALT)), layout)) == expected
    assert as_pairs(peel(total_of(sets, layout := TableLayout.for_bound(len(expected), SALT)), layout)) == expected


def test_names_of_any_script() -> None:
    names = [{"Ω", "名前", "🜁"}, {"名前", "", "e\u0301"}, {"é", "\ud800", "Ω"}]
    layout = TableLayout.for_bound(9, SALT)
    result = peel(total_of([tags_of(sorted(held), KEY) for held in names], layout), layout)
    assert as_pairs(result) == union_of([tags_of(sorted(set.union(*names)), KEY)])


def test_the_smallest_table_holds_one_tag() -> None:
    layout = TableLayout(1)
    assert as_pairs(peel(total_of([POOL[:1]] * 4, layout), layout)) == union_of([POOL[:1]])


def test_cells_with_many_tags_do_not_leave_the_field() -> None:
    """A word holds the sum of eight elements; here each cell holds a thousand."""
    layout = TableLayout(1)
    table = write(POOL, layout)
    FIELD.require(table, layout.entries)
    entries = table.reshape(4, 3)
    assert (entries == entries[:, :1]).all()
    places = np.zeros((3, len(POOL)), dtype=np.int64)
    values = np.full(len(POOL), MODULUS - 1, dtype=np.uint64)
    assert table_module._sums(places, values, 1).tolist() == [-3 * len(POOL) % MODULUS]


def test_a_tag_adds_its_multiples_to_its_cells() -> None:
    layout = TableLayout(50, SALT)
    entries = write(POOL[:1], layout).reshape(4, layout.cells)
    own = layout.cells_of(*POOL[:1].T).reshape(-1)
    assert sorted(np.flatnonzero(entries.any(axis=0))) == sorted(own)
    weight, first, second, check = (int(entry) for entry in entries[:, own[0]])
    x1, x2 = (int(limb) for limb in POOL[0])
    assert [first, second, check] == [weight * factor % MODULUS for factor in (x1, x2, x1 * x1 + x2 * x2)]


def test_inputs_are_left_as_they_were() -> None:
    layout = TableLayout.for_bound(1000, SALT)
    tags = POOL.copy()
    total = write(tags, layout)
    before = total.copy()
    peel(total, layout)
    assert np.array_equal(tags, POOL)
    assert np.array_equal(total, before)


# --- what is refused ------------------------------------------------------------------------------------------------

OF_ANOTHER_SHAPE = [np.zeros(2, np.uint64), np.zeros((2, 3), np.uint64), np.zeros((1, 2, 2), np.uint64)]


@pytest.mark.parametrize("tags", OF_ANOTHER_SHAPE, ids=lambda tags: str(tags.shape))
def test_tags_of_another_shape_are_refused(tags: FieldArray) -> None:
    with pytest.raises(ValueError, match="tags of shape"):
        write(tags, TableLayout(10))


@pytest.mark.parametrize("tags", [np.full((1, 2), MODULUS, np.uint64), np.zeros((1, 2), np.int64)])
def test_tags_outside_the_field_are_refused(tags: FieldArray) -> None:
    with pytest.raises(ValueError, match="2\\^61-1"):
        write(tags, TableLayout(10))


@pytest.mark.parametrize(
    "total", [np.zeros(119, np.uint64), np.zeros(120, np.int64), np.full(120, MODULUS, np.uint64)], ids=range(3)
)
def test_totals_of_another_layout_or_outside_the_field_are_refused(total: FieldArray) -> None:
    with pytest.raises(ValueError, match="2\\^61-1"):
        peel(total, TableLayout(10))


# --- never a wrong set ----------------------------------------------------------------------------------------------


def test_a_failure_is_a_protocol_error() -> None:
    assert issubclass(PeelFailed, ProtocolError)


@pytest.mark.parametrize("third", [1, 5, 20, 100, 300])
@pytest.mark.parametrize("load", [1.0, 1.5, 5.0])
def test_overfull_tables_fail(third: int, load: float) -> None:
    """From one tag per cell on: peeling takes a cell for each tag, so it cannot succeed."""
    layout = TableLayout(third, SALT)
    count = int(load * layout.cells) + 1
    for seed in range(20):
        with pytest.raises(PeelFailed, match="cannot be resolved"):
            peel(total_of([random_tags(count, seed)] * 2, layout), layout)


def test_tables_around_the_threshold_give_the_union_exactly_if_counting_cells_says_so() -> None:
    layout = TableLayout(20, SALT)
    resolved = []
    for seed in range(300):
        tags = random_tags(30 + seed % 25, seed)
        resolved.append(not len(unresolved(layout.cells_of(*tags.T))))
        if resolved[-1]:
            assert as_pairs(peel(write(tags, layout), layout)) == union_of([tags])
        else:
            with pytest.raises(PeelFailed):
                peel(write(tags, layout), layout)
    assert 25 < sum(resolved) < 275


def test_two_tags_in_the_same_three_cells_fail() -> None:
    layout = TableLayout(1)
    with pytest.raises(PeelFailed, match="3 of 3 cells"):
        peel(write(POOL[:2], layout), layout)


@given(st.data())
@settings(deadline=None, max_examples=120)
def test_a_changed_entry_never_gives_a_wrong_tag(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 20))
    tags = POOL[:count]
    layout = TableLayout.for_bound(count, SALT)
    total = total_of([tags, tags[: count // 2]], layout)
    # Half of the changes hit a cell in use, whatever the load.
    used = np.flatnonzero(total)
    hit = len(used) > 0 and data.draw(st.booleans())
    place = data.draw(st.sampled_from(used.tolist()) if hit else st.integers(0, layout.entries - 1))
    change = data.draw(st.integers(1, MODULUS - 1))
    total[place] = (int(total[place]) + change) % MODULUS
    with pytest.raises(PeelFailed):
        peel(total, layout)


def test_many_random_changes_never_give_a_wrong_tag() -> None:
    generator = np.random.default_rng(5)
    layout = TableLayout.for_bound(46, SALT)
    clean = total_of([POOL[:46], POOL[20:40]], layout)
    for _ in range(200):
        total = clean.copy()
        places = generator.integers(0, layout.entries, size=generator.integers(1, 9))
        total[places] = generator.integers(0, MODULUS, size=len(places), dtype=np.uint64)
        assert not np.array_equal(total, clean)
        with pytest.raises(PeelFailed):
            peel(total, layout)


def test_noise_fails() -> None:
    layout = TableLayout(500, SALT)
    with pytest.raises(PeelFailed):
        peel(FIELD.uniform((layout.entries,)), layout)


@pytest.mark.parametrize("third", range(3))
@pytest.mark.parametrize("factor", [0, 2, MODULUS - 1])
def test_a_tag_with_different_weights_in_its_cells_fails(third: int, factor: int) -> None:
    """A well-formed cell each, but taking the tag out by one weight puts it back by another: that must end."""
    layout = TableLayout(50, SALT)
    total = write(POOL[:1], layout)
    cell = layout.cells_of(*POOL[:1].T)[third, 0]
    entries = total.reshape(4, layout.cells)[:, cell]
    entries[:] = FIELD.multiply(entries, np.array(factor, dtype=np.uint64))
    with pytest.raises(PeelFailed):
        peel(total, layout)


def test_a_tag_in_a_cell_that_is_not_its_own_fails() -> None:
    layout = TableLayout(50, SALT)
    entries = write(POOL[:1], layout).reshape(4, layout.cells)
    with pytest.raises(PeelFailed):
        peel(np.roll(entries, 1, axis=1).reshape(-1).copy(), layout)


def test_a_mixed_cell_would_pass_a_linear_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why the check is quadratic: a linear one holds for every mixture of tags as for each of them."""
    cells = write(POOL[:2], TableLayout(1)).reshape(4, 3)
    assert FIELD.multiply(cells[0], cells[3]).tolist() != table_module._check(cells[1], cells[2]).tolist()
    monkeypatch.setattr(table_module, "_check", FIELD.add)
    cells = write(POOL[:2], TableLayout(1)).reshape(4, 3)
    assert FIELD.add(cells[1], cells[2]).tolist() == cells[3].tolist()


def test_the_check_tells_any_two_tags_apart() -> None:
    """-1 is no square modulo p, so the sum of two squares is zero for no difference of tags."""
    assert MODULUS % 4 == 3
    assert pow(-1, (MODULUS - 1) // 2, MODULUS) == MODULUS - 1


# --- what a total shows ---------------------------------------------------------------------------------------------


def weights_by_holders(count: int) -> dict[int, FieldArray]:
    """The weights of tags held by 1, by 2 and by 5 of 5 clients, as the reader of the total sees them."""
    groups = {holders: random_tags(count, 100 + holders) for holders in HOLDERS}
    layout = TableLayout.for_bound(count * len(HOLDERS), SALT)
    sets = [np.concatenate([tags for holders, tags in groups.items() if client < holders]) for client in range(5)]
    tags, weights = peel_in_rounds(total_of(sets, layout), layout).in_order()
    weight_of = dict(zip(as_pairs(tags), weights, strict=True))
    return {holders: np.array([weight_of[tag] for tag in as_pairs(held)]) for holders, held in groups.items()}


def test_weights_do_not_tell_how_many_hold_a_tag() -> None:
    assert look_alike(weights_by_holders(ENTRIES))


def test_weights_that_are_not_random_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "_weights", lambda count: np.ones(count, dtype=np.uint64))
    weights = weights_by_holders(ENTRIES)
    assert {holders: set(sample.tolist()) for holders, sample in weights.items()} == {1: {1}, 2: {2}, 5: {5}}
    assert not look_alike(weights)


def test_weights_of_half_the_field_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random, but not uniform: sums of them have a distribution of their own, and the test notices."""
    monkeypatch.setattr(table_module, "_weights", lambda count: FIELD.uniform((count,)) >> np.uint64(1))
    assert not look_alike(weights_by_holders(ENTRIES))


def test_each_table_has_fresh_weights() -> None:
    layout = TableLayout.for_bound(1000, SALT)
    weights = [peel_in_rounds(write(POOL, layout), layout).in_order()[1] for _ in range(3)]
    assert len(np.unique(np.concatenate(weights))) == 3000


def test_a_weight_is_the_sum_of_the_holders_weights() -> None:
    layout = TableLayout.for_bound(1000, SALT)
    tables = [write(POOL, layout) for _ in range(4)]
    apart = [peel_in_rounds(table, layout).in_order()[1] for table in tables]
    tags, together = peel_in_rounds(added(tables, layout), layout).in_order()
    assert as_pairs(tags) == union_of([POOL])
    assert np.array_equal(together, FIELD.sum(np.stack(apart)))


def test_tags_whose_weights_cancel_are_overlooked_and_disturb_nobody() -> None:
    layout = TableLayout.for_bound(1000, SALT)
    table = write(POOL[:10], layout)
    opposite = FIELD.subtract(np.zeros_like(table), table)
    total = added([table, opposite, write(POOL[10:20], layout)], layout)
    assert as_pairs(peel(total, layout)) == union_of([POOL[10:20]])


# --- rounds ---------------------------------------------------------------------------------------------------------


def test_the_names_of_a_benchmark_are_read_in_a_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 14_541
    sets = [random_tags(size, 7)] * 5
    layout = TableLayout.for_bound(size, SALT)
    monkeypatch.setattr(table_module, "MAX_ROUNDS", 60)
    assert len(peel(total_of(sets, layout), layout)) == size


def test_a_table_made_to_be_slow_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "MAX_ROUNDS", 2)
    layout = TableLayout(800, SALT)
    with pytest.raises(PeelFailed):
        peel(write(POOL, layout), layout)


# --- memory -----------------------------------------------------------------------------------------------------------


def test_a_client_holds_one_table_from_writing_to_sending() -> None:
    """Writing takes a sixth more and the masks next to nothing, and the frame is where the table stands already."""
    layout = TableLayout.for_bound(1 << 17)
    tags, table_bytes = random_tags((1 << 17) // 5, 0), 8 * layout.entries
    tracemalloc.start()
    try:
        table = union_module._table(tags, layout)
        combine_keystreams(table, FIELD, [bytes(32)])
        frame = wire.encode(MaskedInput("union/0", table, bytes(32)), SessionId(bytes(16)), SETUP)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(frame) > table_bytes
    assert table_bytes < peak < 1.7 * table_bytes


def test_a_table_is_written_where_it_is_told() -> None:
    layout, tags = TableLayout.for_bound(100), random_tags(50, 0)
    room = np.full(layout.entries, 7, dtype=np.uint64)
    assert write(tags, layout, room) is room
    assert as_pairs(peel(room, layout)) == union_of([tags])
    for wrong in (room[:-1], room.astype(np.int64), room.reshape(2, -1)):
        with pytest.raises(ValueError, match="has no room for a table"):
            write(tags, layout, wrong)


@pytest.mark.parametrize("count", [0, 1, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 40000])
def test_tables_of_any_number_of_tags_are_read(count: int) -> None:
    """Around the number of tags that are written at a time."""
    layout, tags = TableLayout.for_bound(40000), random_tags(count, 1)
    assert as_pairs(peel(write(tags, layout), layout)) == union_of([tags])
