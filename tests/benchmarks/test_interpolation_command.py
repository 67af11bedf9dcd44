"""`python -m benchmarks.interpolation`: the figure of SECURITY.md comes out, and an audit's estimate is near it."""

import json

import pytest

from benchmarks.interpolation import main

pytestmark = pytest.mark.long


def test_the_figure_of_nations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nations-8", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)["nations-8"]
    assert figures["error"] < 0.1 * figures["error_of_guessing"]
    assert figures["explained"] > 0.99
    assert figures["as_audited"] == pytest.approx(figures["explained"], abs=0.02)


@pytest.mark.parametrize("argv", [["--only", "no-such-run"], ["--json"]])
def test_a_mistake_gets_one_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    assert capsys.readouterr().err.count("\n") == 1
