"""Jobs of Slurm over two nodes, by the script of docs/guides/deploy.md, end with the result of mpirun on one host."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.mpi_jobs import MPIRUN, TINY, run_job
from tests.support.slurm import slurm

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(600)]
JOB = "{mpirun} -n 4 {python} -m launch.fedr_secagg {settings} --out {out}"


def summary(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "summary.json").read_text())
    return found


def test_a_batch_job_over_two_nodes_ends_as_on_one_host(tmp_path: Path) -> None:
    with slurm(tmp_path) as cluster:
        out = cluster.folder / "run"
        line = JOB.format(mpirun=MPIRUN, python=sys.executable, settings=" ".join(TINY), out=out)
        (cluster.folder / "job.sh").write_text(f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks=4 --output=job.out\n{line}\n")
        done = cluster.run("sbatch", "--wait", "--ntasks-per-node=2", "job.sh")
        said = (cluster.folder / "job.out").read_text() if (cluster.folder / "job.out").exists() else ""
        assert done.returncode == 0, (done.stderr, said, cluster.logs())
        found = summary(out)
    twin = run_job(4, *TINY, "--out", "twin", cwd=tmp_path)
    assert twin.code == 0, twin.errors
    assert (found["mrr"], found["metrics"]) == ((other := summary(tmp_path / "twin"))["mrr"], other["metrics"])
    assert found["dropouts"] == []
