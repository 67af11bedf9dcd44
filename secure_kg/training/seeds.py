"""Named seeds for training: every use of randomness has its own stream, found again from its name.

No generator state is ever saved: a resumed round draws what the uninterrupted one would have drawn.
Not for secrets: those come from the operating system, never from here.
"""

import numpy as np


def named_sequence(seed: int, purpose: str, *numbers: int) -> np.random.SeedSequence:
    """The seed sequence of one purpose; `numbers` say which client, which round.

    The name goes into the spawn key: numpy pads the entropy to a fixed width before it, so streams cannot collide
    for seeds below 2^128 and numbers below 2^32.
    """
    if not 0 <= seed < 2**128 or not all(0 <= number < 2**32 for number in numbers):
        raise ValueError("seeds must lie in [0, 2^128), client and round numbers in [0, 2^32)")
    return np.random.SeedSequence(seed, spawn_key=(*purpose.encode(), 0, *numbers))


def named_generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """A fresh generator at the start of that stream."""
    return np.random.default_rng(named_sequence(seed, purpose, *numbers))


def named_torch_seed(seed: int, purpose: str, *numbers: int) -> int:
    """A 64-bit seed for `torch.Generator.manual_seed`."""
    return int(named_sequence(seed, purpose, *numbers).generate_state(1, np.uint64)[0])
