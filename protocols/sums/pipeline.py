"""Contributions on their way into a sum: clip, encode, add noise. Every sum of numbers, masked or not, goes through it.

The order of the stages and its reasons: `protocols.sums.noise`.
"""

from protocols.primitives.fixed_point import Encoded
from protocols.primitives.group import GroupVector
from protocols.sums.interface import Contribution, SumLayout
from protocols.sums.noise import NO_NOISE
from protocols.sums.terms import SumTerms


def encode(terms: SumTerms[SumLayout], contribution: Contribution, into: GroupVector | None = None) -> Encoded:
    """The ring vector that a client adds to a sum. Clipped values are counted before noise is added.

    `into`: a vector that is no longer needed. Fresh memory costs as much as the encoding itself.
    """
    layout, noise = terms.layout, contribution.noise
    encoded = layout.encode(contribution, into)
    if noise is not NO_NOISE and layout.real_entries:
        noise.add_to(encoded.vector[: layout.real_entries], layout.codec, terms)
    return encoded
