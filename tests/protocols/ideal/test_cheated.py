"""Clients that are told lies abort before anything but a sum opens, and their aborts are written without inputs."""

from types import UnionType

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId, RoundId, new_session
from protocols.ideal.cheated import CheatedSums
from protocols.ideal.cheating import (
    Cheat,
    CheatedSumSession,
    FlippedShares,
    ForgedMaskKey,
    TwoSurvivorSets,
    signed_parties,
)
from protocols.ideal.masked_sum import uniform_vector
from protocols.ideal.opened import open_sum
from protocols.ideal.real import Parties
from protocols.ideal.views import View
from protocols.session.control import RefuseShares
from protocols.session.conversation import Failed
from protocols.sums.interface import Contribution, SumLayout
from protocols.sums.secagg.messages import KeyDirectory, MaskedInput, ShareKeys, Survivors, UnmaskShares
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.terms import SumTerms

LAYOUT = SumLayout(real_entries=5, count_entries=2, bound=4.0, max_count=10, parties=5, ring_bits=32)
PARTIES = signed_parties(5, ThreatModel(0.25, 0.25, "active"))
TASKS = [SumTerms(RoundId(number), "rows", PARTIES.clients, LAYOUT) for number in (1, 2)]
FORGED = ForgedMaskKey(victim=PartyId(2), owner=PartyId(5))
DIVIDED = TwoSurvivorSets(told=frozenset({PartyId(1), PartyId(2)}), missing=PartyId(4))
DENIED = TwoSurvivorSets(told=frozenset({PartyId(3)}), missing=PartyId(3))
"""A client is told that it has dropped out itself. The others open the sum, in which its upload is."""
FLIPPED = FlippedShares(victim=PartyId(2), owner=PartyId(5))
REFUSING = Failed | RefuseShares
LIES = [
    FLIPPED,
    FORGED,
    ForgedMaskKey(PartyId(5), PartyId(1)),
    DIVIDED,
    DENIED,
    TwoSurvivorSets(DENIED.told, PartyId(5)),
]


def inputs(value: float) -> dict[PartyId, Contribution]:
    return {party: Contribution(np.full(5, value), np.full(2, 1)) for party in PARTIES.clients}


def total(parties: frozenset[PartyId], value: float) -> np.ndarray:
    summed = LAYOUT.group.zeros(LAYOUT.entries)
    for party in parties:
        LAYOUT.group.add_into(summed, LAYOUT.encode(inputs(value)[party]).vector)
    return summed


def real(cheat: Cheat, value: float = 1.0) -> View:
    return CheatedSumSession(PARTIES, [(task, inputs(value)) for task in TASKS], cheat).view()


def simulated(cheat: Cheat) -> View:
    sums = CheatedSums(PARTIES.clients, PARTIES.model, new_session(), credentials=PARTIES.credentials)
    sums.setup()
    everybody = frozenset(PARTIES.clients)
    sums.masked_sum(TASKS[0], total(everybody, 1.0))
    opened = None
    if isinstance(cheat, ForgedMaskKey | FlippedShares):
        opened = total(everybody - {cheat.victim}, 1.0)
    elif cheat is DENIED:
        opened = total(everybody, 1.0)
    sums.cheated_sum(TASKS[1], cheat, opened, done=RoundId(1))
    return sums.view()


def said(view: View, kind: type | UnionType) -> dict[PartyId, object]:
    """By whom, in the sum in which the server cheats."""
    return {
        seen.peer: seen.message
        for seen, frame in zip(view.messages(), view.frames, strict=True)
        if seen.direction == "received" and frame.round == 2 and isinstance(seen.message, kind)
    }


@pytest.mark.parametrize("cheat", LIES, ids=str)
def test_simulated_aborts_have_the_form_and_the_words_of_real_ones(cheat: Cheat) -> None:
    views = real(cheat), simulated(cheat)
    assert views[0].structure() == views[1].structure()
    assert said(views[0], REFUSING) == said(views[1], REFUSING) != {}


@pytest.mark.parametrize("cheat", LIES, ids=str)
def test_what_an_aborting_client_says_does_not_depend_on_inputs(cheat: Cheat) -> None:
    assert said(real(cheat, 0.0), REFUSING) == said(real(cheat, -4.0), REFUSING)
    assert real(cheat, 0.0).structure() == real(cheat, 4.0).structure()


def test_a_client_that_is_told_a_forged_key_sends_nothing_but_its_abort() -> None:
    view = real(FORGED)
    assert said(view, RefuseShares).keys() == {2}
    for kind in (ShareKeys, MaskedInput, UnmaskShares):
        assert said(view, kind).keys() == {1, 3, 4, 5}
    told = {seen.peer: seen.message for seen in view.messages() if seen.round == 2 and seen.kind == "KeyDirectory"}
    first, second = told[PartyId(1)], told[FORGED.victim]
    assert isinstance(first, KeyDirectory)
    assert isinstance(second, KeyDirectory)
    assert first.mask_keys[5] != second.mask_keys[5]


def test_a_client_whose_shares_were_changed_names_the_sender_and_gives_no_input() -> None:
    view = real(FLIPPED)
    (refusal,) = said(view, RefuseShares).items()
    assert (refusal[0], getattr(refusal[1], "of", None)) == (FLIPPED.victim, [FLIPPED.owner])
    assert said(view, MaskedInput).keys() == {1, 3, 4, 5}


def test_clients_that_are_told_two_sets_of_survivors_open_nothing() -> None:
    view = real(DIVIDED)
    assert said(view, MaskedInput).keys() == said(view, REFUSING).keys() == set(PARTIES.clients)
    assert said(view, UnmaskShares) == {}
    told = [seen.message for seen in view.messages() if seen.round == 2 and isinstance(seen.message, Survivors)]
    assert [message.dropped for message in told] == [[4], [4], [], [], []]


def test_the_sum_before_the_lie_is_opened() -> None:
    for view in (real(DIVIDED), simulated(DIVIDED)):
        opened = open_sum(view, TASKS[0], PARTIES.clients, PARTIES.model)
        assert np.array_equal(opened.total, total(frozenset(PARTIES.clients), 1.0))


def test_a_client_that_is_said_to_have_dropped_out_answers_nothing() -> None:
    view = real(DENIED)
    assert said(view, Failed).keys() == {3}
    assert said(view, MaskedInput).keys() == set(PARTIES.clients)
    assert said(view, UnmaskShares).keys() == {1, 2, 4, 5}


def test_clients_without_identities_are_not_simulated() -> None:
    parties = Parties.of(5, ThreatModel(0.25, 0.4))
    sums = CheatedSums(parties.clients, parties.model, new_session())
    sums.setup()
    task = TASKS[1]
    with pytest.raises(ValueError, match="clients that sign"):
        sums.cheated_sum(task, FORGED, uniform_vector(task.layout.group, task.layout.entries), done=RoundId(1))
