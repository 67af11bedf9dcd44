"""CrypTen draws from AES-256 keystreams while they are installed, and from nothing else."""

import pytest
import torch

from protocols.primitives.prg import Keystream
from protocols.scores.crypten.crypten_import import load_crypten
from protocols.scores.crypten.generators import StreamingTorch, draw, installed
from protocols.scores.crypten.rendezvous import RankKeys
from tests.support.uniformity import ENTRIES, looks_uniform

PREVIOUS, FOLLOWING, LOCAL, DEALER = (bytes([number]) * 32 for number in range(1, 5))
KEYS = RankKeys(PREVIOUS, FOLLOWING, LOCAL, DEALER)
RING = (-(2**63), 2**63 - 1)


def test_shares_and_masks_come_from_the_keys() -> None:
    crypten = load_crypten()
    size = torch.Size((3, 5))
    with installed(KEYS):
        zero = crypten.mpc.primitives.ArithmeticSharedTensor.PRZS(size).share
        own = crypten.common.rng.generate_random_ring_element(size)
        bits = crypten.common.rng.generate_kbit_random_tensor(size, bitlength=3)
    local = Keystream(LOCAL)
    assert torch.equal(zero, draw(Keystream(PREVIOUS), size) - draw(Keystream(FOLLOWING), size))
    assert torch.equal(own, draw(local, size))
    assert torch.equal(bits, draw(local, size) & 7)


def test_crypten_is_left_as_it_was() -> None:
    crypten = load_crypten()
    before = crypten.common.rng.torch, {name: dict(devices) for name, devices in crypten.generators.items()}
    with installed(KEYS):
        assert crypten.common.rng.torch is not torch
        assert crypten.generators["global"] == {}
    assert crypten.common.rng.torch is before[0] is torch
    assert crypten.generators == before[1]


def test_draws_are_uniform_over_the_whole_ring() -> None:
    drawn = StreamingTorch.randint(*RING, (ENTRIES,), generator=Keystream(LOCAL), dtype=torch.long)
    assert looks_uniform(drawn.numpy())
    bits = StreamingTorch.randint(0, 2, (ENTRIES,), generator=Keystream(LOCAL), dtype=torch.long)
    assert set(bits.tolist()) == {0, 1}


@pytest.mark.parametrize("generator", [None, torch.Generator()])
def test_a_generator_with_a_seed_is_refused(generator: torch.Generator | None) -> None:
    with pytest.raises(TypeError, match="no keystream"):
        StreamingTorch.randint(*RING, (1,), generator=generator, dtype=torch.long)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (0, 1), (1, 4), (-8, 8), (0, 2**63 - 1)])
def test_other_ranges_are_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="not numbers from"):
        StreamingTorch.randint(low, high, (1,), generator=Keystream(LOCAL), dtype=torch.long)


def test_other_kinds_of_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="64 bits"):
        StreamingTorch.randint(*RING, (1,), generator=Keystream(LOCAL), dtype=torch.int)


def test_all_else_is_torch() -> None:
    assert StreamingTorch().zeros is torch.zeros


def test_keys_have_no_repr_and_are_not_serialised() -> None:
    assert LOCAL.hex() not in repr(KEYS)
    assert repr(LOCAL) not in repr(KEYS)
    with pytest.raises(TypeError, match="not serialised"):
        KEYS.__reduce__()
