"""Studies: what they compute from rows, in closed cases; the pages they write; statistics and reconstructions."""

import gzip
import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from benchmarks import reconstruction, statistics, studies
from benchmarks.campaigns.fedr_studies import reached
from benchmarks.campaigns.queue import OWN_QUEUE, Entry, only, read_queue
from benchmarks.campaigns.row_file import RowFile
from benchmarks.campaigns.rows import PartRow, Point, Row, key_of
from benchmarks.reproduction.provenance import RESULTS_VERSION
from benchmarks.statistics import counts
from secure_kg.data.catalogue import bundled_files
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source

FIGURES = {"mrr": 0.4, "hits@1": 0.3, "hits@3": 0.4, "hits@5": 0.5, "hits@10": 0.6, "mean_rank": 9.0}


def rows_for(entry: Entry, **more: object) -> list[Row]:
    """A row for every cell of an entry, with two points and two clients."""
    found = []
    for cell in entry.request.cells():
        identity = entry.identity(cell)
        curve = [Point(round=5, loss=0.5, mrr=0.1, hits_10=0.2, bytes_up=10**6, bytes_down=10**6)]
        curve.append(Point(round=10, loss=0.4, mrr=0.3, hits_10=0.4, bytes_up=2 * 10**6, bytes_down=2 * 10**6))
        made = Row(
            key=key_of(identity, RESULTS_VERSION),
            version=RESULTS_VERSION,
            entry=entry.name,
            table=entry.table,
            **identity,
            data="0",
            commits=["abc1234"],
            date="2026-01-01",
            machine={},
            seconds=1.0,
            cpu_seconds=1.0,
            sessions=1,
            peak_memory_mb=1.0,
            rounds=10,
            best_round=10,
            stopped_early=True,
            all=PartRow(tail=FIGURES),
            parts=[
                PartRow(client=number, entities=1000 * number, relations=10, tail=FIGURES)
                for number in range(1, cell.clients + 1)
            ],
            curve=curve,
        )
        found.append(msgspec.structs.replace(made, **more))
    return found


def rows_file(tmp_path: Path, names: list[str]) -> tuple[Path, list[Row]]:
    path = tmp_path / "rows.jsonl"
    rows = [row for entry in only(read_queue(OWN_QUEUE, tmp_path, tmp_path), names) for row in rows_for(entry)]
    for row in {row.key: row for row in rows}.values():
        RowFile(path).append(row)
    return path, rows


def test_rounds_rows_and_bytes_to_a_target(tmp_path: Path) -> None:
    _, rows = rows_file(tmp_path, ["fedr-ddb14-transe"])
    fede, fedr = (next(row for row in rows if row.strategy == strategy) for strategy in ("fede", "fedr"))
    first = reached(fede, 0.1)
    assert first is not None
    assert (first.rounds, first.rows, first.bytes, first.cost) == (5, 3000.0, 2 * 10**6, 15000.0)
    second = reached(fedr, 0.11)
    assert second is not None
    assert (second.rounds, second.rows, second.bytes) == (10, 10.0, 4 * 10**6)
    assert reached(fedr, 0.31) is None


def test_the_share_that_is_saved_is_counted_as_in_the_paper_and_in_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = rows_file(tmp_path, ["fedr-ddb14-transe"])
    assert studies.main(["communication", "--rows", str(path), "--json", "-"]) == 0
    at_20, at_40, nearly = json.loads(capsys.readouterr().out)["lines"]
    names = ("seeds", "rounds Local", "rounds FedE", "rounds FedR")
    assert [at_20[name] for name in names] == ["3 of 3", "10 ± 0", "10 ± 0", "10 ± 0"]
    assert at_20["saved %, rows × rounds, paper"] == "99.89"
    assert at_20["saved %, rows × rounds, here"] == "99.67 ± 0.00"  # 10 of 3000 rows, in as many rounds
    assert at_20["saved %, bytes"] == "0.00 ± 0.00"
    assert [at_40[name] for name in names] == ["0 of 3", "never on 3 of 3", "never", "never"]
    assert at_40["MB FedR"] == "–"
    assert nearly["validation MRR"].startswith("0.2850 (95 %")


NAMES = {
    "communication": ["fedr-ddb14-transe"],
    "convergence": ["fedr-ddb14-transe", "fedr-ddb14-rotate"],
    "hit-rates": ["fedr-ddb14-more"],
    "client-fraction": ["fede-fraction-03", "fede-fraction-10"],
    "local-epochs": ["fede-epochs-1", "fede-fraction-05"],
    "batch-size": ["fede-batches-64", "fede-fraction-05"],
    "more-clients": ["fede-more-clients"],
}


@pytest.mark.parametrize("name", list(studies.STUDIES))
def test_every_study_has_a_page_a_picture_and_a_table(name: str, tmp_path: Path) -> None:
    path, _ = rows_file(tmp_path, NAMES[name])
    places = {kind: tmp_path / f"out.{kind}" for kind in ("html", "svg", "markdown", "json")}
    options = [word for kind, place in places.items() for word in (f"--{kind}", str(place))]
    assert studies.main([name, "--rows", str(path), *options]) == 0
    assert ElementTree.parse(places["svg"]).getroot().tag.endswith("svg")
    page = places["html"].read_text()
    assert "<svg" in page
    assert studies.STUDIES[name].place in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "abc1234" in places["markdown"].read_text()
    assert json.loads(places["json"].read_text())["lines"]


def test_entries_of_studies_are_in_the_queue(tmp_path: Path) -> None:
    known = {entry.name for entry in read_queue(OWN_QUEUE, tmp_path, tmp_path)}
    assert set().union(*(study.entries for study in studies.STUDIES.values())) <= known


def test_what_the_order_of_settings_is_told_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.jsonl"
    few, many = only(read_queue(OWN_QUEUE, tmp_path, tmp_path), ["fede-fraction-03", "fede-fraction-10"])
    slow = [Point(round=5, hits_10=0.1), Point(round=10, hits_10=0.6)]
    for row in (*rows_for(few, curve=slow), *rows_for(many)):
        RowFile(path).append(row)
    assert studies.main(["client-fraction", "--rows", str(path), "--json", "-"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["said"]
    assert said.endswith("by F: after round 5 1 > 0.3; at the best round 0.3 > 1 (one seed each).")


@pytest.mark.parametrize(
    "options",
    [
        ["nothing"],
        ["communication", "--rows", "nowhere.jsonl"],
        ["communication", "--set", "rounds"],
        ["communication", "--set", "rounds=none"],
        ["communication", "--only", "fede-nell"],
    ],
)
def test_a_mistake_gets_one_line(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert studies.main([*options, "--runs", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# --- statistics -------------------------------------------------------------------------------------------------------


@pytest.fixture
def data_root(tmp_path: Path) -> Path:
    """Nations in the place of DDB14."""
    folder = tmp_path / "data" / "ddb14"
    folder.mkdir(parents=True)
    for path in bundled_files("nations"):
        (folder / f"{path.stem}.tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
    return folder.parent


def test_what_clients_hold_is_what_runs_train_on(data_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["fedr-table5", "--data-root", str(data_root), "--dataset", "ddb14", "ddb14-published", "--clients", "5"]
    markdown = data_root / "table.md"
    assert statistics.main([*options, "--markdown", str(markdown), "--json", "-"]) == 0
    whole, published = json.loads(capsys.readouterr().out)["lines"]
    assert whole["paper"]["entities"] == [4462.20, 1049.60]
    graphs = partition(load_source("nations"), 5, "triples", 0)
    assert whole["triples"]["mean"] * 5 == sum(
        len(graph.train) + len(graph.valid) + len(graph.test) for graph in graphs
    )
    assert whole["triples"] == counts(graphs)["triples"]
    assert whole["entities"]["mean"] == 14
    assert published["absent"] == "ddb14-fed/fed5.npz"
    assert "4,462.20 ± 1,049.60" in markdown.read_text()
    assert statistics.main(["fede-table2", "--data-root", ".", "--dataset", "else"]) == 2


# --- reconstructions --------------------------------------------------------------------------------------------------


@pytest.mark.mpi
def test_reconstructions_in_clear_and_under_masks(data_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--data-root", str(data_root), "--dataset", "ddb14", "--strategies", "fede", "--dim", "8", "--clients"]
    options += ["2", "--rounds", "2", "--runs", str(data_root.parent / "runs"), "--json", "-"]
    assert reconstruction.main(options) == 0
    lines = json.loads(capsys.readouterr().out)["lines"]
    scores = {(line["aggregation"], line["leak"]): line["scores"] for line in lines}
    assert scores["plain", 100]["ERR"] == 1.0  # both clients hold all countries
    assert scores["secagg", 100]["ERR"] < 0.5
    assert all(line["paper"] is None and line["target"] == 2 for line in lines)
    assert reconstruction.main([*options, "--clients", "1"]) == 2
