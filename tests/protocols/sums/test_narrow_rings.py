"""Sums in rings of few bits: twins to the last bit, no overflow, hostile vectors, checks, and what means tell."""

from typing import Any

import numpy as np
import pytest

from protocols.costs.byte_counts import clear_input
from protocols.foundation import wire
from protocols.foundation.errors import EncodingOverflow, PeerMisbehaved
from protocols.foundation.identifiers import RoundId
from protocols.primitives.fixed_point import FixedPoint
from protocols.primitives.group import Ring
from protocols.primitives.prg import combine_keystreams
from protocols.sums.interface import SumLayout, Total
from protocols.sums.plain import ClearInput, PlainSumServer
from protocols.sums.secagg.messages import PEERS_BYTES, MaskedInput, masked_input_bytes
from protocols.sums.secret.aggregation import open_total, secret_terms
from protocols.sums.secret.check import CHECKS, with_checks
from protocols.sums.totals import SumTotal
from protocols.sums.travelling import pack_means, unpack_means
from secure_kg.federation.plan.row_sum import mean_rows
from tests.support.group_keys import KINDS
from tests.support.in_threads import SESSION
from tests.support.secret_sums import CLIENTS, KEY, client_with, is_sum_of, masked, run
from tests.support.sum_conversations import (
    PLAIN,
    SECAGG,
    SIGNED,
    Twin,
    everyone,
    layout_for,
    random_inputs,
    sum_up,
    task_of,
)

narrow = pytest.mark.parametrize("bits", [16, 17, 24, 31])
FEW = {bits: layout_for(4, bits, real=3, counts=9) for bits in (16, 17, 24)}


# --- twins ----------------------------------------------------------------------------------------------------------


@narrow
@pytest.mark.parametrize("secure", [SECAGG, SIGNED], ids=["secagg", "signed"])
def test_the_twins_agree_to_the_bit(secure: Twin, bits: int) -> None:
    clients, layout = everyone(3), layout_for(3, bits)
    rounds = [random_inputs(layout, clients, seed) for seed in range(2)]
    (plain, _), (hidden, reports) = sum_up(PLAIN, layout, clients, rounds), sum_up(secure, layout, clients, rounds)
    for clear, other, inputs in zip(plain, hidden, rounds, strict=True):
        real = np.sum([given.real.astype(np.float64) for given in inputs.values()], axis=0)
        assert np.array_equal(clear.total.real, other.total.real)
        assert np.abs(other.total.real - real).max() <= 3 * layout.codec.unit / 2
        assert np.array_equal(other.total.counts, np.sum([given.counts for given in inputs.values()], axis=0))
    assert all(report.clipped == 0 for one in reports.values() for report in one)


@narrow
def test_secret_sums_are_the_same_to_the_bit(bits: int) -> None:
    layout = layout_for(4, bits)
    task, inputs = task_of(layout, CLIENTS), random_inputs(layout, CLIENTS)
    made = run(KINDS["semi-honest"], [(task, inputs)])
    (total,) = made.totals
    assert total.vector.nbytes == int(np.prod(layout.group.on_wire(layout.entries + CHECKS)))
    for party in CLIENTS:
        assert is_sum_of(made.clients[party].open(task, total), task, inputs, CLIENTS)


@narrow
def test_masks_are_uniform_in_every_bit_of_an_element(bits: int) -> None:
    ring, count = Ring(bits), 1 << 14
    vector = ring.zeros(count)
    combine_keystreams(vector, ring, added=[bytes(32)])
    assert vector.max() < 1 << bits
    ones = np.unpackbits(ring.to_wire(vector).view(np.uint8), bitorder="little").reshape(count, bits).sum(axis=0)
    assert np.abs(ones - count / 2).max() < 5 * np.sqrt(count) / 2
    combine_keystreams(vector, ring, subtracted=[bytes(32)])
    assert not vector.any()


# --- room -----------------------------------------------------------------------------------------------------------


@narrow
@pytest.mark.parametrize("parties", [2, 5, 200])
def test_the_largest_values_of_all_parties_do_not_wrap(parties: int, bits: int) -> None:
    ring = Ring(bits)
    codec = FixedPoint.widest(ring, 1.0, parties)
    for sign in (1.0, -1.0):
        total = ring.zeros(1)
        for _ in range(parties):
            ring.add_into(total, codec.encode(np.array([3.0 * sign])).vector)
        assert codec.decode(total).tolist() == [parties * sign]
    with pytest.raises(EncodingOverflow):
        FixedPoint(ring, 1.0, parties, codec.fraction_bits + 1)


@narrow
def test_counts_and_bounds_that_could_overflow_are_refused(bits: int) -> None:
    most = (1 << (bits - 1)) - 1
    SumLayout(0, 1, 1.0, max_count=1, parties=most, ring_bits=bits)
    with pytest.raises(EncodingOverflow, match=f"could overflow {bits} bits"):
        SumLayout(0, 1, 1.0, max_count=1, parties=most + 1, ring_bits=bits)
    with pytest.raises(EncodingOverflow, match=f"do not fit {bits} bits"):
        SumLayout(1, 0, float(1 << (bits - 2)), max_count=0, parties=3, ring_bits=bits)
    with pytest.raises(EncodingOverflow, match=f"do not fit {bits} bits"):  # noise needs room as well
        SumLayout(1, 0, 1.0, max_count=0, parties=3, ring_bits=bits, noise_bound=float(1 << bits))


def test_numbers_are_encoded_into_memory_whatever_stands_there() -> None:
    layout, inputs = layout_for(3, 17), random_inputs(layout_for(3, 17), everyone(1))
    (given,) = inputs.values()
    used = np.full(layout.entries, 0xFFFFFFFF, dtype="<u4")
    assert np.array_equal(layout.encode(given, used).vector, layout.encode(given).vector)


# --- hostile vectors ------------------------------------------------------------------------------------------------


def wrong_vectors(bits: int, entries: int) -> list[np.ndarray[Any, Any]]:
    ring = Ring(bits)
    right = ring.to_wire(ring.zeros(entries))
    behind = right.copy()
    if ring.packed:
        behind[-1] |= 0x80
    others = [Ring(other).zeros(entries) for other in (16, 32, 64) if other != bits]
    return [right[:-1].copy(), np.append(right, right[:1]), *others, *([behind] if ring.packed else [])]


@pytest.mark.parametrize("bits", [16, 17, 31])
def test_vectors_of_another_ring_or_with_bits_behind_the_end_are_refused(bits: int) -> None:
    layout = layout_for(2, bits, real=20, counts=1)
    clients = everyone(2)
    server, task = PlainSumServer(), task_of(layout, clients)
    running = layout.group.zeros(layout.entries)
    for vector in wrong_vectors(bits, layout.entries):
        message = ClearInput(task.purpose, vector)
        with pytest.raises(PeerMisbehaved, match="client 1 contributed a vector of another length or ring"):
            server._take(running, message, task, clients[0])
    assert not running.any()
    secret = task_of(FEW[16] if bits == 16 else layout_for(4, bits, real=3, counts=9), CLIENTS)
    for vector in wrong_vectors(bits, secret_terms(secret).layout.entries):
        with pytest.raises(PeerMisbehaved, match="a sum of another length or group"):
            client_with(KEY).open(secret, SumTotal.of(secret.round, secret.purpose, CLIENTS, vector))


@narrow
@pytest.mark.parametrize("entries", [1, 20, 4000])
def test_bytes_are_counted_exactly(entries: int, bits: int) -> None:
    ring = Ring(bits)
    vector = ring.to_wire(ring.zeros(entries))
    clear = wire.encode(ClearInput("rows", vector), SESSION, RoundId(1))
    assert clear_input("rows", *ring.on_wire(entries)) == {"input/rows": len(clear)}
    hidden = wire.encode(MaskedInput("rows", vector, bytes(PEERS_BYTES)), SESSION, RoundId(1))
    assert masked_input_bytes("rows", *ring.on_wire(entries)) == len(hidden)


# --- the check of secret sums ---------------------------------------------------------------------------------------


def shifted(total: SumTotal, layout: SumLayout, place: int, amount: int) -> SumTotal:
    ring, length = layout.group, layout.entries + CHECKS
    vector, shift = ring.from_wire(total.vector, length).copy(), ring.zeros(length)
    shift[place] = amount
    ring.add_into(vector, shift)
    return SumTotal(total.purpose, total.of_round, total.contributors, ring.to_wire(vector))


@pytest.mark.parametrize("bits", [16, *(pytest.param(bits, marks=pytest.mark.slow) for bits in (17, 24))])
def test_any_single_bit_of_a_total_that_is_changed_is_noticed(bits: int) -> None:
    task, inputs = task_of(FEW[bits], CLIENTS), random_inputs(FEW[bits], CLIENTS)
    total, reader = masked(KEY, task, inputs), client_with(KEY)
    assert is_sum_of(reader.open(task, total), task, inputs, CLIENTS)
    for place in range(task.layout.entries + CHECKS):
        for bit in range(bits):
            with pytest.raises(PeerMisbehaved):
                reader.open(task, shifted(total, task.layout, place, 1 << bit))


@pytest.mark.parametrize("bits", [16, pytest.param(17, marks=pytest.mark.slow)])
def test_half_the_ring_on_one_entry_passes_every_second_check(bits: int) -> None:
    """What the bound of 2^-40 rests on does not depend on how wide the ring is."""
    layout, tries, missed = FEW[bits], 100, 0
    inputs = random_inputs(layout, CLIENTS)
    for number in range(1, tries + 1):
        task = task_of(layout, CLIENTS, number)
        vectors = secret_terms(task)
        total = shifted(masked(KEY, task, inputs), layout, number % 12, 1 << (bits - 1))
        opened = open_total(KEY, vectors, total)
        missed += int((with_checks(KEY, vectors, opened[:12])[12:] == opened[12:]).sum())
    assert abs(missed / (tries * CHECKS) - 0.5) < 5 * 0.5 / np.sqrt(tries * CHECKS)


# --- means ----------------------------------------------------------------------------------------------------------


def test_means_of_narrow_sums_do_not_tell_how_many_contributed() -> None:
    """Thirds of a unit would tell that there were three."""
    layout = SumLayout(real_entries=4, count_entries=2, bound=1.0, max_count=1, parties=5, ring_bits=16)
    grid, unit = layout.grid, layout.codec.unit
    assert grid is not None
    real = np.array([1.0, -1.0, 4.0, 5.0]) * unit
    exact, rounded = (mean_rows(Total(real, np.array([3, 4]), one)) for one in (None, grid))
    assert np.any(exact / unit % 1)
    assert not np.any(rounded / unit % 1)
    assert np.abs(rounded - exact).max() <= unit / 2
    assert not np.signbit(rounded).any(where=rounded == 0)
    assert [layout_for(5, bits).grid is None for bits in (16, 24, 25, 32, 64)] == [False, False, True, True, True]


@pytest.mark.parametrize("bits", [16, 17, 24])
def test_every_mean_travels_to_the_last_bit(bits: int) -> None:
    layout = SumLayout(1, 1, bound=2.0, max_count=1, parties=3, ring_bits=bits)
    grid, most = layout.grid, int(layout.codec.largest_value * layout.codec.scale)
    assert grid is not None
    units = np.random.default_rng(bits).integers(-most, most, 500, endpoint=True)
    units[:3] = -most, 0, most
    rows = (units * layout.codec.unit).astype(np.float32)
    assert np.array_equal(unpack_means(pack_means(rows, grid), 500, grid), rows)
