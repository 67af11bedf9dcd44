"""`python -m benchmarks.exact`: what exact answers cost."""

import json

import pytest

from benchmarks.exact import main

SMALL = ["--entities", "300", "--repeat", "1"]


def test_bytes_grow_with_atoms_and_clients(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--atoms", "1", "3", "--clients", "3", "4", "--json", "-"]) == 0
    found = {(one["clients"], one["atoms"]): one for one in json.loads(capsys.readouterr().out)["answers"]}
    assert found[3, 1]["asker_bytes"] < found[3, 3]["asker_bytes"] < found[4, 3]["asker_bytes"]
    assert [one["exchanges"] for one in found.values()] == [3, 5, 3, 5]


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    assert "exact answers over 300 positions" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--atoms", "33"], ["--clients", "2"], ["--held", "2"], ["--repeat", "0"]])
def test_a_mistake_gets_one_line(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    assert capsys.readouterr().err.count("\n") == 1
