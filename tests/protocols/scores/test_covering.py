"""Means of one table are opened over one set of clients: what differs from batch to batch is nobody's scores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.scores import batches
from protocols.scores.budget import Budget, MemoryRecord
from protocols.scores.covering import OtherScorers
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.sums.secagg.messages import AdvertiseKeys
from secure_kg.runs.score_budget import budget_of
from tests.support.bent_scores import SilentAfter, falling_silent
from tests.support.score_batches import BEARING, Batch, hold_batches, some_scores, terms_of
from tests.support.sum_conversations import Foreseen

VICTIM, OTHERS = PartyId(3), [PartyId(4), PartyId(5)]
FIRST = terms_of(5, 20, queries=2)
ADVERTISED = f"advertise keys/{PURPOSE}"
means = pytest.mark.parametrize(
    ("backend", "kind"),
    [
        ("masked", "semi-honest"),
        ("masked", "signed"),
        pytest.param("bfv", "semi-honest", marks=pytest.mark.long),
    ],
)


@pytest.fixture(autouse=True)
def other_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two rounds have the same: of those that come again, states tell (`protocols.sums.secagg.openings`)."""
    straight = batches.ask

    def ask(client: Any, session: Any, terms: ScoreTerms, queries: bytes, own: Any) -> Any:
        return straight(client, session, terms, queries + bytes([terms.round]), own)

    monkeypatch.setattr(batches, "ask", ask)


def second(**more: Any) -> ScoreTerms:
    return terms_of(5, 20, queries=2, round=RoundId(4), **more)


def without_victim(
    backend: str, kind: str, terms: ScoreTerms, budgets: Mapping[PartyId, Budget] | None = None
) -> Batch:
    """Two batches; the victim takes part in the first, and is a dropout of the second: called one, or truly."""
    if backend == "bfv":
        pytest.importorskip("tenseal")
    return hold_batches(
        backend,
        [(FIRST, some_scores(FIRST)), (terms, some_scores(terms, 1))],
        BEARING[kind],
        SilentAfter(ADVERTISED, VICTIM, 1),
        {VICTIM: falling_silent(AdvertiseKeys, PURPOSE, 1)},
        budgets,
    )


@means
def test_other_queries_are_not_opened_over_fewer_scorers(backend: str, kind: str) -> None:
    """Whatever is asked: the difference of the counts alone is what the victim holds."""
    result = without_victim(backend, kind, second())
    assert len(result.answers) == 1
    assert any(isinstance(result.problems.get(one), OtherScorers) for one in OTHERS)


def test_nor_for_another_asker() -> None:
    result = without_victim("masked", "signed", second(asker=PartyId(2)))
    assert len(result.answers) == 1
    assert any(isinstance(result.problems.get(one), OtherScorers) for one in OTHERS)


def test_askers_may_take_turns_and_other_tables_may_have_other_scorers() -> None:
    terms = [FIRST, second(asker=PartyId(2))]
    result = hold_batches("masked", [(one, some_scores(one)) for one in terms], BEARING["signed"])
    assert (len(result.answers), result.problems) == (2, {})
    assert len(without_victim("masked", "signed", second(table=b"another")).answers) == 2


def test_whose_owners_say_so_helps_to_open_over_others() -> None:
    budgets = {PartyId(one): Budget(MemoryRecord(), 100, other_scorers=True) for one in range(1, 6)}
    assert len(without_victim("masked", "semi-honest", second(), budgets).answers) == 2


def test_it_holds_across_sessions(tmp_path: Path) -> None:
    """As long as the clients keep their record."""
    gone = Foreseen((ADVERTISED, VICTIM))
    silent = {VICTIM: falling_silent(AdvertiseKeys, PURPOSE, 0)}

    def kept() -> dict[PartyId, Budget]:
        return {PartyId(one): budget_of(tmp_path / str(one), 40, limit=30) for one in range(1, 6)}

    todo = [(FIRST, some_scores(FIRST))]
    assert hold_batches("masked", todo, BEARING["semi-honest"], budgets=kept()).answers
    again = hold_batches("masked", todo, BEARING["semi-honest"], gone, silent, kept())
    assert again.answers == []
    assert any(isinstance(again.problems.get(one), OtherScorers) for one in OTHERS)
