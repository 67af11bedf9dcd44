"""A client finds its places in the list that everybody is sent, and refuses a list that would mix up rows."""

import hashlib

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.alignment.interface import Positions, Union, list_digest
from protocols.foundation.errors import PeerMisbehaved

A, B, C, D = (bytes([letter]) * 16 for letter in b"abcd")


def tags(*rows: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, 16)


@given(
    st.lists(st.binary(min_size=16, max_size=16), unique=True, max_size=8).flatmap(
        lambda rows: st.tuples(st.just(rows), st.permutations(rows), st.integers(0, len(rows)))
    )
)
@settings(deadline=None)
def test_places_are_those_in_the_list(drawn: tuple[list[bytes], list[bytes], int]) -> None:
    rows, shuffled, count = drawn
    own = shuffled[:count]
    positions = Positions.in_list(tags(*rows), own)
    assert positions.union_size == len(rows)
    assert positions.own.dtype == np.int64
    assert positions.own.tolist() == [rows.index(tag) for tag in own]
    assert positions.digest == list_digest(tags(*rows))
    assert "own" not in repr(positions)


@pytest.mark.parametrize(
    ("rows", "own", "problem"),
    [
        ([A, B, A], [B], "names a tag twice"),
        ([A, A], [A], "names a tag twice"),
        ([B, B], [], "names a tag twice"),
        ([A, B], [C], "lacks a name"),
        ([A, B], [A, C], "lacks a name"),
        ([], [A], "lacks a name"),
        ([A, B], [A[:15]], "lacks a name"),
        ([A, B], [A + A], "lacks a name"),
        ([A, B], [A, A], "same tag"),
        ([A, B, C], [C, A, C], "same tag"),
    ],
)
def test_a_list_that_would_mix_up_rows_is_refused(rows: list[bytes], own: list[bytes], problem: str) -> None:
    with pytest.raises(PeerMisbehaved, match=problem):
        Positions.in_list(tags(*rows), own)


def test_lists_that_differ_in_anything_have_different_digests() -> None:
    lists = [[], [A], [B], [A, B], [B, A], [A, B, C], [A, B, D], [A, B, C, D], [bytes(16)], [bytes(16), A]]
    assert len({list_digest(tags(*rows)) for rows in lists}) == len(lists)


def test_the_digest_is_that_of_the_bytes_whatever_the_memory_looks_like() -> None:
    rows = tags(A, B, C)
    assert list_digest(rows) == hashlib.sha256(A + B + C).digest()
    assert list_digest(np.asfortranarray(rows)) == list_digest(rows)
    assert list_digest(rows[::-1]) == list_digest(tags(C, B, A))
    assert Positions.in_list(np.asfortranarray(rows), [C]).own.tolist() == [2]
    assert Union(3, list_digest(rows)) == Union(3, Positions.in_list(rows, [B]).digest)
