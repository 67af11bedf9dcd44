"""The server's view of batches that CrypTen computes: the form of a simulated one, and requests that tell nothing."""

import numpy as np
import pytest

from benchmarks.insecure_scores import insecure_scores
from protocols.foundation.identifiers import RoundId, new_session
from protocols.ideal.crypten_scores import seen_by_server, simulate_crypten_scores, simulated_requests
from protocols.ideal.group_key import simulate_group_key
from protocols.ideal.masked_sum import SimulatedSums
from protocols.ideal.views import View
from protocols.scores.crypten.dealt import Kind
from protocols.scores.crypten.launcher import QUERIES, BatchJob
from protocols.scores.interface import Scores
from protocols.scores.terms import ScoreTerms
from protocols.sums.secagg.params import ThreatModel
from tests.support.score_batches import some_scores, terms_of

pytest.importorskip("omegaconf")
pytestmark = pytest.mark.long
SECONDS = 120.0
TERMS = [terms_of(3, positions, round=RoundId(number), top=2) for number, positions in ((1, 9), (4, 9), (7, 8))]


def everything(terms: ScoreTerms) -> dict[int, Scores]:
    """All positions held by all, with one score."""
    shape = (terms.queries, terms.positions)
    return {party: Scores(np.arange(shape[1]), np.ones(shape, dtype=np.float32)) for party in terms.clients}


def simulated() -> View:
    sums = SimulatedSums(TERMS[0].clients, ThreatModel(0.0, 0.0), new_session())
    sums.setup()
    simulate_group_key(sums)
    for terms in TERMS:
        simulate_crypten_scores(sums, terms, len(QUERIES))
    return sums.view()


@pytest.mark.slow  # twenty processes that import torch; the next test has the same requests
def test_the_form_of_the_view_and_the_dealers_requests() -> None:
    """Requests exactly, one by one, whoever holds what. Other sizes give other requests."""
    job = BatchJob(tuple(TERMS), (some_scores(TERMS[0]), everything(TERMS[1]), some_scores(TERMS[2])))
    seen = seen_by_server(job, SECONDS)
    assert seen.view.structure() == simulated().structure()
    assert seen.requests[0] == seen.requests[1] == simulated_requests(TERMS[0], SECONDS)
    assert seen.requests[2] != seen.requests[0]
    assert [of_batch[-1][0] for of_batch in seen.requests] == [Kind.END] * 3


def test_requests_of_a_group_that_skips_positions_of_nobody() -> None:
    one_less = {party: Scores(all_.held[:-1], all_.values[:, :-1]) for party, all_ in everything(TERMS[0]).items()}
    with insecure_scores("skipped-positions"):
        seen = seen_by_server(BatchJob(tuple(TERMS[:2]), (one_less, everything(TERMS[1]))), SECONDS)
    assert seen.requests[0] != seen.requests[1]
