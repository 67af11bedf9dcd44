"""Start real jobs: one process per party, as a user would."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MPIRUN = Path(sys.executable).with_name("mpirun")
TINY = ["--dataset", "nations", "--rounds", "4", "--dim", "16", "--eval-every", "2", "--checkpoint-every", "2"]


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    errors: str

    @property
    def error_lines(self) -> list[str]:
        return self.errors.splitlines()


def command(ranks: int | None, *options: str, module: str = "launch.fedr_secagg") -> list[str]:
    """Under mpirun with so many ranks, or None to leave that to the job."""
    job = [sys.executable, "-m", module, *options]
    return job if ranks is None else [str(MPIRUN), "-n", str(ranks), *job]


def run_job(ranks: int | None, *options: str, cwd: Path, module: str = "launch.fedr_secagg") -> Ended:
    job = command(ranks, *options, module=module)
    done = subprocess.run(job, cwd=cwd, capture_output=True, text=True, timeout=240, env=environment(), check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def environment() -> dict[str, str]:
    """Without what a surrounding mpirun may have left."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "HYDI"))}
