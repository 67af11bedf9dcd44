"""One random stream for each purpose.

For data, sampling and training only: the seed is public. Secrets never come from here.
"""

import hashlib

import numpy as np


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """The stream of `seed` for `purpose`, e.g. `generator(0, "held out", client)`.

    Seed and purpose are hashed together (SHA-256, every item prefixed by its length), so that different purposes never
    share a stream, and neither do neighbouring seeds. The stream is the same on every machine with the same numpy;
    numpy may change its streams between versions, and a test notices.
    """
    items = [str(item).encode() for item in (seed, *purpose)]
    digest = hashlib.sha256(b"".join(len(item).to_bytes(8, "big") + item for item in items)).digest()
    words = [int.from_bytes(digest[start : start + 4], "big") for start in range(0, len(digest), 4)]
    return np.random.default_rng(np.random.SeedSequence(words))
