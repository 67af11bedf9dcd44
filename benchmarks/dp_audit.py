"""Audit of private training by planted canaries: `python -m benchmarks.dp_audit --help`.

A claim of epsilon is a bound on what anybody can find out. This audit tries to find out more. Canaries are triples on
entities and relations of their own; a coin puts each into the training triples or leaves it out. Training then runs
with its real code and its real noise, and an attacker who sees all that is released, and knows all but the coins and
the noise, says how likely each canary is in. The AUC of that is the share of pairs, one canary in and one out, that the
attacker tells apart. The accountant's own account of the releases says how large it can be at most.

    central     training in one place, full batches, noise on all rows
    poisson     the same on Poisson samples
    adafest     the same with rows that are chosen by noised counts
    flames      single steps in which a canary decides whether the test of a gap passes
    federated   real sessions of three clients under secure aggregation, with noise in shares: the attacker is the
                server and one of the clients, the canaries are another one's
    counts      the same for one table of counts

An audit that finds nothing says little unless it finds faults that are there. So the same audit runs over the code with
one fault at a time, and has to find each:

    canaries z   how far the mean AUC over runs lies above the bound, in standard errors taken from the runs
    steps z      correlation of the noise of each step with that of the next, in deviations of independent noise
    runs z       the same of two runs of the same settings, seed and triples, step by step
    found by     the tests whose z is above the threshold, of noise in either direction
    expected     the test that must be among them; for the code as it is, nothing may be found
    power        the probability that test canaries has a finding, of so many runs with the mean and deviation that were
                 measured. Rows with a part of the noise are there for this alone, and may be found or not

What it cannot say: that there is no leak. It looks at one model and one attack, which is the best one against Gaussian
noise on sums; a fault that takes effect on other triples than canaries stays unseen.

Exit code 0: nothing is found in the code as it is, and every planted fault is found by its test. 1: otherwise.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.kge import published_split
from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.catalogue import BUNDLED
from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.privacy.training_config import PrivateTrainingConfig

PATHS: Final = ("central", "poisson", "adafest", "flames", "federated", "counts")
QUICK: Final = ("central", "poisson", "adafest", "counts")
_ALL: Final = "all"


def main(argv: Sequence[str] | None = None) -> int:
    """0: the audit is passed. 1: it is not. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.dp_audit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.dp_audit --path federated --epsilon 8 --json audit.json",
        allow_abbrev=False,
    )
    add = parser.add_argument
    paths = f"one or more of {', '.join(PATHS)}, or all [{' '.join(QUICK)}, about a minute]"
    add("--path", nargs="+", choices=(*PATHS, _ALL), default=QUICK, metavar="PATH", help=paths)
    add("--dataset", default="nations", metavar="PATH", help=f"a folder, or one of {', '.join(BUNDLED)} [nations]")
    add("--epsilon", type=float, default=4.0, metavar="E", help="what the code claims [4]")
    add("--delta", type=float, default=1e-5, metavar="P", help="[1e-5]")
    add("--runs", type=int, default=20, metavar="N", help="trainings of each case, at least 2 [20]")
    add(
        "--canaries",
        type=int,
        default=400,
        metavar="M",
        help="in each run; federated has twice as many, flames 100 [400]",
    )
    add("--steps", type=int, default=20, metavar="T", help="flames: 4, counts: 1 [20]")
    add("--sampling", type=float, default=0.25, metavar="Q", help="poisson: probability of a triple in a sample [0.25]")
    add("--dim", type=int, default=16, metavar="D", help="[16]")
    add("--negatives", type=int, default=32, metavar="K", help="public candidates of a step [32]")
    add("--clip", type=float, default=0.03, metavar="C", help="small, so that both parts of a gradient reach it [0.03]")
    add("--step", type=float, default=0.02, metavar="L", help="per unit of the sum [0.02]")
    add("--threshold", type=float, default=5.0, metavar="Z", help="a z above it is a finding [5]")
    add("--seed", type=int, default=0, metavar="S", help="of rows, candidates and coins; noise has no seed [0]")
    add("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.runs < 2 or options.canaries < 10 or options.seed < 0 or not options.threshold > 0:
        raise UserError("--runs must be at least 2, --canaries at least 10, --seed at least 0, --threshold above 0")
    if not 0 < options.sampling < 1:
        raise UserError("--sampling must lie between 0 and 1")
    require_json(options.json)
    config = PrivateTrainingConfig(
        model="DistMult",  # the one that the fault of separate clips is written for
        dim=options.dim,
        negatives=options.negatives,
        clip=options.clip,
        steps=options.steps,
        step=options.step,
        temperature=1.0,
    )
    report = measure(published_split(options.dataset), config, options)
    deliver(report, options.json, _show)
    return 0 if report["passed"] else 1


def measure(graph: ClientGraph, config: PrivateTrainingConfig, options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from benchmarks.canaries.audited import Judge
    from benchmarks.canaries.paths import MADE
    from benchmarks.canaries.trainings import Plan
    from secure_kg.privacy.accounting.accountant import Budget, epsilon_of

    torch.set_num_threads(1)
    budget = Budget(options.epsilon, options.delta)
    plan = Plan(graph, config, budget, options.canaries, options.seed, options.sampling)
    asked = PATHS if _ALL in options.path else [name for name in PATHS if name in options.path]
    judge, found = Judge(options.runs, options.threshold), []
    for name in asked:
        began, path = time.process_time(), MADE[name](plan)
        report = judge.audited(path)
        report["epsilon_by_the_accountant"] = epsilon_of(path.releases, options.delta)
        found.append(report | {"processor_seconds": time.process_time() - began})
    names = ("dataset", "epsilon", "delta", "runs", "threshold", "seed")
    return {
        **{name: getattr(options, name) for name in names},
        "paths": found,
        "passed": all(path["passed"] for path in found),
    }


def _show(report: dict[str, Any]) -> None:
    for path in report["paths"]:
        _show_path(report, path)
    say("passed" if report["passed"] else "NOT PASSED: see the last column")


def _show_path(report: dict[str, Any], path: dict[str, Any]) -> None:
    rows = [
        [
            row["code"],
            f"{row['auc']:.3f}",
            *(f"{row['z'][test]:+.1f}" if test in row["z"] else "" for test in ("canaries", "steps", "runs")),
            f"{row['power']:.2f}",
            ", ".join(row["found_by"]) or "nothing",
            "(power)" if row["probe"] else row["must_be_found_by"] or "nothing",
            "yes" if row["as_expected"] else "NO",
        ]
        for row in path["rows"]
    ]
    canaries, steps = (path["settings"][name] for name in ("canaries", "steps"))
    title = (
        f"{path['path']}: {report['dataset']}, epsilon {report['epsilon']:g}, delta {report['delta']:g}, "
        f"{path['runs']} runs of {canaries} canaries, steps: {steps}; AUC at most {path['auc_bound']:.4f}"
    )
    table(title, ("code", "AUC", "canaries z", "steps z", "runs z", "power", "found by", "expected", "ok"), rows)
    for row in path["rows"]:
        if row["probe"]:
            needed = row["runs_for_power_0.9"]
            more = f"{needed} runs would find it with probability 0.9" if needed else "no number of runs would find it"
            say(f"{row['code']}: found with probability {row['power']:.2f} in {path['runs']} runs; {more}")


if __name__ == "__main__":
    sys.exit(main())
