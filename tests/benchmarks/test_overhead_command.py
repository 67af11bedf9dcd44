"""The overhead benchmark on real runs, and its mistakes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import overhead, overhead_sweep
from secure_kg.foundation.errors import UserError

SMALL = ["--dataset", "nations", "--dim", "16", "--grace", "2"]


@pytest.mark.mpi
@pytest.mark.parametrize("masked", [["secret"], pytest.param(["secagg", "secret"], marks=pytest.mark.slow)], ids=len)
def test_measures_real_runs_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str], masked: list[str]) -> None:
    """Every setting is a job of its own. The test of a silent client has masked sums that the server reads."""
    options = [*SMALL, "--clients", "2", "--rounds", "4", "--settings", masked[-1], "plain", *masked[:-1]]
    assert overhead.main([*options, "--json", str(tmp_path / "overhead.json"), "--", "--local-epochs", "1"]) == 0
    report = json.loads((tmp_path / "overhead.json").read_text())
    assert report.keys() >= {"dataset", "clients", "rounds", "strategy", "model", "dim", "seed", "commit", "cores"}
    assert report["settings"] == ["plain", *masked]
    for setting in report["settings"]:
        figures = report[setting]
        assert figures["round_seconds"] > 0
        assert {one["bytes_up"] for one in figures["rounds"][2:]} == {figures["bytes_up"]}  # each round costs the same
        assert figures["bytes_ratio"] == figures["bytes_up"] / report["plain"]["bytes_up"]
        assert figures["run_bytes_up"] > 2 * figures["bytes_up"] + figures["setup_bytes_up"]
        assert len(figures["ratios"]) == figures["rounds_counted"] == 2  # of rounds 3 and 4
        assert figures["seconds"].keys() == figures["cpu_seconds"].keys()
        for party in ("server", "client_mean", "client_max"):
            assert figures["parties"][party]["peak_memory_mb"] > 10
            assert figures["parties"][party]["run_messages_up"] > 0
            assert figures["ratios_to_plain"][party]["run_bytes_up"] >= 1
    assert report["plain"]["ratios"] == [1.0, 1.0]
    for setting in masked:
        assert report["plain"]["seconds"]["mask"] == 0 < report[setting]["seconds"]["mask"]
        assert report[setting]["bytes_ratio"] > 1  # keys, shares and the count beside sixteen numbers per row
        assert report[setting]["round_traffic"]["masked input/rows"]["messages_up"] == 2
    assert report["mrr_difference"] == 0
    assert "ratio_to_plain" in capsys.readouterr().out


def test_parties_connected_over_a_slow_link_come_to_the_same_result(capsys: pytest.CaptureFixture[str]) -> None:
    options = [*SMALL, "--clients", "2", "--rounds", "3", "--link", "delay=20ms", "--settings", "plain", "secagg"]
    assert overhead.main([*options, "--json", "-", "--", "--local-epochs", "1"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["link"], report["mrr_difference"]) == ("delay=20ms", 0)
    for setting in ("plain", "secagg"):
        assert report[setting]["round_seconds"] > 0.04  # there and back, once at least
        assert report[setting]["parties"]["client_mean"]["round_cpu_seconds"] > 0


@pytest.mark.mpi
def test_a_client_falls_silent_and_comes_back(capsys: pytest.CaptureFixture[str]) -> None:
    options = [*SMALL, "--clients", "4", "--rounds", "12", "--settings", "plain", "secagg_dropout"]
    assert overhead.main([*options, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)  # JSON and nothing else
    figures = report["secagg_dropout"]
    assert [dropout["client"] for dropout in figures["dropouts"]] == [4, 4]
    assert figures["waited_in_vain_seconds"] > 0
    first = figures["dropouts"][0]["round"]
    assert [one["round"] for one in figures["abandoned_sums"]][:1] == [first]  # a count stood
    assert len(figures["ratios"]) == figures["rounds_counted"] <= 1  # none if it dropped out between count and sum
    if figures["rounds_counted"]:
        assert (
            figures["bytes_ratio"] == figures["bytes_up"] / report["plain"]["bytes_up"] < figures["client_bytes_ratio"]
        )


@pytest.mark.parametrize(
    "options",
    [
        ["--clients", "1"],
        ["--rounds", "2"],
        ["--rounds", "x"],
        ["--nonsense"],
        ["--settings", "secagg"],
        ["--settings", "plain", "other"],
        ["--dropouts", "3", "--rounds", "9"],
        ["--dropouts", "-1"],
        ["--settings", "plain", "secret_dropout", "--clients", "3"],
        ["--memory-gb", "1"],
        ["--sweep", "time"],
        ["--link", "delay=25"],
        ["--link", "delay=25ms", "--sweep", "rows"],
        ["--link", "delay=25ms", "--dropouts", "1"],
        ["--link", "delay=25ms", "--settings", "plain", "secagg_dropout"],
        ["--strategy", "local"],
        ["--json", "/dev/null/no"],
    ],
)
def test_a_mistake_gets_one_line(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert overhead.main(options) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")


def test_a_negative_number_of_dropouts_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert overhead.main(["--dropouts", "-1"]) == 2
    assert capsys.readouterr().err == "error: --dropouts -1: must not be negative\n"


def test_help_says_what_bytes_are_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert overhead.main(["--help"]) == 0
    assert "run_bytes_up is of the whole run" in capsys.readouterr().out


@pytest.mark.mpi
def test_a_failing_run_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert overhead.main(["--dataset", "no-such-set", "--settings", "plain", "secagg"]) == 2
    assert re.search("^error: the (plain|secagg) run failed: .*unknown data set", capsys.readouterr().err)


@pytest.mark.mpi
def test_a_benchmark_that_is_killed_leaves_no_job_behind(tmp_path: Path) -> None:
    marked = tmp_path / "marked"
    command = [sys.executable, "-m", "benchmarks.overhead", *SMALL, "--settings", "plain", "--clients", "2"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "MARK": str(marked)}
    benchmark = subprocess.Popen(
        [*command, "--rounds", "500"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_until(lambda: len(_processes_marked(marked)) > 3, 120)
    finally:
        benchmark.send_signal(signal.SIGKILL)
        benchmark.wait()
    _wait_until(lambda: not _processes_marked(marked), 60)


def _wait_until(true: Callable[[], bool], seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.2)


def _processes_marked(mark: Path) -> list[int]:
    """Those with this mark in their environment: the benchmark's descendants."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"MARK={mark}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_a_sweep_counts_what_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    points = (overhead_sweep.Point(2, 10, 4), overhead_sweep.Point(3, 10, 4))
    monkeypatch.setitem(overhead_sweep._POINTS, "clients", points)
    assert overhead.main(["--sweep", "clients", "--json", str(tmp_path / "sweep.json")]) == 0
    report = json.loads((tmp_path / "sweep.json").read_text())
    assert [point["clients"] for point in report["points"]] == [2, 3]
    for point in report["points"]:
        for setting in ("plain", "secagg", "secret"):
            assert point[setting]["client_bytes_up"] == point[setting]["client_bytes_up_measured"]
            assert point[setting]["client_cpu_seconds"] > 0
    assert "bytes up per client" in capsys.readouterr().out


def test_where_memory_is_short_the_settings_with_dropouts_are_left_out_unless_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = overhead._parser().parse_args(["--clients", "5", "--memory-gb", "12"])
    overhead._check(options)
    assert options.settings == ["plain", "secagg", "secret"]
    assert "without dropouts" in capsys.readouterr().out
    for asked in (["--dropouts", "1"], ["--settings", "plain", "secagg", "secret", "secagg_dropout", "secret_dropout"]):
        with pytest.raises(UserError, match="GB"):
            overhead._check(overhead._parser().parse_args(["--clients", "5", "--memory-gb", "12", *asked]))
