"""Rows in a sum of their own, and whose they are."""

import numpy as np
import pytest

from secure_kg.attacks.single_holder import NOBODY, OpenedRows, lone_rows, score_lone_rows
from secure_kg.attacks.uploads import RowUpload

UNION, WIDTH = 6, 4


def upload(client: int, held: list[int]) -> RowUpload:
    rows, counts = np.zeros((UNION, WIDTH), dtype=np.float32), np.zeros(UNION, dtype=np.int64)
    rows[held] = np.random.default_rng(client).normal(size=(len(held), WIDTH))
    counts[held] = 1
    return RowUpload(client, 1, rows, counts, masked=False)


ONE, TWO, THREE = upload(1, [0, 1, 2]), upload(2, [1, 2, 3]), upload(3, [2, 3, 4])


def test_rows_of_one_holder_stand_open() -> None:
    guess = lone_rows([OpenedRows.of_uploads([ONE, TWO, THREE])])
    assert guess.positions.tolist() == [0, 4]
    np.testing.assert_allclose(guess.rows, [ONE.rows[0], THREE.rows[4]], atol=1e-6)
    assert guess.owners.tolist() == [NOBODY, NOBODY]  # all took part: nothing says whose
    result = score_lone_rows(guess, {1: ONE, 2: TWO, 3: THREE})
    assert result.succeeded
    assert result.scores == {"rows": pytest.approx(2 / 9), "owners": 0.0}


def test_rounds_with_other_clients_tell_whose_they_are() -> None:
    rounds = [
        OpenedRows.of_uploads([TWO, THREE]),
        OpenedRows.of_uploads([ONE, TWO]),
        OpenedRows.of_uploads([ONE, TWO, THREE]),
    ]
    guess = lone_rows(rounds)
    assert dict(zip(guess.positions.tolist(), guess.owners.tolist(), strict=True)) == {0: 1, 4: 3}
    assert score_lone_rows(guess, {1: ONE, 2: TWO, 3: THREE}).scores["owners"] == 1.0


def test_a_client_on_the_servers_side_lowers_the_bound_by_one() -> None:
    bounded = [upload(1, [1, 2]), upload(2, [1, 2, 3]), upload(3, [2, 3])]  # two holders of every row at least
    together = OpenedRows.of_uploads(bounded)
    truth = {one.client: one for one in bounded}
    assert not score_lone_rows(lone_rows([together]), truth).succeeded
    guess = lone_rows([together.without([bounded[0]])])
    assert guess.positions.tolist() == [1]
    assert score_lone_rows(guess, {2: bounded[1], 3: bounded[2]}).succeeded
    assert together.without([upload(9, [1])]).counts.tolist() == together.counts.tolist()
