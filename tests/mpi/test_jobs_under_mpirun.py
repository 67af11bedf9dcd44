"""The main job under a real mpirun: results, twins, resumption after a kill, and one clear line for every mistake."""

import json
import os
import signal
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs_in_threads import run_in_threads
from tests.support.mpi_jobs import TINY, Ended, command, environment, run_job

pytestmark = pytest.mark.mpi

SUMMARY_KEYS = {
    *("mrr", "hits@1", "hits@3", "hits@10", "clients", "rounds", "seconds"),
    *("bytes_up", "bytes_down", "max_fixed_point_error", "clipped_values"),
}
PHASES = {"train", "encode", "mask", "send", "wait", "unmask", "evaluate"}


def summary(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return loaded


def has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_null(item) for item in value.values())
    if isinstance(value, list):
        return any(has_null(item) for item in value)
    return value is None


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A run that others are compared with, and what it printed."""
    root = tmp_path_factory.mktemp("jobs")
    ended = run_job(3, *TINY, "--out", "secure", "--transcript", cwd=root)
    assert ended.code == 0, ended.errors
    return root / "secure", ended


def test_secure_and_plain_runs_agree_and_the_summary_is_whole(secure: tuple[Path, Ended]) -> None:
    folder, ended = secure
    assert ended.errors == ""
    plain = run_in_threads(3, *TINY, "--out", "plain", "--aggregation", "plain", cwd=folder.parent)
    assert plain.code == 0, plain.errors
    result = summary(folder)
    assert result.keys() >= SUMMARY_KEYS
    assert result["seconds"].keys() >= PHASES
    assert result.pop("leaky_split") is None  # the split is sound
    assert not has_null(result)
    assert [client["client"] for client in result["clients"]] == [1, 2]
    assert result["bytes_up"] == sum(client["bytes_up"] for client in result["clients"]) > 0
    assert result["bytes_down"] == sum(client["bytes_down"] for client in result["clients"]) > 0
    assert 0 < result["max_fixed_point_error"] < 1e-6
    assert result["seconds"]["mask"] > 0
    assert result["mrr"] == summary(folder.parent / "plain")["mrr"]
    assert "alignment was private" in ended.out
    assert "the server read every client's rows" in plain.out
    assert "plain" in plain.out.split("the same data, seed and model")[1]
    settings = tomllib.loads((folder / "config.toml").read_text())
    assert settings["training"]["dim"] == 16
    assert list(folder.glob("transcript-*.bin"))
    assert not list(folder.parent.glob("plain/transcript-*.bin"))


def test_killed_in_the_middle_and_resumed_gives_the_same_result(tmp_path: Path) -> None:
    options = [*TINY[:2], "--rounds", "40", "--dim", "16", "--eval-every", "5", "--checkpoint-every", "5"]
    assert run_in_threads(3, *options, "--out", "unbroken", cwd=tmp_path).code == 0
    with (tmp_path / "log").open("w") as log:
        job = subprocess.Popen(
            command(3, *options, "--out", "broken"), cwd=tmp_path, stdout=log, stderr=log, env=environment()
        )
        marker = tmp_path / "broken/checkpoint.json"
        limit = time.monotonic() + 120
        while not marker.exists():
            assert job.poll() is None, "the job ended before its first checkpoint"
            assert time.monotonic() < limit
            time.sleep(0.01)
        victim = _process_of_rank(job.pid, 0)  # the server: a client's death would not end the job
        os.kill(victim, signal.SIGKILL)
        assert job.wait(timeout=60) != 0
    assert not (tmp_path / "broken/summary.json").exists()
    resumed = run_job(None, "--resume", "broken", cwd=tmp_path)  # with as many ranks as it had
    assert resumed.code == 0, resumed.errors
    assert "continuing after round" in resumed.out
    assert summary(tmp_path / "broken")["mrr"] == summary(tmp_path / "unbroken")["mrr"]
    assert summary(tmp_path / "broken")["rounds"] == summary(tmp_path / "unbroken")["rounds"]
    other = run_job(4, "--resume", "broken", "--rounds", "50", cwd=tmp_path)
    assert other.code == 2
    assert "the run has 2 clients, so it needs 3 ranks" in other.errors
    again = run_in_threads(3, "--resume", "broken", cwd=tmp_path)
    assert again.code == 0
    assert "complete" in again.out


@pytest.mark.parametrize(
    ("module", "called", "others"),
    [
        (["launch.fedr_secagg"], "python -m launch.fedr_secagg", "python -m launch.local"),
        (["launch.cli", "fedr"], "secure-kg fedr", "secure-kg local"),
    ],
)
def test_without_mpirun_the_job_starts_itself(tmp_path: Path, module: list[str], called: str, others: str) -> None:
    ended = run_job(None, *module[1:], "-n", "3", *TINY, cwd=tmp_path, module=module[0])
    assert ended.code == 0, ended.errors
    assert ended.out.startswith(f"starting 1 server and 2 clients: mpirun -n 3 {called} -n 3 ")
    assert f"to compare: {others} with" in ended.out  # the ranks know how their launcher was called
    (folder,) = (tmp_path / "runs").iterdir()
    assert summary(folder)["number_of_clients"] == 2


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGTERM, marks=pytest.mark.slow, id="SIGTERM"), pytest.param(signal.SIGINT, id="Ctrl-C")],
)
def test_ending_the_launcher_ends_the_job(tmp_path: Path, number: signal.Signals) -> None:
    """A signal to the process the user started leaves neither mpirun nor ranks behind, and one line on the screen."""
    options = [*TINY[:2], "--rounds", "100000", "--patience", "100000", "--checkpoint-every", "5", "--out", "run"]
    with (tmp_path / "log").open("w") as log:
        job = subprocess.Popen(
            command(None, "-n", "3", *options), cwd=tmp_path, stdout=log, stderr=log, env=environment()
        )
        limit = time.monotonic() + 120
        while not (tmp_path / "run/checkpoint.json").exists():
            assert job.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.02)
        rank = _process_of_rank(job.pid, 2)
        job.send_signal(number)
        assert job.wait(timeout=60) == 128 + number
    limit = time.monotonic() + 30
    while Path(f"/proc/{rank}").exists():
        assert time.monotonic() < limit, "a rank lives on"
        time.sleep(0.05)
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[-1].startswith("error: interrupted; --resume continues the run")
    assert not any("Traceback" in line or "TERMINATION" in line for line in lines)


@pytest.mark.parametrize(
    ("ranks", "options", "expected"),
    [
        (1, [], "1 rank: a job needs at least 3"),
        (2, [], "2 ranks: a job needs at least 3"),
        (3, ["--dataset", "umlz"], "unknown data set umlz; did you mean umls?"),
        (3, ["--datset", "umls"], "unknown option --datset; did you mean --dataset?"),
        (3, ["--rounds", "many"], "--rounds"),
        (3, ["--dataset", "malformed.tsv"], "malformed.tsv, line 2"),
        (3, ["--dataset", "malformed.tsv", "--out", "new/run", "--transcript"], "malformed.tsv, line 2"),
        pytest.param(3, ["--dataset", "tiny.tsv", "-n", "3"], "no training triples", marks=pytest.mark.slow),
        (3, ["--dataset", "nations", "--model", "distmult", "--lr", "1e30", "--rounds", "2"], "not finite in round 2"),
        (3, ["--out", "taken"], "exists already"),
        pytest.param(3, ["--client-data", "nowhere"], "nowhere", marks=pytest.mark.slow),
        (3, ["--by", "whole"], "--by whole is one client alone, not a federation: use python -m launch.entire"),
        (None, ["--by", "whole"], "python -m launch.entire"),
        (3, ["--resume", "taken"], "no config.toml"),
        (3, ["-n", "4", "--dataset", "nations"], "mpirun started 3 ranks"),
        (3, ["--min-participants", "3"], "there are only 2 clients"),
        (3, ["--clip", "1e12"], "--clip 1e+12"),
        (3, ["--dim", "100000000"], "--dim must be at most"),
        (None, ["-n", "2"], "2 ranks: a job needs at least 3"),
        (None, ["--device", "cuda", "--dataset", "nations", "-n", "3"], "no GPU"),
    ],
)
def test_a_mistake_gets_one_line(tmp_path: Path, ranks: int | None, options: list[str], expected: str) -> None:
    (tmp_path / "malformed.tsv").write_text("a\tr\tb\na\tsecret-name\n")
    (tmp_path / "tiny.tsv").write_text("a\tr\tb\n")
    (tmp_path / "taken").mkdir()
    ended = run_job(ranks, *options, cwd=tmp_path)
    assert ended.code == 2, ended.errors
    assert len(ended.error_lines) == 1, ended.errors
    assert ended.error_lines[0].startswith("error: ")
    assert expected in ended.error_lines[0]
    assert "Traceback" not in ended.out + ended.errors
    assert "secret-name" not in ended.out + ended.errors
    begun = {"runs"} if "in round" in expected else set()  # anything else fails before there is a run
    assert {path.name for path in tmp_path.iterdir()} == {"malformed.tsv", "tiny.tsv", "taken"} | begun


def _process_of_rank(launcher: int, rank: int) -> int:
    """The worker of a rank below this mpirun."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.parent.name)] = int(fields[1])
    for process in sorted(parents):
        ancestor = process
        while ancestor in parents and ancestor != launcher:
            ancestor = parents[ancestor]
        if ancestor != launcher:
            continue
        try:
            variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"PMI_RANK={rank}".encode() in variables:
            return process
    raise AssertionError(f"no process of rank {rank} found")
