"""Commands of private training: gradients, training in one place and in a federation; tables and mistakes."""

import json
from collections.abc import Callable, Sequence

import pytest

from benchmarks import flames_pass_rate, private_federation, private_gradients, private_training

Main = Callable[[Sequence[str] | None], int]


def test_gradients_per_second(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--entities", "50", "--relations", "3", "--dim", "8", "--negatives", "10", "--triples", "2000"]
    assert private_gradients.main([*small, "--repeats", "1", "--models", "complex", "distmult", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)["models"]
    assert [one["model"] for one in found] == ["ComplEx", "DistMult"]
    assert all(one["triples_per_cpu_s"] > 5 * one["by_autograd_triples_per_cpu_s"] for one in found)
    assert private_gradients.main([*small, "--repeats", "1", "--models", "rescal"]) == 0
    assert "triples per CPU second" in capsys.readouterr().out


def test_noise_costs_and_counts_stand_beside(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--dataset", "nations", "--steps", "30", "--epsilon", "1000", "0.1", "--seeds", "1", "--dim", "8"]
    assert private_training.main([*options, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    found = {(row["epsilon"], row["mechanism"]): row for row in report["rows"]}
    for mechanism in ("sgd", "adafest", "flames", "counts"):
        assert found[1000.0, mechanism]["tail_mrr"] > found[0.1, mechanism]["tail_mrr"]
    for (epsilon, mechanism), row in found.items():
        if epsilon is not None and mechanism != "counts":
            assert row["epsilon_spent"] == pytest.approx(epsilon, rel=1e-3)
            assert row["epsilon_spent"] <= epsilon
    exact = found[None, "counts"]["tail_mrr"]
    assert found[None, "no noise"]["tail_mrr"] > 0.4
    assert found[1000.0, "counts"]["tail_mrr"] == pytest.approx(exact, abs=0.06)  # noise is never seeded


def test_the_table_says_whether_counting_wins(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--dataset", "nations", "--steps", "1", "--epsilon", "2", "--mechanisms", "sgd", "--seeds", "1"]
    assert private_training.main(options) == 0
    assert "Counting wins at no noise, epsilon 2" in capsys.readouterr().out
    rows = [
        {"epsilon": 4.0, "mechanism": "sgd", "tail_mrr": 0.5},
        {"epsilon": 4.0, "mechanism": "counts", "tail_mrr": 0.4},
    ]
    assert "better than counting" in private_training._sentence(rows)


def test_no_gradient_passes_the_printed_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert flames_pass_rate.main(["--dataset", "umls", "--batches", "40", "--dim", "16", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["passed"] for row in rows] == [0] * 4
    assert all(row["largest_gap_in_row_clips"] <= 2 < row["needed_in_row_clips"] for row in rows)
    assert {row["gradients"]: row["largest_gap_in_row_clips"] for row in rows}["best case"] >= 1
    assert flames_pass_rate.main(["--dataset", "nations", "--batches", "3", "--dim", "4"]) == 0
    assert "0 of 3" in capsys.readouterr().out


def test_shares_are_less_noise_than_all_of_it_by_everybody(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--dataset", "nations", "--clients", "3", "--steps", "20", "--step", "0.1", "--seeds", "1", "--dim", "8"]
    assert private_federation.main([*options, "--epsilon", "20", "--settings", "shares, f = 1", "--json", "-"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["tail_mrr"] > 0.4
    assert private_federation.main([*options, "--epsilon", "0.1", "--settings", "full", "local"]) == 0
    assert "own filter" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("main", "options"),
    [
        (private_gradients.main, ["--dim", "0"]),
        (private_gradients.main, ["--entities", "5", "--negatives", "6"]),
        (private_training.main, ["--seeds", "0"]),
        (private_training.main, ["--dataset", "nations", "--epsilon", "-1", "--steps", "1"]),
        (private_training.main, ["--dataset", "nations", "--clip", "0"]),
        (private_training.main, ["--dataset", "nowhere"]),
        (private_federation.main, ["--clients", "1"]),
        (private_federation.main, ["--dataset", "nations", "--epsilon", "-1"]),
        (flames_pass_rate.main, ["--dataset", "nations", "--batch", "14"]),
        (flames_pass_rate.main, ["--batches", "0"]),
    ],
)
def test_a_mistake_gets_one_line(main: Main, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    assert capsys.readouterr().err.count("\n") == 1
