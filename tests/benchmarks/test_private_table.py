"""`benchmarks.reproduce dpflames-table3` and what it is made of: arms of noise, the search of settings, cells kept."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import private_settings
from benchmarks.private.arms import ARMS, Arm, SeededNoise, Sites, measured
from benchmarks.reproduce import main
from benchmarks.reproduction.private_figures import MODELS, PAPER, printed
from benchmarks.reproduction.private_table import NAME, ROWS, build, wanted
from secure_kg.data.partition import partition
from secure_kg.data.sources import PooledSource, load_source
from secure_kg.privacy.accounting.accountant import Budget
from secure_kg.privacy.mechanisms.counts import NoisedCounts, counted
from secure_kg.privacy.training_config import PrivateTrainingConfig

Capture = pytest.CaptureFixture[str]
CONFIG = PrivateTrainingConfig(dim=8, steps=15, step=0.1, negatives=8, clip=0.3, temperature=1.0)


@pytest.fixture(scope="module")
def sites() -> Sites:
    return Sites(partition(load_source("nations"), 3, "triples", 0))


def mrr(sites: Sites, name: str, epsilon: float, seed: int = 0, spare: int = 1) -> float:
    arm = Arm(name, Budget(epsilon, 1e-5), spare)
    return measured(sites, CONFIG, arm, seed, part="test", source=SeededNoise(seed)).metrics()["mrr"]


def test_every_arm_is_ruined_by_much_noise_and_not_by_little(sites: Sites) -> None:
    clear = mrr(sites, "no noise", 1.0)
    for arm in ARMS[1:]:
        little, much = mrr(sites, arm, 1e6), mrr(sites, arm, 0.02)
        assert little > much + 0.05, arm
    assert mrr(sites, "shares", 1e6) == pytest.approx(clear, abs=0.03)
    assert mrr(sites, "full", 1e6) == pytest.approx(clear, abs=0.03)


def test_shares_have_the_noise_of_one_and_full_that_of_all(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variance of what is added to an entry in the whole sum, by the arm."""

    class Heard(SeededNoise):
        def __init__(self) -> None:
            super().__init__(0)
            self.variance = 0.0

        def integers(self, sigma: float, shape: tuple[int, ...]) -> "np.typing.NDArray[np.int64]":
            self.variance += sigma**2 if shape[0] == sites.sizes[0] else 0.0
            return super().integers(sigma, shape)

    found = {}
    for name, spare in (("shares", 0), ("shares", 1), ("full", 1)):
        source = Heard()
        measured(sites, CONFIG, Arm(name, Budget(8.0, 1e-5), spare), 0, part="valid", source=source)
        found[name, spare] = source.variance
    assert found["shares", 1] / found["shares", 0] == pytest.approx(3 / 2, rel=0.01)
    assert found["full", 1] / found["shares", 0] == pytest.approx(3, rel=0.01)


def test_validation_ranks_know_nothing_of_test_triples(sites: Sites) -> None:
    """A table of counts that scores everything alike: a rank is then half of what is not left out."""
    alike = NoisedCounts(torch.zeros(sites.sizes[1], sites.sizes[0]))
    known = {part: sites.judged([alike], part) for part in ("valid", "test")}  # type: ignore[arg-type]
    mean = {part: found.doubled_ranks / found.count for part, found in known.items()}
    assert mean["valid"] > mean["test"]


def test_counts_see_the_triples_of_all_clients(sites: Sites) -> None:
    train = np.concatenate([sites.part(place, graph.train) for place, graph in enumerate(sites.graphs)])
    exact = NoisedCounts(counted(torch.from_numpy(train), sites.sizes[1], sites.sizes[0]).float())
    assert mrr(sites, "counts", 1e6) == pytest.approx(sites.judged([exact], "test").metrics()["mrr"], abs=0.02)


def test_the_search_keeps_what_is_better(capsys: Capture) -> None:
    words = ["--dataset", "nations", "--clients", "2", "--splits", "0", "--settings", "stride", "--passes", "1",
             "--start", "steps=15", "dim=8", "negatives=8", "stride=0.01", "--epsilon", "1000",
             "--json", "-"]  # fmt: skip
    assert private_settings.main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["tries"]) >= 2
    assert report["best_mrr"] == pytest.approx(max(one["mrr"] for one in report["tries"]), abs=1e-3)
    assert report["best_mrr"] > min(one["mrr"] for one in report["tries"]) + 0.01
    assert report["best"]["stride"] > 0.01  # so few and so short steps learn nothing
    assert private_settings.main([*words[:-2], "--passes", "0"]) == 0
    assert "outside epsilon" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--spare", "5"], ["--start", "pace=1"], ["--start", "dim=x"], ["--splits", "-1"]])
def test_a_mistake_in_a_search_is_one_line(words: list[str], capsys: Capture) -> None:
    assert private_settings.main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1


def data_root(tmp_path: Path) -> Path:
    """Nations under the name of the table's data set: the command looks at names of folders alone."""
    source = load_source("nations")
    assert isinstance(source, PooledSource)
    folder = tmp_path / "data" / "fb15k-237"
    folder.mkdir(parents=True)
    lines = (f"{source.entities[h]}\t{source.relations[r]}\t{source.entities[t]}\n" for h, r, t in source.triples)
    (folder / "train.tsv").write_text("".join(lines))
    return tmp_path / "data"


def test_cells_stand_beside_the_papers_and_are_not_trained_again(tmp_path: Path, capsys: Capture) -> None:
    words = [NAME, "--data-root", str(data_root(tmp_path)), "--models", "distmult", "--epsilon", "16", "--steps", "3",
             "--dim", "4", "--rounds", "1", "--local-epochs", "1", "--negatives", "4", "--clients", "2",
             "--runs", str(tmp_path / "runs"), "--json", "-"]  # fmt: skip
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert [line["row"] for line in report["lines"]] == list(ROWS)
    assert {line["row"]: line["paper"] and line["paper"]["mrr"] for line in report["lines"]} == {
        **dict.fromkeys(ROWS), "FKGE": 0.3138, "Baseline": 0.0069, "DP-FLames": 0.2342,
    }  # fmt: skip
    assert any("counting" in note for note in report["notes"])
    assert {one["setting"] for one in report["deviations"]} >= {"dim", "negatives", "clip"}
    assert len(list((tmp_path / "runs").iterdir())) == len(ROWS)
    assert main([*words, "--markdown", str(tmp_path / "table.md")]) == 0  # noise is fresh: only kept cells are equal
    assert json.loads(capsys.readouterr().out)["lines"] == report["lines"]
    assert "| DistMult | 16 | Baseline | 0.0069 |" in (tmp_path / "table.md").read_text()
    (damaged,) = (tmp_path / "runs").glob("*-baseline-*.json")
    damaged.write_text('{"ours": {"mrr": 7}}')
    assert main(words) == 0
    assert json.loads(damaged.read_text())["row"] == "Baseline"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--models", "RESCAL"], "this table has TransE"),
        (["--dataset", "nell-995"], "no nell-995 there"),
        (["--part", "valid"], "without FKGE"),
        (["--clients", "1"], "at least 2"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], told: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "fb15k-237").mkdir()
    assert main([NAME, "--data-root", str(tmp_path), *words]) == 2
    assert told in capsys.readouterr().err


def test_the_table_says_where_counting_wins() -> None:
    def line(row: str, epsilon: float, figure: float) -> dict[str, object]:
        return {"model": "TransE", "row": row, "epsilon": epsilon, "paper": None, "ours": {"mrr": figure}}

    lines = [line("shares", 16, 0.4), line("counts", 16, 0.3), line("shares", 4, 0.2), line("counts", 4, 0.3)]
    settings = {"delta": 1e-5, "dim": 128, "negatives": 256, "clip": 1.2, "lr": 0.001, "batch_size": 64}
    report = build("fb15k-237", "test", settings, lines)
    assert report["notes"][0] == "TransE, epsilon 16: embeddings beat counting, 0.3000 against 0.4000 of shares."
    assert report["notes"][1] == "TransE, epsilon 4: counting wins, 0.3000 against 0.2000 of shares."
    assert report["deviations"] == []


def test_rows_without_epsilon_come_once() -> None:
    rows = list(wanted(["counts", "FKGE", "shares"], [16.0, 4.0, 16.0]))
    assert rows == [("FKGE", None), ("shares", 16.0), ("counts", 16.0), ("shares", 4.0), ("counts", 4.0)]


def test_the_papers_figures_are_whole() -> None:
    assert {dataset: len(rows) for dataset, rows in PAPER.items()} == {"fb15k-237": 7, "nell-995": 7}
    for rows in PAPER.values():
        for row in rows.values():
            assert len(row) == len(MODELS)
            assert all(0 <= hits1 <= mrr <= max(hits10, 2e-3) <= 1 for mrr, hits1, hits10 in row)
    assert printed("nell-995", "RotatE", "DP-FLames-Adp", 32.0) == {"mrr": 0.5031, "hits@1": 0.4555, "hits@10": 0.6021}
    assert printed("fb15k-237", "TransE", "shares", 16.0) is None
