"""Tests of uniformity see every bit of a value, and do not accuse what is uniform.

Accusations are made at p < 10^-9; the rates of smaller outcomes are compared with what their definition promises.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from protocols.alignment.interface import Positions
from protocols.alignment.psu import names as union_names
from protocols.alignment.psu import table as union_table
from protocols.alignment.psu.attempts import Attempt
from protocols.alignment.psu.table import write
from protocols.alignment.psu.tags import LIMBS
from protocols.foundation.identifiers import SETUP, SessionId
from protocols.primitives.group import MODULUS, PrimeField
from protocols.sums.secagg.messages import MaskedInput
from secure_kg.audit.checks.secrets import Weights
from secure_kg.audit.checks.uniformity import Uniformity
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.audit.view.statistics import ALARM, Words, byte_histogram, edges_p, odd_p, ranges_p, secrets_p, uniform_p
from secure_kg.federation.plan.settings import RunConfig

pytestmark = pytest.mark.long

Draw = Callable[[int], Words]
ROUNDINGS = 1e-12


def field(rng: np.random.Generator, count: int) -> Words:
    return rng.integers(0, MODULUS, count, dtype=np.uint64)


def of_bits(bits: int) -> Draw:
    return lambda count: np.random.default_rng(bits).integers(0, 1 << bits, count, dtype=np.uint64)


def bit_fixed(place: int, to_one: bool) -> Draw:
    def draw(count: int) -> Words:
        drawn = field(np.random.default_rng(place), count)
        bit = np.uint64(1 << place)
        # All ones would be no element of the field.
        return np.where(drawn | bit < MODULUS, drawn | bit, bit) if to_one else drawn & ~bit

    return draw


def narrow(share: float) -> Draw:
    return lambda count: np.random.default_rng(0).integers(0, int(share * MODULUS), count, dtype=np.uint64)


def upper_part(count: int) -> Words:
    return MODULUS - 1 - np.random.default_rng(0).integers(0, 1 << 60, count, dtype=np.uint64)


def small_numbers(count: int) -> Words:
    return np.random.default_rng(0).integers(1, 6, count, dtype=np.uint64)


def one_small(count: int) -> Words:
    drawn = field(np.random.default_rng(0), count)
    drawn[count // 2] = 3
    return drawn


def partly(part: Draw, share: float) -> Draw:
    def draw(count: int) -> Words:
        drawn, few = field(np.random.default_rng(1), count), int(share * count)
        drawn[:few] = part(few)
        return drawn

    return draw


def from_a_pool(count: int) -> Words:
    rng = np.random.default_rng(0)
    return rng.choice(field(rng, 4 * count), count)


BROKEN: dict[str, tuple[Draw, int]] = {
    "60 bits": (of_bits(60), 36),
    "59 bits": (of_bits(59), 24),
    "56 bits": (of_bits(56), 12),
    "32 bits": (of_bits(32), 4),
    "small numbers": (small_numbers, 3),
    "one small number": (one_small, 1000),
    "upper half": (upper_part, 36),
    "nine tenths of the field": (narrow(0.9), 250),
    "a fifth of 56 bits": (partly(of_bits(56), 0.2), 400),
    "the same value": (lambda count: np.full(count, 1 << 59, dtype=np.uint64), 40),
    "values that come again": (from_a_pool, 200),
    **{f"bit {place} is 0": (bit_fixed(place, False), 40) for place in (0, 1, 7, 8, 31, 40, 55, 56, 58, 60)},
    **{f"bit {place} is 1": (bit_fixed(place, True), 40) for place in (0, 30, 55, 57, 60)},
}
"""With the number of values on which each is found: not many more than statistics allow."""


@pytest.fixture
def check() -> Weights:
    return Weights(RunConfig(), 3)


def union_sum(count: int) -> OpenedSum:
    attempt = Attempt.of(0, max(count, 8), SessionId(bytes(16)), bytes(32))
    vector = write(PrimeField().uniform((count, LIMBS)), attempt.layout)
    return OpenedSum(int(SETUP), attempt.purpose, frozenset({1, 2, 3}), 2, vector, attempt=attempt)


@pytest.mark.parametrize("name", BROKEN)
def test_weights_that_are_not_uniform_are_found(name: str, check: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, count = BROKEN[name]
    assert secrets_p(draw(count), in_field=True) < ALARM
    monkeypatch.setattr(union_table, "_weights", draw)
    check.opened(union_sum(count))
    assert [finding.id for finding in check.findings()] == ["union-weights-not-uniform"]
    assert check.looked_at() == f"1 table, {count:,} weights"


@pytest.mark.parametrize("count", [1, 3, 40, 400, 4000])
def test_uniform_weights_pass(count: int, check: Weights) -> None:
    check.opened(union_sum(count))
    assert check.findings() == []
    assert check.seen == 1


def test_weights_of_names_are_tested_too(check: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    def names_sum() -> OpenedSum:
        own = np.arange(50, dtype=np.int64)
        vector = union_names.written(Positions(60, own, b""), [f"name {number}" for number in own])
        return OpenedSum(int(SETUP), union_names.PURPOSE, frozenset({1, 2, 3}), 2, vector)

    check.opened(names_sum())  # ten positions are empty
    assert check.findings() == []
    monkeypatch.setattr(union_names, "_weights", of_bits(60))
    check.opened(names_sum())
    assert len(check.findings()) == 1


def test_tables_too_small_by_themselves_are_tested_together(check: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(union_table, "_weights", lambda count: field(np.random.default_rng(), count) >> np.uint64(1))
    check.opened(union_sum(20))
    assert check.findings() == []
    check.opened(union_sum(20))
    (finding,) = check.findings()
    assert "all tables together" in finding.evidence[0]


def uploaded(purpose: str, vector: Words) -> Observation:
    message = MaskedInput(purpose, vector, bytes(32))
    return Observation(0, 0, "received", 1, int(SETUP), f"masked input/{purpose}", message, 0, b"")


@pytest.mark.parametrize(
    "name", [name for name in BROKEN if name.startswith("bit") or name in ("60 bits", "59 bits", "upper half")]
)
def test_masked_values_that_lack_a_bit_are_found(name: str) -> None:
    draw, count = BROKEN[name]
    check = Uniformity(RunConfig(), 3)
    check.observe(uploaded("union/0", draw(count)))
    assert [finding.id for finding in check.findings()] == ["masked-values-not-uniform"]


def test_uploads_that_are_short_by_themselves_are_tested_together() -> None:
    check = Uniformity(RunConfig(), 3)
    for number, part in enumerate(np.split(of_bits(60)(60), 3)):
        check.observe(uploaded(f"union/{number}", part))
    (finding,) = check.findings()
    assert len(finding.evidence) == 1
    assert "together" in finding.evidence[0]


def drawn(rng: np.random.Generator, in_field: bool, count: int) -> Words:
    return field(rng, count) if in_field else rng.integers(0, 1 << 32, count, dtype=np.uint32)


@pytest.mark.parametrize("in_field", [True, False])
@pytest.mark.parametrize("test", [odd_p, secrets_p, edges_p, ranges_p])
def test_uniform_values_are_as_odd_as_they_should_be(test: Callable[[Words, bool], float], in_field: bool) -> None:
    """Values of p below 0.01 come in one case of a hundred at most, whatever the length."""
    rng = np.random.default_rng(7)
    lengths = (1, 2, 5, 37, 400) if test is secrets_p else (1, 2, 37, 400, 4000)
    repeats = 150
    odd = sum(test(drawn(rng, in_field, length), in_field) < 0.01 for length in lengths for _ in range(repeats))
    assert odd <= stats.binom.isf(1e-6, repeats * len(lengths), 0.01)


@pytest.mark.parametrize("name", ["60 bits", "upper half", "bit 0 is 0", "bit 56 is 1", "bit 60 is 0"])
def test_fewer_values_than_documented_pass(name: str) -> None:
    """`docs/audit.md` says from how many values on such a fault is found."""
    draw = bit_fixed(56, True) if name == "bit 56 is 1" else BROKEN[name][0]
    assert secrets_p(draw(30), in_field=True) > ALARM


def test_honest_weights_of_many_tables_raise_no_alarm() -> None:
    rng = np.random.default_rng(3)
    assert all(secrets_p(field(rng, 1 + 7 * number % 500), True) > ALARM for number in range(1000))


def test_histograms_add_up_and_values_beyond_the_field_are_impossible() -> None:
    rng = np.random.default_rng(0)
    first, second = field(rng, 300), field(rng, 500)
    together = byte_histogram(first) + byte_histogram(second)
    np.testing.assert_array_equal(together, byte_histogram(np.concatenate([first, second])))
    assert uniform_p(together, in_field=True) == pytest.approx(
        uniform_p(byte_histogram(np.concatenate([first, second])), in_field=True), rel=ROUNDINGS
    )
    beyond = first.copy()
    beyond[0] = np.uint64(1 << 62)
    assert uniform_p(byte_histogram(beyond), in_field=True) == 0.0
    assert uniform_p(byte_histogram(first[:0]), in_field=True) == 1.0


def test_top_bits_that_are_uneven_together_but_not_one_by_one_are_found() -> None:
    """Bits 56 and 57 are equal: each is as often 0 as 1, and no value is out of range."""
    values = field(np.random.default_rng(0), 4000)
    low = values & ~np.uint64(1 << 57)
    copied = low | ((low >> np.uint64(56) & np.uint64(1)) << np.uint64(57))
    assert uniform_p(byte_histogram(copied), in_field=True) < ALARM
    assert uniform_p(byte_histogram(values), in_field=True) > ALARM
