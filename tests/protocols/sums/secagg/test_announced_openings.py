"""What clients announce of sums that they have opened: no choice of whom a server asks gives it a single input."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.secagg.messages import ANNOUNCED_BYTES, STATE_BYTES
from protocols.sums.secagg.openings import Opening, Openings, announcement, commit
from tests.support.secagg_sessions import PURPOSE

ROUND = RoundId(3)
Asked = tuple[frozenset[int], frozenset[int], frozenset[int]]
"""Who has agreed on keys, whom the server calls survivors, and whom of these it asks."""


def state_of(party: int) -> bytes:
    return commit(bytes([party]) * 32, PURPOSE, b"what its input depends on")


def play(records: Mapping[int, Openings], asked: Asked, number: int) -> set[int]:
    """One sum of the same inputs as all others, under a name of its own; who helps to open it."""
    present, survivors, helpers = asked
    round_id = RoundId(int(ROUND) + number)
    told = {
        PartyId(party): announced
        for party in present
        if (announced := records[party].announced(round_id, PURPOSE, PartyId(party), state_of(party)))
    }
    states = {PartyId(party): state_of(party) for party in survivors}
    opening = Opening(round_id, PURPOSE, frozenset(states), states, told=told)
    helped = set()
    for party in helpers & survivors:
        try:
            records[party].open(opening)
        except SumAbandoned:
            continue
        helped.add(party)
    return helped


def sums_opened(clients: int, threshold: int, asks: list[Asked]) -> list[frozenset[int]]:
    records = {party: Openings() for party in range(1, clients + 1)}
    opened = []
    for number, asked in enumerate(asks):
        if len(play(records, asked, number)) >= threshold:
            opened.append(asked[1])
    return opened


def sets_of(clients: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(1, clients), min_size=1)


@st.composite
def asks_of(draw: st.DrawFn, clients: int) -> Asked:
    survivors = draw(sets_of(clients))
    return survivors | draw(sets_of(clients)), survivors, draw(sets_of(clients))


@settings(deadline=None, max_examples=300)
@given(st.data(), st.integers(3, 6))
def test_no_combination_of_opened_sums_is_one_clients_input(data: st.DataObject, clients: int) -> None:
    threshold = data.draw(st.integers(2, clients))
    asks = data.draw(st.lists(asks_of(clients), min_size=2, max_size=8))
    opened = sorted({*map(tuple, map(sorted, sums_opened(clients, threshold, asks)))})
    if not opened:
        return
    matrix = np.array([[party in one for party in range(1, clients + 1)] for one in opened], dtype=float)
    rank = np.linalg.matrix_rank(matrix)
    for party in range(clients):
        alone = np.eye(clients)[party]
        assert np.linalg.matrix_rank(np.vstack([matrix, alone])) > rank, (opened, party)


HALVES: list[Asked] = [
    (frozenset({1, 2, 3, 4}), frozenset({1, 2, 3, 4}), frozenset({1, 2})),
    (frozenset({1, 2, 3, 4}), frozenset({2, 3, 4}), frozenset({3, 4})),
]


def test_each_half_asked_once_opens_one_sum() -> None:
    assert sums_opened(4, 2, HALVES) == [frozenset({1, 2, 3, 4})]


def test_without_announcements_each_half_asked_once_opens_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(Openings, "announced", lambda self, round_id, purpose, party, state: b"")
    assert len(sums_opened(4, 2, HALVES)) == 2


def test_the_same_survivors_are_opened_again_by_whoever_is_asked() -> None:
    everybody = frozenset({1, 2, 3, 4})
    asks: list[Asked] = [(everybody, everybody, frozenset({1, 2})), (everybody, everybody, frozenset({3, 4}))]
    assert len(sums_opened(4, 2, asks)) == 2


def test_what_is_announced_has_one_length_and_tells_sets_apart() -> None:
    some, others = announcement([PartyId(1), PartyId(2)]), announcement([PartyId(1), PartyId(3)])
    assert len(some) == len(others) == ANNOUNCED_BYTES == STATE_BYTES
    assert some != others
    assert some == announcement([PartyId(2), PartyId(1)])


def test_a_client_that_has_opened_nothing_alike_announces_nothing() -> None:
    record = Openings()
    assert record.announced(ROUND, PURPOSE, PartyId(1), state_of(1)) == b""
    record.open(Opening(ROUND, PURPOSE, frozenset({PartyId(1)}), {PartyId(1): state_of(1)}))
    assert record.announced(RoundId(9), "another", PartyId(1), b"x" * 32) == b""
    states = {PartyId(1): state_of(1)}
    assert record.announced(RoundId(9), "another", PartyId(1), state_of(1)) == announcement([PartyId(1)], states)


def test_a_client_whose_name_and_state_were_opened_over_different_clients_lets_neither_be_opened() -> None:
    record, mine = Openings(), PartyId(1)
    record.open(Opening(ROUND, PURPOSE, frozenset({mine, PartyId(2)}), {mine: state_of(1), PartyId(2): state_of(2)}))
    record.open(Opening(RoundId(7), PURPOSE, frozenset({mine}), {mine: state_of(3)}))
    told = {mine: record.announced(RoundId(7), PURPOSE, mine, state_of(1))}
    for survivors in ({mine}, {mine, PartyId(2)}):
        states = {party: state_of(int(party)) for party in survivors}
        with pytest.raises(SumAbandoned, match="client 1 has helped to open otherwise"):
            Openings().open(Opening(RoundId(7), PURPOSE, frozenset(survivors), states, told=told))


def test_the_same_sum_from_another_state_is_opened_by_nobody_who_was_not_asked_before_either() -> None:
    everybody = frozenset({PartyId(1), PartyId(2)})
    states = {PartyId(1): state_of(1), PartyId(2): state_of(2)}
    record = Openings()
    record.open(Opening(ROUND, PURPOSE, everybody, states, b"rows"))
    told = {PartyId(1): record.announced(ROUND, PURPOSE, PartyId(1), state_of(1))}
    Openings().open(Opening(ROUND, PURPOSE, everybody, states, b"rows", told=told))
    for other in ({"states": states | {PartyId(2): state_of(5)}}, {"model": b"other rows"}):
        given_: dict[str, Any] = {"states": states, "model": b"rows"} | other
        with pytest.raises(SumAbandoned, match="otherwise"):
            Openings().open(Opening(ROUND, PURPOSE, everybody, told=told, **given_))


def test_a_client_that_has_moved_gives_no_input_beside_a_state_that_it_has_opened() -> None:
    """It has nothing to announce, since its own input is new; so it is in no later sum with the old one over others."""
    record = Openings(moving=[PURPOSE])
    mine, other, third = PartyId(1), PartyId(2), PartyId(3)
    record.open(Opening(ROUND, PURPOSE, frozenset({mine, other}), {mine: state_of(1), other: state_of(2)}))
    assert record.announced(RoundId(9), PURPOSE, mine, state_of(7)) == b""
    now = {mine: state_of(7), other: state_of(2)}
    record.may_come(Opening(RoundId(9), PURPOSE, frozenset(now), now), PartyId(1))
    more = now | {third: state_of(3)}
    with pytest.raises(SumAbandoned, match="opened before over other clients"):
        record.may_come(Opening(RoundId(9), PURPOSE, frozenset(more), more), PartyId(1))
