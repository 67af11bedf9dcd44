"""Real and simulated views of batches of queries, on fixed scores: the server's, and that of all clients but one.

Scores are known to the distinguisher and picked to be easy to recognise: a client whose scores are all as large as they
may be, a query all of whose scores are equal, positions that nobody holds. In the last batch of masked scores one
scorer drops out before its input. Selections are among three clients, with a batch so large that a pivot is taken for
the server's view, and two small ones for the clients'.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from protocols.foundation.identifiers import PartyId, RoundId, new_session
from protocols.ideal.client_selection import seen_by_others, simulate_seen
from protocols.ideal.dealt_features import dealt_features
from protocols.ideal.group_key import simulate_group_key
from protocols.ideal.masked_sum import SimulatedSums
from protocols.ideal.real import Falls, Parties
from protocols.ideal.scores import KnownBatch, ScoreSession, simulate_masked_scores, simulate_selection
from protocols.ideal.selection_features import features_of, true_answer
from protocols.ideal.views import View
from protocols.scores.interface import Scores, encode
from protocols.scores.masked import sum_terms
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import Step
from secure_kg.audit.indistinguishability.client_views import ClientExperiment
from secure_kg.audit.indistinguishability.experiments import Experiment, KnownSum, Vector

ASKER: Final = PartyId(1)
HONEST: Final = PartyId(3)
SCORING: Final = Parties.of(5, ThreatModel(0.0, 0.25))
SELECTING: Final = Parties.of(3, ThreatModel(0.0, 0.0))
FALLS: Final = {PartyId(4): Step.MASKED_INPUT}
LAST: Final = RoundId(4)
"""Of the batch in which a scorer drops out."""


def masked_scores(seed: int) -> Experiment:
    todo = scoring_batches(seed)

    def simulate() -> View:
        simulated = new_simulation(SCORING)
        for batch in todo:
            silent = FALLS if batch.terms.round == LAST else {}
            simulate_masked_scores(simulated, batch.terms, len(batch.queries), silent)
        return simulated.view()

    known = [KnownSum(sum_terms(batch.terms), _without_checks(batch), model=SCORING.model) for batch in todo]
    session = replace(ScoreSession.masked(SCORING, todo), falls=Falls({(LAST, PURPOSE): FALLS}))
    return Experiment("scores-masked", session, simulate, lambda view: known)


def plain_scores(seed: int) -> Experiment:
    """The twin in clear, held against the simulator of masked scores. Nobody drops out."""
    experiment = masked_scores(seed)
    assert isinstance(experiment.session, ScoreSession)
    return replace(experiment, session=ScoreSession.plain(SCORING, experiment.session.todo))


def selections(seed: int) -> Experiment:
    batch = known_batch(SELECTING, RoundId(1), seed, positions=100, queries=5)

    def simulate() -> View:
        simulated = new_simulation(SELECTING)
        simulate_selection(simulated, batch.terms, len(batch.queries))
        return simulated.view()

    session = ScoreSession.topk(SELECTING, [batch])
    return Experiment("scores-topk", session, simulate, lambda view: [], lambda view: dealt_features(view, batch))


def plain_selections(seed: int) -> Experiment:
    """The twin in clear, held against the simulator of selections."""
    experiment = selections(seed)
    assert isinstance(experiment.session, ScoreSession)
    return replace(experiment, session=ScoreSession.plain(SELECTING, experiment.session.todo))


def client_selections(seed: int) -> ClientExperiment:
    """As many positions as their bits can name, so that keys without these bits still have an answer."""
    todo = [known_batch(SELECTING, number, seed, positions=64, queries=2) for number in (RoundId(1), LAST)]
    session = ScoreSession.topk(SELECTING, todo)
    answers = [true_answer(batch) for batch in todo]
    return ClientExperiment(
        "scores-topk-client",
        lambda: features_of(seen_by_others(session, HONEST), todo),
        lambda: features_of(
            [simulate_seen(batch.terms, answer, HONEST) for batch, answer in zip(todo, answers, strict=True)], todo
        ),
    )


def scoring_batches(seed: int) -> list[KnownBatch]:
    """Those of which the asker reads means."""
    return [known_batch(SCORING, number, seed, positions=24, queries=3) for number in (RoundId(1), LAST)]


def new_simulation(parties: Parties) -> SimulatedSums:
    """A view that has its set-up and its group key."""
    simulated = SimulatedSums(parties.clients, parties.model, new_session())
    simulated.setup()
    simulate_group_key(simulated)
    return simulated


def known_batch(
    parties: Parties, round_id: RoundId, seed: int, positions: int, queries: int, top: int = 3
) -> KnownBatch:
    """The first query has one score for all, the last client the largest scores that there are."""
    terms = ScoreTerms(
        round=round_id,
        clients=parties.clients,
        asker=ASKER,
        positions=positions,
        queries=queries,
        top=top,
        table=f"table of round {round_id}".encode(),  # means of one table are opened over one set of clients
    )
    rng = np.random.default_rng(seed)
    scores = {}
    for party in parties.clients:
        held = np.flatnonzero(rng.random(positions) < 0.8)
        held = held[held % 10 != 7]
        values = rng.uniform(-terms.bound, terms.bound, (queries, len(held)))
        if party == parties.clients[-1]:
            values[:] = terms.bound
        values[0] = 1.0
        scores[party] = Scores(held, values)
    return KnownBatch(terms, f"queries of round {round_id}".encode(), scores)


def _without_checks(batch: KnownBatch) -> dict[PartyId, Vector]:
    """Whoever has chosen the scores does not know the factors of their check: zeros there."""
    layout = sum_terms(batch.terms).layout
    return {party: layout.unchecked(encode(batch.scores[party], batch.terms)) for party in batch.terms.scorers}


SCORE_PROTOCOLS: Final[dict[str, Callable[[int], Experiment]]] = {
    "scores-masked": masked_scores,
    "scores-topk": selections,
}
"""As `experiments.PROTOCOLS`, for batches of queries."""
PLAIN_SCORES: Final[dict[str, Callable[[int], Experiment]]] = {
    "scores-masked": plain_scores,
    "scores-topk": plain_selections,
}
SCORE_CLIENT_PROTOCOLS: Final[dict[str, Callable[[int], ClientExperiment]]] = {"scores-topk-client": client_selections}
"""As `client_views.CLIENT_PROTOCOLS`."""
