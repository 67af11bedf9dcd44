"""Dropouts at every step of a batch: the survivors' answer or a clean end, for whichever backend; nobody hangs."""

from collections.abc import Mapping

import pytest

from protocols.foundation import wire
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.registry import SCORES
from protocols.scores.interface import Scores
from protocols.scores.messages import PURPOSE, AskScores
from protocols.scores.plain import ClearQueries, ClearScores
from protocols.scores.terms import ScoreTerms
from protocols.sums.secagg.messages import AdvertiseKeys, MaskedInput, ShareKeys, SurvivorSignature, UnmaskShares
from tests.support.bent_scores import falling_silent, refusing_once
from tests.support.group_keys import Kind
from tests.support.score_batches import (
    BEARING,
    TRUSTING,
    Batch,
    expected,
    hold_batches,
    same_ranking,
    some_scores,
    terms_of,
)
from tests.support.score_cases import every_backend
from tests.support.sum_conversations import Foreseen

SILENT = PartyId(3)
STEPS: Mapping[str, type[wire.Message]] = {
    "advertise keys": AdvertiseKeys,
    "share keys": ShareKeys,
    "masked input": MaskedInput,
    "consistency check": SurvivorSignature,
    "unmasking": UnmaskShares,
}
SEMI_HONEST = [step for step in STEPS if step != "consistency check"]


def masked_with_silence(terms: ScoreTerms, step: str, purpose: str, kind: Kind) -> Batch:
    """Client 3 falls silent in one step of the masked sum of scores, or of the count before it."""
    return hold_batches(
        "masked",
        [(terms, some_scores(terms))],
        kind,
        Foreseen((f"{step}/{purpose}", SILENT)),
        {SILENT: falling_silent(STEPS[step], purpose)},
    )


def without(scores: Mapping[PartyId, Scores], party: PartyId) -> dict[PartyId, Scores]:
    return {one: of_one for one, of_one in scores.items() if one != party}


@pytest.mark.parametrize("step", SEMI_HONEST)
@pytest.mark.parametrize("asker", [1, 6], ids=["client", "outside"])
def test_masked_scores_are_those_of_the_survivors(step: str, asker: int) -> None:
    terms = terms_of(5, 12, queries=2, asker=PartyId(asker))
    result = masked_with_silence(terms, step, PURPOSE, BEARING["semi-honest"])
    late = step == "unmasking"
    scores = some_scores(terms) if late else without(some_scores(terms), SILENT)
    assert result.problems == {}
    assert result.dropouts == [({SILENT}, f"{step}/{PURPOSE}")]
    assert result.contributors == [frozenset(terms.scorers) - (frozenset() if late else {SILENT})]
    assert result.answers[0].ranking.contributors == result.contributors[0]
    assert same_ranking(result.answers[0].ranking, expected(scores, terms))


@pytest.mark.parametrize("step", STEPS)
def test_signed_masked_scores_are_those_of_the_survivors(step: str) -> None:
    terms = terms_of(5, 12)
    result = masked_with_silence(terms, step, PURPOSE, BEARING["signed"])
    early = step in ("advertise keys", "share keys", "masked input")
    scores = without(some_scores(terms), SILENT) if early else some_scores(terms)
    assert result.problems == {}
    assert same_ranking(result.answers[0].ranking, expected(scores, terms))


@pytest.mark.parametrize("purpose", [HOLDERS, PURPOSE])
@pytest.mark.parametrize("step", SEMI_HONEST)
def test_masked_scores_with_a_count_are_those_of_the_survivors_in_the_end(step: str, purpose: str) -> None:
    """A dropout after the count costs an attempt, since its holdings were cover for others."""
    terms = terms_of(5, 12, least=2)
    result = masked_with_silence(terms, step, purpose, BEARING["semi-honest"])
    in_it = same_ranking(result.answers[0].ranking, expected(some_scores(terms), terms))
    out_of_it = same_ranking(result.answers[0].ranking, expected(without(some_scores(terms), SILENT), terms))
    assert result.problems == {}
    assert in_it != out_of_it
    assert in_it == (SILENT in result.answers[0].ranking.contributors) == (SILENT in result.contributors[0])


@pytest.mark.parametrize("step", SEMI_HONEST)
def test_of_two_scorers_none_may_be_missing(step: str) -> None:
    terms = terms_of(3, 12)
    result = masked_with_silence(terms, step, PURPOSE, TRUSTING["semi-honest"])
    assert result.answers == []
    assert {party: result.raised(party) for party in (SERVER, PartyId(1), PartyId(2))} == dict.fromkeys(
        (SERVER, PartyId(1), PartyId(2)), SumAbandoned
    )
    assert result.dropouts[0][0] == {SILENT}


@pytest.mark.parametrize("clients", [3, 5])
def test_plain_scores_are_those_of_the_survivors(clients: int) -> None:
    terms = terms_of(clients, 12)
    result = hold_batches(
        "plain",
        [(terms, some_scores(terms))],
        patience=Foreseen((f"input/{PURPOSE}", SILENT)),
        wrap={SILENT: falling_silent(ClearScores, PURPOSE)},
    )
    if clients == 3:
        assert {result.raised(party) for party in (SERVER, PartyId(1), PartyId(2))} == {SumAbandoned}
        return
    assert result.problems == {}
    assert same_ranking(result.answers[0].ranking, expected(without(some_scores(terms), SILENT), terms))


@every_backend
@pytest.mark.parametrize("asker", [1, 6], ids=["client", "outside"])
def test_an_asker_that_says_nothing_ends_the_batch(backend: str, asker: int) -> None:
    terms = terms_of(5, 12, asker=PartyId(asker))
    says = AskScores if SCORES[backend].needs_keys else ClearQueries
    result = hold_batches(
        backend,
        [(terms, some_scores(terms))],
        BEARING["semi-honest"],
        Foreseen(("ask", PartyId(asker))),
        {PartyId(asker): falling_silent(says, PURPOSE)},
    )
    assert result.answers == []
    assert result.dropouts == [({PartyId(asker)}, "ask")]
    assert {result.raised(party) for party in (SERVER, *terms.scorers)} == {SumAbandoned}


@every_backend
def test_a_batch_after_one_that_was_given_up(backend: str) -> None:
    """One attempt comes to nothing: a scorer says that it does not take part. The next one is the answer."""
    terms = terms_of(4, 12)
    scores = some_scores(terms)
    result = hold_batches(
        backend, [(terms, scores)], wrap={SILENT: refusing_once(PURPOSE, 2 if SCORES[backend].needs_keys else 1)}
    )
    assert result.problems == {}
    assert result.dropouts == []
    assert same_ranking(result.answers[0].ranking, expected(scores, terms))
