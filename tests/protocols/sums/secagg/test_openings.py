"""A sum is opened for the second time over the same clients only, at single clients and in whole conversations."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from protocols.foundation.errors import SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import MAX_REASON
from protocols.sums.secagg.messages import STATE_BYTES
from protocols.sums.secagg.openings import Opening, Openings, commit, opened_before
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.states import Aborted
from tests.support.openings import CLIENTS, opening, records
from tests.support.secagg_sessions import PURPOSE, Federation, Sum, Watched, complete, everyone, parties

ONE, TWO, THREE, FOUR = CLIENTS
FIRST = RoundId(1)
REFUSAL = "was opened before over other clients"
signed_or_not = pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])

# --- the record -----------------------------------------------------------------------------------------------------


def some(*numbers: int) -> frozenset[PartyId]:
    return frozenset(parties(*numbers))


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
        openings.may_come(opening(9, "test", some(1, 2), c1=b"c"), PartyId(1))


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
        again.may_come(opening(3, "rows", some(1, 2, 4), c1=b"x"), PartyId(1))
    again.may_come(opening(3, "rows", some(1, 2, 3, 4), c1=b"x"), PartyId(1))  # client 4 may still drop out
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
    openings.may_come(opening(2, "valid", some(1, 2, 3), c1=b"a"), PartyId(1))
    openings.may_come(opening(2, "valid", some(1, 2), c1=b"b"), PartyId(1))
    openings.may_come(opening(1, "valid", some(1, 2, 3, 4), c1=b"b"), PartyId(1))  # client 4 may still drop out
    for others in (some(1, 2, 4), some(1, 2, 3, 4)):  # with a state that was opened nobody need drop out any more
        with pytest.raises(SumAbandoned, match="opened before over other clients"):
            openings.may_come(opening(2, "valid", others, c1=b"a"), PartyId(1))


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
    clients = everyone(24)
    parameters = SumParameters(24, 8, 4, 4)  # so many that no client has the same neighbours again by chance
    kept = records(clients)
    again(kept, False, parameters).run()
    second = again(kept, False, parameters).until(Step.MASKED_INPUT)
    for party in sorted(second.server.awaited):
        with pytest.raises(SumAbandoned, match=REFUSAL):
            second.answer(party)
