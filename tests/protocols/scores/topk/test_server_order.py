"""A server that knows all seeds runs the selection on rankings that it guesses, and compares numbers of comparisons.

It dealt every permutation of the shuffle. If keys were compared in the order that these give, the numbers of
comparisons would name the query.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.insecure_scores import insecure_scores
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.scores.interface import Scores
from protocols.scores.topk import server
from protocols.scores.topk.dealing import Deal, Dealer
from protocols.scores.topk.hidden import HiddenTable
from protocols.scores.topk.selection import best, few_candidates
from tests.support.hidden_queries import batch_of, run_hidden, shape_of
from tests.support.score_batches import run_batches, terms_of

POSITIONS, DIMENSIONS, TOP, CLIENTS = 600, 8, 3, 3
ASKED = 6
"""Queries, one batch each. The numbers of one agree with those of another order once in a dozen times or less."""
Ranks = npt.NDArray[np.int64]


@dataclass
class DealerView:
    """What the server has of one selection: the order that its seeds give, and how much is compared in each step."""

    at: Ranks = field(default_factory=lambda: np.arange(POSITIONS))
    counts: list[int] = field(default_factory=list)

    def fits(self, ranks: Ranks) -> bool:
        """Whether positions of these ranks, 0 the best, are compared so often."""
        there, counts = ranks[self.at], []
        selecting = best(np.arange(POSITIONS), TOP, few_candidates(1))
        try:
            first, second = next(selecting)
            while True:
                counts.append(len(first))
                first, second = selecting.send(there[first] < there[second])
        except StopIteration:
            return counts == self.counts


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> list[DealerView]:
    """One for each selection that follows."""
    kept: list[DealerView] = []

    class Watching(Dealer):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            kept.append(DealerView())

        def deal(self, step: int, numbers: Any) -> tuple[PartyId, bytes]:
            if numbers[0] == Deal.SHUFFLE:
                kept[-1].at = kept[-1].at[self._seeds[PartyId(numbers[1])].permutations(step, *numbers[2:])]
            if numbers[0] == Deal.SIGN:
                kept[-1].counts.append(numbers[1])
            return super().deal(step, numbers)

    monkeypatch.setattr(server, "Dealer", Watching)
    return kept


def unit_rows(count: int, seed: int) -> npt.NDArray[np.float64]:
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSIONS))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


ROWS, QUERIES = unit_rows(POSITIONS, 1), unit_rows(ASKED, 2)


def ranks_of(query: npt.NDArray[np.float64]) -> Ranks:
    ranks = np.empty(POSITIONS, dtype=np.int64)
    ranks[np.argsort(-(ROWS @ query))] = np.arange(POSITIONS)
    return ranks


def ask_all() -> None:
    todo = []
    for number, query in enumerate(QUERIES):
        terms = terms_of(CLIENTS, POSITIONS, top=TOP, round=RoundId(1 + 3 * number))
        todo.append((terms, {party: Scores(np.arange(POSITIONS), (ROWS @ query)[None]) for party in terms.clients}))
    run_batches("topk", todo)


def ask_all_hidden() -> None:
    shape = shape_of([1], dimensions=DIMENSIONS, norm=1.001)
    first = batch_of(CLIENTS, POSITIONS, shape, round=RoundId(0), top=TOP)
    todo = [
        (batch_of(CLIENTS, POSITIONS, shape, round=RoundId(1 + number), top=TOP), query[None])
        for number, query in enumerate(QUERIES)
    ]
    tables = {party: HiddenTable(np.arange(POSITIONS), ROWS) for party in first.terms.clients}
    assert not run_hidden(first, tables, todo).problems


def recognised(views: list[DealerView]) -> int:
    """How often the query that was asked is the one that fits best: it fits, and hardly any other one does."""
    assert len(views) == ASKED
    return sum(view.fits(ranks_of(query)) for view, query in zip(views, QUERIES, strict=True))


asking = pytest.mark.parametrize("ask", [ask_all, ask_all_hidden])


@asking
def test_numbers_of_comparisons_do_not_fit_the_order_that_the_server_dealt(ask: Any, views: list[DealerView]) -> None:
    ask()
    assert recognised(views) < ASKED


@asking
def test_without_the_common_order_they_would(ask: Any, views: list[DealerView]) -> None:
    with insecure_scores("no-common-order"):
        ask()
    assert recognised(views) == ASKED
