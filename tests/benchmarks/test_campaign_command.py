"""The command: real cells that are run once, go on after a kill, and have their rows; what is left; what is refused."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import campaign
from benchmarks.campaigns.outlook import outlook_of
from benchmarks.campaigns.queue import read_queue
from benchmarks.campaigns.rendering import keys_of
from benchmarks.campaigns.row_file import read_rows
from benchmarks.campaigns.rows import Point, Row
from benchmarks.reproduction.provenance import RESULTS_VERSION, digest_of
from secure_kg.data.catalogue import bundled_files

QUEUE = """
[[entry]]
name = "tiny"
asks = "Does Nations learn anything in two clients?"
table = "fedr-table2"
datasets = ["ddb14"]
clients = [2]
models = ["TransE"]
strategies = ["local"]
seeds = [0]
settings = {dim = 8, rounds = ROUNDS, eval_every = 1, patience = 999}
"""


class Place:
    """Nations in the place of DDB14, and everything that a campaign writes."""

    def __init__(self, folder: Path) -> None:
        self.data, self.runs, self.rows, self.queue = (
            folder / name for name in ("data", "runs", "rows.jsonl", "queue.toml")
        )
        graph = self.data / "ddb14"
        graph.mkdir(parents=True)
        for path in bundled_files("nations"):
            (graph / f"{path.stem}.tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
        self.ask(rounds=2)

    def ask(self, rounds: int) -> None:
        self.queue.write_text(QUEUE.replace("ROUNDS", str(rounds)))

    @property
    def options(self) -> list[str]:
        places = {"--data-root": self.data, "--queue": self.queue, "--rows": self.rows, "--runs": self.runs}
        return [word for name, path in places.items() for word in (name, str(path))]

    @property
    def run(self) -> Path:
        return self.runs / f"v{RESULTS_VERSION}" / "tiny" / "ddb14-c2-transe-local-secagg-seed0"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.mpi
def test_a_cell_is_run_once_and_a_row_that_was_lost_is_written_again(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert campaign.main([*place.options, "--hours", "0"]) == 0
    assert not place.rows.exists()
    assert campaign.main(place.options) == 0
    assert "row written, MRR 0." in capsys.readouterr().out
    ((row,), told) = read_rows(place.rows)
    assert told == []
    assert (row.rounds, row.stopped_early, row.sessions, row.version) == (2, False, 1, RESULTS_VERSION)
    assert row.data == digest_of(place.data / "ddb14")
    assert row.cpu_seconds is not None
    assert row.cpu_seconds > 0
    assert [part.client for part in row.parts] == [1, 2]
    assert all({"mrr", "hits@5", "mean_rank"} <= set(part.both) and part.entities for part in row.parts)
    assert [point.round for point in row.curve] == [1, 2]
    assert all(point.mrr and point.hits_10 and point.bytes_up for point in row.curve)
    assert row.valid_mrr == pytest.approx(max(point.mrr or 0 for point in row.curve), abs=1e-6)
    assert str(place.data) not in place.rows.read_text()

    # A kill between the end of the run and its row.
    kept = place.rows.read_bytes()
    place.rows.write_bytes(b"")
    (place.run / "config.toml").touch()
    assert campaign.main(place.options) == 0
    assert "starts" not in capsys.readouterr().out
    assert json.loads(place.rows.read_text()) == json.loads(kept)

    # The row alone is enough, also where the run folder is gone.
    for path in sorted(place.run.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert campaign.main(place.options) == 0
    assert json.loads(place.rows.read_text()) == json.loads(kept)


@pytest.mark.mpi
def test_after_a_kill_a_run_goes_on_from_its_checkpoint(place: Place) -> None:
    place.ask(rounds=60)
    command = [sys.executable, "-m", "benchmarks.campaign", *place.options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        reached = _wait_for_round(place.run, 3)
        os.kill(process.pid, signal.SIGKILL)
    assert not (place.run / "summary.json").exists()
    assert not place.rows.exists() or read_rows(place.rows) == ([], [])
    assert campaign.main(place.options) == 0
    ((row,), told) = read_rows(place.rows)
    assert told == []
    assert [point.round for point in row.curve] == list(range(1, 61))
    log = place.run.with_name(place.run.name + ".log").read_text()
    assert any(f"round {number}" in log for number in range(reached, 61))
    assert "resum" in log or "goes on" in log or "continu" in log


FUSION = """
[[entry]]
name = "fusion"
asks = "What does fusion add in two clients?"
table = "fede-table5"
datasets = ["nell-995"]
clients = [2]
models = ["TransE"]
seeds = [0]
settings = {dim = 8, rounds = 2, eval_every = 1}
"""


@pytest.mark.mpi
def test_a_fusion_needs_its_two_runs_and_says_so_where_they_are_gone(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    (place.data / "ddb14").rename(place.data / "nell-995")
    place.queue.write_text(FUSION)
    assert campaign.main(place.options) == 0
    local, fede, fused = read_rows(place.rows)[0]
    assert [row.strategy for row in (local, fede, fused)] == ["local", "fede", "fused"]
    assert fused.fusion is not None
    assert set(fused.fusion["clients"]) == {"1", "2"}
    assert fused.fusion["settings"]["beta"] == 10
    assert [part.client for part in fused.parts] == [1, 2]
    assert fused.all.test_triples == local.all.test_triples
    assert "hits@5" in fused.all.tail

    place.rows.write_text("".join(place.rows.read_text().splitlines(keepends=True)[:2]))
    place.runs.rename(place.runs.with_name("elsewhere"))
    assert campaign.main(place.options) == 1
    assert "its inputs have rows, but their run folders are not here" in capsys.readouterr().out
    assert len(read_rows(place.rows)[0]) == 2


def _wait_for_round(run: Path, least: int) -> int:
    """Until the checkpoint of this round is complete."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            reached: int = json.loads((run / "checkpoint.json").read_text())["round"]
        except (OSError, ValueError):
            reached = 0
        if reached >= least:
            return reached
        time.sleep(0.02)
    raise AssertionError("the run does not get anywhere")


def test_an_entry_without_its_data_is_left_out(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (place.data / "ddb14").iterdir():
        path.unlink()
    (place.data / "ddb14").rmdir()
    assert campaign.main(place.options) == 1
    assert "tiny: left out: no ddb14 in the folder of --data-root" in capsys.readouterr().out


def test_what_is_left_is_estimated_by_what_there_is(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main([*place.options, "--list"]) == 0
    assert "unknown" in capsys.readouterr().out
    (entry,) = read_queue(place.queue, place.data, place.runs)
    (job,) = entry.jobs
    job.folder.mkdir(parents=True)
    (job.folder / "config.toml").write_text("")
    (job.folder / "metrics.jsonl").write_text('{"round": 1, "loss": 1.0}\n')
    job.record.write_text(json.dumps({"seconds": 3600.0}))
    view = outlook_of(entry, {}, keys_of(entry, RESULTS_VERSION))
    assert [(one.state, one.round) for one in view.cells] == [("under way", 1)]
    assert view.hours_left == pytest.approx(1.0)  # one more round, of an hour


def test_a_list_needs_no_data(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    options = place.options
    at = options.index("--data-root")
    assert campaign.main([*options[:at], *options[at + 2 :], "--list"]) == 0
    assert "tiny" in capsys.readouterr().out


def test_what_was_never_run_is_estimated_by_triples_and_dimension(place: Place) -> None:
    (entry,) = read_queue(place.queue, place.data, place.runs)
    (other,) = read_queue(place.queue, place.data, place.runs, {"settings": {"dim": 4, "rounds": 100}})
    (cell,) = other.request.cells()
    curve = [Point(round=10, seconds=120.0), Point(round=20, seconds=160.0)]  # 4 s a round, after a long set-up
    row = Row(
        **{"key": "0", "version": RESULTS_VERSION, "entry": "other", "table": "fedr-table2", **other.identity(cell)},
        data="0", commits=[], date="", machine={"cores": 2}, seconds=200.0, cpu_seconds=200.0, sessions=1,
        peak_memory_mb=1.0, rounds=20, curve=curve,
    )  # fmt: skip
    view = outlook_of(entry, {}, keys_of(entry, RESULTS_VERSION), [row])
    # Twice the dimension, two rounds, and by itself the machine would have needed half of the seconds.
    assert view.hours_left == pytest.approx(2 * (8.0 / 2) / 3600)
    assert "at most" in view.by


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--data-root", ".", "--hours", "-1"],
        ["--data-root", ".", "--jobs", "0"],
        ["--data-root", ".", "--only", "else"],
        ["--data-root", ".", "--queue", "nowhere.toml"],
        ["--render", "--document", "nowhere.md"],
    ],
)
def test_a_mistake_gets_one_line(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = ["--rows", str(tmp_path / "rows.jsonl"), "--runs", str(tmp_path / "runs")]
    assert campaign.main([*options, *places]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
