"""Budgets of opened means: counted per table, charged before scores leave, and refused in one line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from protocols.bundles import AskerReads
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.lookups.vectors import VectorBudget
from protocols.registry import SCORES
from protocols.scores.batches import ATTEMPTS
from protocols.scores.budget import Budget, BudgetSpent, Charge, Helpers, MemoryRecord, Standing, default_limit
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import MOST_ANSWERS
from protocols.session.conversation import Conversation
from protocols.sums.secagg.params import ThreatModel
from secure_kg.runs.score_budget import MeansRecord, budget_of
from tests.support.score_batches import expected, run_batches, same_ranking, some_scores, terms_of

IN_THREADS = [name for name, one in SCORES.items() if one.asker_reads is AskerReads.MEANS and name != "paillier"]
"""`paillier` and `bfv` are one protocol with two ciphers, of which one is slow."""
INPUTS = ("ClearScores", "MaskedInput", "BfvScores")
"""Messages that carry scores, or counts of holders, by the purpose they have."""


def budgets(limit: int, clients: int = 4, **more: Any) -> dict[PartyId, Budget]:
    return {PartyId(number): Budget(MemoryRecord(), limit, **more) for number in range(1, clients + 1)}


def record_of(budget: Budget) -> MemoryRecord:
    record = budget.record
    assert isinstance(record, MemoryRecord)
    return record


def test_the_default_leaves_half_of_the_dimensions_whoever_is_charged() -> None:
    """Every opened query is charged to at least `least - corrupt` of all honest clients."""
    for clients, least, corrupt in ((3, 2, 0), (5, 4, 0), (5, 2, 0), (5, 3, 1), (12, 2, 0), (12, 8, 3)):
        for width in (1, 2, 7, 12, 128):
            limit = default_limit(width, Helpers(clients, least, corrupt))
            opened = (clients - corrupt) * limit // (least - corrupt)
            assert 2 * opened <= width
    assert default_limit(128, Helpers(5, 4)) == 51
    assert default_limit(128, Helpers()) == 10, "of clients that know nothing of each other"
    assert Helpers.of(5, ThreatModel(0.2, 0.25)) == Helpers(5, 3, 1)


def test_a_server_that_takes_other_scorers_each_time_opens_no_more_than_half(tmp_path: Path) -> None:
    """It calls scorers dropouts before they are charged. Every client keeps its budget; the limit is one for all."""
    width, clients, least = 12, 5, 2
    scorers = [PartyId(number) for number in range(2, clients + 1)]
    held = {one: budget_of(tmp_path / str(one), width, Helpers(clients, least), other_scorers=True) for one in scorers}
    terms, opened = terms_of(clients, 4, least=1), 0
    while True:
        chosen = sorted(scorers, key=lambda one: MeansRecord(tmp_path / str(one)).spent(terms.table))[:least]
        try:
            for one in chosen:
                held[one].charge(terms, b"query %d" % opened)
        except BudgetSpent:
            break
        opened += 1
    assert 0 < opened <= width // 2


def test_queries_are_cut_into_batches_in_one_way_only() -> None:
    """The same bytes as more queries are more queries."""
    budget, terms = Budget(MemoryRecord(), 3), terms_of(3, 5)
    budget.charge(terms, b"the same")
    budget.charge(replace(terms, queries=2), b"the same")
    with pytest.raises(BudgetSpent):
        budget.charge(replace(terms, queries=3), b"the same")


def test_tables_have_budgets_of_their_own_and_askers_have_not() -> None:
    budget = Budget(MemoryRecord(), 4)
    first, second = terms_of(3, 5, queries=2), terms_of(4, 5, queries=2, asker=PartyId(2))
    budget.charge(first, b"a")
    budget.charge(second, b"b")
    with pytest.raises(BudgetSpent, match="means of 4 queries of this table were opened, and 1 more"):
        budget.may_come(terms_of(3, 5, queries=1), b"c")
    with pytest.raises(BudgetSpent, match="--allow-extraction"):
        budget.charge(terms_of(3, 5, queries=1), b"c")
    budget.charge(replace(first, table=b"another", queries=4), b"c")
    assert [charge.queries for charge in record_of(budget).charges] == [2, 2, 4]


def test_attempts_of_one_batch_count_once_and_other_queries_do_not() -> None:
    budget, terms = Budget(MemoryRecord(), 2), terms_of(3, 5)
    for attempt in range(ATTEMPTS):
        budget.charge(replace(terms, round=RoundId(1 + attempt)), b"the same")
    budget.charge(terms, b"others")
    budget.may_come(terms, b"the same")
    with pytest.raises(BudgetSpent):
        budget.may_come(terms, b"more")
    assert record_of(budget).charges == [Charge(b"table", 1, PartyId(1))] * 2


def test_a_later_session_knows_what_an_earlier_one_has_charged() -> None:
    record, terms = MemoryRecord(), terms_of(3, 5)
    Budget(record, 1).charge(terms, b"the same")
    with pytest.raises(BudgetSpent):
        Budget(record, 1).charge(terms, b"the same")


def test_allowed_extraction_is_written_down_and_not_refused() -> None:
    budget = Budget(MemoryRecord(), 0, allow_extraction=True)
    budget.may_come(terms_of(3, 5), b"a")
    budget.charge(terms_of(3, 5), b"a")
    assert len(record_of(budget).charges) == 1
    assert budget.standing(b"table") == Standing(1, None)


def test_a_client_can_tell_what_it_has_spent() -> None:
    record = MemoryRecord([Charge(b"table", 2, PartyId(1)), Charge(b"another", 3, PartyId(1))])
    assert Budget(record, 4).standing(b"table") == Standing(2, 4)
    assert VectorBudget(record, 9, 6, table=b"another").standing(b"table") == Standing(3, 9)


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="is none"):
        Budget(MemoryRecord(), -1)


@pytest.mark.parametrize("backend", IN_THREADS)
@pytest.mark.parametrize("least", [1, 2])
def test_a_batch_within_the_budget_is_answered_and_charged_to_every_scorer(backend: str, least: int) -> None:
    terms, kept = terms_of(4, 20, queries=3, least=least), budgets(3)
    scores = some_scores(terms)
    done = run_batches(backend, [(terms, scores)], budgets=kept)
    assert same_ranking(done.answers[0].ranking, expected(scores, terms))
    assert record_of(kept[PartyId(1)]).charges == []  # what the asker reads is no help to itself
    assert all(record_of(kept[party]).charges == [Charge(b"table", 3, PartyId(1))] for party in terms.scorers)


class _Watched(Conversation):
    """A client's end that notes, of every vector of scores it sends, how many charges were written down by then."""

    def __init__(self, inner: Conversation, sent: list[int], record: MemoryRecord) -> None:
        super().__init__(inner.transport, inner.session, inner.greeting)
        self._sent, self._record = sent, record

    def send(self, to: PartyId, message: Any, round_id: RoundId) -> None:
        if type(message).__name__ in INPUTS and message.purpose == PURPOSE:
            self._sent.append(len(self._record.charges))
        super().send(to, message, round_id)


@pytest.mark.parametrize("backend", IN_THREADS)
def test_scores_leave_a_client_only_after_they_are_charged(backend: str) -> None:
    terms, kept, sent = terms_of(4, 20), budgets(3), list[int]()
    watched = PartyId(3)
    record = record_of(kept[watched])
    wrap = {watched: lambda inner: _Watched(inner, sent, record)}
    run_batches(backend, [(terms, some_scores(terms))], wrap=wrap, budgets=kept)
    assert sent == [1]


@pytest.mark.parametrize("backend", IN_THREADS)
@pytest.mark.parametrize("least", [1, 2])
def test_one_scorer_beyond_its_budget_ends_the_batch_in_one_line_and_sends_nothing(backend: str, least: int) -> None:
    terms, kept, sent = terms_of(4, 20, queries=3, least=least), budgets(3), list[int]()
    poor = PartyId(3)
    kept[poor] = Budget(MemoryRecord(), 2)
    with pytest.raises(ExceptionGroup) as failed:
        run_batches(
            backend,
            [(terms, some_scores(terms))],
            wrap={poor: lambda inner: _Watched(inner, sent, record_of(kept[poor]))},
            budgets=kept,
        )
    assert all(isinstance(problem, SumAbandoned) for problem in failed.value.exceptions)
    lines = [str(problem) for problem in failed.value.exceptions]
    assert all(
        "means of 0 queries of this table were opened, and 3 more go beyond the budget of 2" in one for one in lines
    )
    assert all("\n" not in one for one in lines)
    assert sent == []
    assert record_of(kept[poor]).charges == []


def test_without_means_there_is_no_budget_and_nothing_to_allow() -> None:
    assert not SCORES["topk"].has_budget
    with pytest.raises(ValueError, match="opens no means"):
        SCORES["topk"].disclosures(allow_extraction=True)
    terms, kept = terms_of(3, 12, queries=2), budgets(0, 3)
    scores = some_scores(terms)
    done = run_batches("topk", [(terms, scores)], budgets=kept)
    assert same_ranking(done.answers[0].ranking, expected(scores, terms))


def test_allowed_extraction_is_disclosed() -> None:
    for name, backend in SCORES.items():
        if backend.has_budget:
            (*_, told) = backend.disclosures(allow_extraction=True)
            assert "--allow-extraction" in told.in_brief, name
            assert len(backend.disclosures(allow_extraction=False)) == 1


def test_more_answers_per_query_than_the_cap_are_refused() -> None:
    terms_of(3, 5000, top=MOST_ANSWERS)
    with pytest.raises(ValueError, match=f"not in 1..{MOST_ANSWERS}"):
        terms_of(3, 5000, top=MOST_ANSWERS + 1)
