"""Noises by their texts in settings and blocks: a bare name, or a kind with its parameters.

A text is public and the same for all parties, each of which derives it from its own settings; no object travels.
"""

from protocols.sums.noise import Noise, noise_named
from protocols.sums.noise_shares import KIND, read_shares


def noise_of(text: str) -> Noise:
    """The noise of this text. An unknown one raises: nothing falls back to no noise."""
    return read_shares(text) if text.startswith(f"{KIND} ") else noise_named(text)
