"""The same survivors are the same organisations, where clients know who they are."""

from dataclasses import replace

import pytest

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.secagg.openings import NOBODY, Opening, Openings, announcement
from tests.support.secagg_sessions import parties

ONE, TWO, THREE = parties(1, 2, 3)
ALL = frozenset((ONE, TWO, THREE))
BEFORE = {ONE: "aa", TWO: "bb", THREE: "cc"}
NOW = {ONE: "aa", TWO: "bb", THREE: "dd"}
"""Another organisation has the number 3."""
ROWS = Opening(RoundId(3), "rows", ALL, {party: bytes([party]) * 32 for party in ALL})


def lineage_of(round_id: RoundId, purpose: str) -> str:
    return f"fedr/0/{purpose}/{round_id}"


def record(identities: dict[PartyId, str] | None, known: list[Opening] | None = None, run: str = "now") -> Openings:
    made = Openings(known or [], run=run, lineage_of=lineage_of)
    made.identities = identities or {}
    return made


def opened(identities: dict[PartyId, str] | None) -> Opening:
    """In an earlier run."""
    noted: list[Opening] = []
    made = Openings((), noted.append, "before", lineage_of=lineage_of)
    made.identities = identities or {}
    made.open(ROWS)
    return noted[0]


OTHER_STATES = replace(ROWS, states={party: bytes([9, party]) * 16 for party in ALL})
"""Inputs that are nearly the same: as of another learning rate."""


def test_the_record_of_a_sum_says_who_took_part() -> None:
    assert opened(BEFORE).identities == BEFORE
    assert opened(None).identities == {}


def test_another_organisation_under_an_old_number_is_another_survivor() -> None:
    before = record(NOW, [opened(BEFORE)])
    with pytest.raises(SumAbandoned, match="has nearly the inputs that were, as rows of 3, opened before over other"):
        before.open(OTHER_STATES)
    with pytest.raises(SumAbandoned, match="over other clients"):
        before.may_come(OTHER_STATES)


def test_the_same_organisations_may_open_it_again() -> None:
    record(BEFORE, [opened(BEFORE)]).open(OTHER_STATES)


def test_an_organisation_is_the_same_under_another_number() -> None:
    moved = {ONE: "bb", TWO: "aa", THREE: "cc"}
    record(moved, [opened(BEFORE)]).open(OTHER_STATES)


@pytest.mark.parametrize("then", [None, BEFORE], ids=["numbers then", "identities then"])
def test_where_one_side_knows_numbers_alone_numbers_count(then: dict[PartyId, str] | None) -> None:
    now = None if then else NOW
    record(now, [opened(then)]).open(OTHER_STATES)
    with pytest.raises(SumAbandoned):
        record(now, [opened(then)]).open(replace(OTHER_STATES, survivors=frozenset((ONE, TWO))))


def test_what_one_has_opened_with_another_organisation_the_others_refuse() -> None:
    """They have no record of their own: what the first one announces is over whom it has helped."""
    first = record(NOW, [opened(BEFORE)])
    told = first.announced(OTHER_STATES.round, "rows", ONE, OTHER_STATES.states[ONE])
    assert told == announcement(ALL, identities=BEFORE)
    coming = replace(OTHER_STATES, told={ONE: told})
    with pytest.raises(SumAbandoned, match="client 1 has helped to open otherwise"):
        record(NOW).open(coming)
    record(BEFORE).open(coming)


def test_what_a_record_of_an_earlier_version_announces_is_taken_by_number() -> None:
    told = record(NOW, [opened(None)]).announced(OTHER_STATES.round, "rows", ONE, OTHER_STATES.states[ONE])
    record(NOW).open(replace(OTHER_STATES, told={ONE: told}))


def test_two_openings_over_different_organisations_fit_no_sum() -> None:
    first = record(BEFORE, [opened(BEFORE), replace(opened(NOW), states={ONE: OTHER_STATES.states[ONE]}, lineage="")])
    assert first.announced(OTHER_STATES.round, "rows", ONE, OTHER_STATES.states[ONE]) == NOBODY


def test_identities_of_some_of_the_survivors_are_none() -> None:
    noted: list[Opening] = []
    made = Openings((), noted.append)
    made.identities = {ONE: "aa", TWO: "bb"}
    made.open(ROWS)
    assert noted[0].identities == {}
