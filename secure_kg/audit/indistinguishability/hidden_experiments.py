"""Real and simulated views of hidden queries, on fixed tables and queries.

Three clients, of whom the first asks: tables once, then two batches. One query has three branches and the other one has
one. Both batches have the same queries, so that what comes twice shows at once. One scorer's rows are as long as they
may be and all equal, the other one holds every second position.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from protocols.foundation.identifiers import RoundId
from protocols.ideal.hidden_features import asker_features, scorer_features, server_features
from protocols.ideal.hidden_queries import (
    HiddenSession,
    seen_in,
    simulate_hidden,
    simulate_seen_by_asker,
    simulate_seen_by_scorers,
)
from protocols.ideal.views import View
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.hidden import HiddenBatch, HiddenTable
from protocols.scores.topk.hidden_shape import HiddenShape, Similarity
from secure_kg.audit.indistinguishability.client_views import ClientExperiment
from secure_kg.audit.indistinguishability.experiments import Experiment
from secure_kg.audit.indistinguishability.score_experiments import ASKER, HONEST, SELECTING, new_simulation

POSITIONS: Final = 24
DIMENSIONS: Final = 6
_SHAPE: Final = HiddenShape(
    similarity=Similarity.SQUARED, dimensions=DIMENSIONS, row_norm=4.0, query_norm=4.0, branches=(3, 1)
)
_TABLES, _FIRST, _SECOND = RoundId(1), RoundId(2), RoundId(3)


def hidden_queries(seed: int) -> Experiment:
    session = _session(seed)

    def simulate() -> View:
        simulated = new_simulation(SELECTING)
        simulate_hidden(simulated, session.first, [batch for batch, _ in session.todo])
        return simulated.view()

    return Experiment("scores-hidden", session, simulate, lambda view: [], lambda view: server_features(view, session))


def hidden_from_scorers(seed: int) -> ClientExperiment:
    session = _session(seed)
    return ClientExperiment(
        "scores-hidden-scorers",
        lambda: scorer_features(seen_in(session), session),
        lambda: scorer_features(simulate_seen_by_scorers(session), session),
    )


def tables_hidden_from_asker(seed: int) -> ClientExperiment:
    session = _session(seed)
    return ClientExperiment(
        "scores-hidden-asker",
        lambda: asker_features(seen_in(session), session),
        lambda: asker_features(simulate_seen_by_asker(session), session),
    )


def _session(seed: int) -> HiddenSession:
    rng = np.random.default_rng(seed)
    terms = ScoreTerms(
        round=_TABLES,
        clients=SELECTING.clients,
        asker=ASKER,
        positions=POSITIONS,
        queries=len(_SHAPE.branches),
        top=3,
    )
    first = HiddenBatch.of(terms, _SHAPE)
    tables = {}
    for party in SELECTING.clients:
        held = np.arange(0, POSITIONS, 2 if party == HONEST else 1)
        rows = rng.uniform(-1, 1, (len(held), DIMENSIONS))
        if party not in (ASKER, HONEST):
            rows[:] = 0.0
            rows[:, 0] = _SHAPE.row_norm
        tables[party] = HiddenTable(held, rows)
    queries = rng.uniform(-1, 1, (first.rows, DIMENSIONS))
    todo = [(first.attempt(replace(first.terms, round=number)), queries) for number in (_FIRST, _SECOND)]
    return HiddenSession(SELECTING, first, tables, todo)


HIDDEN_PROTOCOLS: Final[dict[str, Callable[[int], Experiment]]] = {"scores-hidden": hidden_queries}
"""As `experiments.PROTOCOLS`, for hidden queries."""
HIDDEN_CLIENT_PROTOCOLS: Final[dict[str, Callable[[int], ClientExperiment]]] = {
    "scores-hidden-scorers": hidden_from_scorers,
    "scores-hidden-asker": tables_hidden_from_asker,
}
"""As `client_views.CLIENT_PROTOCOLS`."""
