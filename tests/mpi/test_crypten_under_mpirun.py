"""The score backend `crypten` under mpirun: its processes are those of the job."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mpi_jobs import MPIRUN, environment
from tests.support.score_batches import expected, some_scores, terms_of

ROOT = Path(__file__).parents[2]


@pytest.mark.mpi
@pytest.mark.slow
def test_the_asker_reads_the_ranking_of_the_plain_twin(tmp_path: Path) -> None:
    path = tmp_path / "read.json"
    job = [str(MPIRUN), "-n", "4", sys.executable, str(ROOT / "tests" / "support" / "crypten_ranks.py"), str(path)]
    variables = environment() | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(job, env=variables, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    terms = terms_of(3, 12, top=3)
    (read,) = json.loads(path.read_text(encoding="utf-8"))
    assert read["positions"] == [row.tolist() for row in expected(some_scores(terms), terms).positions]
