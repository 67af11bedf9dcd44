"""Attempts: every party reckons the same one, no two share anything, and an answer that is wrong is refused."""

import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from protocols.alignment.interface import Positions
from protocols.alignment.psu.attempts import GROWTH, MAX_ATTEMPTS, MAX_BOUND, Attempt, UnionPlaces
from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.table import write
from protocols.alignment.psu.tags import tags_of
from protocols.alignment.psu.union import answer_of
from protocols.foundation import wire
from protocols.foundation.errors import DecodeError, PeerMisbehaved, ProtocolError
from protocols.foundation.identifiers import SETUP, PartyId, SessionId
from tests.support.in_threads import SESSION
from tests.support.set_unions import added, random_tags
from tests.support.union_conversations import KEY, OTHER_KEY

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=5)
few_names = st.lists(any_text | st.sampled_from("abcdefgh"), max_size=12)


def attempt_of(number: int = 0, bound: int = 100, session: SessionId = SESSION) -> Attempt:
    return Attempt.of(number, bound, session, KEY.commitment)


def aligned(sets: list[list[str]], bound: int) -> list[Positions]:
    """The whole union without a conversation: attempts until one can be read."""
    for number in range(MAX_ATTEMPTS):
        attempt = attempt_of(number, bound)
        tags = [tags_of(names, attempt.tag_key(KEY)) for names in sets]
        answer = answer_of(added((write(held, attempt.layout) for held in tags), attempt.layout), attempt)
        if answer.size:
            found = [attempt.look_up(answer, held) for held in tags]
            assert not any(looked_up.objection for looked_up in found)
            return [looked_up.positions for looked_up in found]
    raise AssertionError("three tables in a row cannot be read")


@given(st.lists(few_names, min_size=1, max_size=5).filter(any), st.integers(4, 60))
@example([["a"], ["a"], ["a"]], 1)
@example([[], ["名前", "e\u0301", "é", "\ud800"], []], 4)
@example([["a", "a", "b"], ["b"]], 2)
@example([["a"], ["b"], ["c"]], 3)
@settings(deadline=None)
def test_positions_are_those_in_the_union_of_the_sets(sets: list[list[str]], bound: int) -> None:
    found: dict[str, int] = {}
    for names, positions in zip(sets, results := aligned(sets, bound), strict=True):
        different = list(dict.fromkeys(names))
        assert len(positions.own) == len(different)
        for name, position in zip(different, positions.own.tolist(), strict=True):
            assert found.setdefault(name, position) == position
    assert found.keys() == {name for names in sets for name in names}
    assert sorted(found.values()) == list(range(len(found)))
    assert {positions.union_size for positions in results} == {len(found)}
    assert len({positions.digest for positions in results}) == 1


def test_nobody_has_anything() -> None:
    attempt = attempt_of()
    with pytest.raises(PeerMisbehaved, match="no client has any name to align"):
        answer_of(np.zeros(attempt.layout.entries, dtype=np.uint64), attempt)


# --- what parties must agree on -------------------------------------------------------------------------------------

DIFFERENT = {
    "number": attempt_of(1, 25),
    "bound": attempt_of(0, 1000),
    "session": attempt_of(session=SessionId(bytes(16))),
    "key": Attempt.of(0, 100, SESSION, OTHER_KEY.commitment),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT)
def test_parties_that_disagree_in_anything_cannot_add_up_and_share_no_cells(other: Attempt) -> None:
    attempt = attempt_of()
    assert other.model != attempt.model
    assert other.tag_key(KEY) != attempt.tag_key(KEY)
    first, second = random_tags(100, 0).T
    same = attempt.layout.cells_of(first, second) == other.layout.cells_of(first, second)
    assert not same.all(axis=0).any()


def test_the_sum_is_bound_to_the_attempt() -> None:
    clients = (PartyId(1), PartyId(2))
    task = attempt_of(1).terms(clients)
    assert (task.round, task.purpose, task.participants) == (SETUP, "union/1", clients)
    assert task.layout.entries == TableLayout.for_bound(400).entries
    assert task.model == attempt_of(1).model
    assert task.layout.group.name == "F_2^61-1"


def test_each_attempt_has_room_for_more_until_there_were_enough() -> None:
    rooms = [attempt_of(number).layout.third for number in range(3)]
    assert rooms == [TableLayout.for_bound(100 * GROWTH**number).third for number in range(3)]
    last = attempt_of(0, MAX_BOUND)
    assert 8 * last.layout.entries + 1000 < wire.MAX_FRAME_BYTES < 16 * last.layout.entries
    with pytest.raises(ProtocolError, match=r"a table for 16,777,217 names is too large, 16,777,216 fit$"):
        attempt_of(0, MAX_BOUND + 1)
    with pytest.raises(ProtocolError, match=r"^no union: 3 tables could not be read, the last one for 1,600 names; "):
        attempt_of(3)
    with pytest.raises(ProtocolError, match=r"no union: a table could not be read, the last one for 16,777,216 names;"):
        attempt_of(1, MAX_BOUND)
    with pytest.raises(ProtocolError, match=r"a client may have sent what is no table, .*: then raise --union-bound$"):
        attempt_of(MAX_ATTEMPTS, 1)


@pytest.mark.parametrize("bound", [0, -1])
def test_a_bound_that_is_none_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="at most"):
        attempt_of(0, bound)


# --- what a client refuses ------------------------------------------------------------------------------------------


def test_an_answer_that_cannot_be_right_is_refused() -> None:
    attempt = attempt_of()
    tags = tags_of(["a", "b", "c"], attempt.tag_key(KEY))
    answer = answer_of(write(tags, attempt.layout), attempt)
    assert attempt.look_up(answer, tags).positions.union_size == 3
    cells = attempt.layout.cells

    def refused(problem: str, size: int, places: np.ndarray) -> None:
        """Whatever names a client has."""
        for held in (tags, tags[:0]):
            with pytest.raises(PeerMisbehaved, match=problem):
                attempt.look_up(UnionPlaces("union/0", size, places.astype(np.uint32)), held)

    def objected_to(objection: str, size: int, places: np.ndarray) -> None:
        """Only by a client with such names, and not aloud."""
        message = UnionPlaces("union/0", size, places.astype(np.uint32))
        assert objection in attempt.look_up(message, tags).objection
        assert not attempt.look_up(message, tags[:1]).objection
        assert objection not in repr(attempt.look_up(message, tags))

    refused(f"{cells - 1} places for a table of {cells} cells", 3, answer.places[1:])
    refused(f"{cells + 1} places", 3, np.append(answer.places, 0))
    objected_to("a union of 2 names, of which this client alone has 3", 2, answer.places % 2)
    refused(f"a union of {cells + 1}, which cannot be", cells + 1, answer.places)
    objected_to("the same position", 3, np.zeros(cells))
    objected_to("the same position", 100, np.full(cells, 99))


@pytest.mark.parametrize(
    ("size", "places", "problem"),
    [
        (3, [0, 3], "beyond the union"),
        (0, [0], "places without a size"),
        (1, [], "a size without places"),
        (-1, [], "out of range"),
        (1 << 30, [0], "out of range"),
    ],
)
def test_messages_that_contradict_themselves_do_not_exist(size: int, places: list[int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        UnionPlaces("union/0", size, np.array(places, dtype=np.uint32))


def test_a_place_beyond_the_union_is_not_decoded() -> None:
    frame = bytearray(wire.encode(UnionPlaces("union/0", 3, np.array([0, 2], dtype=np.uint32)), SESSION, SETUP))
    frame[-4:] = struct.pack("<I", 3)
    with pytest.raises(DecodeError, match="beyond the union"):
        wire.decode(frame, session=SESSION)


def test_answers_that_differ_in_anything_have_different_digests() -> None:
    attempt, later = attempt_of(), attempt_of(1)
    places = np.arange(4, dtype=np.uint32)
    answers = [UnionPlaces("union/0", size, some) for size in (4, 5) for some in (places, places[::-1], places[:3])]
    digests = {attempt.digest(answer) for answer in answers} | {later.digest(answer) for answer in answers}
    assert len(digests) == 2 * len(answers)
