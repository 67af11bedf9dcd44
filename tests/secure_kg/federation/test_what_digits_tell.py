"""What the digits of a mean tell a client: how many contributed to it, as the disclosures say, unless it is rounded."""

import numpy as np
import pytest

from protocols.foundation.disclosure import WHAT_MEANS_SHOW, Subject
from protocols.registry import AGGREGATIONS
from protocols.sums.interface import SumLayout
from secure_kg.federation.plan.row_sum import Rows, mean_rows, row_contribution, row_layout
from secure_kg.federation.plan.settings import RunConfig

CLIENTS, ROWS, WIDTH = 5, 40, 128


def means_of(layout: SumLayout, holders: int) -> Rows:
    """Rows that the first so many clients hold, as all clients are sent them."""
    random, total = np.random.default_rng(holders), layout.group.zeros(layout.entries)
    for _ in range(holders):
        rows = random.normal(0.0, 0.1, size=(ROWS, WIDTH)).astype(np.float32)
        layout.group.add_into(total, layout.encode(row_contribution(rows, np.arange(ROWS), ROWS)).vector)
    return mean_rows(layout.decode(total))


def guessed(means: Rows, unit: float) -> list[int]:
    """Of each row the number of contributors whose multiples its entries are nearest to. It looks at means alone."""
    found = []
    for row in means.astype(np.float64):
        off = {c: float(np.abs(row * c / unit - np.rint(row * c / unit)).mean()) for c in range(2, CLIENTS + 1)}
        found.append(min(off, key=lambda c: (round(off[c], 2), c)))  # 4 fits wherever 2 does
    return found


def layout_of(ring_bits: int) -> SumLayout:
    return row_layout(ROWS, WIDTH, RunConfig(dataset="nations").clip, CLIENTS, ring_bits)


@pytest.mark.parametrize("ring_bits", [25, RunConfig(dataset="nations").ring_bits])
@pytest.mark.parametrize("holders", [2, 3, 4, 5])
def test_a_client_finds_how_many_contributed_to_each_row(ring_bits: int, holders: int) -> None:
    layout = layout_of(ring_bits)
    assert guessed(means_of(layout, holders), layout.codec.unit) == [holders] * ROWS


@pytest.mark.parametrize("ring_bits", [16, 24, 48])
def test_where_means_are_rounded_or_units_are_too_fine_it_finds_nothing(ring_bits: int) -> None:
    """It says the same, whoever contributed."""
    layout = layout_of(ring_bits)
    assert layout.grid is not None or ring_bits > 40
    right = [sum(c == holders for c in guessed(means_of(layout, holders), layout.codec.unit)) for holders in (3, 5)]
    assert sum(right) <= ROWS


@pytest.mark.parametrize("name", ["plain", "secagg"])
def test_the_disclosures_say_so(name: str) -> None:
    assert AGGREGATIONS[name].disclosure.learned[Subject.HOLDERS].client == WHAT_MEANS_SHOW
