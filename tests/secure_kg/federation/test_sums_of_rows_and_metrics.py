"""Rows and metrics as sums: means over holders, untouched rows, exact metrics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.alignment.interface import Union
from protocols.foundation.errors import EncodingOverflow
from protocols.foundation.identifiers import RoundId
from protocols.sums.interface import Collected, Total
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.evaluation.sums import RankingSums
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.row_sum import row_contribution, row_layout
from secure_kg.federation.server.shared_table import ReadableTable


def test_mean_over_holders_and_untouched_rows() -> None:
    table = ReadableTable(Block("relation", 2, "plain"), Union(4, b""))
    table.rows[:] = 7
    first = row_contribution(np.array([[1, 2], [3, 4]], dtype=np.float32), np.array([0, 2]), 4)
    second = row_contribution(np.array([[5, 6]], dtype=np.float32), np.array([2]), 4)
    layout = row_layout(4, 2, 16.0, 2, 32)
    first.check(layout)
    total = Total(first.real.astype(np.float64) + second.real, first.counts + second.counts)
    table.add(RoundId(3), Collected(total, frozenset()))
    assert table.rows.dtype == np.float32
    assert table.rows.tolist() == [[1, 2], [7, 7], [4, 5], [7, 7]]
    assert table.averaged.tolist() == [3, 0, 3, 0]
    assert table.never_averaged == 2


def test_layout_refuses_what_could_overflow() -> None:
    with pytest.raises(EncodingOverflow):
        row_layout(4, 2, 2.0**40, 5, 32)
    assert row_layout(4, 2, 2.0**20, 5, 64).codec.fraction_bits > 20


def sums() -> st.SearchStrategy[RankingSums]:
    count = st.integers(0, 10**6)
    return st.builds(RankingSums, count, st.floats(0, 1e6), count, count, count, count, count)


@given(st.lists(st.builds(RankingMetrics, sums(), sums(), st.floats(0, 1e6), st.integers(0, 10**7)), min_size=1))
def test_metrics_survive_the_sum(parts: list[RankingMetrics]) -> None:
    layout = RankingMetrics.layout(len(parts))
    contributions = [part.contribution() for part in parts]
    encoded = [layout.codec.encode(contribution.real) for contribution in contributions]
    assert all(code.clipped == 0 for code in encoded)
    ring_sum = np.sum([code.vector for code in encoded], axis=0, dtype=np.uint64)
    total = Total(layout.codec.decode(ring_sum), np.sum([each.counts for each in contributions], axis=0))
    result = RankingMetrics.of(total)
    assert result.tail.count == sum(part.tail.count for part in parts)
    assert result.both.hits10 == sum(part.both.hits10 for part in parts)
    assert result.loss_triples == sum(part.loss_triples for part in parts)
    assert result.tail.reciprocal == pytest.approx(sum(part.tail.reciprocal for part in parts), abs=1e-3)
    assert result.loss_sum == pytest.approx(sum(part.loss_sum for part in parts), abs=1e-3)
