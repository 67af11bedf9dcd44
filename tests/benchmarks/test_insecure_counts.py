"""Counts of holders broken on purpose: each in the way it says, and nothing stays broken."""

import numpy as np
import pytest

from benchmarks.insecure_counts import COUNT_VARIANTS, SMALL_BITS, insecure_count
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders import secret as holders
from protocols.holders.interface import CountTask
from protocols.holders.secret import own_entries, regular
from protocols.primitives.group import FieldArray, PrimeField

FIELD = PrimeField()
TASK = CountTask(RoundId(1), tuple(PartyId(number) for number in range(1, 6)), 20, b"union", 4)


def added(variant: str) -> FieldArray:
    with insecure_count(variant):
        return holders.own_entries(20, TASK).reshape(3, 3, 20)


@pytest.mark.parametrize("variant", COUNT_VARIANTS)
def test_every_variant_adds_matrices_of_rank_one(variant: str) -> None:
    """So that answers are as before, unless holders have a vector in common."""
    matrices = added(variant)
    assert not regular(matrices[:2, :2]).any()
    assert not regular(matrices[1:, 1:]).any()
    assert matrices.all()


@pytest.mark.parametrize("variant", COUNT_VARIANTS)
def test_the_sound_piece_is_put_back(variant: str) -> None:
    def broken() -> None:
        with insecure_count(variant):
            assert holders.own_entries is not own_entries
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        broken()
    assert holders.own_entries is own_entries


def test_each_is_broken_in_its_own_way() -> None:
    unit = added("unit-vectors")
    assert np.array_equal(unit[0], unit[1])
    assert int(added("small-vectors").max()) < 1 << 2 * SMALL_BITS
    common = added("common-vectors")
    ratios = FIELD.multiply(common[1, 0], FIELD.inverse(common[0, 0]))
    assert len(set(ratios.tolist())) == 1
    assert np.array_equal(added("repeated-counts"), added("repeated-counts"))
    assert not np.any(unit == added("unit-vectors"))
