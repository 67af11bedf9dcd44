"""The demonstration: the job of `make demo`, cut short, and next steps that work as they are printed."""

import shlex
from pathlib import Path

import pytest

from launch import cli, demo
from launch.hosts.registry import HOSTS
from tests.support.jobs_in_threads import TOY
from tests.support.mpi_jobs import run_job

Capture = pytest.CaptureFixture[str]


@pytest.mark.long
def test_it_runs_in_any_folder_and_its_next_steps_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(HOSTS, "mpi", TOY)
    monkeypatch.setattr(demo, "_ROUNDS", 3)
    (tmp_path / "runs" / "demo").mkdir(parents=True)  # of an earlier one
    assert cli.main(["demo"]) == 0
    said = capsys.readouterr().out
    assert "FedR on umls by triples, TransE, 5 clients, secagg" in said
    steps = [line.strip() for line in said.partition("next:\n")[2].splitlines() if not line.startswith("      ")]
    assert [step.split()[0] for step in steps] == ["open", "secure-kg", "secure-kg", "secure-kg"]
    assert Path(steps[0].split()[1]).is_file()
    assert Path(steps[0].split()[1]).parent == Path("runs/demo-2")
    assert cli.main(shlex.split(steps[1])[1:]) == 0
    assert '"antibiotic", "treats", ?' in capsys.readouterr().out


def test_mpirun_is_not_for_it(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    assert cli.main(["demo"]) == 0
    monkeypatch.setenv("PMI_RANK", "0")
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err == "error: secure-kg demo starts mpirun by itself: leave out mpirun\n"


@pytest.mark.mpi
@pytest.mark.slow
def test_with_real_processes(tmp_path: Path) -> None:
    done = run_job(None, cwd=tmp_path, module="launch.demo")
    assert done.code == 0, done.errors
    assert "round   30/30" in done.out
    assert "python -m launch.audit runs/demo --truth runs/demo/clients --out audits/demo" in done.out
    audited = run_job(
        None, "runs/demo", "--truth", "runs/demo/clients", "--out", "audits/demo", cwd=tmp_path, module="launch.audit"
    )
    assert audited.code == 0
