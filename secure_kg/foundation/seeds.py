"""One random stream for each purpose.

For data, sampling and training only: the seed is public. Secrets never come from here.
"""

import hashlib

import numpy as np


def seed_sequence(seed: int, *purpose: str | int) -> np.random.SeedSequence:
    """The seed of one purpose, e.g. `seed_sequence(0, "held out", client)`.

    Seed and purpose are hashed together (SHA-256, every item prefixed by its length), so that different purposes never
    share a stream, and neither do neighbouring seeds. The stream is the same on every machine with the same numpy;
    numpy may change its streams between versions, and a test notices.
    """
    items = [str(item).encode() for item in (seed, *purpose)]
    digest = hashlib.sha256(b"".join(len(item).to_bytes(8, "big") + item for item in items)).digest()
    words = [int.from_bytes(digest[start : start + 4], "big") for start in range(0, len(digest), 4)]
    return np.random.SeedSequence(words)


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A fresh numpy generator at the start of that purpose's stream.

    Client and round belong to the purpose, so no generator's state is ever saved: a resumed round draws what the
    unbroken one would have drawn.
    """
    return np.random.default_rng(seed_sequence(seed, *purpose))


def torch_seed(seed: int, *purpose: str | int) -> int:
    """A 64-bit seed for `torch.Generator.manual_seed`."""
    return int(seed_sequence(seed, *purpose).generate_state(1, np.uint64)[0])
