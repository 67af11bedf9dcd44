"""Seeds of few bits are found, real masks are not, and padded seeds show."""

import secrets

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId
from protocols.sums.interface import SumLayout
from secure_kg.attacks.secret_uploads import secret_uploads
from secure_kg.attacks.weak_seed import bits_in_use, find_seed, seed_search_result, unmasked, weak_mask
from secure_kg.foundation.errors import UserError
from secure_kg.kernels.mersenne import LAST_DIRECT, seeds_with_output

BITS = 16


def sparse_input(entries: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Values, two thirds of them zero, and where the zeros are."""
    draw = np.random.default_rng(0)
    values = np.where(draw.random(entries) < 0.67, 0, draw.integers(1, 2**32, size=entries)).astype(np.uint64)
    return values, np.flatnonzero(values == 0)


@pytest.mark.parametrize("place", [0, 1, 100, LAST_DIRECT])
@pytest.mark.parametrize("seed", [0, 1, 63, 64, 12345])
def test_the_kernel_computes_numpys_outputs(place: int, seed: int) -> None:
    output = int(np.random.RandomState(seed).randint(0, 1 << 32, size=place + 1, dtype=np.int64)[place])
    found = np.empty(8, dtype=np.uint32)
    number = seeds_with_output(max(0, seed - 70), seed + 70, place, output, 0xFFFFFFFF, found)
    assert found[:number].tolist() == [seed]


@pytest.mark.parametrize("modulus_bits", [24, 32])
def test_a_weak_seed_is_found_and_opens_the_upload(modulus_bits: int) -> None:
    values, zeros = sparse_input()
    values &= np.uint64((1 << modulus_bits) - 1)
    seed = 54321
    upload = (values + weak_mask(seed, len(values), modulus_bits)) & np.uint64((1 << modulus_bits) - 1)
    search = find_seed(upload, zeros, modulus_bits, BITS)
    assert search.seed == seed
    np.testing.assert_array_equal(unmasked(upload, seed, modulus_bits), values)
    result = seed_search_result(search, upload, values, modulus_bits, 1, BITS)
    assert result.succeeded
    assert result.scores["opened"] == 1.0


def test_a_mask_of_this_toolkit_has_no_such_seed() -> None:
    values, zeros = sparse_input()
    layout = SumLayout(0, len(values), 1.0, max_count=1, parties=2, ring_bits=32)
    (upload,) = secret_uploads([values.astype("<u4")], layout, PartyId(1))
    search = find_seed(upload.astype(np.uint64), zeros, 32, BITS)
    assert search.seed is None
    assert search.tried == 1 << BITS
    assert not seed_search_result(search, upload.astype(np.uint64), values, 32, 1, BITS).succeeded


def test_a_search_needs_a_zero_near_the_start() -> None:
    with pytest.raises(UserError, match="zero"):
        find_seed(np.zeros(400, dtype=np.uint64), np.array([300]), 32, BITS)
    with pytest.raises(UserError, match="bits"):
        find_seed(np.zeros(400, dtype=np.uint64), np.array([0]), 32, 40)


def test_random_seeds_use_all_their_bits() -> None:
    found = bits_in_use([secrets.token_bytes(32) for _ in range(400)])
    assert (found.varying, found.length, found.constant) == (256, 256, ())
    assert found.entropy_bound == 256
    assert not found.suspicious
    assert not bits_in_use([secrets.token_bytes(32) for _ in range(5)]).suspicious  # so few tell nothing


def test_padded_repeated_and_recurring_seeds_show() -> None:
    short = [secrets.token_bytes(4) for _ in range(100)]
    padded = bits_in_use([seed + bytes(28) for seed in short])
    assert padded.entropy_bound <= 32
    assert padded.suspicious
    repeated = bits_in_use([seed * 8 for seed in short])
    assert repeated.varying == 256
    assert repeated.entropy_bound <= 32
    recurring = bits_in_use([secrets.token_bytes(32)] * 2 + [secrets.token_bytes(32)])
    assert recurring.repeated == 1
    assert recurring.suspicious
    assert bits_in_use([]).seeds == 0
    with pytest.raises(UserError, match="lengths"):
        bits_in_use([b"a", b"ab"])
