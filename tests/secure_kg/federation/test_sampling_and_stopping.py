"""Who takes part, and when to stop."""

from hypothesis import given
from hypothesis import strategies as st

from protocols.foundation.identifiers import PartyId, RoundId
from secure_kg.federation.plan.early_stopping import EarlyStopping
from secure_kg.federation.plan.sampling import participants

ALL = [PartyId(number) for number in range(1, 11)]


@given(st.floats(0.01, 1), st.integers(2, 10), st.integers(0, 99), st.integers(1, 99))
def test_sample_has_the_size_asked_for(fraction: float, least: int, seed: int, round_id: int) -> None:
    chosen = participants(ALL, fraction, least, seed, RoundId(round_id))
    assert len(chosen) == len(set(chosen)) == min(10, max(least, round(fraction * 10)))
    assert set(chosen) <= set(ALL)
    assert list(chosen) == sorted(chosen)
    assert chosen == participants(list(reversed(ALL)), fraction, least, seed, RoundId(round_id))


def test_everybody_is_drawn_sooner_or_later() -> None:
    drawn = [participants(ALL, 0.3, 2, 0, RoundId(number)) for number in range(1, 41)]
    assert {party for sample in drawn for party in sample} == set(ALL)
    assert len(set(drawn)) > 20


def test_stops_after_patience_without_improvement() -> None:
    stopping = EarlyStopping(patience=2)
    assert [stopping.judge(number, mrr) for number, mrr in [(1, 0.1), (2, 0.3), (3, 0.3), (4, 0.2)]] == [
        True,
        True,
        False,
        False,
    ]
    assert stopping.exhausted
    assert (stopping.best_round, stopping.best_mrr) == (2, 0.3)
