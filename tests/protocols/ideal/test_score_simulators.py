"""Simulated views of batches of queries have the form of real ones, whatever the scores are."""

from dataclasses import replace

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId, RoundId, new_session
from protocols.ideal.group_key import simulate_group_key
from protocols.ideal.masked_sum import SimulatedSums
from protocols.ideal.real import Falls, Parties
from protocols.ideal.scores import (
    KnownBatch,
    Ranks,
    ScoreSession,
    selection_steps,
    simulate_masked_scores,
    simulate_selection,
)
from protocols.scores.messages import PURPOSE, ScoresTotal
from protocols.scores.topk.messages import SelectionStep
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import Step
from tests.support.score_batches import some_scores, terms_of

BEARING = Parties.of(5, ThreatModel(0.0, 0.25))
THREE = Parties.of(3, ThreatModel(0.0, 0.0))
QUERIES = b"queries"


def simulated(parties: Parties) -> SimulatedSums:
    sums = SimulatedSums(parties.clients, parties.model, new_session())
    sums.setup()
    simulate_group_key(sums)
    return sums


@pytest.mark.parametrize("silent", [{}, {PartyId(4): Step.MASKED_INPUT}, {PartyId(5): Step.UNMASKING}], ids=str)
def test_masked_scores(silent: dict[PartyId, Step]) -> None:
    todo = [
        KnownBatch(terms, QUERIES, some_scores(terms))
        for terms in (terms_of(5, 12, queries=2), terms_of(5, 12, round=RoundId(4), table=b"another", asker=PartyId(2)))
    ]
    real = replace(ScoreSession.masked(BEARING, todo), falls=Falls({(RoundId(4), PURPOSE): silent})).view()
    sums = simulated(BEARING)
    simulate_masked_scores(sums, todo[0].terms, len(QUERIES))
    simulate_masked_scores(sums, todo[1].terms, len(QUERIES), silent)
    assert sums.view().structure() == real.structure()
    totals = [seen.message for seen in sums.view().messages() if isinstance(seen.message, ScoresTotal)]
    assert len(totals) == 2


@pytest.mark.parametrize("top", [1, 5, 12, 20])
@pytest.mark.parametrize("positions", [1, 12])
def test_selections_of_few_positions(positions: int, top: int) -> None:
    """All pairs are compared in one step, so nothing of the structure is left to chance."""
    terms = terms_of(3, positions, queries=3, top=top)
    real = ScoreSession.topk(THREE, [KnownBatch(terms, QUERIES, some_scores(terms))]).view()
    sums = simulated(THREE)
    simulate_selection(sums, terms, len(QUERIES))
    assert sums.view().structure() == real.structure()


def test_selections_of_many_positions_are_simulated_from_the_same_steps() -> None:
    """How many comparisons there are is random: those of a real run come out if its bits answer the same questions."""
    terms = terms_of(3, 300, queries=5, top=3)
    real = ScoreSession.topk(THREE, [KnownBatch(terms, QUERIES, some_scores(terms))]).view()
    said = [seen.message for seen in real.messages() if isinstance(seen.message, SelectionStep) and seen.peer == 1]
    simulated_deals = [step.deal for step in selection_steps(terms, Ranks(terms).larger)]
    assert [one.deal for one in said[:5]] == simulated_deals[:5]
    assert {len(one.deal) for one in said} == {len(deal) for deal in simulated_deals}
    assert said[-1].deal == simulated_deals[-1]
    lengths = {len(list(selection_steps(terms, Ranks(terms).larger))) for _ in range(20)}
    assert len(said) in range(min(lengths) - 16, max(lengths) + 17)


def test_ranks_are_permutations_that_do_not_come_again() -> None:
    terms = terms_of(3, 50, queries=2)
    first, second = Ranks(terms), Ranks(terms)
    assert np.array_equal(np.sort(first.of, axis=1), np.tile(np.arange(50), (2, 1)))
    assert not np.array_equal(first.of, second.of)
    assert not np.array_equal(first.of[0], first.of[1])
