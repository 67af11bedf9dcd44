"""Every client alone, the lower bound: `mpirun -n 6 python -m launch.local`, or without mpirun to have it started."""

import sys
from collections.abc import Sequence

from launch.main import Launcher, run

LAUNCHER = Launcher(
    module="launch.local",
    description="""\
Train every client on its own triples, sharing nothing: the baseline that a federation must beat.

It is the setting "Single" of FedE (Chen et al. 2021) and "Local" of FedR (Zhang et al. 2022). The rounds are those of
the other strategies, and all clients stop together: at the best mean of their validation MRR. The server learns
metrics only; --aggregation says how these are summed, and nothing else is aligned or aggregated.""",
    epilog="""\
examples:
  mpirun -n 6 python -m launch.local                                5 clients on UMLS, each for itself
  mpirun -n 4 python -m launch.local --dataset nations --out runs/local     beside other runs, to be compared with them
  python -m launch.local -n 4 --dataset nations                     started without mpirun: it starts mpirun itself
  python -m launch.local --resume runs/NAME                         go on after an interruption
  python -m launch.entire                                           the other end: all triples in one place

The run folder gets config.toml, metrics.jsonl, summary.json, report.html, checkpoints and, in clients/K, what client
K keeps.""",
    defaults={"strategy": "local"},
)


def main(argv: Sequence[str] | None = None) -> int:
    """0: the job is done. 2: one line on standard error says what to mend."""
    return run(LAUNCHER, argv)


if __name__ == "__main__":
    sys.exit(main())
