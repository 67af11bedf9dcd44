"""The command: its table, its JSON, its exit codes. One run of it has a false-alarm rate of 5 * 10^-5 at most."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import real_or_ideal
from benchmarks.real_or_ideal import (
    CLIENT_CONTROLS,
    CONTROLS,
    EXPERIMENTS,
    LEAST_SAMPLES,
    SCORE_CONTROLS,
    available,
    main,
)
from secure_kg.audit.indistinguishability.distinguisher import (
    ERROR,
    NOT_TOLD_APART,
    TOLD_APART,
    TOO_FEW,
    Distinction,
    exact_interval,
)

pytestmark = pytest.mark.long


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


def test_a_verdict_of_too_few_samples_is_counted_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    undecided = Distinction(60, 36, 60, *exact_interval(36, 60, 5e-5), ("some feature",))
    assert undecided.verdict == TOO_FEW
    monkeypatch.setattr(real_or_ideal, "compare", lambda *arguments: undecided)
    assert main(["--protocol", "group-key"]) == 1
    shown = capsys.readouterr().out
    assert "1 verdict is inconclusive" in shown
    assert "not as expected" not in shown
    assert main(["--protocol", "group-key", "--json", "-"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["inconclusive"], report["as_expected"]) == (1, False)


def test_the_least_number_of_samples_is_enough_for_guessing() -> None:
    """Half right, and 2.5 standard deviations off, on as many judged views as the halves of both kinds have."""
    for right in (LEAST_SAMPLES // 2, LEAST_SAMPLES // 2 - 12, LEAST_SAMPLES // 2 + 12):
        lower, upper = exact_interval(right, LEAST_SAMPLES, ERROR)
        assert Distinction(LEAST_SAMPLES, right, LEAST_SAMPLES, lower, upper, ()).verdict == NOT_TOLD_APART


def test_a_control_that_is_not_caught_gives_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_or_ideal, "compare", lambda *arguments: judged(100))
    assert main(["--protocol", "holders"]) == 1
    assert main(["--protocol", "group-key"]) == 0


def test_json_alone_on_standard_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(real_or_ideal, "compare", lambda *arguments: judged(100))
    main(["--json", "-"])
    report = json.loads(capsys.readouterr().out)
    controls = [one for one in (*CONTROLS, *CLIENT_CONTROLS, *SCORE_CONTROLS) if one.protocol in available()]
    assert len(report["results"]) == len(available()) + len(controls)
    expected = {entry["variant"]: entry["expected"] for entry in report["results"]}
    assert expected.pop(None) != TOLD_APART
    assert set(expected.values()) == {TOLD_APART}


def test_protocols_whose_packages_are_missing_are_left_out_unless_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = {"phe": None, "gmpy2": None, "tenseal": None}
    monkeypatch.setattr(real_or_ideal, "find_spec", lambda package: missing.get(package, package))
    for package in missing:
        monkeypatch.setitem(sys.modules, package, None)
    left = {*EXPERIMENTS} - {*available()}
    assert left == {"scores-paillier", "scores-paillier-asker", "scores-bfv", "scores-bfv-asker"}
    for name in left:
        assert main(["--protocol", name]) == 2
        said = capsys.readouterr().err
        assert "pip install 'secure-kg[" in said
        assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--samples", "3"], "--samples must be at least 100"),
        (["--samples", "99"], "--samples must be at least 100"),
        (["--seed", "-1"], "--seed must not be negative"),
        (["--protocol", "plain"], "--protocol plain: choose one of"),
        (["--json", "/dev/null/x.json"], "cannot be written"),
        (["--graded", "--figure", "/dev/null/x.svg"], "cannot be written"),
        (["--figure", "x.svg"], "--graded is missing"),
        (["--graded", "--protocol", "holders"], "--graded is for secagg, secret, psu"),
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
    assert all(word in said for word in ("interval", "advantage", "verdict", "Exit code", "--graded"))
