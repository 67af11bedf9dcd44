"""The union as a conversation: right for any sets and for those who stay; never wrong, and never without end."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.alignment.interface import Positions
from protocols.alignment.psu import table as table_module
from protocols.alignment.psu import union as union_module
from protocols.alignment.psu.attempts import Attempt, UnionPlaces
from protocols.alignment.psu.table import peel, peel_in_rounds
from protocols.alignment.psu.tags import tags_of
from protocols.foundation.errors import (
    Aborted,
    PeerFailed,
    PeerMisbehaved,
    ProtocolError,
    SumAbandoned,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.primitives.group import GroupVector
from protocols.session.messages import AdvertiseChannel
from tests.support.holders_statistics import HOLDERS, look_alike
from tests.support.in_threads import converse
from tests.support.set_unions import as_pairs
from tests.support.sum_conversations import SECAGG, Foreseen, Stopped, bent, everyone, stopping_at
from tests.support.uniformity import ENTRIES
from tests.support.union_conversations import (
    KEY,
    OTHER_KEY,
    AnsweringOtherwise,
    Noise,
    Served,
    is_union_of,
    joining,
    of_purpose,
    serving,
    unite,
)

NUMBERS = [f"name {number}" for number in range(500)]
NAMED_CASES = {
    "identical": [["a", "b", "c"]] * 4,
    "disjoint": [["a"], ["b", "c"], ["d"]],
    "nested": [NUMBERS[:1], NUMBERS[:10], NUMBERS[:90]],
    "only one has any": [[], ["a", "b"], []],
    "two clients": [["a", "b"], ["b", "c"]],
    "any script": [["Ω", "名前", "🜁"], ["名前", "", "e\u0301"], ["é", "\ud800", "Ω"]],
    "a name twice": [["a", "b", "a", "a"], ["b", "b"], ["c", "a"]],
}
SETS = {party: [*NUMBERS[:20], *NUMBERS[20 * party : 20 * party + 10]] for party in everyone(4)}


def numbered(sets: list[list[str]]) -> dict[PartyId, list[str]]:
    return dict(zip(everyone(len(sets)), sets, strict=True))


@pytest.mark.parametrize("sets", NAMED_CASES.values(), ids=NAMED_CASES)
def test_named_cases(sets: list[list[str]]) -> None:
    served, positions = unite(sets)
    assert is_union_of(served, positions, numbered(sets), everyone(len(sets)))
    assert served.silences.seen == []


@given(st.lists(st.lists(st.text(max_size=3) | st.sampled_from("abcdef"), max_size=8), min_size=2, max_size=4))
@settings(deadline=None, max_examples=25)
def test_any_sets(sets: list[list[str]]) -> None:
    if any(sets):
        assert is_union_of(*unite(sets), numbered(sets), everyone(len(sets)))


def test_nobody_has_any_name() -> None:
    clients = everyone(3)
    results = converse({SERVER: serving(clients)} | {party: joining(clients, []) for party in clients})
    served = results.pop(SERVER)
    assert isinstance(served.problem, PeerMisbehaved)
    assert str(served.problem) == "no client has any name to align"
    assert all(isinstance(problem, Aborted) for problem in results.values())


# --- too small a bound ----------------------------------------------------------------------------------------------


@pytest.fixture
def totals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[GroupVector, Attempt]]:
    """What the server has read, attempt by attempt."""
    real, seen = union_module.answer_of, list[tuple[GroupVector, Attempt]]()

    def recorded(total: GroupVector, attempt: Attempt) -> UnionPlaces:
        seen.append((total.copy(), attempt))
        return real(total, attempt)

    monkeypatch.setattr(union_module, "answer_of", recorded)
    return seen


def test_a_bound_that_is_too_low_costs_another_attempt(totals: list[tuple[GroupVector, Attempt]]) -> None:
    sets = [NUMBERS[:300], NUMBERS[200:], []]  # more names than the smallest table has cells
    served, positions = unite(sets, bound=50)
    assert is_union_of(served, positions, numbered(sets), everyone(3))
    numbers = [attempt.number for _, attempt in totals]
    assert len(numbers) > 1
    assert numbers == list(range(len(numbers)))


def test_no_two_attempts_have_a_tag_in_common(
    totals: list[tuple[GroupVector, Attempt]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the server cannot tell which name is missing if somebody drops out between them."""
    recording, refused = union_module.answer_of, list[int]()

    def refuse_once(total: GroupVector, attempt: Attempt) -> UnionPlaces:
        answer = recording(total, attempt)
        if not refused:
            refused.append(attempt.number)
            return attempt.again()
        return answer

    monkeypatch.setattr(union_module, "answer_of", refuse_once)
    sets = [NUMBERS[:30]] * 3
    served, positions = unite(sets)
    assert is_union_of(served, positions, numbered(sets), everyone(3))
    first, second = (peel(total, attempt.layout) for total, attempt in totals)
    assert len(first) == len(second) == 30
    assert not np.isin(first, second).any()


# --- dropouts -------------------------------------------------------------------------------------------------------


def stop() -> Any:
    raise Stopped


@pytest.mark.parametrize("live", [True, False], ids=["live", "fixed"])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("step", SECAGG.says)
def test_the_union_is_that_of_the_survivors(
    step: str, number: int, live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One client drops out in each step of the first attempt and of the second: the first is always refused."""
    real = union_module.answer_of
    monkeypatch.setattr(
        union_module, "answer_of", lambda total, attempt: real(total, attempt) if attempt.number else attempt.again()
    )
    clients, lost = everyone(4), PartyId(3)
    parts = {party: joining(clients, SETS[party]) for party in clients}
    parts[lost] = bent(parts[lost], of_purpose(SECAGG.says[step], f"union/{number}", stop))
    foreseen = Foreseen((f"{step}/union/{number}", lost))
    results = converse({SERVER: serving(clients, patience=foreseen, live=live)} | parts)
    served, gone = results.pop(SERVER), results.pop(lost)
    assert gone is None
    assert served.problem is None
    assert served.silences.seen == [({lost}, f"{step}/union/{number}")]
    # Who drops out once its table is in the sum is in the union.
    members = clients if (step, number) == ("unmasking", 1) else [party for party in clients if party != lost]
    assert is_union_of(served, results, SETS, members)


def test_who_has_no_table_in_the_sum_is_sent_no_places() -> None:
    """A client that never signed on, and that the caller still counts as present."""
    clients, lost, told = everyone(4), PartyId(3), set[PartyId]()

    def noted(answer: UnionPlaces, party: PartyId) -> UnionPlaces:
        told.add(party)
        return answer

    parts = {party: joining(clients, SETS[party]) for party in clients}
    parts[lost] = bent(parts[lost], stopping_at(AdvertiseChannel))
    server = serving(
        clients,
        patience=Foreseen(("advertise channel", lost)),
        live=False,
        mend=lambda straight: AnsweringOtherwise(straight, noted),
    )
    results = converse({SERVER: server} | parts)
    served = results.pop(SERVER)
    del results[lost]
    others = [party for party in clients if party != lost]
    assert told == set(others)
    assert is_union_of(served, results, SETS, others)


def test_too_many_dropouts_end_without_a_union() -> None:
    clients = everyone(4)
    parts = {party: joining(clients, SETS[party]) for party in clients}
    for lost in (PartyId(2), PartyId(3)):
        parts[lost] = bent(parts[lost], of_purpose(SECAGG.says["masked input"], "union/0", stop))
    foreseen = Foreseen(*(("masked input/union/0", PartyId(lost)) for lost in (2, 3)))
    results = converse({SERVER: serving(clients, patience=foreseen)} | parts)
    assert isinstance(results[SERVER].problem, SumAbandoned)
    assert isinstance(results[PartyId(1)], Aborted)


# --- others than honest parties -------------------------------------------------------------------------------------


def outcome(answer: Callable[[UnionPlaces, PartyId], UnionPlaces], revealing: bool = False) -> dict[PartyId, Any]:
    """What three clients make of a server that answers so."""
    clients = everyone(3)
    parts = {party: joining(clients, SETS[party], revealing=revealing) for party in clients}
    hostile = serving(clients, mend=lambda straight: AnsweringOtherwise(straight, answer), revealing=revealing)
    results = converse({SERVER: hostile} | parts)
    results.pop(SERVER)
    return results


HOSTILE_ANSWERS: dict[str, tuple[Callable[[UnionPlaces, PartyId], UnionPlaces], type[ProtocolError], str]] = {
    "too few places": (
        lambda answer, _: UnionPlaces(answer.purpose, answer.size, answer.places[1:]),
        PeerMisbehaved,
        "places for a table",
    ),
    "too many places": (
        lambda answer, _: UnionPlaces(answer.purpose, answer.size, np.append(answer.places, answer.places[:1])),
        PeerMisbehaved,
        "places for a table",
    ),
    "a large size": (
        lambda answer, _: UnionPlaces(answer.purpose, len(answer.places) + 1, answer.places),
        PeerMisbehaved,
        "which cannot be its size",
    ),
    "another attempt": (
        lambda answer, _: UnionPlaces("union/1", answer.size, answer.places),
        UnexpectedMessage,
        "'union/1' where 'union/0' was due",
    ),
}


@pytest.mark.parametrize(("answer", "kind", "problem"), HOSTILE_ANSWERS.values(), ids=HOSTILE_ANSWERS)
def test_answers_that_cannot_be_right_are_refused(
    answer: Callable[[UnionPlaces, PartyId], UnionPlaces], kind: type[ProtocolError], problem: str
) -> None:
    for result in outcome(answer).values():
        assert type(result) is kind
        assert problem in str(result)


def shifted_for_one(answer: UnionPlaces, party: PartyId) -> UnionPlaces:
    """Client 2 is sent places that are as good as those of the others, but its positions are the next ones."""
    if party != 2:
        return answer
    places = answer.places.copy()
    places[: len(places) // 3] = (places[: len(places) // 3] + 1) % answer.size
    return UnionPlaces(answer.purpose, answer.size, places)


def test_clients_that_were_sent_different_places_cannot_add_up() -> None:
    """No client can see it, so what they were sent enters the keys of the sums that follow, the vote before all."""
    results = outcome(shifted_for_one)
    assert all(isinstance(problem, PeerMisbehaved | Aborted) for problem in results.values())
    assert any("the shares of client" in str(problem) for problem in results.values())


def test_attempts_without_end_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client counts for itself: whatever the server says, it sends three tables at most."""
    monkeypatch.setattr(union_module, "answer_of", lambda total, attempt: attempt.again())
    clients = everyone(3)
    results = converse({SERVER: serving(clients)} | {party: joining(clients, SETS[party]) for party in clients})
    problems = [results[SERVER].problem, *(results[party] for party in clients)]
    assert {str(problem) for problem in problems} == {
        "no union: 3 tables could not be read, the last one for 1,600 names; a client may have sent what is no table, "
        "or there are more names than that: then raise --union-bound"
    }


def test_a_client_that_adds_noise_prevents_the_union_and_nothing_else() -> None:
    clients = everyone(3)
    parts = {party: joining(clients, SETS[party]) for party in clients[:2]}
    parts[clients[2]] = joining(clients, [], vectors=Noise)
    results = converse({SERVER: serving(clients)} | parts)
    assert "3 tables could not be read" in str(results[SERVER].problem)
    assert all(isinstance(results[party], ProtocolError) for party in clients)


def others(party: PartyId, **options: Any) -> dict[PartyId, Any]:
    clients = everyone(3)
    parts = {each: joining(clients, SETS[each], **(options if each == party else {})) for each in clients}
    return converse({SERVER: serving(clients)} | parts)


@pytest.mark.parametrize("options", [{"key": OTHER_KEY}, {"bound": 50}], ids=["key", "bound"])
def test_a_client_with_another_key_or_bound_cannot_add_up(options: dict[str, Any]) -> None:
    """The shares of the others do not open for it: it never gets to sending its table."""
    results = others(PartyId(2), **options)
    assert isinstance(results[SERVER].problem, PeerFailed)
    assert all(isinstance(results[party], PeerMisbehaved | Aborted) for party in everyone(3))
    assert any(isinstance(results[party], PeerMisbehaved) for party in everyone(3))


def test_a_server_with_another_commitment_cannot_read_the_union() -> None:
    clients = everyone(3)
    parts = {party: joining(clients, SETS[party]) for party in clients}
    results = converse({SERVER: serving(clients, commitment=OTHER_KEY.commitment)} | parts)
    assert isinstance(results[SERVER], Served)
    assert isinstance(results[SERVER].problem, ProtocolError)
    assert not any(isinstance(results[party], Positions) for party in clients)


# --- what the server sees -------------------------------------------------------------------------------------------


def weights_by_holders(totals: list[tuple[GroupVector, Attempt]]) -> dict[int, np.ndarray]:
    """Of the elements held by 1, 2 and 5 of 5 clients, after whole conversations with their masks."""
    groups = {holders: [f"{holders}/{number}" for number in range(ENTRIES)] for holders in HOLDERS}
    sets = [[name for holders, names in groups.items() if client < holders for name in names] for client in range(5)]
    served, _ = unite(sets, bound=ENTRIES * len(HOLDERS))
    assert served.union is not None
    assert served.union.size == ENTRIES * len(HOLDERS)
    total, attempt = totals[-1]
    tags, weights = peel_in_rounds(total.astype(np.uint64), attempt.layout).in_order()
    weight_of = dict(zip(as_pairs(tags), weights, strict=True))
    return {
        holders: np.array([weight_of[tag] for tag in as_pairs(tags_of(names, attempt.tag_key(KEY)))])
        for holders, names in groups.items()
    }


def test_the_server_does_not_see_how_many_hold_a_name(totals: list[tuple[GroupVector, Attempt]]) -> None:
    assert look_alike(weights_by_holders(totals))


def test_with_fixed_weights_it_would(
    totals: list[tuple[GroupVector, Attempt]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_module, "_weights", lambda count: np.ones(count, dtype=np.uint64))
    weights = weights_by_holders(totals)
    assert {holders: set(sample.tolist()) for holders, sample in weights.items()} == {1: {1}, 2: {2}, 5: {5}}
    assert not look_alike(weights)


def test_clients_are_sent_places_and_nothing_else() -> None:
    """Neither tags nor weights nor the total are in any message to a client."""
    assert UnionPlaces.__struct_fields__ == ("purpose", "size", "places")
