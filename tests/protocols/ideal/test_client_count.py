"""A client's view of a count, simulated from min(m, k) of each row: of the right ranks, and uniform among them."""

from collections import Counter

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders.interface import PURPOSE
from protocols.holders.secret import enough_holders, regular
from protocols.ideal import client_count
from protocols.ideal.client_count import SeenCounts, simulate_rests
from protocols.ideal.real import Falls, Parties
from protocols.ideal.rest_features import features_of
from protocols.primitives.group import PrimeField
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import Step
from tests.support.holder_conversations import task_of
from tests.support.sum_conversations import everyone

PARTIES = Parties.of(4, ThreatModel(0.25, 0.4))
ONE, TWO, THREE, FOUR = PARTIES.clients
ROWS = 12
FIELD = PrimeField()


@pytest.mark.parametrize("least", [2, 3, 4, 5])
def test_simulated_rests_have_the_ranks_that_are_told(least: int) -> None:
    size = least - 1
    others = np.arange(40) % least
    task = task_of(40, everyone(5), least=least)
    rests = simulate_rests(others, task)
    assert rests.shape == (size, size, 40)
    for rank in range(1, size + 1):
        assert regular(rests[:rank, :rank]).tolist() == (others >= rank).tolist()
    assert enough_holders(rests.reshape(size * size, 40), task).tolist() == (others == size).tolist()
    assert not np.any((rests == simulate_rests(others, task)) & (others > 0))


@pytest.mark.parametrize("others", [[3] * 5, [-1] * 5, [1] * 4], ids=["more than k", "below", "of another union"])
def test_the_simulator_takes_numbers_up_to_the_bound_only(others: list[int]) -> None:
    with pytest.raises(ValueError, match="of each row of the union"):
        simulate_rests(np.array(others), task_of(5, everyone(5), least=3))


class TinyField(PrimeField):
    """Draws elements below 3 only, among which singular matrices are common."""

    def uniform(self, shape: tuple[int, ...]) -> np.ndarray:  # type: ignore[type-arg]
        return super().uniform(shape) % np.uint64(3)


def test_a_singular_factor_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else some matrices would be of a lower rank than told."""
    monkeypatch.setattr(client_count, "_FIELD", TinyField())
    drawn = client_count._FIELD.uniform((2, 2, 2000))
    assert 0 < regular(drawn).sum() < 2000
    rests = simulate_rests(np.ones(2000, dtype=np.int64), task_of(2000, everyone(5), least=3))
    assert not regular(rests).any()
    assert rests.any(axis=(0, 1)).all()
    kinds = Counter(map(tuple, rests.reshape(4, -1).T.tolist()))
    assert len(kinds) > 50


def session(least: int, falls: dict[PartyId, Step] | None = None) -> SeenCounts:
    """Client 1 holds the first half; row r has r % 4 other holders, the first ones."""
    held = {party: np.flatnonzero(np.arange(ROWS) % 4 >= party - 1) for party in (TWO, THREE, FOUR)}
    held[ONE] = np.arange(ROWS // 2)
    task = task_of(ROWS, PARTIES.clients, least=least)
    return SeenCounts(PARTIES, [(task, held)], Falls({(RoundId(1), PURPOSE): falls or {}}))


@pytest.mark.parametrize("least", [2, 3, 4])
def test_a_real_client_sees_the_ranks_that_are_simulated(least: int) -> None:
    counts = session(least)
    (seen,), (others,) = counts.seen_by(ONE), counts.others(ONE)
    assert others.tolist() == [row % 4 for row in range(ROWS)]
    for rank in range(1, least):
        assert regular(seen[:rank, :rank]).tolist() == (others >= rank).tolist()


def test_who_falls_silent_before_its_input_is_no_holder() -> None:
    counts = session(3, {FOUR: Step.MASKED_INPUT})
    (seen,), (others,) = counts.seen_by(ONE), counts.others(ONE)
    assert others.tolist() == [min(row % 4, 2) for row in range(ROWS)]
    assert regular(seen).tolist() == (others == 2).tolist()
    later = session(3, {FOUR: Step.UNMASKING})
    assert later.others(ONE)[0].tolist() == [row % 4 for row in range(ROWS)]


def test_another_client_sees_the_count_from_its_own_place() -> None:
    counts = session(3)
    (seen,), (others,) = counts.seen_by(FOUR), counts.others(FOUR)
    assert others[3] == 3
    assert others[11] == 2
    assert regular(seen).tolist() == (others >= 2).tolist()


def test_features_take_rows_apart_by_how_many_truly_hold_them() -> None:
    task, others = task_of(40, everyone(5), least=3), np.arange(40) % 5
    rests = simulate_rests(np.minimum(others, 2), task)
    found = features_of([rests, rests], [others, others])
    assert {f"count {number}, {m} others: regular" for number in (0, 1) for m in range(5)} <= found.keys()
    assert [found[f"count 0, {m} others: regular"] for m in range(5)] == [0, 0, 8, 8, 8]
    assert [found[f"count 0, {m} others: rank at most one"] for m in range(5)] == [8, 8, 0, 0, 0]
    assert [found[f"count 0, {m} others: zeros"] for m in range(5)] == [32, 0, 0, 0, 0]
    assert found["counts 0 and 1: entries that stay"] == 4 * 32
    again = features_of([rests, simulate_rests(np.minimum(others, 2), task)], [others, others])
    assert again["counts 0 and 1: entries that stay"] == 0
