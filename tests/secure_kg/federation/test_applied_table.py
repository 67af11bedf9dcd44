"""Only tables that follow from the one applied before are taken, and each has a digest of its own."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from secure_kg.federation.client.applied_table import AppliedTable, Rounds, UpdateRule
from secure_kg.federation.plan.row_sum import Rows

SIZE, WIDTH = 4, 3
RULE = UpdateRule(most=2.0, first=0.5, agreeing=1)


def table(**rounds: int) -> tuple[Rows, Rounds]:
    """Rows named r0, r1, ... averaged in the given rounds; their values follow from row and round."""
    rows, averaged = np.zeros((SIZE, WIDTH), dtype=np.float32), np.zeros(SIZE, dtype=np.uint32)
    for name, number in rounds.items():
        row = int(name[1:])
        rows[row], averaged[row] = 0.01 * (row + 1) * number, number
    return rows, averaged


def applied(*tables: tuple[Rows, Rounds]) -> AppliedTable:
    known = AppliedTable(SIZE, WIDTH)
    for rows, averaged in tables:
        known.accept(rows, averaged, 100, RULE)
    return known


def test_new_means_are_taken_and_the_others_stay() -> None:
    known = applied()
    assert known.accept(*table(r0=2, r1=2), 2, RULE).tolist() == [True, True, False, False]
    assert known.accept(*table(r0=2, r1=3, r2=3), 3, RULE).tolist() == [False, True, True, False]
    assert known.newest == 3
    assert not known.accept(*table(r0=2, r1=3, r2=3), 3, RULE).any()  # sent once more


def test_one_that_was_away_takes_several_rounds_at_once() -> None:
    far, near = applied(table(r0=2)), applied(table(r0=2), table(r0=2, r1=3), table(r0=4, r1=3))
    far.accept(*table(r0=4, r1=3), 4, RULE)
    assert far.digest(b"union") == near.digest(b"union")


def beyond(value: float, number: int) -> tuple[Rows, Rounds]:
    rows, averaged = table(r0=2, r1=number)
    rows[1, 2] = value
    return rows, averaged


def with_row(changes: dict[int, float], **rounds: int) -> tuple[Rows, Rounds]:
    rows, averaged = table(**rounds)
    for row, value in changes.items():
        rows[row] = value
    return rows, averaged


REFUSED: dict[str, tuple[tuple[Rows, Rounds], str]] = {
    "beyond the clip": (beyond(2.001, 3), "no mean of clipped rows"),
    "below the clip": (beyond(-2.001, 3), "no mean of clipped rows"),
    "from the future": (table(r0=2, r1=4), "means of round 4 in round 3"),
    "from the past": (table(r0=1, r1=3), "goes back to earlier means"),
    "another table of the same round": (with_row({0: 0.3}, r0=2), "changes rows that it does not call averaged"),
    "more rows in a round that is over": (table(r0=2, r1=2), "of a round whose table was another one"),
    "an old mean that was not there": (table(r0=2, r1=1, r2=3), "of a round whose table was another one"),
    "rows that were never averaged": (with_row({3: 0.1}, r0=2, r1=3), "changes rows that it does not call averaged"),
    "another shape": ((np.zeros((SIZE + 1, WIDTH), np.float32), np.zeros(SIZE + 1, np.uint32)), "another shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_whatever_does_not_follow_is_refused_and_changes_nothing(name: str) -> None:
    (rows, averaged), problem = REFUSED[name]
    known = applied(table(r0=2))
    before = known.digest(b"union")
    with pytest.raises(PeerMisbehaved, match=problem):
        known.accept(rows, averaged, 3, RULE)
    assert known.digest(b"union") == before


def test_means_of_first_rows_are_no_larger_than_first_rows() -> None:
    rows, averaged = table(r0=1)
    rows[0] = 0.6
    with pytest.raises(PeerMisbehaved, match="no mean"):
        applied().accept(rows, averaged, 1, RULE)


steps = st.lists(st.lists(st.integers(0, SIZE - 1), min_size=1, unique=True), min_size=1, max_size=5)


@given(steps, st.data())
def test_equal_digests_mean_that_the_same_was_applied(history: list[list[int]], data: Any) -> None:
    """A client that was sent every table, and one that was sent some and the last, have applied the same."""
    versions, rounds = [], dict[str, int]()
    for number, rows in enumerate(history, start=2):
        rounds |= {f"r{row}": number for row in rows}
        versions.append(table(**rounds))
    some = [version for version in versions[:-1] if data.draw(st.booleans())]
    assert applied(*some, versions[-1]).digest(b"u") == applied(*versions).digest(b"u")
    assert applied(*versions).digest(b"u") != applied(*versions).digest(b"other union")
    if len(versions) > 1:
        assert applied(*versions[:-1]).digest(b"u") != applied(*versions).digest(b"u")


def test_it_is_kept_and_lent_as_it_is() -> None:
    known = applied(table(r0=2, r2=3))
    again, lent = AppliedTable(SIZE, WIDTH), AppliedTable(SIZE, WIDTH)
    assert again.load_state(known.state("x/"), "x/")
    lent.accept(*lent.parse(known.to_bytes()), 3, RULE)
    assert known.digest(b"u") == again.digest(b"u") == lent.digest(b"u")
    assert not AppliedTable(SIZE, WIDTH + 1).load_state(known.state("x/"), "x/")
    assert not again.load_state({}, "x/")
    with pytest.raises(PeerMisbehaved, match="another shape"):
        lent.parse(known.to_bytes()[:-4])
    with pytest.raises(PeerMisbehaved, match="not finite"):
        lent.parse(known.to_bytes()[:-4] + np.array([np.nan], "<f4").tobytes())
