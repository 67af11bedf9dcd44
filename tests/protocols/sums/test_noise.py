"""The stages of a contribution: clip, encode, noise. The default noise changes nothing, another one is exact."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from protocols.foundation.errors import EncodingOverflow, UnknownProtocol
from protocols.primitives.fixed_point import FixedPoint
from protocols.primitives.group import Ring, RingVector
from protocols.registry import AGGREGATIONS
from protocols.sums import pipeline
from protocols.sums.interface import Contribution, SumLayout
from protocols.sums.noise import NO_NOISE, NoNoise, noise_named
from protocols.sums.terms import Layout, SumTerms
from tests.support.fixed_noise import FixedNoise, registered
from tests.support.sum_conversations import everyone, random_inputs, task_of
from tests.support.sums_by_name import opened, sum_by

CLIENTS = everyone(3)
NOISE = FixedNoise(units=3)


def layout_with(noise: float, ring_bits: Any = 64) -> SumLayout:
    return SumLayout(20, 5, bound=4.0, max_count=1000, parties=3, ring_bits=ring_bits, noise_bound=noise)


def noisy(contribution: Contribution) -> Contribution:
    return dataclasses.replace(contribution, noise=NOISE)


@pytest.mark.parametrize("ring_bits", [32, 64])
def test_no_noise_changes_no_bit_and_never_sees_the_vector(ring_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("a pass over the vector for nothing")

    monkeypatch.setattr(NoNoise, "add_to", fail)
    layout = layout_with(0.0, ring_bits)
    given = random_inputs(layout, CLIENTS)[CLIENTS[0]]
    assert given.noise is NO_NOISE
    encoded, numbers = pipeline.encode(task_of(layout, CLIENTS), given), layout.encode(given)
    assert np.array_equal(encoded.vector, numbers.vector)
    assert (encoded.clipped, encoded.max_error) == (numbers.clipped, numbers.max_error)


def test_a_sum_without_noise_is_encoded_as_if_there_was_no_such_stage() -> None:
    for bits in (32, 64):
        layout = layout_with(0.0, bits)
        assert layout.codec == FixedPoint.widest(Ring(layout.ring_bits), layout.bound, layout.parties)
        assert layout.largest_noise == 0


@pytest.mark.parametrize("ring_bits", [32, 64])
@pytest.mark.parametrize("aggregation", list(AGGREGATIONS))
def test_noise_appears_in_the_opened_sum_exactly(aggregation: str, ring_bits: int) -> None:
    """Of every aggregation: one that left out the noise of its clients would fail here."""
    layout = layout_with(NOISE.bound, ring_bits)
    inputs = random_inputs(layout, CLIENTS)
    expected = layout.group.zeros(layout.entries)
    for given in inputs.values():
        layout.group.add_into(expected, layout.encode(given).vector)
    clean = layout.decode(expected)
    results = sum_by(aggregation, task_of(layout, CLIENTS), {party: noisy(given) for party, given in inputs.items()})
    total = opened(results)
    added = len(CLIENTS) * NOISE.of(layout.real_entries) * layout.codec.unit
    assert np.array_equal(total.real, clean.real + added)
    assert np.array_equal(total.counts, clean.counts)
    for party in CLIENTS:
        report = results[party][0]
        assert (report.clipped, report.max_error) == (0, layout.encode(inputs[party]).max_error)


def test_clipped_values_are_counted_before_noise() -> None:
    layout = layout_with(NOISE.bound)
    values = np.zeros(20)
    values[:4], values[4:8] = 4.0, -4.0  # at the bound: not clipped, though noise carries some of them beyond
    values[8:10] = 4.5, -100.0
    given = noisy(Contribution(values, np.zeros(5, dtype=np.int64)))
    encoded = pipeline.encode(task_of(layout, CLIENTS), given)
    assert encoded.clipped == 2
    limit = np.clip(values, -4.0, 4.0)
    assert np.array_equal(layout.decode(encoded.vector).real, limit + NOISE.of(20) * layout.codec.unit)


@pytest.mark.parametrize("ring_bits", [32, 64])
def test_the_worst_sum_with_noise_does_not_wrap(ring_bits: int) -> None:
    layout = layout_with(0.5, ring_bits)
    units = math.floor(0.5 / layout.codec.unit) // 2
    worst = FixedNoise(units)
    given = Contribution(np.full(20, 4.0), np.zeros(5, dtype=np.int64), worst)
    total = layout.group.zeros(layout.entries)
    for _ in range(layout.parties):
        layout.group.add_into(total, pipeline.encode(task_of(layout, CLIENTS), given).vector)
    expected = layout.parties * (4.0 + worst.of(20) * layout.codec.unit)
    assert np.array_equal(layout.decode(total).real, expected)


@pytest.mark.parametrize("ring_bits", [32, 64])
@pytest.mark.parametrize("parties", [1, 3, 1000])
@pytest.mark.parametrize("margin", [0.25, 16.0, 1e4])
def test_the_encoding_leaves_room_for_the_margin(ring_bits: Any, parties: int, margin: float) -> None:
    codec = FixedPoint.widest(Ring(ring_bits), 4.0, parties, margin)
    assert parties * (4.0 + margin) < 2 ** (ring_bits - 1) * codec.unit
    assert codec.largest_value == 4.0  # values are clipped to the bound, not to the margin
    if codec.fraction_bits < min(49, ring_bits - 2):
        with pytest.raises(EncodingOverflow):
            FixedPoint(codec.ring, 4.0, parties, codec.fraction_bits + 1, margin)


@pytest.mark.parametrize("margin", [-1.0, float("inf"), float("nan")])
def test_a_margin_that_is_none_is_refused(margin: float) -> None:
    with pytest.raises(EncodingOverflow):
        FixedPoint(Ring(32), 4.0, 3, 8, margin)


def test_noise_that_the_sum_has_no_room_for_is_refused() -> None:
    layout = layout_with(0.25)
    given = noisy(random_inputs(layout, CLIENTS)[CLIENTS[0]])
    with pytest.raises(EncodingOverflow, match=r"room for 0\.25"):
        pipeline.encode(task_of(layout, CLIENTS), given)


class Seen(FixedNoise):
    """Remembers what it was given."""

    def add_to(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout]) -> None:
        lengths.append((len(vector), terms.key))


lengths: list[tuple[int, Any]] = []


def test_noise_is_given_the_real_part_and_the_terms_and_no_counts() -> None:
    lengths.clear()
    layout = layout_with(0.5)
    counts_only = SumLayout(0, 5, bound=4.0, max_count=10, parties=3, ring_bits=32, noise_bound=0.5)
    for chosen in (layout, counts_only):
        given = random_inputs(chosen, CLIENTS)[CLIENTS[0]]
        pipeline.encode(task_of(chosen, CLIENTS, 7), dataclasses.replace(given, noise=Seen()))
    assert lengths == [(20, (7, "rows"))]


def test_noises_have_names_and_an_unknown_one_raises() -> None:
    assert noise_named("none") is NO_NOISE
    with registered(NOISE) as name:
        assert noise_named(name) is NOISE
    with pytest.raises(UnknownProtocol, match="unknown noise 'fixed': there are none"):
        noise_named("fixed")
