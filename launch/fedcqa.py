"""FedCQA, encoders of logical queries: `mpirun -n 4 python -m launch.fedcqa`, or without mpirun to have it started."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from launch.main import Launcher, run
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.parsing import text_of, toml_of

LAUNCHER = Launcher(
    module="launch.fedcqa",
    description="""\
Train encoders of logical queries together (FedCQA, Hu et al. 2024), so that questions can be answered over all graphs.

One server and N-1 clients. Every client draws queries from its own graph and trains an encoder on them. It shares rows
of entities and relations, each averaged over its holders by sums that the server cannot read, and the encoder's
operators, by secure averaging. Rows of fewer than --min-holders clients stay with these. Results are on queries whose
answers training cannot see: MRR and Hits of these hard answers, by type.""",
    epilog="""\
examples:
  mpirun -n 4 python -m launch.fedcqa                               3 clients on UMLS, divided by relations
  mpirun -n 4 python -m launch.fedcqa --encoder q2p --test-types 2in,3in,inp,pin,pni --train-types 1p,2i,2in,inp
                                                                    Query2Particles, with negations
  mpirun -n 4 python -m launch.fedcqa --strategy fedcqa-local       nobody shares: the baseline
  python -m launch.fedcqa -n 4 --strategy fedcqa-central            all triples in one place, in one process
  mpirun -n 4 python -m launch.fedcqa --aggregation plain --alignment plain     in clear, with the same result
  mpirun -n 4 python -m launch.fedcqa --dataset fb15k237 --step 2 --grace 600   FB15k-237 by relations
  python -m launch.fedcqa --resume runs/NAME                        go on after an interruption

The run folder gets config.toml, metrics.jsonl, summary.json, report.html, checkpoints and, in clients/K, what client
K keeps.""",
    defaults={"strategy": "fedcqa", "aggregation": "secret", "by": "relations"},
)
CENTRAL = dataclasses.replace(
    LAUNCHER,
    defaults={"strategy": "fedcqa-central", "by": "relations", "aggregation": "plain", "min_participants": 1},
)
"""The same command where it pools everybody's triples."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: the job is done. 2: one line on standard error says what to mend."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not _pools(arguments):
        return run(LAUNCHER, arguments)
    from launch.entire import run_pooled

    return run_pooled(CENTRAL, arguments)


def _pools(arguments: Sequence[str]) -> bool:
    """Whether the job is one process: it is known before anything else, for other jobs start processes at once."""
    given: dict[str, str] = {}
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in ("--strategy", "--resume"):
            given[name] = value if equals else "".join(arguments[position + 1 : position + 2])
    strategy = given.get("--strategy")
    if strategy is None and "--resume" in given:
        try:
            strategy = toml_of(text_of(Path(given["--resume"]) / "config.toml")).get("strategy")
        except (OSError, ValueError, UserError):
            return False  # reading the options says what is wrong with it
    return bool(strategy == CENTRAL.defaults["strategy"])


if __name__ == "__main__":
    sys.exit(main())
