"""The check of a secret sum of few entries: linear in what clients add, under factors that the server does not know.

Each client appends `CHECKS` entries to its vector x: entry s is the sum over i of f_{s,i} x_i in the ring. The factors
f come from the group key, for this round, purpose and task. The entries of a total are such sums of the total itself. A
total that was changed passes with probability 2^-40 at most: the proof is in `protocols.sums.secret.aggregation`.
"""

from typing import Final

import numpy as np

from protocols.foundation.digests import encode_parties, length_prefixed
from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.group import GroupVector, Ring
from protocols.primitives.prg import add_keystream
from protocols.session.group_key import GroupKey
from protocols.sums.interface import SumLayout
from protocols.sums.terms import Layout, SumTerms

CHECKS: Final = 40
"""A change by half the ring passes one check with probability 1/2, so there are several."""
LARGEST_CHECKED: Final = 4096
"""Sums of more entries have no check: its factors would be 40 more keystreams of their length."""


def checks_of(layout: SumLayout) -> int:
    """How many entries clients append to a secret sum of this layout."""
    return CHECKS if layout.entries <= LARGEST_CHECKED else 0


def possible_entries(length: int) -> tuple[int, ...]:
    """How many entries a layout may have whose secret sum has `length`; hardly ever more than one number."""
    checked = (length - CHECKS,) if 0 <= length - CHECKS <= LARGEST_CHECKED else ()
    return (*checked, length) if length > LARGEST_CHECKED else checked


def with_checks(key: GroupKey, terms: SumTerms[Layout], numbers: GroupVector) -> GroupVector:
    """The whole vector of a sum: `numbers`, which are its first entries, and their checks, if it has any."""
    layout = terms.layout
    if len(numbers) == layout.entries:
        return numbers
    whole = layout.group.zeros(layout.entries)
    whole[: len(numbers)] = numbers
    whole[len(numbers) :] = _checks(key, terms, numbers)
    return whole


def checked_numbers(key: GroupKey, terms: SumTerms[Layout], opened: GroupVector, entries: int) -> GroupVector:
    """The first `entries` of an opened total. `PeerMisbehaved` unless all of its checks are theirs."""
    numbers = opened[:entries]
    if not np.array_equal(with_checks(key, terms, numbers), opened):
        raise PeerMisbehaved("the server sent a sum that is none of these contributors")
    return numbers


def _checks(key: GroupKey, terms: SumTerms[Layout], numbers: GroupVector) -> GroupVector:
    group, entries = terms.layout.group, terms.layout.entries
    if not isinstance(group, Ring):
        raise ValueError(f"checks of this kind are for rings, not for {group.name}")
    count = entries - len(numbers)
    factors = group.zeros(count * len(numbers))
    length = entries.to_bytes(8, "little")
    binding = length_prefixed(group.name.encode(), length, encode_parties(terms.participants))
    add_keystream(key.derive(f"sum check/{terms.purpose}", terms.round, binding=binding), factors, group)
    checks: GroupVector = factors.reshape(count, len(numbers)) @ numbers  # wraps, as the type does
    group.reduce(checks)
    return checks
