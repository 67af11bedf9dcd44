"""One Paillier key per length for all tests: a key of 3072 bits takes longer to draw than most tests take."""

from collections.abc import Iterator
from functools import cache

import pytest

from protocols.scores.encrypted import paillier
from protocols.scores.encrypted.paillier_keys import draw_primes

_drawn = cache(draw_primes)


@pytest.fixture(autouse=True)
def one_key_per_length() -> Iterator[None]:
    """Askers' keys are fresh in use; `test_paillier` draws its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paillier, "draw_primes", _drawn)
        yield
