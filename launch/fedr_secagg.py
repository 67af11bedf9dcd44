"""FedR with secure aggregation: `mpirun -n 6 python -m launch.fedr_secagg`, or without mpirun to have it started."""

import os
import sys
from collections.abc import Sequence

from launch import environment, supervisor

MODULE = "launch.fedr_secagg"
_DESCRIPTION = """\
Train knowledge-graph embeddings together without showing each other any triple.

One server and N-1 clients, each its own MPI process with its own data and trainer. Clients share only relation
embeddings (FedR, Zhang et al. 2022), and the server reads only their sum: every client adds masks that it shares
with each other client and that cancel in the sum. A client that is slow, stopped or dies costs that client only."""
_EPILOG = """\
examples:
  mpirun -n 6 python -m launch.fedr_secagg                          5 clients on UMLS, secure aggregation
  mpirun -n 6 python -m launch.fedr_secagg --aggregation plain      the same without masks, to measure their cost
  mpirun -n 6 python -m launch.fedr_secagg --strategy local         nobody shares anything, to compare
  python -m launch.fedr_secagg -n 4 --dataset nations               started without mpirun: it starts mpirun itself
  python -m launch.fedr_secagg --resume runs/NAME                   go on after an interruption
  python -m launch.fedr_secagg --adversary active --keys keys       with identities from python -m launch.keygen

The run folder gets config.toml, metrics.jsonl, summary.json, checkpoints and, in clients/K, what client K keeps."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: the job is done. 2: one line on standard error says what to mend."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    rank = environment.rank()
    quiet = rank not in (None, 0)
    if rank is not None:
        supervisor.stand_by(rank)  # forks, and so comes before anything that may start threads
    from launch.options import parse
    from secure_kg.console import fail
    from secure_kg.errors import UserError

    # Six ranks share the cores of one machine; a thread pool in each would only make them wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        if quiet and {"-h", "--help"} & set(arguments):
            return 0
        plan = parse(arguments, f"python -m {MODULE}", _DESCRIPTION, _EPILOG)
        from launch import job  # after parsing: --help and a misspelt option need not wait for MPI

        if job.finished_before(plan):
            if not quiet:
                job.show_again(plan)
            return 0
        if rank is None:
            return job.start_under_mpirun(MODULE, plan, arguments)
        return job.run_rank(plan)
    except UserError as problem:
        if not quiet:
            fail(str(problem))
        return 0 if quiet else 2  # rank 0 speaks and fails for the whole job; another rank must not end it before
    except SystemExit as stop:  # --help
        return int(stop.code or 0)


if __name__ == "__main__":
    sys.exit(main())
