"""FedE, entity rows shared: `mpirun -n 6 python -m launch.fede`, or without mpirun to have it started."""

import sys
from collections.abc import Sequence

from launch.main import Launcher, run

LAUNCHER = Launcher(
    module="launch.fede",
    description="""\
Train knowledge-graph embeddings together by sharing entity rows (FedE, Chen et al. 2021).

One server and N-1 clients, each its own MPI process with its own data and trainer. Relations stay at home. FedE's
server is shown every client's entities and their rows; here names are aligned by a private set union and the
server reads only sums of rows, unless --alignment plain and --aggregation plain ask for FedE as published.""",
    epilog="""\
examples:
  mpirun -n 6 python -m launch.fede --by relations                  5 clients on UMLS, divided as in FedE
  mpirun -n 6 python -m launch.fede --aggregation plain --alignment plain     in clear, as published
  mpirun -n 4 python -m launch.fede --preset fede --dataset fb15k237 --by relations --grace 600
                                                                    FedE's settings; clients by relations differ in
                                                                    size, and the largest one is no dropout
  python -m launch.fede -n 4 --dataset nations                      started without mpirun: it starts mpirun itself
  python -m launch.fede --resume runs/NAME                          go on after an interruption
  python -m launch.fuse runs/FEDE runs/LOCAL --out fused            afterwards: FedE's model fusion, with a Local run

The run folder gets config.toml, metrics.jsonl, summary.json, report.html, checkpoints and, in clients/K, what client
K keeps.""",
    defaults={"strategy": "fede"},
)


def main(argv: Sequence[str] | None = None) -> int:
    """0: the job is done. 2: one line on standard error says what to mend."""
    return run(LAUNCHER, argv)


if __name__ == "__main__":
    sys.exit(main())
