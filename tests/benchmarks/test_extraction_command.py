"""`python -m benchmarks.extraction`: what answers give away, by what is opened and how often."""

import json

import pytest

from benchmarks.extraction import main

SMALL = ["--entities", "300", "--width", "12"]


def test_means_give_the_rows_once_there_are_enough_and_positions_never_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--queries", "6", "12", "400", "--top", "5", "100", "--json", "-"]) == 0
    found = {(one["opened"], one["queries"]): one for one in json.loads(capsys.readouterr().out)["attacks"]}
    assert [found["means", queries]["recovered"] for queries in (6, 12, 400)] == [0.0, 1.0, 1.0]
    assert all(one["recovered"] == 0 for (opened, _), one in found.items() if opened != "means")
    assert found["5 best positions", 6]["explained"] < found["5 best positions", 400]["explained"]
    assert found["5 best positions", 400]["explained"] < found["100 best positions", 400]["explained"]


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--queries", "20", "--top", "5", "--similarity", "squared distance"]) == 0
    assert "300 rows of 12 numbers, squared distance" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--top", "1001"], ["--queries", "0"], ["--width", "x"], ["--seed", "-1"]])
def test_a_mistake_gets_one_line(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    assert capsys.readouterr().err.count("\n") == 1
