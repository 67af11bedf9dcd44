"""Secret sharing: enough shares give the secret, fewer say nothing, and shares nobody made are refused."""

import itertools
import secrets
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives import shamir
from protocols.primitives.group import MODULUS, PrimeField
from protocols.primitives.shamir import SECRET_BYTES, SHARE_BYTES, recombine, split
from tests.support.uniformity import HIGH, LOW
from tests.support.vectors import unhex, vectors

SECRET = bytes(range(100, 132))
secret_values = st.binary(min_size=32, max_size=32) | st.sampled_from([bytes(32), b"\xff" * 32])
point_values = st.integers(1, 20) | st.integers(1, MODULUS - 1) | st.sampled_from([1, MODULUS - 1])


def words(share: bytes) -> tuple[int, ...]:
    return struct.unpack("<5Q", share)


def share_of(values: list[int]) -> bytes:
    return struct.pack("<5Q", *values)


def limbs_of(secret: bytes) -> list[int]:
    number = int.from_bytes(secret, "little")
    return [(number >> 60 * place) % 2**60 for place in range(5)]


def value_at(place: int, known: dict[int, int]) -> int:
    """The value at `place` of the one polynomial of least degree through the known values, on Python's integers."""
    total = 0
    for point, value in known.items():
        for other in known.keys() - {point}:
            value = value * (place - other) * pow(point - other, -1, MODULUS) % MODULUS
        total += value
    return total % MODULUS


# --- sharing and recombining ----------------------------------------------------------------------------------------


def test_own_vector() -> None:
    own = vectors("shamir")
    shares = {int(point): unhex(share) for point, share in own["shares"].items()}
    assert [str(limb) for limb in limbs_of(unhex(own["secret"]))] == own["limbs"]
    for size in range(own["threshold"], len(shares) + 1):
        for points in itertools.combinations(shares, size):
            secret = recombine({point: shares[point] for point in points}, own["threshold"])
            assert secret.hex() == own["secret"]


def test_own_vector_is_what_split_makes_of_its_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    own = vectors("shamir")
    first, second = ([int(number) for number in numbers] for numbers in own["coefficients"])

    def token_bytes(size: int) -> bytes:
        drawn = share_of(second) + share_of(first)
        assert size == len(drawn)
        return drawn

    monkeypatch.setattr(secrets, "token_bytes", token_bytes)
    points = [int(point) for point in own["shares"]]
    made = split(unhex(own["secret"]), points, own["threshold"])
    assert {str(point): share.hex() for point, share in made.items()} == own["shares"]


@given(secret_values, st.lists(point_values, min_size=1, max_size=8, unique=True), st.data())
@settings(deadline=None)
def test_any_threshold_of_the_shares_gives_the_secret(secret: bytes, points: list[int], data: st.DataObject) -> None:
    threshold = data.draw(st.integers(1, len(points)))
    shares = split(secret, points, threshold)
    assert list(shares) == points
    assert {len(share) for share in shares.values()} == {SHARE_BYTES}
    for chosen in itertools.combinations(points, threshold):
        assert recombine({point: shares[point] for point in chosen}, threshold) == secret
    some = data.draw(st.lists(st.sampled_from(points), min_size=threshold, unique=True))
    assert recombine({point: shares[point] for point in some}, threshold) == secret
    assert recombine(shares, threshold) == secret


@given(secret_values, st.lists(point_values, min_size=2, max_size=6, unique=True))
@settings(deadline=None)
def test_shares_are_values_of_polynomials_of_the_right_degree(secret: bytes, points: list[int]) -> None:
    shares = {point: words(share) for point, share in split(secret, points, len(points)).items()}
    for limb, expected in enumerate(limbs_of(secret)):
        assert value_at(0, {point: values[limb] for point, values in shares.items()}) == expected


def test_many_points_and_surplus_shares_beyond_one_block() -> None:
    points = [number * 7919 % 9973 for number in range(1, 301)]
    shares = split(SECRET, points, 120)
    assert shamir._BLOCK < 180 * 120 * 5
    assert recombine(shares, 120) == SECRET
    for point in (max(points), min(points), sorted(points)[150]):
        changed = words(shares[point])
        wrong = share_of([*changed[:4], (changed[4] + 1) % MODULUS])
        with pytest.raises(PeerMisbehaved, match="belong to one secret"):
            recombine(shares | {point: wrong}, 120)


def test_one_share_of_threshold_one_is_the_secret() -> None:
    shares = split(SECRET, [3, 9], 1)
    assert recombine({9: shares[9]}, 1) == SECRET
    assert list(words(shares[3])) == limbs_of(SECRET)


def test_the_same_secret_is_shared_anew_each_time() -> None:
    first, second = (split(SECRET, [1, 2, 3], 2) for _ in range(2))
    assert not set(first.values()) & set(second.values())


# --- fewer shares say nothing ---------------------------------------------------------------------------------------


@given(secret_values, secret_values, st.integers(2, 6), st.data())
@settings(deadline=None)
def test_fewer_shares_fit_every_secret(secret: bytes, candidate: bytes, threshold: int, data: st.DataObject) -> None:
    points = data.draw(st.lists(point_values, min_size=threshold, max_size=threshold, unique=True))
    shares = split(secret, points, threshold)
    *held, last = points
    # The share that would make the candidate the secret exists, and is a share like any other.
    missing = [
        value_at(last, {0: limb, **{point: words(shares[point])[place] for point in held}})
        for place, limb in enumerate(limbs_of(candidate))
    ]
    assert recombine({**{point: shares[point] for point in held}, last: share_of(missing)}, threshold) == candidate


@pytest.mark.long
def test_shares_below_the_threshold_are_uniform_whatever_the_secret() -> None:
    draws = 256 * 16
    for secret in (bytes(32), b"\xff" * 32):
        taken = [split(secret, [1, 2, 3], 3) for _ in range(draws)]
        one = np.array([words(shares[2]) for shares in taken], dtype=np.uint64)
        # Two shares together: any combination of them but those that make a multiple of one is as uniform.
        both = np.array([words(shares[1]) for shares in taken], dtype=np.uint64)
        for values in (one, PrimeField().subtract(both, one)):
            top, bottom = values >> np.uint64(53), values & np.uint64(255)
            for limb in range(5):
                for part in (top[:, limb], bottom[:, limb]):
                    counts = np.bincount(part.astype(np.int64), minlength=256)
                    assert LOW < ((counts - 16) ** 2 / 16).sum() < HIGH


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_secrets_of_another_length_are_refused(size: int) -> None:
    assert size != SECRET_BYTES
    with pytest.raises(ValueError, match="32 bytes"):
        split(bytes(size), [1, 2], 2)


@pytest.mark.parametrize("points", [[0, 1, 2], [1, -1, 2], [1, 2, MODULUS], [1, 2, 2**64 + 1], [1, 2, 1]])
def test_points_that_give_the_secret_away_or_coincide_are_refused(points: list[int]) -> None:
    with pytest.raises(ValueError, match="distinct numbers"):
        split(SECRET, points, 2)


@pytest.mark.parametrize("threshold", [-1, 0, 4])
def test_impossible_thresholds_are_refused(threshold: int) -> None:
    with pytest.raises(ValueError, match="threshold"):
        split(SECRET, [1, 2, 3], threshold)
    with pytest.raises(ValueError, match="threshold"):
        recombine(split(SECRET, [1, 2, 3], 2), threshold)


def test_no_points_are_no_sharing() -> None:
    with pytest.raises(ValueError, match="among 0"):
        split(SECRET, [], 1)
    with pytest.raises(ValueError, match="fewer"):
        recombine({}, 1)


SHARES = split(SECRET, [1, 2, 3, 4, 5], 3)
FIRST = {point: SHARES[point] for point in (1, 2, 3)}


def refused(shares: dict[int, bytes], text: str) -> None:
    with pytest.raises(PeerMisbehaved, match=text) as caught:
        recombine(shares, 3)
    shown = str(caught.value)
    for share in (*shares.values(), *SHARES.values()):
        assert not share or share.hex() not in shown
        assert len(share) != SHARE_BYTES or not any(str(word) in shown for word in words(share))


@pytest.mark.parametrize("size", [0, 8, 39, 41, 80])
@pytest.mark.parametrize("point", [1, 5])
def test_a_share_of_another_length_is_refused(size: int, point: int) -> None:
    refused(SHARES | {point: (SHARES[point] * 2)[:size]}, "40 bytes")


def test_lengths_that_make_up_for_each_other_are_refused() -> None:
    refused(SHARES | {1: SHARES[1][:32], 2: SHARES[2] + SHARES[1][32:]}, "40 bytes")


@pytest.mark.parametrize("point", [1, 3, 5])
@pytest.mark.parametrize("limb", range(5))
def test_a_value_outside_the_field_is_refused(point: int, limb: int) -> None:
    values = list(words(SHARES[point]))
    # Not even a second name of the right value.
    for value in (MODULUS, values[limb] + MODULUS, 2**64 - 1):
        refused(SHARES | {point: share_of([*values[:limb], value, *values[limb + 1 :]])}, "outside the field")


@pytest.mark.parametrize("point", [0, -1, MODULUS, MODULUS + 1, 2**64, "1", 1.5, None])
def test_a_share_at_no_point_is_refused(point: int) -> None:
    refused(FIRST | {point: SHARES[4]}, "at a point")


@given(st.sampled_from([1, 2, 3, 4, 5]), st.integers(0, 8 * SHARE_BYTES - 1))
@settings(deadline=None)
def test_a_flipped_bit_among_surplus_shares_is_noticed(point: int, bit: int) -> None:
    flipped = (int.from_bytes(SHARES[point], "little") ^ (1 << bit)).to_bytes(SHARE_BYTES, "little")
    refused(SHARES | {point: flipped}, "belong to one secret|outside the field")
    four = {other: SHARES[other] for other in {1, 2, 3, 4} | {point}}
    refused(four | {point: flipped}, "belong to one secret|outside the field")


def test_swapped_and_duplicated_shares_are_noticed() -> None:
    for left, right in itertools.combinations(SHARES, 2):
        refused(SHARES | {left: SHARES[right], right: SHARES[left]}, "belong to one secret")
        refused(SHARES | {left: SHARES[right]}, "belong to one secret")
    refused(FIRST | {6: SHARES[4]}, "belong to one secret")


@pytest.mark.parametrize("secret", [SECRET, bytes(32)])
@pytest.mark.parametrize("point", [1, 3, 4, 5])
def test_a_share_of_another_sharing_is_noticed(secret: bytes, point: int) -> None:
    refused(SHARES | {point: split(secret, [1, 2, 3, 4, 5], 3)[point]}, "belong to one secret")


def test_a_polynomial_of_higher_degree_is_noticed() -> None:
    refused(split(SECRET, [1, 2, 3, 4, 5], 4), "belong to one secret")


@pytest.mark.parametrize("limb", range(5))
def test_shares_of_no_secret_are_noticed_without_surplus(limb: int) -> None:
    limit = 2**16 if limb == 4 else 2**60
    for constant, fits in ((limit - 1, True), (limit, False), (MODULUS - 1, False)):
        values = [[0] * limb + [(constant + 7 * point) % MODULUS] + [0] * (4 - limb) for point in (1, 2, 3)]
        shares = {point: share_of(values[point - 1]) for point in (1, 2, 3)}
        if fits:
            assert limbs_of(recombine(shares, 3))[limb] == constant
        else:
            refused(shares, "do not give a secret")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_shares_are_the_callers_mistake(count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} shares, fewer"):
        recombine(dict(itertools.islice(SHARES.items(), count)), 3)


def test_a_threshold_other_than_that_of_the_sharing() -> None:
    # With too high a threshold the flatter polynomial is found, with too low a one the steeper is no polynomial.
    assert recombine(SHARES, 4) == SECRET
    refused(split(SECRET, [1, 2, 3, 4, 5], 5), "belong to one secret|give a secret")


def test_cached_weights_cannot_be_changed() -> None:
    weights = shamir._weights((1, 2, 3), (4,))
    assert shamir._weights((1, 2, 3), (4,)) is weights
    with pytest.raises(ValueError, match="read-only"):
        weights[0, 0] = 1
    assert weights.tolist() == [[3, MODULUS - 3, 1], [1, MODULUS - 3, 3]]
