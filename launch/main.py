"""The one `main` behind the launchers of training jobs; each launcher says what it is and what its defaults are."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launch import environment, supervisor


@dataclass(frozen=True, slots=True)
class Launcher:
    """A command, `python -m <module>`. `defaults` are settings that differ from those of `RunConfig`."""

    module: str
    description: str
    epilog: str
    defaults: Mapping[str, Any]

    @property
    def prog(self) -> str:
        return f"python -m {self.module}"


def run(launcher: Launcher, argv: Sequence[str] | None) -> int:
    """Every rank's way through a job under mpirun. 0: it is done. 2: one line on standard error says what to mend."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    rank = environment.rank()
    quiet = rank not in (None, 0)
    if rank is not None:
        supervisor.stand_by(rank)  # forks, and so comes before anything that may start threads
    from launch.options import parse
    from secure_kg.foundation.console import fail
    from secure_kg.foundation.errors import UserError

    # Six ranks share the cores of one machine; a thread pool in each would only make them wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        if quiet and {"-h", "--help"} & set(arguments):
            return 0
        plan = parse(arguments, launcher.prog, launcher.description, launcher.epilog, launcher.defaults)
        from launch import job  # after parsing: --help and a misspelt option need not wait for MPI

        if job.finished_before(plan):
            if not quiet:
                job.show_again(plan)
            return 0
        if rank is None:
            return job.start_under_mpirun(launcher.module, plan, arguments)
        return job.run_rank(plan)
    except UserError as problem:
        if not quiet:
            fail(str(problem))
        return 0 if quiet else 2  # rank 0 speaks and fails for the whole job; another rank must not end it before
    except SystemExit as stop:  # --help
        return int(stop.code or 0)
