"""`python -m launch.audit`: exit codes, files, and one line for every mistake."""

import json
from pathlib import Path

import pytest

from launch.audit import main
from tests.support.federation_in_threads import nations, run_federation, small_config


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    settings = {"secagg": {}, "plain": {"aggregation": "plain", "alignment": "plain"}}
    for name, changes in settings.items():
        config = small_config(rounds=2, transcript=True, clients=3, **changes)
        run_federation(config, nations(3), folder / name).done()
    return {name: folder / name for name in settings}


@pytest.mark.parametrize(("name", "code"), [("secagg", 0), ("plain", 3)])
def test_the_exit_code_tells_whether_there_is_a_high_finding(
    runs: dict[str, Path], name: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(runs[name]), "--out", str(tmp_path / "audit")]) == code
    record = json.loads((tmp_path / "audit" / "audit.json").read_text(encoding="utf-8"))
    assert record["verdict"]["exit_code"] == code
    assert {"findings", "ledger", "attacks", "checks", "notes"} <= record.keys()
    for finding in record["findings"]:
        assert finding.keys() >= {"id", "severity", "title", "evidence"}
        assert finding["severity"] in ("high", "medium", "low", "info")
    assert {entry["class"] for entry in record["ledger"]} <= {"public", "ciphertext", "masked", "aggregate", "clear"}
    assert ("clear" in {entry["class"] for entry in record["ledger"]}) == (name == "plain")
    assert (tmp_path / "audit" / "audit.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    said = capsys.readouterr()
    assert "findings:" in said.out
    assert said.err == ""


def test_json_for_standard_output_is_all_there_is(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(runs["secagg"]), "--out", str(tmp_path / "audit"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["high"] == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "RUN"),
        (["nowhere", "--out", "x"], "no such run folder"),
        (["{secagg}"], "--out"),
        (["{secagg}", "--out", "x", "--truth", "nowhere"], "no such folder"),
        (["{secagg}", "--out", "x", "--receipts", "nowhere"], "no such folder"),
        (["{secagg}", "--out", "x", "--keys", "nowhere"], "cannot be read"),
        (["{secagg}", "--out", "x", "--colluder", "9"], "clients 1 to 3"),
        (["{secagg}", "--out", "x", "--leak", "1.5"], "--leak"),
        (["{secagg}", "--out", "x", "--unknown"], "unknown option --unknown"),
        (["{secagg}", "--out", "/dev/null/x"], "cannot be written"),
    ],
)
def test_a_mistake_gets_one_line(
    runs: dict[str, Path],
    tmp_path: Path,
    arguments: list[str],
    word: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([one.format(secagg=runs["secagg"]) for one in arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert word in said


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "exit code 3" in capsys.readouterr().out.lower()
