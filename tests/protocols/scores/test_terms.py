"""Terms of a batch: what is refused, what fits, and what a digest is bound to."""

import math
from dataclasses import replace
from typing import Any

import pytest

from protocols.foundation.errors import EncodingOverflow
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.scores.masked import MaskedScoreClient, MaskedScoreServer
from protocols.scores.terms import MOST_CLIENTS, MOST_POSITIONS, MOST_QUERIES, RING, ScoreTerms
from protocols.scores.topk.client import TopKClient
from tests.support.score_batches import terms_of
from tests.support.sum_conversations import everyone


@pytest.mark.parametrize(
    "given",
    [
        {"clients": ()},
        {"clients": (PartyId(1), PartyId(2))},
        {"clients": (PartyId(2),), "asker": PartyId(9)},
        {"clients": (PartyId(1), PartyId(2), PartyId(2), PartyId(3))},
        {"clients": (PartyId(0), PartyId(1), PartyId(2))},
        {"clients": tuple(everyone(MOST_CLIENTS + 1))},
        {"asker": PartyId(0)},
        {"positions": 0},
        {"positions": MOST_POSITIONS + 1},
        {"queries": 0},
        {"queries": MOST_QUERIES + 1},
        {"top": 0},
        {"least": 0},
        {"least": 3},
    ],
    ids=str,
)
def test_what_is_no_batch_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"batch|server"):
        replace(terms_of(3, 10), **given)


@pytest.mark.parametrize("bound", [0.0, -1.0, math.inf, math.nan, 2.0**31])
def test_bounds_that_do_not_fit_are_refused(bound: float) -> None:
    with pytest.raises(EncodingOverflow):
        terms_of(3, 10, bound=bound)


@pytest.mark.parametrize("clients", range(3, MOST_CLIENTS + 1))
@pytest.mark.parametrize("bound", [1e-3, 0.3, 1.0, 16.0, 1000.0, 2.0**20])
def test_no_sum_of_scores_leaves_a_quarter_of_the_ring(clients: int, bound: float) -> None:
    terms = terms_of(clients, 10, bound=bound)
    assert terms.largest_sum < 1 << (RING.bits - 3)
    assert terms.largest_sum == clients * round(bound * terms.codec.scale)


def test_the_asker_is_no_scorer() -> None:
    assert terms_of(4, 10, asker=PartyId(3)).scorers == (1, 2, 4)
    outside = terms_of(4, 10, asker=PartyId(9))
    assert outside.scorers == outside.clients
    assert not outside.asker_is_client


@pytest.mark.parametrize("clients", range(3, MOST_CLIENTS + 1))
def test_the_common_multiple_is_one_of_every_count(clients: int) -> None:
    multiple = terms_of(clients, 10).common_multiple
    assert all(multiple % count == 0 for count in range(1, clients + 1))


def test_a_digest_is_bound_to_every_field() -> None:
    terms = terms_of(4, 10)
    others = [
        replace(terms, round=RoundId(2)),
        replace(terms, asker=PartyId(2)),
        replace(terms, clients=terms.clients[:-1]),
        replace(terms, positions=11),
        replace(terms, queries=2),
        replace(terms, top=9),
        replace(terms, bound=15.0),
        replace(terms, least=2),
        replace(terms, table=b"another"),
    ]
    assert len(others) == len(ScoreTerms.__dataclass_fields__)
    assert len({terms.digest, *(other.digest for other in others)}) == len(others) + 1


def test_a_batch_too_large_to_be_sent_is_refused_before_anybody_works() -> None:
    terms = terms_of(3, 1 << 20, queries=1024)
    for client in (MaskedScoreClient, TopKClient):
        with pytest.raises(ValueError, match="ask fewer queries at a time"):
            client(None, None).ask(None, terms, b"", None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ask fewer queries at a time"):
        MaskedScoreServer(None, None).serve(None, terms)  # type: ignore[arg-type]
