"""Regrouping: which way a session takes when a client has come again, and how often."""

from collections.abc import Collection

import pytest

from protocols.foundation.identifiers import PartyId
from secure_kg.federation.server.regrouping import (
    MOST,
    Budget,
    Regrouping,
    RegroupNeeded,
    Situation,
    Step,
    between_rounds,
    in_a_sum,
)

ALL = frozenset(map(PartyId, (1, 2, 3)))
TWO = frozenset({PartyId(2)})


def situation(*, done: int = 7, checkpoint: int = 5, steady: bool = True, **sets: Collection[PartyId]) -> Situation:
    who = {"group": ALL, "present": ALL, "newcomers": TWO, **{name: frozenset(one) for name, one in sets.items()}}
    return Situation(done, checkpoint, who["group"], steady, who["present"], who["newcomers"])


@pytest.mark.parametrize(
    ("now", "between", "inside"),
    [
        (situation(newcomers=()), Step.GO_ON, Step.GO_ON),
        (situation(), Step.BACK, Step.BACK),  # the same sums over the same clients
        (situation(present=ALL - TWO), Step.BACK, Step.BACK),  # noticed just now: no sum was opened without it
        (situation(steady=False), Step.CHECKPOINT_FIRST, Step.GO_ON),
        (situation(group=ALL - TWO, present=ALL - TWO), Step.CHECKPOINT_FIRST, Step.GO_ON),  # sums lacked it all along
        (situation(present={1}), Step.CHECKPOINT_FIRST, Step.GO_ON),  # a third one would be missing in the repetition
        (situation(done=5, steady=False), Step.BACK, Step.GO_ON),  # nothing is repeated; inside a sum something is
        (situation(done=5, group=ALL - TWO, present=ALL - TWO), Step.BACK, Step.GO_ON),
        (situation(done=0, checkpoint=0), Step.BACK, Step.BACK),
    ],
)
def test_a_sum_is_repeated_over_the_same_clients_only(now: Situation, between: Step, inside: Step) -> None:
    assert between_rounds(now) is between
    assert in_a_sum(now) is inside


class Waiting:
    """Clients that wait for a new session."""

    def __init__(self) -> None:
        self.newcomers: frozenset[PartyId] = frozenset()

    def __call__(self) -> frozenset[PartyId]:
        return self.newcomers


def test_a_client_that_has_come_again_is_no_dropout_where_nothing_is_lost() -> None:
    waiting = Waiting()
    regrouping = Regrouping(waiting)
    regrouping.begin(ALL, 5)
    regrouping.instead_of_dropping(TWO, ALL, 7)  # it is merely late
    waiting.newcomers = TWO
    with pytest.raises(RegroupNeeded, match="client 2 has come again; all go on together after round 5"):
        regrouping.instead_of_dropping(TWO, ALL, 7)
    regrouping.instead_of_dropping({PartyId(2), PartyId(3)}, ALL, 7)  # the sums could not be repeated without client 3
    regrouping.unsteady()
    regrouping.instead_of_dropping(TWO, ALL, 7)
    assert regrouping.after_round(7, ALL - TWO) is Step.CHECKPOINT_FIRST
    regrouping.begin(ALL - TWO, 7)
    assert regrouping.after_round(7, ALL - TWO) is Step.BACK


def test_a_client_that_comes_again_and_again_waits_at_last() -> None:
    waiting, budget = Waiting(), Budget(within=10)
    waiting.newcomers = TWO
    for _ in range(MOST):
        regrouping = Regrouping(waiting, budget=budget)
        regrouping.begin(ALL, 20)
        assert regrouping.after_round(25, ALL) is Step.BACK
        assert isinstance(regrouping.end(), RegroupNeeded)
    regrouping = Regrouping(waiting, budget=budget)
    regrouping.begin(ALL, 20)
    assert regrouping.after_round(25, ALL) is Step.GO_ON
    regrouping.instead_of_dropping(TWO, ALL, 29)
    regrouping.begin(ALL - TWO, 30)  # others got on
    assert regrouping.after_round(30, ALL - TWO) is Step.BACK


def test_a_client_without_a_place_in_the_run_ends_no_session() -> None:
    waiting = Waiting()
    waiting.newcomers = frozenset({PartyId(2), PartyId(4)})
    regrouping = Regrouping(waiting)
    regrouping.begin(ALL - TWO, 5)
    regrouping.aligned_with({1, 3})
    assert regrouping.after_round(7, ALL - TWO) is Step.GO_ON
    regrouping.aligned_with({1, 3, 4})
    assert regrouping.after_round(7, ALL - TWO) is Step.CHECKPOINT_FIRST


def test_before_names_are_aligned_a_session_begins_again_rather_than_without_a_client() -> None:
    regrouping = Regrouping(Waiting(), lasting=True)
    regrouping.begin(ALL, 0)
    regrouping.aligning = True
    for _ in range(MOST):
        with pytest.raises(RegroupNeeded, match="client 2 dropped out before names were aligned; all go on"):
            regrouping.instead_of_dropping(TWO, ALL, 0)
    regrouping.instead_of_dropping(TWO, ALL, 0)
    another = Regrouping(Waiting(), lasting=True)
    another.begin(ALL, 0)
    another.aligning = True
    another.aligned_with({1, 2, 3})
    another.instead_of_dropping(TWO, ALL, 0)


def test_a_run_without_checkpoints_goes_on_without_a_dropout() -> None:
    waiting = Waiting()
    waiting.newcomers = TWO
    regrouping = Regrouping(waiting, may_checkpoint=False)
    regrouping.begin(ALL - TWO, 0)
    assert regrouping.after_round(7, ALL - TWO) is Step.GO_ON
    regrouping.begin(ALL, 0)
    assert regrouping.after_round(7, ALL) is Step.BACK
