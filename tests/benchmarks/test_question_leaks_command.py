"""`python -m benchmarks.question_leaks` over small runs that were trained for it."""

import json
from pathlib import Path

import pytest

from benchmarks.question_leaks import main
from launch import fedcqa
from tests.support.jobs_in_threads import run_in_threads

TINY = [
    *("--dataset", "nations", "--dim", "8", "--batch-size", "8", "--local-steps", "1", "--eval-queries", "2"),
    *("--test-types", "1p", "--eval-every", "3", "--checkpoint-every", "3", "--rounds", "3", "--transcript"),
]
SMALL = ["--budgets", "8", "--answers", "0", "99", "--trials", "2", "--positions", "3"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for aggregation in ("plain", "secret"):
        options = [*TINY, "--aggregation", aggregation, "--out", aggregation]
        ended = run_in_threads(4, *options, cwd=folder, launcher=fedcqa.main)
        assert ended.code == 0, ended.errors
    return folder


def test_weak_settings_fall_and_strong_ones_stand(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = ["--recorded", str(runs / "plain"), str(runs / "secret")]
    atoms = list((runs / "secret" / "clients").glob("*/atoms.jsonl"))
    assert main([str(runs / "secret"), *SMALL, *recorded, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    rows = {line["how"]: line for line in report["rows"]}
    assert rows["difference, 1 answer"]["computed"] == rows["difference, 1 answer"]["wanted"] > 0
    assert rows["difference, --atom-budget 8"]["computed"] == 3 * 4
    assert rows["difference, --no-atoms of all"]["computed"] == 0
    triples = {(line["guess"], line["answers"]): line for line in report["triples"]}
    assert {guess for guess, _ in triples} == {"degree", "related", "known", "direct"}
    assert triples["direct", 1]["auc"]["trials"] == 2
    names = {line["how"]: line for line in report["names"]}
    assert names["--anchor-policy all"]["found"] == names["--anchor-policy all"]["held"]
    assert names["--anchor-policy none"]["found"] == 0
    scores = {line["opened"]: line for line in report["scores"]}
    assert scores["means, --allow-extraction"]["computed"] == scores["means, --allow-extraction"]["positions"]
    assert scores["means, the usual budget"]["computed"] == 0
    assert [line["succeeded"] for line in report["updates"]] == [True, False] * 3
    assert list((runs / "secret" / "clients").glob("*/atoms.jsonl")) == atoms, "budgets of clients were spent"


def test_the_tables(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(runs / "plain"), "--parts", "names", "--budgets", "8"]) == 0
    assert "right if all are guessed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budgets", "0"], "must be at least 1"),
        (["--parts", "none"], "--parts"),
        (["--parts", "names", "--recorded", "secret", "plain"], "--aggregation plain and one with"),
    ],
)
def test_a_mistake_gets_one_line(
    runs: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    assert main(["secret", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_folder_that_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "no folder of a finished run" in capsys.readouterr().err
