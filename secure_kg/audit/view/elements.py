"""Vectors of a transcript as the group elements that they stand for."""

from protocols.sums.travelling import is_packed, travelled
from secure_kg.audit.view.statistics import Words
from secure_kg.federation.plan.settings import RunConfig


def elements(vector: Words, config: RunConfig) -> tuple[Words, int | None]:
    """A vector that has travelled as the elements that it stands for, and of how many bits they are if these are fewer
    than those of their type. What is no such vector is looked at byte by byte."""
    if vector.dtype.itemsize > 1 or not is_packed(config.ring_bits):
        return vector, None
    try:
        return travelled(vector, config.ring_bits), config.ring_bits
    except ValueError:
        return vector, None
