"""Tags: a function of key and name alone, uniform in the field, for any string."""

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.alignment.psu import tags as tags_module
from protocols.alignment.psu.tags import tags_of
from protocols.primitives.group import MODULUS
from tests.support.uniformity import ENTRIES, HIGH, LOW, chi_squares

KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))
ODD_NAMES = ["", "\0", "a", "a\0", "é", "e\u0301", "Ω", "\u2126", "名前", "🜁", "\ud800", "\udfff", "a" * 100_000]
# Every code point, lone surrogates among them.
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)


@given(st.lists(any_text, max_size=20))
def test_equal_names_and_no_others_have_equal_tags(names: list[str]) -> None:
    tags = tags_of(names, KEY)
    assert tags.dtype == np.uint64
    assert tags.shape == (len(set(names)), 2)
    assert len(np.unique(tags, axis=0)) == len(tags)
    assert tags.max(initial=0) < MODULUS
    for name, tag in zip(dict.fromkeys(names), tags, strict=True):
        assert np.array_equal(tags_of([name], KEY), [tag])


def test_odd_names_have_tags_of_their_own() -> None:
    assert len(np.unique(tags_of(ODD_NAMES, KEY), axis=0)) == len(ODD_NAMES)


def test_no_names_have_no_tags() -> None:
    assert tags_of([], KEY).shape == (0, 2)


def test_duplicates_collapse_to_their_first_appearance() -> None:
    assert np.array_equal(tags_of(iter(["b", "a", "b", "b", "a"]), KEY), tags_of(["b", "a"], KEY))
    assert tags_of(["x"] * 1000, KEY).shape == (1, 2)


def test_another_key_gives_other_tags() -> None:
    assert not np.isin(tags_of(ODD_NAMES, KEY), tags_of(ODD_NAMES, OTHER_KEY)).any()


@pytest.mark.parametrize("length", [0, 16, 31, 33, 64])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        tags_of(["a"], bytes(length))


def test_a_tag_is_the_documented_hash() -> None:
    digest = hashlib.blake2b("名前".encode(), digest_size=16, key=KEY, person=b"secure-kg/psu/1").digest()
    words = [int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")]
    assert tags_of(["名前"], KEY).tolist() == [[word % 2**61 for word in words]]


def test_each_limb_is_uniform() -> None:
    tags = tags_of(map(str, range(2 * ENTRIES)), KEY)
    for limb in tags.T:
        # The top byte has five bits: shifted into the top of the word, all bytes but the lowest are full ones.
        statistics = chi_squares(limb << np.uint64(3))[1:]
        assert all(LOW < statistic < HIGH for statistic in statistics)


def test_the_limbs_of_a_tag_are_not_related() -> None:
    first, second = tags_of(map(str, range(2 * ENTRIES)), KEY).T
    statistics = chi_squares(first ^ second)[:7]
    assert all(LOW < statistic < HIGH for statistic in statistics)


def test_a_second_zero_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It happens once in 2^60 names, so it is made to happen: to the second name twice, to the third once."""
    real = tags_module._digests
    asked: list[tuple[list[bytes], int]] = []

    def rigged(names: Sequence[bytes], key: bytes, attempt: int) -> bytes:
        asked.append((list(names), attempt))
        digests = [real([name], key, attempt) for name in names]
        for index, name in enumerate(names):
            if name == b"b" and attempt < 2:
                digests[index] = b"\xff" * 8 + digests[index][8:]
            if name == b"c" and attempt < 1:
                digests[index] = digests[index][:8] + b"\xff" * 7 + b"\x1f"
        return b"".join(digests)

    monkeypatch.setattr(tags_module, "_digests", rigged)
    tags = tags_of(["a", "b", "c"], KEY)
    assert asked == [([b"a", b"b", b"c"], 0), ([b"b", b"c"], 1), ([b"b"], 2)]
    assert tags.max() < MODULUS
    monkeypatch.undo()
    assert np.array_equal(tags[0], tags_of(["a"], KEY)[0])
    assert not np.isin(tags[1:], tags_of(["b", "c"], KEY)).all()


def test_a_counter_gives_independent_digests() -> None:
    assert len({tags_module._digests([b"a"], KEY, attempt) for attempt in range(100)}) == 100


def test_many_names_have_as_many_tags() -> None:
    names = [f"/m/{number:07x}" for number in range(1 << 16)]
    assert len(np.unique(tags_of(names, KEY), axis=0)) == len(names)
