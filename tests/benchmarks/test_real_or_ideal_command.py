"""The command: its table, its JSON, its exit codes. One run of it has a false-alarm rate of 5 * 10^-5 at most."""

import json
from pathlib import Path

import pytest

from benchmarks import real_or_ideal
from benchmarks.real_or_ideal import CONTROLS, main
from secure_kg.audit.distinguisher import TOLD_APART, Distinction, exact_interval
from secure_kg.audit.experiments import PROTOCOLS


def test_one_protocol_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "result.json"
    assert main(["--protocol", "group-key", "--json", str(file)]) == 0
    report = json.loads(file.read_text())
    (entry,) = report["results"]
    assert entry["protocol"] == "group-key"
    assert entry["samples"] == entry["judged"] == 200
    assert entry["lower"] <= 0.5 <= entry["upper"]
    assert entry["verdict"] == entry["expected"] == "not told apart"
    assert report["as_expected"] is True
    shown = capsys.readouterr().out
    assert "group-key" in shown
    assert "every verdict is as expected" in shown


def judged(right: int) -> Distinction:
    return Distinction(200, right, 200, *exact_interval(right, 200, 5e-5), ("some feature",))


def test_a_verdict_that_is_not_expected_gives_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(real_or_ideal, "compare", lambda *arguments: judged(200))
    assert main(["--protocol", "secagg", "--protocol", "psu"]) == 1
    shown = capsys.readouterr().out
    assert "2 verdicts are not as expected" in shown
    assert "told apart by some feature" in shown


def test_a_control_that_is_not_caught_gives_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_or_ideal, "compare", lambda *arguments: judged(100))
    assert main(["--protocol", "holders"]) == 1
    assert main(["--protocol", "group-key"]) == 0


def test_json_alone_on_standard_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(real_or_ideal, "compare", lambda *arguments: judged(100))
    main(["--json", "-"])
    report = json.loads(capsys.readouterr().out)
    assert len(report["results"]) == len(PROTOCOLS) + len(CONTROLS)
    expected = {entry["variant"]: entry["expected"] for entry in report["results"]}
    assert expected.pop(None) != TOLD_APART
    assert set(expected.values()) == {TOLD_APART}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--samples", "3"], "--samples must be at least 16"),
        (["--seed", "-1"], "--seed must not be negative"),
        (["--protocol", "plain"], "invalid choice"),
        (["--json", "/dev/null/x.json"], "cannot be written"),
    ],
)
def test_mistakes_get_one_line(arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert problem in said.err
    assert said.err.count("\n") == 1


def test_help_explains_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("interval", "advantage", "verdict", "Exit code"))
