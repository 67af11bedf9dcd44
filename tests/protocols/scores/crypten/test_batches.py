"""Whole batches by CrypTen: a process per party, a dealer, and the ranking of the plain twin."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.scores.crypten.launcher import BatchJob, run
from protocols.scores.crypten.measure import function_costs
from protocols.scores.interface import Scores
from protocols.scores.terms import ScoreTerms
from protocols.transport.processes import Ended
from tests.support.crypten_jobs import (
    client_that_dies_computing,
    client_that_never_joins,
    client_that_tells_what_was_opened,
    client_without_masks,
    server_that_tells_what_it_loads,
)
from tests.support.score_batches import expected, some_scores, terms_of
from tests.support.uniformity import HIGH, LOW

pytestmark = pytest.mark.long
ASKER, TWO, THREE, FOUR = (PartyId(number) for number in range(1, 5))
SECONDS = 120.0
Held = dict[PartyId, Scores]


def held(*positions: int, values: list[list[float]]) -> Scores:
    return Scores(np.array(positions, dtype=np.int64), np.array(values, dtype=np.float32).reshape(len(values), -1))


def job_of(*batches: tuple[ScoreTerms, Held]) -> BatchJob:
    return BatchJob(tuple(terms for terms, _ in batches), tuple(scores for _, scores in batches))


def in_rounds(*batches: tuple[dict[str, Any], Held | None]) -> list[tuple[ScoreTerms, Held]]:
    """Terms of rounds that leave room for attempts, with random scores unless some are given."""
    made = []
    for number, (options, scores) in enumerate(batches):
        terms = terms_of(**options, round=RoundId(1 + 10 * number))
        made.append((terms, some_scores(terms, seed=number) if scores is None else scores))
    return made


def check(ended: dict[PartyId, Ended], job: BatchJob) -> None:
    """Every asker has read what the plain twin gives."""
    assert [one.problem for one in ended.values() if one.problem] == []
    for number, (terms, scores) in enumerate(zip(job.terms, job.scores, strict=True)):
        read = ended[terms.asker].value[number]
        assert read["positions"] == [row.tolist() for row in expected(scores, terms).positions], number
        assert read["contributors"] == list(terms.scorers)


def test_a_batch_and_a_server_without_torch() -> None:
    """Ties, negative scores, all equal, an empty client, single holders, positions of nobody, k > N."""
    tied = {
        ASKER: held(0, 1, 5, values=[[1.0, -2.0, 1.0], [3.0, 3.0, 3.0]]),
        TWO: held(1, 2, 5, values=[[2.0, -1.0, 1.0], [3.0, 3.0, 3.0]]),
        THREE: held(values=[[], []]),
    }
    job = job_of(*in_rounds(({"clients": 3, "positions": 7, "queries": 2, "top": 9}, tied)))
    ended = run(job, SECONDS, {SERVER: partial(server_that_tells_what_it_loads, job)})
    check(ended, job)
    assert ended[SERVER].value["contributors"] == [[2, 3]]
    assert ended[SERVER].value["loaded"] == []
    assert ended[ASKER].value[0]["positions"][1] == [0, 1, 2, 5]
    cost = ended[TWO].value[0]
    assert min(cost["rounds"], cost["group_bytes"], cost["sent_bytes"], cost["cpu_seconds"]) > 0


@pytest.mark.slow
def test_many_batches_of_three_clients() -> None:
    job = job_of(
        *in_rounds(
            ({"clients": 3, "positions": 1, "top": 3}, None),
            ({"clients": 3, "positions": 33, "top": 5, "asker": THREE, "queries": 3}, None),
            ({"clients": 3, "positions": 20, "top": 4, "asker": FOUR, "least": 2}, None),
            ({"clients": 3, "positions": 20, "top": 20, "least": 2}, None),
        )
    )
    check(run(job, SECONDS), job)


@pytest.mark.slow
@pytest.mark.parametrize("clients", [2, 4, 5, 6])
def test_other_numbers_of_clients(clients: int) -> None:
    asker = PartyId(clients + 1) if clients == 2 else ASKER
    job = job_of(*in_rounds(({"clients": clients, "positions": 50, "top": 3, "asker": asker}, None)))
    check(run(job, SECONDS), job)


@pytest.mark.slow
@pytest.mark.parametrize("part", [client_that_dies_computing, client_that_never_joins])
def test_survivors_ask_again_after_a_dropout(part: Any) -> None:
    terms = terms_of(4, 9, top=3)
    scores = some_scores(terms)
    job = job_of((terms, scores))
    ended = run(job, SECONDS, {FOUR: partial(part, job)})
    assert ended.pop(FOUR).problem == "ended without a word"
    assert [one.problem for one in ended.values() if one.problem] == []
    survivors = {party: one for party, one in scores.items() if party != FOUR}
    read = ended[ASKER].value[0]
    assert read["positions"] == [row.tolist() for row in expected(survivors, terms).positions]
    assert read["contributors"] == [TWO, THREE]
    assert ended[SERVER].value["contributors"] == [[TWO, THREE]]
    assert [FOUR] in ended[SERVER].value["dropouts"]


@pytest.mark.slow
def test_two_scorers_without_one_of_them_come_to_nothing() -> None:
    terms = terms_of(3, 9, top=3)
    job = job_of((terms, some_scores(terms)))
    ended = run(job, SECONDS, {THREE: partial(client_that_dies_computing, job)})
    assert ended[ASKER].problem.startswith("SumAbandoned: ")
    assert ended[TWO].problem.startswith("SumAbandoned: ")
    assert ended[SERVER].value["contributors"] == [None]


def uniform_words(seen: dict[str, Any]) -> bool:
    counts = np.array(seen["counts"])
    means = counts.sum(axis=1, keepdims=True) / 256
    statistics = ((counts - means) ** 2 / means).sum(axis=1)
    return bool(((statistics > LOW) & (statistics < HIGH)).all())


def fair_bits(seen: dict[str, Any]) -> bool:
    """Within eight standard deviations."""
    return bool(abs(seen["ones"] - seen["bits"] / 2) < 4 * np.sqrt(seen["bits"]))


@pytest.mark.slow
@pytest.mark.parametrize("zeros", [False, True])
def test_what_ranks_see_opened_is_uniform(zeros: bool) -> None:
    """Whether all scores are equal to zero, or random."""
    terms = terms_of(3, 300, top=2)
    scores = some_scores(terms)
    if zeros:
        scores = {party: Scores(one.held, np.zeros_like(one.values)) for party, one in scores.items()}
    job = job_of((terms, scores))
    seen = run(job, SECONDS, {TWO: partial(client_that_tells_what_was_opened, job)})[TWO].value
    assert uniform_words(seen)
    assert fair_bits(seen)


@pytest.mark.slow
def test_what_lies_under_no_masks_is_not_uniform() -> None:
    terms = terms_of(3, 300, top=2)
    job = job_of((terms, some_scores(terms)))
    seen = run(job, SECONDS, {party: partial(client_without_masks, job) for party in terms.clients})[TWO].value
    assert not uniform_words(seen)
    assert not fair_bits(seen)


@pytest.mark.slow
@pytest.mark.parametrize("first_party", [False, True])
def test_cryptens_own_functions_are_measured_and_right(first_party: bool) -> None:
    costs = function_costs(3, 40, repeats=1, first_party=first_party)
    assert costs.right
    assert costs.comparison_seconds > 0
    assert costs.argmax_seconds > 0
