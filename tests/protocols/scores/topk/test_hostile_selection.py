"""Forged, truncated, replayed and contradictory messages of a selection: the documented end, never a wrong answer."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.scores.topk.dealing import Deal
from protocols.scores.topk.messages import DealtProduct, MaskedTable, SelectionRelay, SelectionStep, SharesForAsker
from tests.support.bent_scores import about, bending, lying
from tests.support.hidden_queries import Hidden, batch_of, run_hidden, shape_of, some_tables, within
from tests.support.score_batches import Batch, hold_batches, some_scores, terms_of
from tests.support.sum_conversations import instead_of

ONE, TWO, THREE = (PartyId(number) for number in range(1, 4))
TERMS = terms_of(3, 12)
OPENED, TURN_OF_TWO, LAST = 2, 4, 14
"""A step in which all shares are opened, one in which they are handed to client 2, and the last one."""

Step = Callable[[SelectionStep], SelectionStep]
Relay = Callable[[SelectionRelay], SelectionRelay]


def flipped(sealed: bytes) -> bytes:
    return sealed[:-1] + bytes([sealed[-1] ^ 1])


def bent_client(party: PartyId, at: int, change: Step) -> Batch:
    """A client changes what it says in one step."""

    def make(message: wire.Message, round_id: RoundId) -> wire.Message:
        assert isinstance(message, SelectionStep)
        return change(message) if message.step == at else message

    wrap = {party: bending(instead_of(SelectionStep, make))}
    return hold_batches("topk", [(TERMS, some_scores(TERMS))], wrap=wrap)


def bent_server(to: PartyId, at: int, change: Relay) -> Batch:
    """The server changes what it hands one client in one step."""

    def tell(party: PartyId, message: SelectionRelay) -> wire.Message:
        return change(message) if (party, message.step) == (to, at) else message

    return hold_batches("topk", [(TERMS, some_scores(TERMS))], wrap={SERVER: lying(about(SelectionRelay, tell))})


def having(**fields: Any) -> Callable[[Any], Any]:
    return lambda message: msgspec.structs.replace(message, **fields)


STEPS: dict[str, Step] = {
    "another step": having(step=OPENED + 1),
    "an earlier step": having(step=OPENED - 1),
    "another deal": having(deal=[int(Deal.SIGN), 12]),
    "larger deal": having(deal=[int(Deal.SCALE), 2, 12]),
    "an absurd deal": having(deal=[int(Deal.SCALE), 2**40, 2**40]),
    "no deal": having(deal=[]),
    "the end": having(deal=[int(Deal.ANSWER)]),
}


@pytest.mark.parametrize("change", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("party", [ONE, THREE])
def test_clients_that_disagree_on_a_step_are_told_apart_by_the_server(party: PartyId, change: Step) -> None:
    result = bent_client(party, OPENED, change)
    assert result.answers == []
    assert result.raised(SERVER) is PeerMisbehaved
    assert "not in the same step" in str(result.problems[SERVER])


SEALED: dict[str, Callable[[bytes], bytes]] = {
    "forged": flipped,
    "truncated": lambda sealed: sealed[:-1],
    "cut short": lambda sealed: sealed[:8],
    "longer": lambda sealed: sealed + b"\0",
    "random": lambda sealed: bytes(len(sealed)),
}


@pytest.mark.parametrize("change", SEALED.values(), ids=SEALED)
def test_a_forged_share_for_all_ends_the_batch(change: Callable[[bytes], bytes]) -> None:
    result = bent_client(THREE, OPENED, lambda said: msgspec.structs.replace(said, to_all=change(said.to_all)))
    assert result.answers == []
    assert PeerMisbehaved in {result.raised(ONE), result.raised(TWO)}


def test_a_share_for_all_that_is_missing_ends_the_batch() -> None:
    result = bent_client(THREE, OPENED, having(to_all=b""))
    assert result.answers == []
    assert PeerMisbehaved in {result.raised(ONE), result.raised(TWO)}


@pytest.mark.parametrize("change", SEALED.values(), ids=SEALED)
@pytest.mark.parametrize(("at", "to"), [(TURN_OF_TWO, TWO), (LAST, ONE)], ids=["shuffle", "answer"])
def test_a_forged_share_for_one_ends_the_batch(at: int, to: PartyId, change: Callable[[bytes], bytes]) -> None:
    def forge(said: SelectionStep) -> SelectionStep:
        return msgspec.structs.replace(said, to_one={int(to): change(said.to_one[int(to)])})

    result = bent_client(THREE, at, forge)
    assert result.answers == []
    assert result.raised(to) is PeerMisbehaved


def test_a_share_for_one_that_is_missing_ends_the_batch() -> None:
    result = bent_client(THREE, TURN_OF_TWO, having(to_one={}))
    assert result.raised(TWO) is PeerMisbehaved


def test_a_share_for_one_who_is_to_get_none_ends_the_batch() -> None:
    def give(said: SelectionStep) -> SelectionStep:
        return msgspec.structs.replace(said, to_one={**said.to_one, 1: bytes(64)})

    assert bent_client(THREE, TURN_OF_TWO, give).raised(ONE) is PeerMisbehaved


def test_a_share_of_an_earlier_step_ends_the_batch() -> None:
    """Replayed by a client, in a step in which it opens something of the same kind."""
    said: list[bytes] = []

    def make(message: wire.Message, round_id: RoundId) -> wire.Message:
        assert isinstance(message, SelectionStep)
        if message.to_all:
            said.append(message.to_all)
            if len(said) > 2:
                return msgspec.structs.replace(message, to_all=said[-2])
        return message

    wrap = {THREE: bending(instead_of(SelectionStep, make))}
    result = hold_batches("topk", [(TERMS, some_scores(TERMS))], wrap=wrap)
    assert result.answers == []
    assert PeerMisbehaved in {result.raised(ONE), result.raised(TWO)}


def swapped(relay: SelectionRelay) -> SelectionRelay:
    """What client 1 says in the name of client 2, and the reverse."""
    ours = dict(zip(relay.to_all, reversed(relay.to_all.values()), strict=True))
    return msgspec.structs.replace(relay, to_all=ours)


RELAYS: dict[str, tuple[PartyId, int, Relay]] = {
    "another step": (THREE, OPENED, having(step=OPENED + 1)),
    "nobody's share": (THREE, OPENED, having(to_all={})),
    "a share of its own": (THREE, OPENED, lambda one: msgspec.structs.replace(one, to_all={**one.to_all, 3: b"x"})),
    "without one client": (THREE, OPENED, lambda one: msgspec.structs.replace(one, to_all={1: one.to_all[1]})),
    "in each other's name": (THREE, OPENED, swapped),
    "forged": (
        THREE,
        OPENED,
        lambda one: msgspec.structs.replace(one, to_all={key: flipped(value) for key, value in one.to_all.items()}),
    ),
    "dealt too little": (ONE, OPENED, lambda one: msgspec.structs.replace(one, dealt=one.dealt[:-1])),
    "dealt nothing": (ONE, OPENED, having(dealt=b"")),
    "dealt to one that draws": (THREE, OPENED, having(dealt=bytes(96))),
    "dealt too much in a turn": (TWO, TURN_OF_TWO, lambda one: msgspec.structs.replace(one, dealt=one.dealt + b"\0")),
    "a share for one that gives": (ONE, TURN_OF_TWO, having(to_one={3: bytes(64)})),
    "a turn without shares": (TWO, TURN_OF_TWO, having(to_one={})),
    "an answer without shares": (ONE, LAST, having(to_one={})),
}


@pytest.mark.parametrize(("to", "at", "change"), RELAYS.values(), ids=RELAYS)
def test_a_relay_that_is_not_what_clients_said_ends_the_batch(to: PartyId, at: int, change: Relay) -> None:
    result = bent_server(to, at, change)
    assert result.answers == []
    assert result.raised(to) is PeerMisbehaved


def test_a_relay_of_an_earlier_step_ends_the_batch() -> None:
    heard: dict[int, SelectionRelay] = {}

    def tell(party: PartyId, message: SelectionRelay) -> wire.Message:
        if party != THREE:
            return message
        heard[message.step] = message
        return heard[OPENED] if message.step == OPENED + 1 else message

    result = hold_batches("topk", [(TERMS, some_scores(TERMS))], wrap={SERVER: lying(about(SelectionRelay, tell))})
    assert result.raised(THREE) is PeerMisbehaved


def test_shares_of_an_earlier_batch_end_the_batch() -> None:
    """With the step's number of this one: the keys are others."""
    heard: dict[tuple[PartyId, int], SelectionRelay] = {}
    later = terms_of(3, 12, round=RoundId(4))

    def tell(party: PartyId, message: wire.Message, round_id: RoundId) -> wire.Message:
        if not isinstance(message, SelectionRelay):
            return message
        if round_id == 1:
            heard[party, message.step] = message
            return message
        return msgspec.structs.replace(message, to_all=heard[party, message.step].to_all)

    todo = [(TERMS, some_scores(TERMS)), (later, some_scores(later))]
    result = hold_batches("topk", todo, wrap={SERVER: lying(tell)})
    assert len(result.answers) == 1
    assert PeerMisbehaved in {result.raised(party) for party in (ONE, TWO, THREE)}


OUTSIDE: dict[str, Callable[[dict[int, bytes]], dict[int, bytes]]] = {
    "forged": lambda sealed: {**sealed, 2: flipped(sealed[2])},
    "truncated": lambda sealed: {**sealed, 2: sealed[2][:-1]},
    "missing": lambda sealed: {1: sealed[1], 3: sealed[3]},
    "swapped": lambda sealed: {1: sealed[2], 2: sealed[1], 3: sealed[3]},
    "one more": lambda sealed: {**sealed, 9: sealed[1]},
    "none": lambda sealed: {},
}


@pytest.mark.parametrize("change", OUTSIDE.values(), ids=OUTSIDE)
def test_an_answer_for_an_asker_outside_that_was_changed_is_noticed(change: Callable[[Any], Any]) -> None:
    terms, asker = terms_of(3, 12, asker=PartyId(4)), PartyId(4)
    lie = about(SharesForAsker, lambda party, told: msgspec.structs.replace(told, sealed=change(told.sealed)))
    result = hold_batches("topk", [(terms, some_scores(terms))], wrap={SERVER: lying(lie)})
    assert result.answers == []
    assert result.raised(asker) is PeerMisbehaved


FIRST = batch_of(3, 9, shape_of([2]))
NEXT = FIRST.attempt(batch_of(3, 9, shape_of([2]), round=RoundId(2)).terms)


def hidden_with(lie: Any) -> Hidden:
    queries = within(np.random.default_rng(0), 2, FIRST.shape)
    return run_hidden(FIRST, some_tables(FIRST), [(NEXT, queries)], {SERVER: lying(lie)})


TABLES: dict[str, Callable[[MaskedTable], MaskedTable]] = {
    "forged": lambda table: msgspec.structs.replace(table, sealed=flipped(table.sealed)),
    "truncated": lambda table: msgspec.structs.replace(table, sealed=table.sealed[:-1]),
    "of the asker": having(owner=1),
    "of a stranger": having(owner=9),
    "in another's name": lambda table: msgspec.structs.replace(table, owner=5 - table.owner),
}


@pytest.mark.parametrize("change", TABLES.values(), ids=TABLES)
def test_a_masked_table_that_was_changed_is_noticed(change: Callable[[MaskedTable], MaskedTable]) -> None:
    result = hidden_with(about(MaskedTable, lambda party, table: change(table)))
    assert result.rankings == []
    assert isinstance(result.problems[ONE], PeerMisbehaved)


def test_a_dealt_product_of_another_length_is_noticed() -> None:
    lie = about(DealtProduct, lambda party, dealt: msgspec.structs.replace(dealt, product=dealt.product[:-8]))
    result = hidden_with(lie)
    assert result.rankings == []
    assert isinstance(result.problems[TWO], PeerMisbehaved)


def test_a_table_in_another_s_name_is_noticed_by_the_server() -> None:
    def rename(message: wire.Message, round_id: RoundId) -> wire.Message:
        return msgspec.structs.replace(message, owner=3)  # type: ignore[type-var]

    queries = within(np.random.default_rng(0), 2, FIRST.shape)
    wrap = {TWO: bending(instead_of(MaskedTable, rename))}
    result = run_hidden(FIRST, some_tables(FIRST), [(NEXT, queries)], wrap)
    assert isinstance(result.problems[SERVER], PeerMisbehaved)
