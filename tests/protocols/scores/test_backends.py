"""Every backend on random holdings and scores: the ranking of all scores in one place, to the last bit."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.registry import SCORES
from protocols.scores.interface import Scores
from protocols.scores.ranking import Ranking
from tests.support.score_batches import TRUSTING, expected, run_batches, same_ranking, some_scores, terms_of
from tests.support.score_cases import THREADED, Case, cases, every_backend, examples


def test_backends_that_need_no_package_are_among_them() -> None:
    assert {"plain", "masked", "topk"} <= set(THREADED)


@every_backend
def test_any_batch_is_ranked_as_in_clear(backend: str) -> None:
    @settings(max_examples=examples(backend), deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases())
    def check(case: Case) -> None:
        answer = run_batches(backend, [(case.terms, case.scores)]).answers[0]
        in_clear = expected(case.scores, case.terms)
        assert same_ranking(answer.ranking, in_clear)
        assert_means(answer.ranking, in_clear, backend)

    check()


def assert_means(ranking: Ranking, in_clear: Ranking, backend: str) -> None:
    """Where the asker reads means, they are those of its positions; else it reads none."""
    if ranking.means is None:
        assert SCORES[backend].asker_reads.name == "POSITIONS"
        return
    assert in_clear.means is not None
    for mine, clear in zip(ranking.means, in_clear.means, strict=True):
        assert mine.tolist() == clear.tolist()


@every_backend
def test_many_positions_are_ranked_as_in_clear(backend: str) -> None:
    """Enough that a selection takes a pivot, with ties all over."""
    terms = terms_of(4, 700, queries=2, top=12)
    scores = {party: Scores(one.held, np.rint(one.values / 4)) for party, one in some_scores(terms, 3).items()}
    answer = run_batches(backend, [(terms, scores)]).answers[0]
    assert same_ranking(answer.ranking, expected(scores, terms))


@every_backend
def test_of_equal_means_the_lower_position_comes_first(backend: str) -> None:
    terms = terms_of(3, 6, top=4)
    held = np.arange(6)
    scores = {party: Scores(held, np.full((1, 6), 1.5, dtype=np.float32)) for party in terms.clients}
    answer = run_batches(backend, [(terms, scores)]).answers[0]
    assert answer.ranking.positions[0].tolist() == [0, 1, 2, 3]


@every_backend
def test_fewer_than_k_with_a_score_come_back_as_fewer(backend: str) -> None:
    """Positions 1 and 4 have scores, the worst that there are; nobody holds the others."""
    terms = terms_of(3, 6, top=5)
    held = np.array([1, 4])
    scores = {party: Scores(held, np.full((1, 2), -terms.bound)) for party in terms.clients}
    assert run_batches(backend, [(terms, scores)]).answers[0].ranking.positions[0].tolist() == [1, 4]


@every_backend
def test_nobody_holds_anything(backend: str) -> None:
    terms = terms_of(3, 6, queries=2)
    scores = some_scores(terms, share=0.0)
    assert [len(found) for found in run_batches(backend, [(terms, scores)]).answers[0].ranking.positions] == [0, 0]


@every_backend
@pytest.mark.parametrize("asker", [1, 4, 5], ids=["first client", "last client", "outside"])
def test_too_few_scorers_hold_a_position(backend: str, asker: int) -> None:
    """Position 0: one scorer. Position 1: two of them. Position 2: the asker alone, if it is a client."""
    terms = terms_of(4, 3, asker=PartyId(asker), least=2)
    one, two = terms.scorers[:2]
    of = {one: ([0, 1], [9.0, 1.0]), two: ([1], [2.0])} | ({terms.asker: ([2], [-3.0])} if asker < 5 else {})
    scores = {
        party: Scores(np.array(of.get(party, ([], []))[0], dtype=np.int64), np.array([of.get(party, ([], []))[1]]))
        for party in terms.clients
    }
    answer = run_batches(backend, [(terms, scores)]).answers[0]
    assert answer.ranking.positions[0].tolist() == ([1, 2] if asker < 5 else [1])


@every_backend
def test_batches_of_several_askers_follow_each_other(backend: str) -> None:
    """One of them outside, with other numbers of queries and positions."""
    tasks = [
        terms_of(4, 12, queries=3, top=4),
        terms_of(4, 30, asker=PartyId(3), round=RoundId(4)),
        terms_of(4, 12, asker=PartyId(5), round=RoundId(7), least=2),
        terms_of(4, 5, round=RoundId(10), queries=7),
    ]
    todo = [(terms, some_scores(terms, seed)) for seed, terms in enumerate(tasks)]
    result = run_batches(backend, todo)
    rankings = {terms.round: expected(scores, terms) for terms, scores in todo}
    # Askers are threads: their answers come in any order, but all of them come.
    assert len(result.answers) == len(todo)
    assert all(any(same_ranking(answer.ranking, ranking) for answer in result.answers) for ranking in rankings.values())
    assert result.contributors == [frozenset(terms.scorers) for terms, _ in todo]
    assert result.dropouts == []


@every_backend
def test_the_asker_is_told_whose_scores_it_reads(backend: str) -> None:
    terms = terms_of(4, 12)
    result = run_batches(backend, [(terms, some_scores(terms))])
    assert result.answers[0].ranking.contributors == {2, 3, 4}


@pytest.mark.parametrize("backend", [name for name in THREADED if SCORES[name].stands_against_active])
def test_signed_channels_change_no_answer(backend: str) -> None:
    terms = terms_of(4, 12, least=2)
    scores = some_scores(terms)
    result = run_batches(backend, [(terms, scores)], TRUSTING["signed"])
    assert same_ranking(result.answers[0].ranking, expected(scores, terms))
