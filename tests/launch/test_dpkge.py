"""The launcher of training on confidential statements."""

import json
from pathlib import Path

import pytest

from launch import dpkge

Capture = pytest.CaptureFixture[str]
QUICK = ["--dataset", "nations", "--passes", "10", "--dim", "8", "--seeds", "1"]


def test_all_arms_and_their_statements(capsys: Capture) -> None:
    options = ["--confidential-fraction", "0.3", "0.6", "--epsilon", "1000", "0.1", "--json", "-"]
    assert dpkge.main([*QUICK, *options]) == 0
    report = json.loads(capsys.readouterr().out)
    rows = {(row["confidential"], row["arm"], row["epsilon"]): row for row in report["rows"]}
    assert len(rows) == 2 * (3 + 2 * 2)
    for words in ("r = 0.3", "r = 0.6"):
        assert rows[words, "NDP", None]["papers_p"] is None
        for arm in ("DPKGE", "FullDP"):
            assert rows[words, arm, 1000.0]["noise"] < rows[words, arm, 0.1]["noise"] / 100
            assert rows[words, arm, 0.1]["statement"]["epsilon"] <= 0.1
            assert 0.5 < rows[words, arm, 0.1]["auc_bound"] < 0.55
    assert rows["r = 0.3", "NDP", None]["unrestricted"] > rows["r = 0.6", "NDP", None]["unrestricted"]


def test_the_table_and_marks_by_relation_and_file(capsys: Capture, tmp_path: Path) -> None:
    short = [*QUICK, "--passes", "2", "--epsilon", "2"]
    assert dpkge.main([*short, "--confidential-relations", "embassy", "--expected-confidential", "50"]) == 0
    text = capsys.readouterr().out
    assert "1 relations" in text
    assert "never saw a confidential statement" in text
    file = tmp_path / "secret.tsv"
    file.write_text("nowhere\tembassy\tusa\n")
    assert dpkge.main([*short, "--confidential-file", str(file)]) == 2
    assert "not among the training statements" in capsys.readouterr().err
    file.write_text("")
    assert dpkge.main([*short, "--confidential-file", str(file)]) == 2
    assert capsys.readouterr().err == "error: a file: no training statement is confidential\n"


def test_clips_clusters_and_neighbours(capsys: Capture) -> None:
    options = ["--passes", "2", "--epsilon", "2", "--seeds", "2", "--clusters", "2", "--neighbours", "1"]
    assert dpkge.main([*QUICK, *options, "--clip-quantile", "0.2", "1", "--part", "valid", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    low, high = (
        {row["clip"] for row in report["rows"] if row["confidential"] == f"r = 0.5, P{one}"} for one in (20, 100)
    )
    assert max(low) < min(high)
    assert report["part"] == "valid"
    assert [(row["arm"], row["pairs"]) for row in report["clusters"]][:3] == [("NDP", 1), ("U-only", 2), ("U-twice", 2)]
    assert [row["arm"] for row in report["neighbours"]] == ["NDP", "DPKGE"] * 2
    dpkge.show(report)
    text = capsys.readouterr().out
    assert "clusters of entity rows" in text
    assert "with and without it" in text


@pytest.mark.parametrize(
    "options",
    [
        ["--dataset", "nowhere"],
        ["--seeds", "0"],
        ["--rate", "nan"],
        ["--clip", "0"],
        ["--clip-quantile", "1.5"],
        ["--epsilon", "0"],
        ["--delta", "2"],
        ["--delta", "0"],
        ["--epsilon", "1", "--delta"],
        ["--model", "mlp"],
        ["--most-noise", "0"],
        ["--clusters", "1"],
        ["--clusters", "1000"],
        ["--neighbours", "-1"],
        ["--neighbours", "100000"],
        ["--clip", "1", "--clip-quantile", "0.5"],
        ["--confidential-relations", "embassy", "embassy"],
        ["--confidential-fraction", "-0.5"],
        ["--sampling", "0"],
        ["--confidential-fraction", "1.5"],
        ["--confidential-relations", "loves"],
        ["--confidential-file", "nowhere.tsv"],
        ["--confidential-fraction", "0.5", "--confidential-relations", "embassy"],
        ["--expected-confidential", "5"],
        ["--confidential-relations", "embassy", "--expected-confidential", "nan"],
    ],
)
def test_a_mistake_gets_one_line(options: list[str], capsys: Capture) -> None:
    assert dpkge.main([*QUICK, *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1
