"""Dropouts of a selection: a clean end at every step; fresh randomness in an attempt where all are there."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.scores import asking
from protocols.scores.messages import PURPOSE
from protocols.scores.topk import dealing
from protocols.scores.topk.exchange import STEP
from protocols.scores.topk.hidden import in_clear
from protocols.scores.topk.messages import DealtProduct, DealtSeed, MaskedTable, SelectionRelay, SelectionStep
from tests.support.bent_scores import SilentAfter, falling_silent, hearing, lying, refusing_once
from tests.support.hidden_queries import batch_of, run_hidden, shape_of, some_tables, within
from tests.support.score_batches import expected, hold_batches, same_ranking, some_scores, terms_of

LAST = 14
"""Steps of a selection among three clients with few candidates: look-up, product, three turns, eight, answer."""


@pytest.mark.parametrize("after", range(LAST))
@pytest.mark.parametrize("silent", [1, 3], ids=["asker", "scorer"])
def test_a_client_silent_at_any_step_ends_the_batch(after: int, silent: int) -> None:
    terms, party = terms_of(3, 12), PartyId(silent)
    others = {SERVER, *terms.clients} - {party}
    result = hold_batches(
        "topk",
        [(terms, some_scores(terms))],
        patience=SilentAfter(STEP, party, after),
        wrap={party: falling_silent(SelectionStep, PURPOSE, after)},
    )
    assert result.answers == []
    assert result.dropouts == [({party}, STEP)]
    assert {one: result.raised(one) for one in others} == dict.fromkeys(others, SumAbandoned)


def test_there_are_no_more_steps() -> None:
    terms = terms_of(3, 12)
    sent: list[Any] = []
    hold_batches("topk", [(terms, some_scores(terms))], wrap={SERVER: lying(hearing(sent))})
    assert max(message.step for _, _, message in sent if isinstance(message, SelectionRelay)) == LAST


def test_with_an_asker_outside_every_client_is_needed_as_well() -> None:
    terms = terms_of(3, 12, asker=PartyId(4))
    result = hold_batches(
        "topk",
        [(terms, some_scores(terms))],
        patience=SilentAfter(STEP, PartyId(2), LAST - 1),
        wrap={PartyId(2): falling_silent(SelectionStep, PURPOSE, LAST - 1)},
    )
    assert result.answers == []
    assert {result.raised(one) for one in (SERVER, 1, 3, 4)} == {SumAbandoned}


class Drawn:
    """Everything that keys are derived from, and the keys, by round."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.secrets: dict[int, set[bytes]] = defaultdict(set)
        self.keys: dict[int, set[bytes]] = defaultdict(set)
        self.uses: dict[int, set[str]] = defaultdict(set)
        for module in (asking, dealing):
            monkeypatch.setattr(module, "derive_key", self._noting(module.derive_key))

    def _noting(self, straight: Any) -> Any:
        def derive(secret: bytes, context: Any) -> bytes:
            key: bytes = straight(secret, context)
            self.secrets[context.round].add(secret)
            self.keys[context.round].add(key)
            self.uses[context.round].add(context.purpose)
            return key

        return derive


@pytest.mark.parametrize("at", [1, 6, 10, LAST])
def test_another_attempt_has_fresh_randomness_throughout(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scorer gives the first attempt up, at the beginning, in the shuffle, among comparisons, or at the answer."""
    terms, drawn, sent = terms_of(3, 12), Drawn(monkeypatch), list[Any]()
    scores = some_scores(terms)
    wrap = {PartyId(3): refusing_once(PURPOSE, at), SERVER: lying(hearing(sent))}
    result = hold_batches("topk", [(terms, scores)], wrap=wrap)
    assert result.problems == {}
    assert same_ranking(result.answers[0].ranking, expected(scores, terms))
    first, second = RoundId(1), RoundId(2)
    assert {*drawn.keys} == {first, second}
    assert len(drawn.secrets[second]) == 2 + len(terms.clients), "seeds, what was drawn for all, and what was asked"
    assert drawn.secrets[first].isdisjoint(drawn.secrets[second])
    assert drawn.keys[first].isdisjoint(drawn.keys[second])
    assert any("permutation" in use for use in drawn.uses[second])
    assert "common order/0" in drawn.uses[second]
    assert drawn.uses[first] <= drawn.uses[second]
    seeds = [message.seed for _, _, message in sent if isinstance(message, DealtSeed)]
    assert len(seeds) == len(set(seeds)) == 2 * len(terms.clients)


@pytest.mark.parametrize(
    ("kind", "purpose", "step", "after"),
    [
        (MaskedTable, "hidden scores", "masked table", 0),
        (SelectionStep, PURPOSE, STEP, 0),
        (SelectionStep, PURPOSE, STEP, 7),
        (SelectionStep, PURPOSE, STEP, 20),
    ],
)
def test_a_scorer_of_hidden_queries_falls_silent(kind: Any, purpose: str, step: str, after: int) -> None:
    first = batch_of(3, 9, shape_of([2]))
    batch = first.attempt(batch_of(3, 9, shape_of([2]), round=RoundId(2)).terms)
    queries = within(np.random.default_rng(0), 2, first.shape)
    result = run_hidden(
        first,
        some_tables(first),
        [(batch, queries)],
        {PartyId(3): falling_silent(kind, purpose, after)},
        SilentAfter(step, PartyId(3), after),
    )
    assert result.rankings == []
    assert isinstance(result.problems[SERVER], SumAbandoned)
    assert {*result.problems} == {0, 1, 2}


@pytest.mark.parametrize("after", [1, 6, 12])
def test_hidden_queries_are_asked_again(after: int) -> None:
    """A scorer gives the first attempt up. Tables stay masked as they are, and everything else is fresh."""
    first = batch_of(3, 9, shape_of([2]), round=RoundId(0))
    batch = batch_of(3, 9, shape_of([2]))
    queries, tables = within(np.random.default_rng(0), 2, first.shape), some_tables(first)
    heard: list[Any] = []
    wrap = {PartyId(3): refusing_once(PURPOSE, after), SERVER: lying(hearing(heard))}
    result = run_hidden(first, tables, [(batch, queries)], wrap, again=True)
    assert result.problems == {}
    assert same_ranking(result.rankings[0], in_clear(tables, queries, batch))
    assert len({message.product for _, _, message in heard if isinstance(message, DealtProduct)}) == 4


def test_hidden_queries_without_a_scorer_end_after_the_last_attempt() -> None:
    first, batch = batch_of(3, 9, shape_of([2]), round=RoundId(0)), batch_of(3, 9, shape_of([2]))
    queries = within(np.random.default_rng(0), 2, first.shape)
    wrap, patience = {PartyId(3): falling_silent(SelectionStep, PURPOSE, 2)}, SilentAfter(STEP, PartyId(3), 2)
    result = run_hidden(first, some_tables(first), [(batch, queries)], wrap, patience, again=True)
    assert result.rankings == []
    assert {type(problem) for problem in result.problems.values()} == {SumAbandoned}
