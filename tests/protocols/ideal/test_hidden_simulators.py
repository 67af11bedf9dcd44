"""Simulated views of hidden queries: of the form of real ones; and features that see what is not masked."""

from dataclasses import replace

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId, RoundId, new_session
from protocols.ideal.group_key import simulate_group_key
from protocols.ideal.hidden_features import asker_features, scorer_features, true_factors, true_tables
from protocols.ideal.hidden_queries import (
    HiddenSession,
    SeenHidden,
    seen_in,
    simulate_hidden,
    simulate_seen_by_asker,
    simulate_seen_by_scorers,
)
from protocols.ideal.masked_sum import SimulatedSums
from protocols.ideal.real import Parties
from protocols.scores.topk.hidden_shape import Similarity
from protocols.sums.secagg.params import ThreatModel
from tests.support.hidden_queries import batch_of, shape_of, some_tables, within

PARTIES = Parties.of(4, ThreatModel(0.0, 0.0))


def session_of(branches: list[int], similarity: Similarity = Similarity.INNER, **more: object) -> HiddenSession:
    shape = shape_of(branches, similarity)
    first = batch_of(4, 10, shape, top=3, **more)
    rng = np.random.default_rng(1)
    todo = [
        (first.attempt(replace(first.terms, round=RoundId(number))), within(rng, first.rows, shape))
        for number in (2, 3)
    ]
    return HiddenSession(PARTIES, first, some_tables(first), todo)


@pytest.mark.parametrize("branches", [[1], [2, 1], [5, 1, 3]], ids=str)
@pytest.mark.parametrize("asker", [1, 3])
def test_the_servers_view(branches: list[int], asker: int) -> None:
    """All pairs of keys are compared at once, so no size is left to chance."""
    session = session_of(branches, asker=PartyId(asker))
    sums = SimulatedSums(PARTIES.clients, PARTIES.model, new_session())
    sums.setup()
    simulate_group_key(sums)
    simulate_hidden(sums, session.first, [batch for batch, _ in session.todo])
    assert sums.view().structure() == session.view().structure()


def test_counts_of_holders_are_not_simulated_with_it() -> None:
    session = session_of([1], least=2)
    with pytest.raises(ValueError, match="a count of holders is simulated apart"):
        simulate_hidden(SimulatedSums(PARTIES.clients, PARTIES.model, new_session()), session.first, [])


@pytest.mark.parametrize("similarity", Similarity)
def test_the_clients_views(similarity: Similarity) -> None:
    session = session_of([2, 1], similarity)
    seen = seen_in(session)
    scorers, asker = simulate_seen_by_scorers(session), simulate_seen_by_asker(session)
    assert [one.shape for one in seen.opened] == [one.shape for one in scorers.opened]
    assert {party: [one.shape for one in of] for party, of in seen.products.items()} == {
        party: [one.shape for one in of] for party, of in scorers.products.items()
    }
    assert {party: one.shape for party, one in seen.tables.items()} == {
        party: one.shape for party, one in asker.tables.items()
    }
    assert scorer_features(seen, session).keys() == scorer_features(scorers, session).keys()
    assert asker_features(seen, session).keys() == asker_features(asker, session).keys()


def test_features_see_what_has_no_mask() -> None:
    session = session_of([1])
    bare = SeenHidden(true_factors(session), simulate_seen_by_scorers(session).products, true_tables(session))
    left = {name: value for name, value in scorer_features(bare, session).items() if name.endswith("zeros left")}
    assert {name for name, value in left.items() if value == 1.0} == {
        "batch 0, queries: zeros left",
        "batch 1, queries: zeros left",
        "queries of batches 0 and 1: zeros left",
    }
    assert all(value == 1.0 for name, value in asker_features(bare, session).items() if name.endswith("zeros left"))
