"""Hosts: one in its own file and one line of the registry carries a job through the same launchers."""

import json
import re
import sys
from pathlib import Path

import pytest

from launch import entire, fedr_secagg, local
from launch.hosts import environment
from launch.hosts.registry import DEFAULT_HOST, HOSTS, chosen_host
from launch.options import parse
from secure_kg.federation.client.site import OwnSite
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer
from secure_kg.foundation.errors import UserError
from tests.support.jobs_in_threads import TOY

Capture = pytest.CaptureFixture[str]
TINY = ["-n", "4", "--dataset", "nations", "--rounds", "3", "--dim", "8", "--eval-every", "1", "--out", "run"]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All that a new host needs beside its own file."""
    monkeypatch.setitem(HOSTS, "toy", TOY)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("toy")
def test_a_host_in_its_own_file_carries_a_job(tmp_path: Path, capsys: Capture) -> None:
    assert fedr_secagg.main(["--host", "toy", "--toy-word", "well done", *TINY]) == 0
    shown = capsys.readouterr().out
    assert "FedR: 3 clients" in shown
    assert "aggregation was secure" in shown
    assert shown.endswith("well done\n")
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert [client["client"] for client in summary["clients"]] == [1, 2, 3]
    assert (tmp_path / "run/report.html").exists()
    assert fedr_secagg.main(["--host=toy", "--resume", "run"]) == 0
    assert "this run is complete" in capsys.readouterr().out
    assert fedr_secagg.main(["--host=toy", "--resume", "run", "--rounds", "4"]) == 0
    assert json.loads((tmp_path / "run/summary.json").read_text())["rounds"] == 4


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--dataset", "umlz"], "unknown data set umlz"),
        (["--client-data", "nowhere"], "nowhere"),
        (["--min-participants", "4"], "there are only 3 clients"),
        (["--model", "distmult", "--lr", "1e30"], "not finite in round 2"),
        (["--adversary", "active", "--keys", "nowhere"], "nowhere"),
        (["--toy-wrod", "x"], "did you mean --toy-word"),
    ],
)
def test_a_mistake_of_any_party_is_one_line(arguments: list[str], problem: str, capsys: Capture) -> None:
    assert local.main(["--host", "toy", *TINY, "--strategy", "fedr", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert problem in line


@pytest.mark.usefixtures("toy")
def test_a_fault_of_ours_is_one_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(OwnSite, "equip", lambda site, folder: 1 // 0)
        assert fedr_secagg.main(["--host", "toy", *TINY]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    where = re.search(r"client (\d): internal error \(ZeroDivisionError\); the details are in (.*)$", line)
    assert where is not None
    assert where[2] == f"run/clients/{where[1]}/error.log"
    assert "ZeroDivisionError" in (tmp_path / where[2]).read_text()


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("toy")
def test_a_fault_of_the_server_ends_its_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(FederationServer, "_finish", lambda *_: 1 // 0)
    assert fedr_secagg.main(["--host", "toy", *TINY]) == 2
    assert capsys.readouterr().err == (
        "error: internal error (ZeroDivisionError); the details are in run/server/error.log\n"
    )
    assert "ZeroDivisionError" in (tmp_path / "run/server/error.log").read_text()


@pytest.mark.usefixtures("toy")
def test_the_option_lists_the_hosts_and_what_the_chosen_one_offers(capsys: Capture) -> None:
    assert fedr_secagg.main(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--host mpi|toy" in text
    assert "mpi: every party is a process of mpirun; toy: every party is a thread [mpi]" in text
    assert "--toy-word" not in text
    assert fedr_secagg.main(["--host", "toy", "--help"]) == 0
    assert "--toy-word TEXT" in capsys.readouterr().out
    assert entire.main(["--host", "toy"]) == 2  # one process, which nobody carries
    assert "unknown option --host" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--host", "cloud"], ["--host"], ["--host="]])
def test_an_unknown_host_is_refused_by_the_usual_one(arguments: list[str]) -> None:
    assert chosen_host(arguments) is HOSTS[DEFAULT_HOST].load()
    with pytest.raises(UserError, match="--host"):
        parse(arguments, "job", "what it does", "examples")


def test_a_host_and_its_options_are_no_settings_of_the_run() -> None:
    assert parse(["--host", "mpi", "--preset", "paper"], "job", "what it does", "examples").config == RunConfig()


def test_ranks_look_for_modules_where_their_launcher_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert environment.mpirun_command(3, ["launch.fede", "--seed", "1"])[1:] == [
        *("-n", "3", sys.executable, "-m", "launch.fede", "--seed", "1")
    ]
    monkeypatch.setattr(sys, "path", ["elsewhere"])
    started = environment.mpirun_command(3, ["launch.fede"])
    assert started[1:] == ["-n", "3", sys.executable, "-P", "-m", "launch.fede"]
