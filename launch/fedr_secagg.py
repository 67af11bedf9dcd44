"""FedR with secure aggregation: `mpirun -n 6 python -m launch.fedr_secagg`, or without mpirun to have it started."""

import sys
from collections.abc import Sequence

from launch.main import Launcher, run

LAUNCHER = Launcher(
    module="launch.fedr_secagg",
    description="""\
Train knowledge-graph embeddings together without showing each other any triple.

One server and N-1 clients, each its own MPI process with its own data and trainer. Clients share only relation
embeddings (FedR, Zhang et al. 2022), and the server reads only their sum: every client adds masks that it shares
with each other client and that cancel in the sum. A client that is slow, stopped or dies costs that client only.""",
    epilog="""\
examples:
  mpirun -n 6 python -m launch.fedr_secagg                          5 clients on UMLS, secure aggregation
  mpirun -n 6 python -m launch.fedr_secagg --aggregation plain      the same without masks, to measure their cost
  mpirun -n 6 python -m launch.fedr_secagg --strategy local         nobody shares anything, to compare
  python -m launch.fedr_secagg -n 4 --dataset nations               started without mpirun: it starts mpirun itself
  python -m launch.fedr_secagg --resume runs/NAME                   go on after an interruption
  python -m launch.fedr_secagg --adversary active --keys keys       with identities from python -m launch.keygen

The run folder gets config.toml, metrics.jsonl, summary.json, report.html, checkpoints and, in clients/K, what client
K keeps.""",
    defaults={"strategy": "fedr"},
)


def main(argv: Sequence[str] | None = None) -> int:
    """0: the job is done. 2: one line on standard error says what to mend."""
    return run(LAUNCHER, argv)


if __name__ == "__main__":
    sys.exit(main())
