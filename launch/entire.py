"""All clients' triples in one place, the bound that violates privacy: `python -m launch.entire`."""

import os
import signal
import sys
from collections.abc import Sequence

from launch.command_line import require_json, run_command
from launch.hosts import environment
from launch.main import Launcher

LAUNCHER = Launcher(
    module="launch.entire",
    description="""\
Train on the pooled triples of all clients: what a federation is measured against, at the price of all privacy.

It is the setting "Entire" of FedE (Chen et al. 2021). One process reads everybody's data, so nothing here is private;
it is for public data, to see what the clients' triples are worth together. Every client's test triples are ranked
among its own entities with its own filter, as under the other strategies, so that the figures compare.""",
    epilog="""\
examples:
  python -m launch.entire                                           the data of 5 clients on UMLS, pooled
  python -m launch.entire -n 4 --dataset nations                    those of 3 clients
  python -m launch.entire --client-data parts                       those of parts/client-1, parts/client-2, ...
  python -m launch.entire --resume runs/NAME                        go on after an interruption

There is no server and no MPI; started by mpirun -n N, rank 0 pools the data of N-1 clients and the others leave.
The run folder has the files of every run: config.toml, metrics.jsonl, summary.json, report.html, checkpoints and
clients/K.""",
    defaults={"strategy": "entire", "aggregation": "plain", "min_participants": 1},
)


def main(argv: Sequence[str] | None = None) -> int:
    """0: done. 2: one line on standard error says what to mend."""
    return run_pooled(LAUNCHER, list(sys.argv[1:] if argv is None else argv))


def run_pooled(launcher: Launcher, arguments: list[str]) -> int:
    """The way of a job that pools everybody's triples, for any launcher."""
    rank = environment.rank()
    if rank not in (None, 0):
        return 0  # one process does it all
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return run_command(lambda: _run(launcher, arguments, rank))


def _run(launcher: Launcher, arguments: list[str], rank: int | None) -> int:
    from launch.options import parse
    from secure_kg.foundation.errors import UserError

    plan = parse(arguments, launcher.prog, launcher.description, launcher.epilog, launcher.defaults)
    require_json(plan.json)
    started = environment.size() if rank is not None else None
    ranks = plan.ranks if plan.ranks is not None else started if started != 1 else None
    if started not in (None, 1, ranks):
        raise UserError(f"-n {ranks}: mpirun started {started} ranks; say how many to mpirun alone")
    if ranks is not None and ranks < 2:
        raise UserError(f"-n {ranks}: at least 2, for the data of 1 client")
    # After parsing: --help and a misspelt option need not wait for imports.
    from launch.completed import finished_before, show_again

    if finished_before(plan):
        show_again(plan)
        return 0
    end_on_signals()
    from launch.pooled import run_job

    return run_job(plan, ranks - 1 if ranks is not None else None)


def end_on_signals() -> None:
    """Ctrl-C and its like end the process at once, in one line. Files are whole at any moment, so nothing is lost."""
    from secure_kg.foundation.console import fail

    def end(number: int, _frame: object) -> None:
        fail("interrupted; --resume continues the run from its last checkpoint, if it had come to one")
        sys.stdout.flush()
        os._exit(128 + number)  # not through the interpreter: the trainer's thread is in the middle of something

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


if __name__ == "__main__":
    sys.exit(main())
