"""Real and simulated views of batches that CrypTen computes, on fixed scores: the server's, with its dealer's.

A client is a process, and a session takes seconds to begin. So a session has `BATCHES` batches, of one size and on the
same scores, and each of them is a sample: its frames, what its group asks the dealer for, and which of its values came
in an earlier batch of the session. Simulated sessions have as many.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from protocols.foundation.identifiers import RoundId
from protocols.ideal.crypten_scores import (
    Requests,
    SeenByServer,
    seen_by_server,
    simulate_crypten_scores,
    simulated_requests,
)
from protocols.ideal.scores import KnownBatch
from protocols.ideal.views import SeenMessage, View
from protocols.scores.batches import ATTEMPTS
from protocols.scores.crypten import binding
from protocols.scores.crypten.launcher import QUERIES, BatchJob
from protocols.scores.crypten.messages import DIGEST_BYTES, AnswerShares, JoinGroup
from protocols.scores.terms import ScoreTerms
from secure_kg.audit.indistinguishability.client_views import ClientExperiment
from secure_kg.audit.indistinguishability.score_experiments import SELECTING, known_batch, new_simulation
from secure_kg.audit.indistinguishability.view_features import Features, features_of, values_of

BATCHES: Final = 20
_SECONDS: Final = 280.0
_NONCE_BYTES: Final = 12
_SECRET_BYTES: Final = 16
"""Shorter values may come twice by chance."""


def crypten_scores(seed: int) -> ClientExperiment:
    todo = [
        known_batch(SELECTING, RoundId(1 + ATTEMPTS * number), seed, positions=9, queries=2, top=1)
        for number in range(BATCHES)
    ]

    def real() -> Iterator[Features]:
        while True:
            job = BatchJob(tuple(one.terms for one in todo), tuple(one.scores for one in todo))
            yield from _of_session(seen_by_server(job, _SECONDS), todo)

    def simulated() -> Iterator[Features]:
        requests = simulated_requests(todo[0].terms, _SECONDS)
        while True:
            simulation = new_simulation(SELECTING)
            for one in todo:
                simulate_crypten_scores(simulation, one.terms, len(QUERIES))
            yield from _of_session(SeenByServer(simulation.view(), [requests] * BATCHES), todo)

    from_real, from_simulated = real(), simulated()
    return ClientExperiment("scores-crypten", lambda: next(from_real), lambda: next(from_simulated))


def _of_session(seen: SeenByServer, todo: Sequence[KnownBatch]) -> Iterator[Features]:
    """One after the other: of each batch."""
    before: set[bytes] = set()
    for one, requests in zip(todo, seen.requests, strict=True):
        frames = tuple(frame for frame in seen.view.frames if frame.round == one.terms.round)
        view = View(seen.view.session, frames)
        messages = list(view.messages())
        values = {value for message in messages for _, value in values_of(message.message)}
        values = {value for value in values if len(value) >= _SECRET_BYTES}
        known = {"values of earlier batches": float(len(values & before))}
        before |= values
        yield features_of(view, []) | _of_requests(requests) | _in_clear(messages, one.terms) | known


def _of_requests(requests: Requests) -> Features:
    digest = hashlib.sha256(repr(requests).encode()).digest()
    return {
        "requests: number": float(len(requests)),
        "requests: entries": float(sum(sum(one) for one in requests)),
        "requests": int.from_bytes(digest[:2], "little") / 65536,
    }


def _in_clear(messages: Sequence[SeenMessage], terms: ScoreTerms) -> Features:
    """How many sealed messages begin with the digest that their plaintexts begin with."""
    group = binding.of_group(terms, sorted(terms.clients))
    said = [seen.message for seen in messages if seen.direction == "received"]
    shares = [one.sealed for one in said if isinstance(one, AnswerShares)]
    keys = [sealed for one in said if isinstance(one, JoinGroup) for sealed in one.sealed.values()]
    return {
        "shares in clear": float(sum(_begin(sealed) == group for sealed in shares)),
        "ring keys in clear": float(sum(_begin(sealed) == terms.digest for sealed in keys)),
    }


def _begin(sealed: bytes) -> bytes:
    return sealed[_NONCE_BYTES : _NONCE_BYTES + DIGEST_BYTES]


CRYPTEN_PROTOCOLS: Final[dict[str, Callable[[int], ClientExperiment]]] = {"scores-crypten": crypten_scores}
"""As `experiments.PROTOCOLS`, for batches that CrypTen computes."""
CRYPTEN_PACKAGES: Final = dict.fromkeys(CRYPTEN_PROTOCOLS, ("crypten",))
"""What they need beyond the project's requirements."""
