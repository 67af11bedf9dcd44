"""A sum is opened for the second time over the same clients only, at single clients and in whole conversations."""

import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from protocols.foundation import wire
from protocols.foundation.errors import SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.session.conversation import MAX_REASON, Abandon, Conversation
from protocols.sums.interface import Collected
from protocols.sums.secagg.client import Aborted
from protocols.sums.secagg.messages import STATE_BYTES, MaskedInput, SurvivorSignature, UnmaskShares
from protocols.sums.secagg.openings import Opening, Openings, commit, opened_before
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.sums import SecAggSumClient
from protocols.sums.secagg.vectors import VectorClient
from tests.support import sum_conversations as sums
from tests.support.in_threads import Part, at_once, at_server, converse
from tests.support.secagg_sessions import PURPOSE, Federation, Sum, Watched, complete, everyone, parties
from tests.support.sum_conversations import (
    ACTIVE,
    SECAGG,
    SEMI_HONEST,
    SIGNED,
    Foreseen,
    Silences,
    Twin,
    credentials,
    is_sum_of,
)

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
FIRST = RoundId(1)
REFUSAL = "was opened before over other clients"
signed_or_not = pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])

# --- the record -----------------------------------------------------------------------------------------------------


def some(*numbers: int) -> frozenset[PartyId]:
    return frozenset(parties(*numbers))


def opening(number: int, purpose: str, survivors: Collection[PartyId], **states: bytes) -> Opening:
    """`states`: by client, as `c1=...`."""
    given = {PartyId(int(name[1:])): state for name, state in states.items()}
    of_all = {party: given.get(party, b"") for party in survivors}
    return Opening(RoundId(number), purpose, frozenset(survivors), of_all)


def test_the_same_survivors_may_be_opened_again_and_others_not() -> None:
    openings = Openings()
    for _ in range(3):
        openings.open(opening(1, "rows", some(1, 2, 3)))
    for others in (some(1, 2), some(1, 2, 3, 4), some(1, 2, 4), some()):
        with pytest.raises(SumAbandoned, match=f"the sum of rows of round 1 {REFUSAL}"):
            openings.open(opening(1, "rows", others))
    # A refusal changes nothing.
    openings.open(opening(1, "rows", some(3, 2, 1)))


def test_every_round_and_every_purpose_stands_for_itself() -> None:
    openings = Openings()
    openings.open(opening(1, "rows", some(1, 2, 3)))
    openings.open(opening(2, "rows", some(1, 2)))
    openings.open(opening(1, "metrics", some(2, 3)))
    assert repr(openings) == "Openings(3 sums)"
    with pytest.raises(SumAbandoned):
        openings.open(opening(2, "rows", some(1, 2, 3)))
    with pytest.raises(SumAbandoned):
        openings.open(opening(1, "metrics", some(1, 2, 3)))


def test_the_same_sum_from_another_state_of_anybody_is_refused() -> None:
    openings = Openings()
    openings.open(opening(1, "rows", some(1, 2, 3), c1=b"a", c2=b"b", c3=b"c"))
    openings.open(opening(1, "rows", some(1, 2, 3), c1=b"a", c2=b"b", c3=b"c"))
    for states in ({"c1": b"a", "c2": b"b", "c3": b"d"}, {"c1": b"x", "c2": b"b", "c3": b"c"}, {"c1": b"a"}):
        with pytest.raises(SumAbandoned, match="opened before, beside other states or rows"):
            openings.open(opening(1, "rows", some(1, 2, 3), **states))


def test_the_same_sum_of_clients_that_have_applied_something_else_is_refused() -> None:
    openings = Openings()
    openings.open(replace(opening(1, "rows", some(1, 2)), model=b"one alignment"))
    openings.open(replace(opening(1, "rows", some(1, 2)), model=b"one alignment"))
    with pytest.raises(SumAbandoned, match="beside other states or rows"):
        openings.open(replace(opening(1, "rows", some(1, 2)), model=b"another one"))


@pytest.mark.parametrize("whose", ["c1", "c2", "c3"])
def test_a_state_that_comes_again_under_another_name_needs_the_same_survivors_and_states(whose: str) -> None:
    openings = Openings()
    openings.open(opening(1, "valid", some(1, 2, 3), **{whose: b"unchanged"}))
    openings.open(opening(2, "valid", some(1, 2, 3), **{whose: b"unchanged"}))
    party = int(whose[1:])
    other, neighbour = some(party, 4), f"c{party % 3 + 1}"
    with pytest.raises(SumAbandoned, match="has inputs that were, as valid of 1, opened before over other clients"):
        openings.open(opening(3, "valid", other, **{whose: b"unchanged"}))
    with pytest.raises(SumAbandoned, match="opened before, beside other states"):
        openings.open(opening(3, "valid", some(1, 2, 3), **{whose: b"unchanged", neighbour: b"changed"}))
    openings.open(opening(3, "valid", other, **{whose: b"changed"}))


def test_the_end_of_a_run_is_opened_over_one_set_of_survivors() -> None:
    """Whatever their states are: a change so small that it changes no result changes a state."""
    openings = Openings(at_the_end=["test"])
    openings.open(opening(5, "test", some(1, 2, 3), c1=b"a"))
    openings.open(opening(7, "test", some(1, 2, 3), c1=b"b"))
    with pytest.raises(SumAbandoned, match="as test of 5, opened before over other clients"):
        openings.open(opening(9, "test", some(1, 2), c1=b"c"))
    with pytest.raises(SumAbandoned, match="opened before over other clients"):
        openings.may_come(opening(9, "test", some(1, 2), c1=b"c"))


def test_runs_are_told_apart_by_name_and_not_by_state() -> None:
    noted: list[Opening] = []
    first = Openings(note=noted.append, run="first", at_the_end=["test"])
    first.open(opening(3, "rows", some(1, 2, 3), c1=b"a"))
    first.open(opening(4, "test", some(1, 2, 3), c1=b"b"))
    assert {one.run for one in noted} == {"first"}
    again = Openings(noted, run="second", at_the_end=["test"])
    again.open(opening(3, "rows", some(1, 2), c1=b"other"))
    again.open(opening(4, "test", some(1, 2), c1=b"another"))
    with pytest.raises(SumAbandoned, match="has inputs that were, as rows of 3, opened before over other clients"):
        again.open(opening(5, "rows", some(1, 2), c1=b"a"))


def lineages(**of: str) -> Callable[[RoundId, str], str]:
    """By purpose: of its sums in all rounds."""
    return lambda round_id, purpose: of.get(purpose, "")


def test_a_lineage_that_was_opened_in_another_run_needs_the_same_survivors() -> None:
    """Whatever the states are: a change so small that it changes no result changes a state."""
    noted: list[Opening] = []
    first = Openings(note=noted.append, run="first", lineage_of=lambda round_id, purpose: f"{purpose} {round_id}")
    first.open(opening(3, "rows", some(1, 2, 3), c1=b"a", c2=b"b"))
    assert [one.lineage for one in noted] == ["rows 3"]
    again = Openings(noted, run="second", lineage_of=lambda round_id, purpose: f"{purpose} {round_id}")
    for others in (some(1, 2), some(1, 2, 4), some(1, 2, 3, 4)):
        with pytest.raises(SumAbandoned, match=r"nearly the inputs .* in another run; .* another --seed"):
            again.open(opening(3, "rows", others, c1=b"x", c2=b"y"))
    with pytest.raises(SumAbandoned, match="nearly the inputs"):
        again.may_come(opening(3, "rows", some(1, 2, 4), c1=b"x"))
    again.may_come(opening(3, "rows", some(1, 2, 3, 4), c1=b"x"))  # client 4 may still drop out
    again.open(opening(3, "rows", some(1, 2, 3), c1=b"x", c2=b"y"))
    again.open(opening(4, "rows", some(1, 2), c1=b"v", c2=b"w"))
    other = Openings(noted, run="third", lineage_of=lambda round_id, purpose: f"{purpose} {round_id} seed 1")
    other.open(opening(3, "rows", some(1, 2), c1=b"x"))


def test_a_lineage_that_comes_again_in_the_same_run_needs_the_same_survivors() -> None:
    openings = Openings(run="run", moving=["valid"], lineage_of=lineages(valid="trained in 3"))
    openings.open(opening(4, "valid", some(1, 2, 3), c1=b"a"))
    openings.open(opening(5, "valid", some(1, 2, 3), c1=b"b"))
    with pytest.raises(SumAbandoned, match="has inputs that were, as valid of 4, opened before over other clients;"):
        openings.open(opening(6, "valid", some(1, 2), c1=b"c"))


def test_sums_without_a_lineage_and_records_of_earlier_versions_bind_nobody() -> None:
    known = [replace(opening(3, "rows", some(1, 2, 3)), run="first")]
    openings = Openings(known, run="second", lineage_of=lineages(rows="rows"))
    openings.open(opening(3, "rows", some(1, 2)))
    openings.open(opening(3, "holders", some(1, 2, 3)))
    openings.open(opening(4, "holders", some(1, 2)))


def refusal(openings: Openings, again: Opening) -> str:
    with pytest.raises(SumAbandoned) as refused:
        openings.open(again)
    return str(refused.value)


def test_a_refusal_says_which_opening_of_the_run_it_is_for() -> None:
    """An auditor looks for it in the server's record."""
    openings = Openings(run="run", at_the_end=["test"])
    openings.open(opening(4, "valid", some(1, 2, 3), c1=b"a", c2=b"b", c3=b"c"))
    openings.open(opening(5, "test", some(1, 2, 3)))
    again = {
        "same name": opening(4, "valid", some(1, 2), c1=b"a"),
        "same name, other states": opening(4, "valid", some(1, 2, 3), c1=b"z", c2=b"y", c3=b"x"),
        "same state": opening(5, "valid", some(1, 2), c1=b"a"),
        "same state beside others": opening(5, "valid", some(1, 2, 3), c1=b"a", c2=b"z"),
    }
    assert {name: opened_before(refusal(openings, one)) for name, one in again.items()} == dict.fromkeys(
        again, (4, "valid")
    )
    assert opened_before(refusal(openings, opening(9, "test", some(1, 2)))) == (5, "test")


def test_a_refusal_for_another_run_says_nothing_of_this_one() -> None:
    known = [replace(opening(4, "rows", some(1, 2, 3), c1=b"a"), run="first", lineage="rows")]
    openings = Openings(known, run="second", lineage_of=lineages(rows="rows"))
    reasons = [
        refusal(openings, opening(4, "rows", some(1, 2), c1=b"a")),
        refusal(openings, opening(4, "rows", some(1, 2), c1=b"z")),
        refusal(openings, opening(4, "rows", some(1, 2, 3), c1=b"a", c2=b"z")),
    ]
    assert all("in another run" in reason and opened_before(reason) is None for reason in reasons)
    assert len(max(reasons, key=len)) <= MAX_REASON
    for other in ("", "client 3: the sum of rows of round 4 was opened before over other clients; ", "too few clients"):
        assert opened_before(other) is None


def test_an_input_without_a_state_is_fresh() -> None:
    openings = Openings()
    for number, survivors in enumerate((some(1, 2, 3), some(1, 2), some(2, 3)), start=1):
        openings.open(opening(number, "holders", survivors))


def test_no_input_is_given_where_no_survivors_could_be_right() -> None:
    openings = Openings([opening(1, "valid", some(1, 2, 3), c1=b"a")])
    openings.may_come(opening(2, "valid", some(1, 2, 3), c1=b"a"))
    openings.may_come(opening(2, "valid", some(1, 2, 3, 4), c1=b"a"))  # client 4 may still drop out
    openings.may_come(opening(2, "valid", some(1, 2), c1=b"b"))
    with pytest.raises(SumAbandoned, match="opened before over other clients"):
        openings.may_come(opening(2, "valid", some(1, 2, 4), c1=b"a"))


def test_what_was_opened_before_this_session_counts() -> None:
    openings = Openings([opening(1, "rows", some(1, 2))])
    openings.open(opening(1, "rows", some(2, 1)))
    with pytest.raises(SumAbandoned, match=REFUSAL):
        openings.open(opening(1, "rows", some(1, 2, 3)))
    openings.open(opening(2, "rows", some(1, 2, 3)))


def test_what_is_opened_is_written_down_first_and_what_is_refused_is_not() -> None:
    noted: list[Opening] = []
    openings = Openings([opening(1, "rows", some(1, 2))], noted.append)
    openings.open(opening(2, "rows", some(1, 2, 3), c1=b"a"))
    with pytest.raises(SumAbandoned):
        openings.open(opening(1, "rows", some(1, 3)))
    assert noted == [opening(2, "rows", some(1, 2, 3), c1=b"a")]
    # Read back, they make the same record.
    again = Openings(noted)
    with pytest.raises(SumAbandoned):
        again.open(opening(2, "rows", some(1, 2)))


def test_commitments_tell_states_kinds_and_keys_apart() -> None:
    made = {commit(key, kind, state) for key in (b"k" * 32, b"l" * 32) for kind in ("a", "b") for state in (b"", b"s")}
    assert len(made) == 8
    assert commit(b"k" * 32, "a", b"s") == commit(b"k" * 32, "a", b"s")
    assert {len(one) for one in made} == {STATE_BYTES}


# --- clients --------------------------------------------------------------------------------------------------------


def records(clients: Collection[PartyId] = CLIENTS) -> dict[PartyId, Openings]:
    return {party: Openings() for party in clients}


def again(kept: Mapping[PartyId, Openings], signed: bool, parameters: SumParameters | None = None) -> Sum:
    """The same sum with the same inputs in a session of its own."""
    federation = Federation(sorted(kept), signed=signed, openings=kept)
    return federation.begin(parameters if parameters is not None else complete(4, 3))


@signed_or_not
@pytest.mark.parametrize("gone", [{}, {FOUR: Step.MASKED_INPUT}, {FOUR: Step.SHARE_KEYS}], ids=["all", "input", "keys"])
def test_the_same_sum_opens_again(signed: bool, gone: Mapping[PartyId, Step]) -> None:
    kept = records()
    first = again(kept, signed).run(gone).tolist()
    second = again(kept, signed)
    assert second.run(gone).tolist() == first == second.exact()


@signed_or_not
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {FOUR: Step.MASKED_INPUT}),
        ({FOUR: Step.MASKED_INPUT}, {}),
        ({THREE: Step.SHARE_KEYS}, {FOUR: Step.MASKED_INPUT}),
    ],
    ids=["one fewer", "one more", "another"],
)
def test_over_others_nobody_helps_and_no_share_gets_out(
    signed: bool, before: Mapping[PartyId, Step], after: Mapping[PartyId, Step]
) -> None:
    kept = records()
    first = again(kept, signed)
    first.run(before)
    helped = first.server.survivors
    second = again(kept, signed).until(Step.CONSISTENCY_CHECK if signed else Step.UNMASKING, after)
    for party in sorted(second.server.awaited & helped):
        watched = Watched(second.clients[party])
        with pytest.raises(SumAbandoned, match=f"the sum of {PURPOSE} of round 1 {REFUSAL}"):
            watched.receive(second.inbox[party])
        assert watched.sent == []
        assert isinstance(second.clients[party].state, Aborted)
        assert watched.kept() == set()
        with pytest.raises(UnexpectedMessage):
            watched.receive(second.inbox[party])
    with pytest.raises(UnexpectedMessage, match="no sum"):
        second.server.total()


@signed_or_not
def test_a_new_record_forgets_and_the_difference_of_two_sums_is_an_input(signed: bool) -> None:
    """The control: what the record is there to prevent."""
    first = again(records(), signed)
    whole = first.run()
    part = again(records(), signed).run({FOUR: Step.MASKED_INPUT})
    assert (whole - part).tolist() == first.inputs[FOUR].tolist()


def test_it_is_written_down_before_the_client_answers() -> None:
    """A client that cannot write down what it opens does not open it."""

    def fail(*_: object) -> None:
        raise OSError("disk full")

    begun = again({party: Openings(note=fail) for party in CLIENTS}, signed=False).until(Step.UNMASKING)
    for party in CLIENTS:
        watched = Watched(begun.clients[party])
        with pytest.raises(OSError, match="disk full"):
            watched.receive(begun.inbox[party])
        assert watched.sent == []
        assert watched.shown() == set()


def test_in_a_sparse_graph_no_input_is_given_to_a_sum_that_comes_again() -> None:
    """A new session gives a client new neighbours, so it cannot see whether the survivors are the same."""
    clients = everyone(12)
    parameters = SumParameters(12, 4, 2, 2)
    kept = records(clients)
    again(kept, False, parameters).run()
    second = again(kept, False, parameters).until(Step.MASKED_INPUT)
    for party in sorted(second.server.awaited):
        with pytest.raises(SumAbandoned, match=REFUSAL):
            second.answer(party)


# --- conversations --------------------------------------------------------------------------------------------------

LAYOUT = sums.layout_for(4)
TASK = sums.task_of(LAYOUT, CLIENTS)
INPUTS = sums.random_inputs(LAYOUT, CLIENTS)
SECURE = {"secagg": SECAGG, "signed": SIGNED}
both = pytest.mark.parametrize("twin", SECURE.values(), ids=SECURE)


def remembering(twin: Twin, kept: Mapping[PartyId, Openings]) -> Twin:
    if twin is SIGNED:
        return replace(
            twin,
            client=lambda clients, me: SecAggSumClient(
                VectorClient(clients, ACTIVE, credentials=credentials(me), openings=kept.get(me))
            ),
        )
    return replace(
        twin, client=lambda clients, me: SecAggSumClient(VectorClient(clients, SEMI_HONEST, openings=kept.get(me)))
    )


def session(twin: Twin, missing: PartyId | None = None) -> Collected:
    """One session with one sum, in which `missing` sends no input."""
    honest = sums.taking_part(twin, CLIENTS, [(TASK, INPUTS)])
    patience = Foreseen() if missing is None else Foreseen((sums.step_of("masked input"), missing))
    parts: dict[PartyId, Part] = {SERVER: sums.serving(twin, CLIENTS, [TASK], patience)}
    parts |= dict.fromkeys(CLIENTS, honest)
    if missing is not None:
        parts[missing] = sums.bent(honest, sums.stopping_at(MaskedInput))
    (collected,) = converse(parts)[SERVER]
    assert isinstance(collected, Collected)
    return collected


def refused_session(twin: Twin, missing: PartyId | None, refusing: Collection[PartyId]) -> None:
    """The same, but the server gets no sum, because `refusing` do not open it and say so."""
    honest = sums.taking_part(twin, CLIENTS, [(TASK, INPUTS)])
    said: dict[PartyId, list[wire.Message]] = {party: [] for party in CLIENTS}
    answer = SurvivorSignature if twin.says.keys() == SIGNED.says.keys() else UnmaskShares

    def serve(conversation: Conversation) -> None:
        patience = Foreseen() if missing is None else Foreseen((sums.step_of("masked input"), missing))
        with pytest.raises(SumAbandoned, match=rf"^client \d: the sum of {PURPOSE} of round 1 {REFUSAL}") as abandoned:
            sums.serving(twin, CLIENTS, [TASK], patience)(conversation)
        assert PartyId(int(str(abandoned.value)[len("client ")])) in refusing
        conversation.broadcast(CLIENTS, Abandon(PURPOSE, str(abandoned.value)), FIRST)

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party

        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            if me == missing and isinstance(message, MaskedInput):
                raise sums.Stopped
            said[me].append(message)
            return message

        part = sums.bent(honest, note)
        if me in refusing:
            with pytest.raises(SumAbandoned, match=f"^the sum of {PURPOSE} of round 1 {REFUSAL}"):
                part(conversation)
        elif me != missing and answer is SurvivorSignature:  # it still waits for the signatures of the others
            with pytest.raises(SumAbandoned, match=REFUSAL):
                part(conversation)
        else:
            part(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    for party in refusing:
        assert [message for message in said[party] if isinstance(message, Abandon)] == said[party][-1:]
        assert not any(isinstance(message, SurvivorSignature | UnmaskShares) for message in said[party])


@both
@pytest.mark.parametrize("missing", [None, FOUR], ids=["all", "one missing"])
def test_two_sessions_over_the_same_clients_have_the_same_sum(twin: Twin, missing: PartyId | None) -> None:
    kept = remembering(twin, records())
    here = [party for party in CLIENTS if party != missing]
    for _ in range(2):
        assert is_sum_of(session(kept, missing), LAYOUT, INPUTS, here)


@both
@pytest.mark.parametrize(
    ("before", "after"), [(None, FOUR), (FOUR, None), (THREE, FOUR)], ids=["fewer", "more", "other"]
)
def test_a_second_session_over_other_clients_has_no_sum(
    twin: Twin, before: PartyId | None, after: PartyId | None
) -> None:
    kept = remembering(twin, records())
    first = [party for party in CLIENTS if party != before]
    assert is_sum_of(session(kept, before), LAYOUT, INPUTS, first)
    refused_session(kept, after, [party for party in first if party != after])
    # And a third one over the first ones has: whoever must not open the second has not recorded it.
    if before != THREE:
        assert is_sum_of(session(kept, before), LAYOUT, INPUTS, first)


@both
@pytest.mark.parametrize("keeper", [ONE, TWO, THREE], ids=int)
def test_one_client_that_remembers_is_enough(twin: Twin, keeper: PartyId) -> None:
    kept = records()
    session(remembering(twin, kept))
    refused_session(remembering(twin, {keeper: kept[keeper]}), FOUR, [keeper])


@both
def test_the_session_goes_on_after_a_sum_that_must_not_be_opened(twin: Twin) -> None:
    """All refuse alike. What they say about it is late in the next round."""
    kept = {party: Openings([opening(1, PURPOSE, [ONE, TWO])]) for party in CLIENTS}
    remember, second = remembering(twin, kept), sums.task_of(LAYOUT, CLIENTS, 2)

    def serve(conversation: Conversation) -> Collected:
        server, silent = remember.server(CLIENTS), Silences()
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent))
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), TASK)
        with pytest.raises(SumAbandoned, match=REFUSAL):
            server.collect(at_server(conversation, None, Foreseen(), silent), TASK)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), second)
        collected = server.collect(at_server(conversation, None, Foreseen(), silent), second)
        assert conversation.late_messages == len(CLIENTS) - 1
        return collected

    def take_part(conversation: Conversation) -> Any:
        me = conversation.transport.party
        client = remember.client(CLIENTS, me)
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), TASK)
        with pytest.raises(SumAbandoned, match=REFUSAL):
            client.contribute(at_once(conversation), TASK, INPUTS[me])
        client.prepare(at_once(conversation), second)
        client.contribute(at_once(conversation), second, INPUTS[me])

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))[SERVER]
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)


def test_after_a_refusal_the_next_sum_of_the_same_round_is_exact() -> None:
    """Three refuse and one, who was missing the first time, answers: what it said belongs to no later sum."""
    kept = {party: Openings([opening(1, PURPOSE, [ONE, TWO, THREE])]) for party in (ONE, TWO, THREE)}
    remember, second = remembering(SECAGG, kept), sums.task_of(LAYOUT, CLIENTS, 1, "metrics")

    def serve(conversation: Conversation) -> Collected:
        server, silent = remember.server(CLIENTS), Silences()
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent))
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), TASK)
        with pytest.raises(SumAbandoned, match=REFUSAL):
            server.collect(at_server(conversation, None, Foreseen(), silent), TASK)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), second)
        return server.collect(at_server(conversation, None, Foreseen(), silent), second)

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = remember.client(CLIENTS, me)
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), TASK)
        with contextlib.suppress(SumAbandoned):
            client.contribute(at_once(conversation), TASK, INPUTS[me])
        client.prepare(at_once(conversation), second)
        client.contribute(at_once(conversation), second, INPUTS[me])

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))[SERVER]
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)
