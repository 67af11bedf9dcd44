"""The check-up of a machine: what it finds, and what it says to do."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launch import cli, doctor
from launch.checkup import folder, jobs, machine, packages
from launch.checkup.finding import Finding

Capture = pytest.CaptureFixture[str]


def named(findings: list[Finding]) -> dict[str, Finding]:
    return {one.about: one for one in findings}


@pytest.mark.mpi
def test_this_machine_can_run_what_these_tests_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["doctor", "--json", "machine.json"]) == 0
    said = capsys.readouterr().out
    assert "nothing stops a default run: secure-kg demo" in said
    record = json.loads((tmp_path / "machine.json").read_text())
    found = {one["about"]: one for one in record["findings"]}
    assert record["ok"] is True
    assert found["MPI"]["status"] == "ok"
    assert "mpirun -n 2 works" in found["MPI"]["found"]
    assert {"Python", "cores", "memory", "disk", "shared memory", "GPU", "clock", "packages", "extra dp"} <= set(found)
    assert all(one["next_step"] for one in record["findings"] if one["status"] != "ok")
    assert sum(record["counts"].values()) == len(record["findings"])


def test_a_problem_is_exit_code_1_and_json_alone(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    found = [Finding("MPI", "problem", "no mpirun", "pip install mpich"), Finding("disk", "ok", "fine")]
    monkeypatch.setattr(doctor, "findings", lambda: iter(found))
    assert cli.main(["doctor", "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["counts"] == {"ok": 1, "note": 0, "problem": 1}
    assert cli.main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "→ pip install mpich" in said
    assert said.splitlines()[-1].startswith("1 problem, 0 notes; a default run would not work")


def test_no_mpirun_is_a_problem_and_one_that_fails_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "find_mpirun", lambda: None)
    assert jobs._mpi().status == "problem"
    broken = tmp_path / "mpirun"
    broken.write_text("#!/bin/sh\necho 'unable to resolve the host' >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(jobs, "find_mpirun", lambda: str(broken))
    assert "unable to resolve the host" in jobs._mpi().found
    broken.write_text("#!/bin/sh\nexec sleep 5\n")
    monkeypatch.setattr(jobs, "_SECONDS", 0.2)
    assert "did not end" in jobs._mpi().found


def test_packages_that_are_missing_or_old_come_with_the_line_that_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs = ["numpy>=1.26", "nosuchpackage>=2", 'rich>=9999; extra == "show"', "phe (>=1.5) ; extra == 'paillier'"]
    monkeypatch.setattr(packages.importlib.metadata, "requires", lambda name: needs)
    found = named(list(packages.packages()))
    assert found["packages"].status == "problem"
    assert found["packages"].next_step == 'pip install "nosuchpackage>=2"'
    assert "no nosuchpackage" in found["packages"].found
    assert found["extra show"].status == "note"
    assert "old rich" in found["extra show"].found
    assert found["extra paillier"].status == "ok"


def test_little_memory_and_disk_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for gigabytes, status in ((0.5, "problem"), (2.0, "note"), (20.0, "ok")):
        monkeypatch.setattr(machine, "_available_memory", lambda size=gigabytes: size)
        assert machine._memory().status == status
    usage = type("Usage", (), {"free": 5e7})
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage)
    assert machine.disk().status == "problem"
    assert "--shm-size" in machine._shared_memory().next_step


def test_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = named(list(folder.folder()))
    assert {one.status for one in found.values()} == {"ok"}
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "client-1.key").write_text("secret")
    (tmp_path / "keys" / "client-1.key").chmod(0o644)
    (tmp_path / "runs" / "begun").mkdir(parents=True)
    (tmp_path / "runs" / "begun" / "config.toml").write_text("")
    tmp_path.chmod(0o777)
    found = named(list(folder.folder()))
    assert found["private keys"].next_step == "chmod 600 keys/client-1.key"
    assert "--resume runs/begun" in found["runs"].next_step
    assert "everybody may write" in found["permissions"].found


def test_a_folder_that_cannot_be_written_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").write_text("a file")
    monkeypatch.chdir(tmp_path)
    assert named(list(folder.folder()))["this folder"].status == "problem"


def test_a_job_without_its_launcher_is_found() -> None:
    """A process that calls itself a rank of a job, started by one that is gone."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(30)", "-m", "launch.fede"]
    start = f"import subprocess; print(subprocess.Popen({sleeper!r}, stdout=-3, stderr=-3).pid)"
    rank = os.environ | {"PMI_RANK": "1"}
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=True, env=rank)
    orphan = int(done.stdout)
    try:
        time.sleep(0.3)
        found = jobs._left_processes({"launch.fede"})
        assert found.status == "note"
        assert str(orphan) in found.next_step
    finally:
        os.kill(orphan, 9)
