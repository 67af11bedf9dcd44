"""The masks: they cancel exactly for every set of participants, hide every input, and are never used twice."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import parties, ready, ready_with
from uniformity import ENTRIES, looks_uniform

from protocols.identifiers import PartyId, RoundId, SessionId
from protocols.primitives.group import Ring, RingVector
from protocols.primitives.keys import KeyContext, derive_key
from protocols.primitives.prg import add_keystream, subtract_keystream
from protocols.secagg.server import MaskedSum

RINGS = [Ring(32), Ring(64)]
ROUND = RoundId(1)


def inputs(ring: Ring, clients: list[PartyId], length: int, seed: int = 0) -> dict[PartyId, RingVector]:
    rng = np.random.default_rng(seed)
    return {party: rng.integers(0, 2**ring.bits, length, dtype=ring.dtype) for party in clients}


@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: f"{ring.bits} bits")
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_the_sum_is_exact_for_every_set_of_participants(count: int, ring: Ring) -> None:
    everyone = parties(*range(1, count + 1))
    group = ready(everyone)
    subsets = [list(chosen) for size in range(2, count + 1) for chosen in combinations(everyone, size)]
    for number, participants in enumerate(subsets):
        own = inputs(ring, participants, 7, seed=number)
        running = MaskedSum(ring, 7, "rows", participants)
        for party in reversed(participants):
            running.add(party, group[party].mask(RoundId(number), "rows", participants, ring, own[party].copy()))
        assert np.array_equal(running.total(), sum(own.values(), start=ring.zeros(7)))
    assert len(subsets) == 2**count - count - 1


@given(st.sampled_from(RINGS), st.sets(st.integers(0, 2**32), min_size=2, max_size=4), st.integers(0, 9), st.data())
@settings(deadline=None, max_examples=40)
def test_the_sum_is_exact_for_any_numbers_of_parties(
    ring: Ring, numbers: set[int], length: int, data: st.DataObject
) -> None:
    everyone = parties(*numbers)
    entry = st.integers(0, 2**ring.bits - 1)
    own = {party: data.draw(st.lists(entry, min_size=length, max_size=length)) for party in everyone}
    group = ready(everyone)
    running = MaskedSum(ring, length, "rows", everyone)
    for party in data.draw(st.permutations(everyone)):
        vector = np.array(own[party], dtype=ring.dtype)
        running.add(party, group[party].mask(ROUND, "rows", everyone, ring, vector))
    expected = [sum(column) % 2**ring.bits for column in zip(*own.values(), strict=True)]
    assert running.total().tolist() == expected


@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: f"{ring.bits} bits")
def test_a_masked_input_is_the_formula_of_the_paper(ring: Ring) -> None:
    """FedR appendix C, with each s_{u,v} derived as `protocols.secagg` says."""
    everyone = parties(1, 2, 3)
    group = ready(everyone)
    own = inputs(ring, everyone, 5)
    expected = own[PartyId(2)].copy()
    for peer, combine in ((PartyId(3), add_keystream), (PartyId(1), subtract_keystream)):
        low, high = sorted((PartyId(2), peer))
        context = KeyContext(
            "secure-kg/secagg", 1, SessionId(bytes(range(16))), ROUND, low, high, f"pairwise-mask/{ring.bits}/rows"
        )
        combine(derive_key(group[PartyId(2)]._secrets[peer], context), expected, ring)
    masked = group[PartyId(2)].mask(ROUND, "rows", everyone, ring, own[PartyId(2)].copy())
    assert np.array_equal(masked.vector, expected)


# --- hiding ---------------------------------------------------------------------------------------------------------


def small(ring: Ring) -> RingVector:
    """What an encoded embedding looks like: small signed numbers."""
    signed = np.rint(np.random.default_rng(3).normal(0, 2.0**20, ENTRIES))
    encoded: npt.NDArray[np.uint64] = signed.astype(np.int64).view(np.uint64)
    return encoded.astype(ring.dtype)


@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: f"{ring.bits} bits")
@pytest.mark.parametrize("count", [2, 3])
def test_an_upload_looks_uniform_and_its_input_does_not(count: int, ring: Ring) -> None:
    everyone = parties(*range(1, count + 1))
    group = ready(everyone)
    assert not looks_uniform(small(ring))
    for party in everyone:
        masked = group[party].mask(ROUND, "rows", everyone, ring, small(ring)).vector
        assert looks_uniform(masked)
        assert looks_uniform(masked - np.roll(masked, 1))


@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: f"{ring.bits} bits")
def test_a_sum_with_one_input_missing_looks_uniform(ring: Ring) -> None:
    everyone = parties(1, 2, 3)
    group = ready(everyone)
    uploads = [group[party].mask(ROUND, "rows", everyone, ring, small(ring)).vector for party in everyone]
    for missing in range(3):
        partial = sum((uploads[k] for k in range(3) if k != missing), start=ring.zeros(ENTRIES))
        assert looks_uniform(partial)
    assert not looks_uniform(sum(uploads, start=ring.zeros(ENTRIES)))


def unrelated(left: RingVector, right: RingVector) -> bool:
    """Whether two uploads of the same input share no mask: their difference is noise as well."""
    return looks_uniform(left - right) and looks_uniform(left + right)


@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: f"{ring.bits} bits")
def test_the_same_input_is_masked_afresh_in_every_round_and_purpose(ring: Ring) -> None:
    everyone = parties(1, 2)
    client = ready(everyone)[PartyId(1)]
    uploads = [
        client.mask(RoundId(round_id), purpose, everyone, ring, small(ring)).vector
        for round_id, purpose in [(0, "rows"), (0, "counts"), (1, "rows"), (1, "counts")]
    ]
    assert all(unrelated(left, right) for left, right in combinations(uploads, 2))
    assert not unrelated(uploads[0], uploads[0])


def test_the_same_keys_mask_afresh_in_another_session() -> None:
    ring, everyone = Ring(64), parties(1, 2)
    keys = [X25519PrivateKey.generate() for _ in everyone]
    sessions = [SessionId(bytes(16)), SessionId(bytes(15) + b"\x01"), SessionId(bytes(16))]
    first, second, again = (
        ready_with(keys, session)[PartyId(1)].mask(ROUND, "rows", everyone, ring, small(ring)).vector
        for session in sessions
    )
    assert unrelated(first, second)
    assert np.array_equal(first, again)  # else the line above would say nothing about the session


def test_fresh_sessions_have_fresh_keys() -> None:
    ring, everyone = Ring(64), parties(1, 2)
    left, right = (
        ready(everyone)[PartyId(1)].mask(ROUND, "rows", everyone, ring, small(ring)).vector for _ in range(2)
    )
    assert unrelated(left, right)


def test_pairs_do_not_share_masks() -> None:
    ring, everyone = Ring(64), parties(1, 2, 3)
    group = ready(everyone)
    uploads = [
        group[PartyId(1)].mask(RoundId(0), "with two", parties(1, 2), ring, ring.zeros(ENTRIES)).vector,
        group[PartyId(1)].mask(RoundId(1), "with three", parties(1, 3), ring, ring.zeros(ENTRIES)).vector,
        group[PartyId(2)].mask(RoundId(2), "of the others", parties(2, 3), ring, ring.zeros(ENTRIES)).vector,
    ]
    assert all(unrelated(left, right) for left, right in combinations(uploads, 2))


def test_the_two_rings_do_not_share_masks() -> None:
    everyone = parties(1, 2)
    keys = [X25519PrivateKey.generate() for _ in everyone]
    narrow, wide = (
        ready_with(keys, SessionId(bytes(16)))[PartyId(1)]
        .mask(ROUND, "rows", everyone, ring, ring.zeros(length))
        .vector
        for ring, length in ((Ring(32), 2 * ENTRIES), (Ring(64), ENTRIES))
    )
    assert unrelated(narrow, wide.view(narrow.dtype))
