"""Interpolation over a dropout: exact where updates are polynomials of the round, and scored without any truth."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.cheating.interpolating import TooSlowOnce, interpolated_dropout
from benchmarks.cheating.spoils import sums_read
from benchmarks.cheating.stage import VICTIM, Stage, stage_config
from secure_kg.attacks.interpolation import WEIGHTS, Interpolation, LeftOver, left_over, means
from secure_kg.attacks.single_holder import OpenedRows
from secure_kg.audit.attacking import ReadSums

CLIENTS, ROWS, WIDTH = 4, 30, 5
MISSING = 2

Values = npt.NDArray[np.float64]


def summed(
    rounds: int, dropouts: dict[int, int], noise: float = 0.0
) -> tuple[list[OpenedRows], dict[int, dict[int, Values]]]:
    """Sums of rounds from 2 on, and updates by round and client. Updates are cubic in the round, beside the noise."""
    draw = np.random.default_rng(0)
    held = draw.random((CLIENTS + 1, ROWS)) < 0.8
    held[1:4] |= ~held[1:4].any(axis=0)
    shape = (CLIENTS + 1, 4, ROWS, WIDTH)
    factors = draw.normal(size=shape) / np.array([1.0, 10.0, 100.0, 1000.0])[:, None, None]
    base, opened = draw.normal(size=(ROWS, WIDTH)), list[OpenedRows]()
    updates = dict[int, dict[int, Values]]()
    for number in range(2, rounds + 2):
        present = [client for client in range(1, CLIENTS + 1) if client != dropouts.get(number)]
        updates[number] = {
            client: sum((factors[client, power] * number**power for power in range(4)), np.zeros((ROWS, WIDTH)))
            + draw.normal(scale=noise, size=(ROWS, WIDTH))
            for client in range(1, CLIENTS + 1)
        }
        rows = np.sum([held[client, :, None] * (base + updates[number][client]) for client in present], axis=0)
        opened.append(OpenedRows(frozenset(present), rows, held[present].sum(axis=0)))
        base = np.where(opened[-1].counts[:, None] > 0, means(opened[-1]), base)
    return opened, updates


def over_window(opened: list[OpenedRows]) -> LeftOver | None:
    return left_over(opened[1:6], [means(one) for one in opened[:5]])


def test_the_weights_are_those_of_a_cubic_polynomial() -> None:
    nodes = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    for power in range(4):
        assert np.dot(WEIGHTS, nodes**power) == pytest.approx(0.0**power)


def test_a_smooth_update_is_found_to_rounding() -> None:
    opened, updates = summed(6, {5: MISSING})
    found = over_window(opened)
    assert found is not None
    assert found.client == MISSING
    assert len(found.positions) > ROWS // 2
    np.testing.assert_allclose(found.update, updates[5][MISSING][found.positions], atol=1e-9)


def test_without_a_dropout_nothing_is_left() -> None:
    found = over_window(summed(6, {})[0])
    assert found is not None
    assert found.client is None
    np.testing.assert_allclose(found.update, 0, atol=1e-9)


@pytest.mark.parametrize("dropouts", [{5: 2, 6: 2}, {4: 1, 5: 2}, {7: 3}])
def test_other_clients_in_the_rounds_around_it_are_no_basis(dropouts: dict[int, int]) -> None:
    assert over_window(summed(6, dropouts)[0]) is None


def taken(opened: list[OpenedRows], skipped: int | None = None) -> Interpolation:
    attack = Interpolation()
    for number, one in enumerate(opened, start=2):
        if number != skipped:
            attack.take(number, one)
    return attack


def test_the_score_says_how_much_is_more_than_error() -> None:
    """Noise of a client is in its own update, too; what counts is the error of the others' prediction."""
    for noise, least, most in ((0.0, 0.999, 1.0), (0.1, 0.8, 0.999), (100.0, 0.0, 0.5)):
        result = taken(summed(16, {12: MISSING}, noise)[0]).result()
        assert result is not None
        assert least <= result.scores["explained"] <= most, (noise, result.scores)
        assert result.chance == {"explained": 0.0}
        assert result.sizes["dropouts"] == 1
        assert result.succeeded == (noise < 100)


def test_without_a_dropout_or_rounds_to_measure_the_error_in_there_is_no_result() -> None:
    assert taken(summed(16, {})[0]).result() is None
    assert taken(summed(6, {5: MISSING})[0]).result() is None
    assert taken(summed(16, {12: MISSING})[0], skipped=11).result() is None


@pytest.mark.long
def test_in_a_run_with_a_dropout_the_estimated_score_is_the_true_one(tmp_path: Path) -> None:
    """An honest server would have the same sums: the audit says so, and rows of the victim's trainer confirm it."""
    stage = Stage(tmp_path, stage_config(rounds=16, eval_every=16, checkpoint_every=0))
    session = stage.perform(TooSlowOnce(10))
    sums = ReadSums()
    for total in sums_read(stage, session):
        sums.take(total)
    (result,) = (one for one in sums.attacks(5, {}, {}) if one.id == "interpolated-rows")
    assert result.succeeded
    truth = interpolated_dropout(stage, session, 10)
    assert truth.client == VICTIM
    assert truth.explained > 0.9
    assert result.scores["explained"] == pytest.approx(truth.explained, abs=0.1)
