"""Audit of private training by planted canaries: `python -m benchmarks.dp_audit --help`.

A claim of epsilon is a bound on what anybody can find out. This audit tries to find out more. Canaries are triples on
entities and relations of their own; a coin puts each into the training triples or leaves it out. Training then runs
with its real code and its real noise, and an attacker who sees every noised sum, and knows all but the coins and the
noise, says how likely each canary is in. The AUC of that is the share of pairs, one canary in and one out, that the
attacker tells apart. By the accountant's epsilon it is at most Phi(mu / sqrt 2), mu = sqrt(steps) / noise.

An audit that finds nothing says little unless it finds faults that are there. So the same audit runs over the code with
one fault at a time, and has to find each:

    canaries z   how far the mean AUC over runs lies above the bound, in standard errors taken from the runs
    steps z      correlation of the noise of each step with that of the next, in deviations of independent noise
    runs z       the same of two runs of the same settings, seed and triples, step by step
    found by     the tests whose z is above the threshold, of noise in either direction
    expected     the test that must be among them; for the code as it is, nothing may be found

What it cannot say: that there is no leak. It looks at full batches, one model and one attack, which is the best one
against Gaussian noise on sums; a fault that takes effect on other triples than canaries stays unseen.

Exit code 0: nothing is found in the code as it is, and every planted fault is found by its test. 1: otherwise.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.kge import published_split
from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.catalogue import BUNDLED
from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import tracked
from secure_kg.foundation.seeds import generator
from secure_kg.privacy.training_config import PrivateTrainingConfig

if TYPE_CHECKING:
    from benchmarks.canaries.cases import Case
    from benchmarks.canaries.planting import Planted
    from benchmarks.canaries.watching import Watched
    from secure_kg.privacy.mechanisms.sgd import Sgd


def main(argv: Sequence[str] | None = None) -> int:
    """0: the audit is passed. 1: it is not. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.dp_audit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.dp_audit --epsilon 8 --runs 10 --json audit.json",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--dataset", default="kinships", metavar="PATH", help=f"a folder, or one of {', '.join(BUNDLED)} [kinships]")
    add("--epsilon", type=float, default=4.0, metavar="E", help="what the code claims [4]")
    add("--delta", type=float, default=1e-5, metavar="P", help="[1e-5]")
    add("--runs", type=int, default=20, metavar="N", help="trainings of each case, at least 2 [20]")
    add("--canaries", type=int, default=400, metavar="M", help="in each run, at least 10 [400]")
    add("--steps", type=int, default=20, metavar="T", help="[20]")
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
    require_json(options.json)
    config = PrivateTrainingConfig(
        model="DistMult",  # the one that the fault of separate clips is written for
        dim=options.dim,
        negatives=options.negatives,
        clip=options.clip,
        steps=options.steps,
        step=options.step,
    )
    report = measure(published_split(options.dataset), config, options)
    deliver(report, options.json, _show)
    return 0 if report["passed"] else 1


def measure(graph: ClientGraph, config: PrivateTrainingConfig, options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from benchmarks.canaries.cases import CASES
    from benchmarks.canaries.findings import auc_bound
    from secure_kg.privacy.accounting.accountant import Budget, epsilon_of, noise_for
    from secure_kg.privacy.mechanisms.sgd import Sgd

    torch.set_num_threads(1)
    mechanism = Sgd(noise_for(Budget(options.epsilon, options.delta), config.steps))
    releases = [(release, config.steps) for release in mechanism.releases()]
    bound = auc_bound(releases)
    rows = [_audited(case, (graph, config, mechanism), bound, options) for case in CASES]
    names = ("dataset", "epsilon", "delta", "runs", "canaries", "threshold", "seed")
    settings = {name: getattr(config, name) for name in config.__dataclass_fields__}
    return {
        **{name: getattr(options, name) for name in names},
        "settings": settings,
        "noise": mechanism.noise,
        "epsilon_by_the_accountant": epsilon_of(releases, options.delta),
        "auc_bound": bound,
        "rows": rows,
        "passed": all(row["as_expected"] for row in rows),
    }


def _audited(
    case: "Case", code: tuple[ClientGraph, PrivateTrainingConfig, "Sgd"], bound: float, options: argparse.Namespace
) -> dict[str, Any]:
    """All runs of one case, and one of them again."""
    from benchmarks.canaries.findings import auc, correlation, excess
    from benchmarks.canaries.planting import plant

    aucs: list[float] = []
    neighbours, first = [], []
    for run in tracked(range(options.runs), f"runs of {case.name}"):
        planted = plant(code[0], options.canaries, generator(options.seed, "coins", run))
        watched = _trained(case, planted, code, options.seed + run)
        aucs.append(auc(watched.evidence.numpy(), planted.inside))
        neighbours.append(correlation(zip(watched.residuals[:-1], watched.residuals[1:], strict=True)))
        if run == 0:
            first = watched.residuals
    planted = plant(code[0], options.canaries, generator(options.seed, "coins", 0))
    again = correlation(zip(first, _trained(case, planted, code, options.seed).residuals, strict=True))
    z = {
        "canaries": excess(aucs, bound),
        "steps": sum(found for _, found in neighbours) / options.runs**0.5,
        "runs": again[1],
    }
    # Noise against that of the step before is a fault as well; an AUC far below the bound is none.
    found = [test for test, value in z.items() if (value if test == "canaries" else abs(value)) > options.threshold]
    return {
        "code": case.name,
        "must_be_found_by": case.found_by,
        "auc": statistics.mean(aucs),
        "auc_by_run": aucs,
        "correlation_of_steps": statistics.mean(value for value, _ in neighbours),
        "correlation_of_runs": again[0],
        "z": z,
        "found_by": found,
        "as_expected": found == [] if case.found_by is None else case.found_by in found,
    }


def _trained(
    case: "Case", planted: "Planted", code: tuple[ClientGraph, PrivateTrainingConfig, "Sgd"], seed: int
) -> "Watched":
    """One whole training of the audited code, watched."""
    import torch

    from benchmarks.canaries.watching import Watched
    from secure_kg.privacy.gradients.clipped_sums import PrivateGradients
    from secure_kg.privacy.training import PrivateTraining

    _, config, sgd = code
    source = None if case.source is None else case.source()  # None: training takes the operating system's randomness
    training = PrivateTraining(planted.graph, config, seed, source)
    gradients = PrivateGradients(training.model, config.temperature)
    watched = Watched(
        sgd if case.mechanism is None else case.mechanism(sgd),
        torch.from_numpy(planted.canaries),
        (lambda triples, candidates: gradients.sums(triples, candidates, config.clip))
        if case.clipping is None
        else case.clipping(training.model, config.clip),
        faulty_clipping=case.clipping is not None,
    )
    training.run(watched)
    return watched


def _show(report: dict[str, Any]) -> None:
    rows = [
        [
            row["code"],
            f"{row['auc']:.3f}",
            f"{row['z']['canaries']:+.1f}",
            f"{row['z']['steps']:+.1f}",
            f"{row['z']['runs']:+.1f}",
            ", ".join(row["found_by"]) or "nothing",
            row["must_be_found_by"] or "nothing",
            "yes" if row["as_expected"] else "NO",
        ]
        for row in report["rows"]
    ]
    title = (
        f"{report['dataset']}, epsilon {report['epsilon']:g}, delta {report['delta']:g}: {report['runs']} runs of "
        f"{report['canaries']} canaries; AUC at most {report['auc_bound']:.4f}"
    )
    heads = ("code", "AUC", "canaries z", "steps z", "runs z", "found by", "expected", "ok")
    table(title, heads, rows)
    say("passed" if report["passed"] else "NOT PASSED: see the last column")


if __name__ == "__main__":
    sys.exit(main())
