"""Servers that change totals, ask by themselves or mix batches up: whoever could be misled notices."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.scores.messages import PURPOSE, ScoresAsked, ScoresTotal
from protocols.scores.terms import ScoreTerms
from tests.support.bent_scores import about, lying
from tests.support.score_batches import TRUSTING, Batch, expected, hold_batches, same_ranking, some_scores, terms_of
from tests.support.score_cases import sealed_backends

ASKER, TWO, THREE, FOUR = (PartyId(number) for number in range(1, 5))
TERMS = terms_of(4, 12, queries=2)
LATER = terms_of(4, 12, queries=2, round=RoundId(4))
BY_ANOTHER = terms_of(4, 12, queries=2, round=RoundId(4), asker=TWO)


def with_lies(change: Callable[[ScoresTotal], wire.Message], *terms: ScoreTerms, kind: str = "semi-honest") -> Batch:
    todo = [(one, some_scores(one, number)) for number, one in enumerate(terms or (TERMS,))]
    wrap = {SERVER: lying(about(ScoresTotal, lambda party, total: change(total)))}
    return hold_batches("masked", todo, TRUSTING[kind], wrap=wrap)


def changed_at(place: int, by: int = 1) -> Callable[[ScoresTotal], wire.Message]:
    def change(total: ScoresTotal) -> wire.Message:
        vector = total.vector.copy()
        vector[[place]] += np.uint32(by)  # wraps, as an array
        return msgspec.structs.replace(total, vector=vector)

    return change


@pytest.mark.parametrize("kind", TRUSTING)
@pytest.mark.parametrize("place", [0, 23, 24, 26, 27, -1], ids=str)
def test_a_total_that_is_off_by_one_is_noticed(place: int, kind: str) -> None:
    """Scores, counts and check."""
    result = with_lies(changed_at(place), kind=kind)
    assert result.answers == []
    assert result.raised(ASKER) is PeerMisbehaved
    assert "none of these contributors" in str(result.problems[ASKER])


@pytest.mark.parametrize("place", [0, 24])
@pytest.mark.parametrize("by", [1 << 31, 1 << 24, (1 << 32) - 1])
def test_a_total_that_is_off_by_more_is_noticed(place: int, by: int) -> None:
    assert with_lies(changed_at(place, by)).raised(ASKER) is PeerMisbehaved


def doubled(total: ScoresTotal) -> wire.Message:
    return msgspec.structs.replace(total, vector=2 * total.vector)


def emptied(total: ScoresTotal) -> wire.Message:
    return msgspec.structs.replace(total, vector=np.zeros_like(total.vector))


def shorter(total: ScoresTotal) -> wire.Message:
    return msgspec.structs.replace(total, vector=total.vector[:-1])


def reordered(total: ScoresTotal) -> wire.Message:
    return msgspec.structs.replace(total, vector=total.vector[::-1].copy())


def naming(*contributors: int) -> Callable[[ScoresTotal], wire.Message]:
    return lambda total: msgspec.structs.replace(total, contributors=list(contributors))


@pytest.mark.parametrize(
    "change",
    [doubled, emptied, shorter, reordered, naming(2, 3), naming(1, 2, 3, 4), naming(2, 3, 4, 5), naming(4), naming()],
    ids=["doubled", "emptied", "shorter", "reordered", "one left out", "asker", "stranger", "a single one", "nobody"],
)
def test_false_totals_and_false_contributors_are_noticed(change: Callable[[ScoresTotal], wire.Message]) -> None:
    result = with_lies(change)
    assert result.answers == []
    assert result.raised(ASKER) is PeerMisbehaved


def test_the_total_of_another_batch_is_noticed() -> None:
    """The same contributors, the same shape, in the same session."""
    seen: list[ScoresTotal] = []

    def earlier(total: ScoresTotal) -> wire.Message:
        seen.append(total)
        return seen[0]

    result = with_lies(earlier, TERMS, LATER)
    assert len(seen) == 2
    assert len(result.answers) == 1
    assert result.raised(ASKER) is PeerMisbehaved


def test_the_difference_of_two_totals_is_of_no_use() -> None:
    """Two batches of the same scores, the second total with its difference from the first put on: masks differ."""
    seen: list[ScoresTotal] = []

    def mixed(total: ScoresTotal) -> wire.Message:
        seen.append(total)
        vector = total.vector if len(seen) == 1 else total.vector + (total.vector - seen[0].vector)
        return msgspec.structs.replace(total, vector=vector)

    scores = some_scores(TERMS)
    wrap = {SERVER: lying(about(ScoresTotal, lambda party, total: mixed(total)))}
    result = hold_batches("masked", [(TERMS, scores), (LATER, scores)], wrap=wrap)
    assert len(result.answers) == 1
    assert result.raised(ASKER) is PeerMisbehaved


def test_an_honest_relay_of_the_same_kind_changes_nothing() -> None:
    result = with_lies(lambda total: total)
    assert result.problems == {}
    assert same_ranking(result.answers[0].ranking, expected(some_scores(TERMS), TERMS))


Heard = dict[tuple[RoundId, PartyId], ScoresAsked]


def asking_falsely(backend: str, lie: Callable[[Heard, RoundId, PartyId], bytes], *terms: ScoreTerms) -> Batch:
    """In the last batch, client 3 is sent another asking, made of what the server has carried so far."""
    heard: Heard = {}

    def tell(party: PartyId, message: wire.Message, round_id: RoundId) -> wire.Message:
        if not isinstance(message, ScoresAsked):
            return message
        heard[round_id, party] = message
        if round_id != terms[-1].round or party != THREE:
            return message
        return ScoresAsked(PURPOSE, lie(heard, round_id, party))

    todo = [(one, some_scores(one, number)) for number, one in enumerate(terms)]
    return hold_batches(backend, todo, wrap={SERVER: lying(tell)})


def assert_not_asked(result: Batch, answered: int) -> None:
    assert len(result.answers) == answered
    assert result.raised(THREE) is PeerMisbehaved
    assert "has not asked this" in str(result.problems[THREE])


@sealed_backends
def test_a_server_cannot_ask_by_itself(backend: str) -> None:
    assert_not_asked(asking_falsely(backend, lambda heard, round_id, party: bytes(200), TERMS), 0)


@sealed_backends
def test_an_asking_cannot_be_changed_or_cut(backend: str) -> None:
    def flipped(heard: Heard, round_id: RoundId, party: PartyId) -> bytes:
        sealed = heard[round_id, party].sealed
        return sealed[:-1] + bytes([sealed[-1] ^ 1])

    assert_not_asked(asking_falsely(backend, flipped, TERMS), 0)
    assert_not_asked(asking_falsely(backend, lambda heard, *to: heard[to].sealed[:-1], TERMS), 0)


@sealed_backends
def test_an_asking_cannot_be_replayed(backend: str) -> None:
    """Neither in a later batch of the same asker nor in one of another asker."""
    for later in (LATER, BY_ANOTHER):
        result = asking_falsely(backend, lambda heard, round_id, party: heard[TERMS.round, party].sealed, TERMS, later)
        assert_not_asked(result, 1)


@sealed_backends
def test_an_asking_is_for_one_scorer(backend: str) -> None:
    result = asking_falsely(backend, lambda heard, round_id, party: heard[round_id, TWO].sealed, TERMS)
    assert_not_asked(result, 0)


@sealed_backends
@pytest.mark.parametrize(
    "other",
    [{"table": b"another"}, {"bound": 8.0}, {"top": 11}, {"clients": (1, 2, 3)}, {"least": 2}, {"positions": 13}],
    ids=str,
)
def test_a_scorer_under_other_terms_cannot_be_asked(backend: str, other: dict[str, object]) -> None:
    scores = some_scores(TERMS)
    result = hold_batches(backend, [(TERMS, scores)], believes={THREE: lambda terms: replace(terms, **other)})
    assert result.answers == []
    assert result.raised(THREE) is PeerMisbehaved
    assert "other terms" in str(result.problems[THREE])


@sealed_backends
def test_a_scorer_that_takes_another_for_the_asker_is_not_asked_by_it(backend: str) -> None:
    result = hold_batches(
        backend, [(TERMS, some_scores(TERMS))], believes={THREE: lambda terms: replace(terms, asker=TWO)}
    )
    assert_not_asked(result, 0)
