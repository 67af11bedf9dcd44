"""The names of a union for the server: exactly those, by position, without a sign of who or how many hold them."""

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from protocols.alignment.interface import Positions
from protocols.alignment.psu import names as names_module
from protocols.alignment.psu.names import (
    MAX_NAME_BYTES,
    MAX_UNION,
    NAME_LIMBS,
    POSITION_ENTRIES,
    objection,
    read,
    written,
)
from protocols.alignment.psu.vote import REFUSED
from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, ProtocolError
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.primitives.group import MODULUS, FieldArray
from tests.support.holders_statistics import HOLDERS, look_alike
from tests.support.in_threads import converse
from tests.support.set_unions import FIELD
from tests.support.sum_conversations import SECAGG, Foreseen, Stopped, bent, everyone
from tests.support.uniformity import ENTRIES
from tests.support.union_conversations import joining, of_purpose, serving, unite

ODD_NAMES = ["\0", "a", "a\0", "é", "e\u0301", "Ω", "名前", "🜁", "\ud800", "\udfff", "b" * 255, "名" * 85]
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)


def at(size: int, *places: int) -> Positions:
    return Positions(size, np.array(places, dtype=np.int64))


def added(*vectors: FieldArray) -> FieldArray:
    return FIELD.sum(np.stack(vectors))


# --- what is written and read ---------------------------------------------------------------------------------------


@given(st.lists(any_text, unique=True, max_size=10), st.data())
@example(ODD_NAMES, None)
@example([], None)
@settings(deadline=None)
def test_what_is_written_is_read(names: list[str], data: st.DataObject | None) -> None:
    """Whoever holds a name, as long as somebody does."""
    size = len(names) + 2
    shuffled = data.draw(st.permutations(range(size))) if data else list(range(size))
    place = dict(zip(names, shuffled, strict=False))
    everybody = written(at(size, *place.values()), names)
    some = data.draw(st.lists(st.sampled_from(names))) if data and names else names[:3]
    vectors = [everybody, written(at(size, *(place[name] for name in some)), some), written(at(size), [])]
    expected = [""] * size
    for name, position in place.items():
        expected[position] = name
    assert read(added(*vectors), size) == expected


def test_sizes_are_the_documented_ones() -> None:
    assert (MAX_NAME_BYTES, NAME_LIMBS, POSITION_ENTRIES) == (255, 37, 39)
    assert written(at(3, 1), ["a"]).shape == (3 * 39,)
    assert 8 * 39 * MAX_UNION < wire.MAX_FRAME_BYTES < 8 * 39 * (MAX_UNION + 100)


def test_a_name_that_stands_twice_is_written_once() -> None:
    assert read(written(at(3, 2, 0, 2), ["a", "b", "a"]), 3) == ["b", "", "a"]


@pytest.mark.parametrize("name", ["a" * 256, "名" * 86])
def test_a_name_that_is_too_long_is_refused_without_being_told(name: str) -> None:
    with pytest.raises(ProtocolError, match="a name is too long to be revealed: 255 bytes at most") as caught:
        written(at(2, 0, 1), ["short", name])
    assert name[:10] not in str(caught.value)


def test_a_union_that_does_not_fit_a_frame_is_refused() -> None:
    with pytest.raises(ProtocolError, match="are too many to be sent"):
        written(at(MAX_UNION + 1), [])


def test_positions_of_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match="1 names with 2 positions"):
        written(at(2, 0, 1), ["a"])


# --- what the server refuses ----------------------------------------------------------------------------------------


def limbs_of(row: bytes) -> FieldArray:
    """A position with weight one and any bytes for its name."""
    padded = row.ljust(NAME_LIMBS * 7, b"\0")
    limbs = [int.from_bytes(padded[start : start + 7], "little") for start in range(0, len(padded), 7)]
    digest = hashlib.blake2b(padded, digest_size=8, person=b"secure-kg/name/1").digest()
    return np.array([1, int.from_bytes(digest, "little") % 2**61, *limbs], dtype=np.uint64)


def test_bytes_are_where_the_documentation_puts_them() -> None:
    assert read(limbs_of(b"\3abc"), 1) == ["abc"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (b"\2abc", "longer than it claims"),
        (b"\0a", "longer than it claims"),
        (b"\1a".ljust(258, b"\0") + b"x", "longer than it claims"),
        (b"\1\xff", "no text"),
        (b"\4\xc0\x80ab", "no text"),
        (b"\1\xe5", "no text"),
    ],
)
def test_what_is_no_name_is_refused(row: bytes, problem: str) -> None:
    with pytest.raises(PeerMisbehaved, match=problem):
        read(limbs_of(row), 1)


@pytest.mark.parametrize(("left", "right"), [("a", "b"), ("a", ""), ("a" * 255, "a" * 254)])
def test_holders_that_disagree_are_noticed(left: str, right: str) -> None:
    """Also where the mixture could pass for a name: one in a thousand does, were it not for the hash."""
    for _ in range(50):
        with pytest.raises(PeerMisbehaved, match="do not agree"):
            read(added(written(at(1, 0), [left]), written(at(1, 0), [right])), 1)


def test_a_name_with_the_hash_of_another_is_refused() -> None:
    vector = limbs_of(b"\1a")
    vector[1] = limbs_of(b"\1b")[1]
    with pytest.raises(PeerMisbehaved, match="do not agree"):
        read(vector, 1)


def test_one_name_for_two_positions_is_refused() -> None:
    with pytest.raises(PeerMisbehaved, match="the same name"):
        read(added(written(at(2, 0), ["a"]), written(at(2, 1), ["a"])), 2)


def test_a_name_without_a_weight_is_refused() -> None:
    vector = written(at(1, 0), ["a"])
    vector[0] = 0
    with pytest.raises(PeerMisbehaved, match="without a weight"):
        read(vector, 1)


@pytest.mark.parametrize("total", [np.zeros(38, np.uint64), np.full(39, MODULUS, np.uint64)], ids=["short", "large"])
def test_totals_of_another_union_or_outside_the_field_are_refused(total: FieldArray) -> None:
    with pytest.raises(ValueError, match="2\\^61-1"):
        read(total, 1)


# --- the conversation -----------------------------------------------------------------------------------------------

SETS = [["Ω", "shared", "名前"], ["shared", "e\u0301", "shared"], ["\ud800", "b" * 255], []]


def test_the_server_learns_the_names_by_position() -> None:
    served, positions = unite(SETS, revealing=True)
    assert sorted(served.names) == sorted({name for names in SETS for name in names})
    for names, own in zip(SETS, positions.values(), strict=True):
        assert [served.names[place] for place in own.own] == names


def stop() -> Any:
    raise Stopped


def test_positions_that_nobody_holds_any_more_are_empty() -> None:
    clients, lost = everyone(4), PartyId(2)
    parts = {party: joining(clients, names, revealing=True) for party, names in zip(clients, SETS, strict=True)}
    parts[lost] = bent(parts[lost], of_purpose(SECAGG.says["masked input"], "union names", stop))
    foreseen = Foreseen(("masked input/union names", lost))
    results = converse({SERVER: serving(clients, patience=foreseen, revealing=True)} | parts)
    served = results[SERVER]
    assert served.silences.seen == [({lost}, "masked input/union names")]
    assert sorted(served.names) == sorted(["Ω", "shared", "名前", "\ud800", "b" * 255, ""])


def test_a_name_too_long_ends_the_conversation_and_nobody_says_who_has_it() -> None:
    clients = everyone(3)
    parts = {party: joining(clients, ["a", "c" * 300 * (party == 2)], revealing=True) for party in clients}
    results = converse({SERVER: serving(clients, revealing=True)} | parts)
    assert str(results[SERVER].problem).endswith(REFUSED)
    refusals = [results[party] for party in clients]
    assert {str(problem) for problem in refusals} == {REFUSED}
    assert [problem.objection for problem in refusals] == [
        "",
        "a name of 300 bytes is too long to be revealed, 255 are possible",
        "",
    ]


@pytest.mark.parametrize("name", ["a" * 256, "名" * 86, "a" * 255, "名" * 85, ""])
def test_what_is_objected_to_is_what_cannot_be_written(name: str) -> None:
    try:
        written(at(1, 0), [name])
        possible = True
    except ProtocolError:
        possible = False
    assert possible == (objection([name]) == "")


# --- what the server sees -------------------------------------------------------------------------------------------


def weights_by_holders() -> dict[int, FieldArray]:
    size = ENTRIES * len(HOLDERS)
    names = [str(place) for place in range(size)]
    total = np.zeros(size * POSITION_ENTRIES, dtype=np.uint64)
    for client in range(5):
        # The first elements are held by 1 client, the next by 2, the last by all.
        start = next(index for index, holders in enumerate(HOLDERS) if client < holders) * ENTRIES
        FIELD.add_into(total, written(at(size, *range(start, size)), names[start:]))
    assert read(total, size) == names
    weights = total[:size].reshape(len(HOLDERS), ENTRIES)
    return dict(zip(HOLDERS, weights, strict=True))


def test_weights_do_not_tell_how_many_hold_a_name() -> None:
    assert look_alike(weights_by_holders())


def test_fixed_weights_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names_module, "_weights", lambda count: np.ones(count, dtype=np.uint64))
    weights = weights_by_holders()
    assert {holders: set(sample.tolist()) for holders, sample in weights.items()} == {1: {1}, 2: {2}, 5: {5}}
    assert not look_alike(weights)
