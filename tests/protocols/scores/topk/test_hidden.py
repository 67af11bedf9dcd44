"""Hidden queries: shares that add up to scores, rankings as in clear, and what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import EncodingOverflow, ProtocolError
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.scores.topk import hidden
from protocols.scores.topk.dealing import Seed
from protocols.scores.topk.hidden import HiddenBatch, HiddenTable, PaddedTable
from protocols.scores.topk.hidden_shape import HiddenShape, Similarity
from tests.support.hidden_queries import batch_of, run_hidden, shape_of, some_tables, within
from tests.support.in_threads import SESSION
from tests.support.score_batches import same_ranking, terms_of
from tests.support.uniformity import looks_uniform

both = pytest.mark.parametrize("similarity", Similarity)


@pytest.mark.long
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(3, 6),
    st.sampled_from([1, 2, 7, 40]),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.sampled_from(Similarity),
    st.data(),
)
def test_any_batch_is_ranked_as_in_clear(
    clients: int, positions: int, branches: list[int], similarity: Similarity, data: st.DataObject
) -> None:
    shape = shape_of(branches, similarity, data.draw(st.sampled_from([1, 3, 8])))
    asker, least = data.draw(st.integers(1, clients)), data.draw(st.integers(1, clients - 1))
    top, share = data.draw(st.integers(1, positions + 2)), data.draw(st.sampled_from([0.0, 0.2, 0.7, 1.0]))
    seed = data.draw(st.integers(0, 2**32 - 1))
    first = batch_of(clients, positions, shape, asker=PartyId(asker), least=least, top=top)
    tables, rng = some_tables(first, seed, share), np.random.default_rng(seed)
    todo = [
        (first.attempt(replace(first.terms, round=RoundId(number))), within(rng, first.rows, shape))
        for number in (2, 3)
    ]
    result = run_hidden(first, tables, todo)
    assert result.problems == {}
    for (batch, queries), ranking in zip(todo, result.rankings, strict=True):
        assert same_ranking(ranking, hidden.in_clear(tables, queries, batch))


SETUP = bytes(range(32))


@both
def test_in_clear_is_the_ranking_by_floats(similarity: Similarity) -> None:
    """Far apart enough that rounding changes nothing."""
    shape = shape_of([1, 3], similarity)
    batch = batch_of(4, 30, shape, top=5)
    tables, queries = some_tables(batch, 2), within(np.random.default_rng(2), 4, shape)
    sums, counts = np.zeros((4, 30)), np.zeros(30)
    for table in tables.values():
        if similarity is Similarity.INNER:
            scores = queries @ table.rows.T
        else:
            scores = -((queries[:, None] - table.rows[None]) ** 2).sum(axis=2)
        sums[:, table.held] += scores
        counts[table.held] += 1
    means = np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
    expected = [np.argsort(-means[0])[:5].tolist(), np.argsort(-means[1:].max(axis=0))[:5].tolist()]
    assert [found.tolist() for found in hidden.in_clear(tables, queries, batch).positions] == expected


@both
@pytest.mark.parametrize("block", [1, 3, 1 << 12])
def test_shares_add_up_to_scores(similarity: Similarity, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one scorer and the asker, over blocks of rows that do and do not end with the table."""
    monkeypatch.setattr(hidden, "_BLOCK", block)
    shape = shape_of([2, 1], similarity)
    batch = batch_of(3, 7, shape)
    scorer, asker = (Seed(bytes([number]) * 32, SESSION, SETUP, batch.terms, PartyId(number)) for number in (2, 1))
    tables = some_tables(batch, 1)
    table, empty = PaddedTable.of(tables[PartyId(2)], batch), PaddedTable.of(_no_rows(shape), batch)
    fixed = shape.queries(within(np.random.default_rng(0), 3, shape), batch.bits)
    opened = hidden.factors(fixed, shape) + hidden.query_mask(asker, batch)
    theirs = hidden.scorer_share(table, opened, hidden.dealt_product(scorer, asker, batch), shape)
    mine = hidden.asker_share({PartyId(2): hidden.masked(table, scorer, batch)}, empty, fixed, asker, batch)
    exact = fixed @ table.entries.T
    if similarity is Similarity.SQUARED:
        exact = 2 * exact - (table.entries**2).sum(axis=1)
    assert (theirs + mine).view(np.int64).tolist() == exact.tolist()


def _no_rows(shape: HiddenShape) -> HiddenTable:
    return HiddenTable(np.zeros(0, dtype=np.int64), np.zeros((0, shape.dimensions)))


def test_what_each_side_is_sent_is_uniform() -> None:
    """Of a table and queries of zeros: M to the asker, u and the dealt product to the scorer."""
    shape = shape_of([1] * 4, dimensions=2048)
    batch = batch_of(3, 2100, shape)
    table = PaddedTable.of(_no_rows(shape), batch)
    scorer, asker = (Seed(bytes([number]) * 32, SESSION, SETUP, batch.terms, PartyId(number)) for number in (2, 1))
    assert looks_uniform(hidden.masked(table, scorer, batch)[:8].reshape(-1))
    assert looks_uniform(hidden.query_mask(asker, batch).reshape(-1))
    assert looks_uniform(hidden.dealt_product(scorer, asker, batch).reshape(-1)[:8400])


def test_every_round_has_masks_of_its_own_and_the_table_one_for_all() -> None:
    batch = batch_of(3, 5, shape_of([1]))
    seed = Seed(bytes(32), SESSION, SETUP, batch.terms, PartyId(1))
    later = batch.attempt(replace(batch.terms, round=RoundId(2)))
    assert not np.intersect1d(hidden.query_mask(seed, batch), hidden.query_mask(seed, later)).size
    products = [hidden.product_share(seed, one, PartyId(two)) for one in (batch, later) for two in (2, 3)]
    assert len(np.unique(np.concatenate(products))) == 4 * 5
    assert np.array_equal(hidden.table_mask(seed, 0, 5, batch), hidden.table_mask(seed, 0, 5, later))


@pytest.mark.parametrize(
    "changed",
    [
        {"similarity": Similarity.SQUARED},
        {"row_norm": 3.9},
        {"dimensions": 5},
        {"query_norm": 400.0},
    ],
    ids=str,
)
def test_a_batch_of_another_shape_than_its_tables_is_refused(changed: dict[str, Any]) -> None:
    first = batch_of(3, 6, shape_of([1]))
    shape = replace(first.shape, **changed)
    other = HiddenBatch.of(terms_of(3, 6, round=RoundId(2)), shape)
    result = run_hidden(first, some_tables(first), [(other, np.zeros((1, shape.dimensions)))])
    assert any("other terms" in str(problem) for problem in result.problems.values())
    assert result.rankings == []


@pytest.mark.parametrize("changed", [{"positions": 5}, {"asker": PartyId(2)}, {"least": 2}], ids=str)
def test_a_batch_under_other_terms_than_its_tables_is_refused(changed: dict[str, Any]) -> None:
    first = batch_of(3, 6, shape_of([1]))
    other = HiddenBatch.of(replace(terms_of(3, 6, round=RoundId(2)), **changed), first.shape)
    result = run_hidden(first, some_tables(first), [(other, np.zeros((1, 4)))])
    assert any("other terms" in str(problem) for problem in result.problems.values())
    assert result.rankings == []


def test_a_round_is_used_once() -> None:
    """A mask of queries that comes twice would give their difference away."""
    first = batch_of(3, 6, shape_of([1]))
    batch = first.attempt(replace(first.terms, round=RoundId(2)))
    result = run_hidden(first, some_tables(first), [(batch, np.zeros((1, 4)))] * 2)
    assert len(result.rankings) == 1
    assert any("used before" in str(problem) for problem in result.problems.values())


def test_branches_may_differ_from_batch_to_batch() -> None:
    first = batch_of(3, 9, shape_of([1]))
    tables = some_tables(first)
    shape = replace(first.shape, branches=(3, 1, 2))
    batch = HiddenBatch.of(terms_of(3, 9, queries=3, round=RoundId(5)), shape)
    queries = within(np.random.default_rng(1), 6, shape)
    result = run_hidden(first, tables, [(batch, queries)])
    assert same_ranking(result.rankings[0], hidden.in_clear(tables, queries, batch))


@both
@pytest.mark.parametrize("norm", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("clients", [3, 6, 12])
def test_no_score_is_larger_than_there_is_room_for(similarity: Similarity, norm: float, clients: int) -> None:
    """Rows and queries as long as declared, the same, opposite, and with rounding that makes all of them longer."""
    batch = batch_of(clients, 75_000, shape_of([1], similarity, 16, norm))
    bits, shape = batch.bits, batch.shape
    along = np.full((1, 16), norm / 4 * (1 - 1e-12))
    row, query = shape.rows(along, bits)[0], shape.queries(-along, bits)[0]
    largest = int(row @ row) if similarity is Similarity.INNER else int(((row - query) ** 2).sum())
    assert largest <= shape.largest_score(bits) == batch.layout.largest


@pytest.mark.parametrize("norm", [1e6, 1e9])
def test_norms_that_leave_no_bits_are_refused_in_one_line(norm: float) -> None:
    with pytest.raises(EncodingOverflow, match="fraction bits") as refusal:
        _ = batch_of(12, 75_000, shape_of([1], norm=norm)).bits
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["l1", "maximum", ""])
def test_scores_that_are_no_products_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be scored") as refusal:
        Similarity.named(name)
    assert "\n" not in str(refusal.value)
    assert Similarity.named("inner") is Similarity.INNER


@pytest.mark.parametrize(
    "changed",
    [
        {"dimensions": 0},
        {"dimensions": 5000},
        {"row_norm": 0.0},
        {"query_norm": np.inf},
        {"branches": ()},
        {"branches": (1, 0)},
    ],
    ids=str,
)
def test_shapes_that_are_none_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"dimensions|norms|branch"):
        replace(shape_of([1]), **changed)


def test_rows_and_queries_that_cannot_be_carried_are_refused() -> None:
    batch = batch_of(3, 5, shape_of([1]))
    with pytest.raises(EncodingOverflow, match="finite"):
        PaddedTable.of(HiddenTable(np.array([0]), np.full((1, 4), np.nan)), batch)
    with pytest.raises(EncodingOverflow, match="longer"):
        batch.shape.queries(np.full((1, 4), 2.1), batch.bits)


def test_rows_that_are_too_long_are_shortened_and_counted() -> None:
    """A refusal would depend on the rows of a client, under a norm that others announce."""
    batch = batch_of(3, 5, shape_of([1]))
    rows = np.array([[2.1, 2.1, 2.1, 2.1], [4.0, 0.0, 0.0, 0.0], [0.0, 3e30, 0.0, 0.0]])
    table = PaddedTable.of(HiddenTable(np.arange(3), rows), batch)
    assert table.shortened == 2
    unit = 2.0**-batch.bits
    np.testing.assert_allclose(table.entries[:3] * unit, [[2.0] * 4, [4, 0, 0, 0], [0, 4, 0, 0]], atol=unit)
    assert int(table.lengths().max()) <= batch.shape.largest_score(batch.bits)


@pytest.mark.parametrize("held", [[5], [-1], [2, 1], [1, 1], [1, 2, 3]], ids=str)
def test_tables_that_are_none_are_refused(held: list[int]) -> None:
    batch = batch_of(3, 5, shape_of([1]))
    with pytest.raises(ValueError, match="positions held"):
        PaddedTable.of(HiddenTable(np.array(held), np.zeros((len(held) % 3, 4))), batch)


def test_a_batch_needs_branches_for_every_query_and_an_asker_among_the_clients() -> None:
    with pytest.raises(ValueError, match="branches of 1 queries"):
        HiddenBatch.of(terms_of(3, 5, queries=2), shape_of([1]))
    with pytest.raises(ValueError, match="asker outside"):
        HiddenBatch.of(terms_of(3, 5, asker=PartyId(9)), shape_of([1]))


def test_a_batch_over_another_table_than_was_masked_is_refused() -> None:
    shape = shape_of([1])
    first, other = batch_of(3, 6, shape), batch_of(3, 6, shape, round=RoundId(2), table=b"another")
    held = run_hidden(first, some_tables(first), [(other, within(np.random.default_rng(0), 1, shape))])
    assert held.rankings == []
    refused = [problem for problem in held.problems.values() if "other terms" in str(problem)]
    assert refused
    assert all(isinstance(problem, ProtocolError) for problem in held.problems.values())


@pytest.mark.parametrize(
    ("positions", "dimensions", "queries", "problem"),
    [(50, 4096, 64, "ask 32 at a time"), (1 << 20, 4096, 1, "MiB"), (1 << 20, 4, 1000, "MiB")],
)
def test_what_is_too_large_to_be_sent_is_refused_beforehand(
    positions: int, dimensions: int, queries: int, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        batch_of(3, positions, shape_of([1] * queries, dimensions=dimensions))
