"""Can the server's view be told from a simulated one? `python -m benchmarks.real_or_ideal --help`.

For every protocol there is a simulator that writes what the server sees from what the server is allowed to learn,
without any client's input (protocols/ideal). For the count of holders there is one that writes what a client sees
(holders-client), for secret selection one that writes what all clients but one see together (scores-topk-client), for
hidden queries what scorers see and what the asker sees, for encrypted scores what the server sees with the asker. This
command holds real sessions on fixed inputs, has as many views simulated, and trains a classifier that knows all inputs
to tell one from the other. Of a secure protocol it must be right half of the time. The same test is then made with
protocols that are broken on purpose (benchmarks/insecure_variants.py, benchmarks/insecure_counts.py,
benchmarks/insecure_scores.py): these it must catch. Protocols whose packages are not installed are left out, unless
they are asked for.

accuracy    of the classifier on views it was not trained on; 0.5 is guessing
interval    exact (Clopper-Pearson): it misses the classifier's true accuracy once in 20,000 times at most
advantage   at most so much, for this classifier: 2 * (upper end) - 1, or 1 - 2 * (lower end) if that is more. The bound
            shrinks with the square root of --samples
verdict     "told apart" if 0.5 lies outside of the interval, else "not told apart"; "too few samples" if the interval
            reaches beyond 0.8 or below 0.2, so that nothing can be said. This one is counted apart, as
            inconclusive; with 100 samples, which is the least, guessing gets it once in 80 times

How small a leak may be before this test no longer sees it is measured with --graded (benchmarks/graded_controls.py).

Exit code 0: every verdict is as expected. 1: one is not, or is inconclusive. 2: a mistake, told in one line.

That the classifier fails is no proof: docs/real-or-ideal.md says what is proved, under which assumptions. Each protocol
is tested once, with features, classifier and bound fixed beforehand. --seed fixes inputs, halves and classifier; keys
and masks come from the operating system and never repeat, so accuracies vary from run to run.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks.graded_controls import GRADED, Gradings, graded_report, show_graded
from benchmarks.insecure_aborts import ABORTS
from benchmarks.insecure_counts import COUNT_VARIANTS, insecure_count
from benchmarks.insecure_crypten import CRYPTEN_VARIANTS
from benchmarks.insecure_scores import CLIENT_VARIANTS, SCORE_VARIANTS, insecure_scores
from benchmarks.insecure_variants import insecure, substituted
from benchmarks.sensitivity_chart import sensitivity_chart
from launch.command_line import OneLineParser, require_writable, run_command
from secure_kg.audit.indistinguishability.cheated_experiments import CHEATED
from secure_kg.audit.indistinguishability.client_views import CLIENT_PROTOCOLS, ClientExperiment
from secure_kg.audit.indistinguishability.crypten_experiments import CRYPTEN_PACKAGES, CRYPTEN_PROTOCOLS
from secure_kg.audit.indistinguishability.distinguisher import (
    ERROR,
    NOT_TOLD_APART,
    TOLD_APART,
    TOO_FEW,
    Distinction,
    distinguish,
    real_features,
    simulated_features,
)
from secure_kg.audit.indistinguishability.encrypted_experiments import ENCRYPTED_PACKAGES, ENCRYPTED_PROTOCOLS
from secure_kg.audit.indistinguishability.experiments import PLAIN_TWINS, PROTOCOLS, Experiment
from secure_kg.audit.indistinguishability.hidden_experiments import HIDDEN_CLIENT_PROTOCOLS, HIDDEN_PROTOCOLS
from secure_kg.audit.indistinguishability.score_experiments import (
    PLAIN_SCORES,
    SCORE_CLIENT_PROTOCOLS,
    SCORE_PROTOCOLS,
)
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import Lines
from secure_kg.runs.run_folder import write_json, write_whole

SAMPLES: Final = 200
LEAST_SAMPLES: Final = 100
"""Of so many, half right gives an interval from 0.30 to 0.70, and guessing stays below 0.8 in 988 of 1,000 cases."""
CONTROL_SAMPLES: Final = 24
"""A variant is caught on nearly every view, or it is not caught at all."""


@dataclass(frozen=True)
class Comparison:
    """A protocol, or an insecure variant of it, against the protocol's simulator."""

    protocol: str
    variant: str | None = None

    @property
    def expected(self) -> str:
        return NOT_TOLD_APART if self.variant is None else TOLD_APART


CONTROLS: Final = (
    Comparison("secagg", "plain-twin"),
    Comparison("secagg", "no-masks"),
    Comparison("secagg", "reused-masks"),
    Comparison("secagg", "short-seeds"),
    Comparison("secagg", "short-mask-keys"),
    Comparison("secret", "reused-masks"),
    Comparison("holders", "no-masks"),
    Comparison("psu", "plain-twin"),
    Comparison("psu", "unit-weights"),
    Comparison("psu-names", "unit-weights"),
    Comparison("cheated-keys", "late-checks"),
    Comparison("cheated-survivors", "unchecked-survivors"),
    Comparison("cheated-survivors", "telling-abort"),
)
"""Broken protocols, in what the server sees of them."""
CLIENT_CONTROLS: Final = tuple(Comparison("holders-client", variant) for variant in COUNT_VARIANTS)
"""Broken counts, in what a client sees of them."""
SCORE_CONTROLS: Final = (
    Comparison("scores-masked", "plain-twin"),
    Comparison("scores-masked", "no-asker-mask"),
    Comparison("scores-topk", "plain-twin"),
    Comparison("scores-topk", "unsealed-steps"),
    Comparison("scores-topk", "no-common-order"),
    *(Comparison("scores-topk-client", variant) for variant in CLIENT_VARIANTS),
    Comparison("scores-paillier", "unit-obfuscators"),
    Comparison("scores-paillier", "repeated-obfuscators"),
    Comparison("scores-paillier-asker", "no-masks"),
    Comparison("scores-bfv", "repeated-randomness"),
    Comparison("scores-bfv-asker", "no-masks"),
    Comparison("scores-hidden", "unsealed-tables"),
    Comparison("scores-hidden", "unsealed-queries"),
    Comparison("scores-hidden-scorers", "reused-query-masks"),
    Comparison("scores-hidden-asker", "unmasked-tables"),
    *(Comparison("scores-crypten", variant) for variant in CRYPTEN_VARIANTS),
)
"""Broken batches of queries, in what the server sees of them, clients do, or the server with the asker."""
EXPERIMENTS: Final[Mapping[str, Callable[[int], Experiment | ClientExperiment]]] = {
    **PROTOCOLS,
    **CHEATED,
    **CLIENT_PROTOCOLS,
    **SCORE_PROTOCOLS,
    **SCORE_CLIENT_PROTOCOLS,
    **ENCRYPTED_PROTOCOLS,
    **HIDDEN_PROTOCOLS,
    **HIDDEN_CLIENT_PROTOCOLS,
    **CRYPTEN_PROTOCOLS,
}
"""Every comparison in which nothing may be told apart."""


def available() -> list[str]:
    """Protocols whose packages are installed."""
    needed = ENCRYPTED_PACKAGES | CRYPTEN_PACKAGES
    return [name for name in EXPERIMENTS if all(map(find_spec, needed.get(name, ())))]


def main(argv: Sequence[str] | None = None) -> int:
    """0: every verdict is as expected. 1: one is not, or is inconclusive. 2: one line says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _run(options: argparse.Namespace) -> int:
    if options.samples < LEAST_SAMPLES:
        raise UserError(f"--samples must be at least {LEAST_SAMPLES}: fewer may give no verdict")
    if options.seed < 0:
        raise UserError("--seed must not be negative")
    if options.figure is not None and not options.graded:
        raise UserError("--figure is of the graded controls: --graded is missing")
    to_file = options.json not in (None, "-")
    for file in ([options.json] if to_file else []) + ([options.figure] if options.figure else []):
        require_writable(Path(file))
    report = measure_graded(options) if options.graded else measure(options)
    if options.json == "-":
        say(json.dumps(report, indent=2, allow_nan=False))
    elif options.graded:
        show_graded(report["graded"])
    else:
        show(report)
    if to_file:
        write_json(Path(options.json), report)
    return 0 if report["as_expected"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.real_or_ideal",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example, one protocol in more depth:\n"
        "  python -m benchmarks.real_or_ideal --protocol psu --samples 2000 --json psu.json\n"
        "example, how small a leak is seen:\n"
        "  python -m benchmarks.real_or_ideal --graded --figure sensitivity.svg",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--protocol",
        action="append",
        choices=list(EXPERIMENTS),
        metavar="P",
        help=f"one of {', '.join(EXPERIMENTS)}, with its controls; may be given several times "
        "[all whose packages are installed]",
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=SAMPLES,
        metavar="N",
        help=f"real and as many simulated views of each protocol; half of each train the classifier [{SAMPLES}]; "
        f"at least {LEAST_SAMPLES}. Controls have {CONTROL_SAMPLES}",
    )
    parser.add_argument(
        "--graded",
        action="store_true",
        help="in place of all that, leaks of known strength 1, 1/2, 1/4, ... in secagg, secret and psu: from which "
        "strength on are they caught? Twice as many sessions as without, of these protocols",
    )
    parser.add_argument("--figure", metavar="FILE", help="with --graded: accuracy by strength as a chart (SVG)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of inputs, halves and classifier [0]")
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE; - for standard output")
    return parser


def measure(options: argparse.Namespace) -> dict[str, Any]:
    chosen = options.protocol or available()
    comparisons = [Comparison(protocol) for protocol in EXPERIMENTS if protocol in chosen]
    controls = (*CONTROLS, *CLIENT_CONTROLS, *SCORE_CONTROLS)
    comparisons += [control for control in controls if control.protocol in chosen]
    tell, results = Lines(quiet=options.json == "-"), []
    for comparison in comparisons:
        samples = options.samples if comparison.variant is None else CONTROL_SAMPLES
        started = time.perf_counter()
        result = compare(comparison, samples, options.seed, tell)
        results.append(_entry(comparison, result, time.perf_counter() - started))
    return {
        "seed": options.seed,
        "error": ERROR,
        "results": results,
        "inconclusive": sum(entry["verdict"] == TOO_FEW for entry in results),
        "as_expected": all(entry["verdict"] == entry["expected"] for entry in results),
    }


def measure_graded(options: argparse.Namespace) -> dict[str, Any]:
    """Only the gross ones, of strength 1, must be caught."""
    chosen = [graded for graded in GRADED if graded.protocol in (options.protocol or EXPERIMENTS)]
    if not chosen:
        raise UserError(f"--graded is for {', '.join(dict.fromkeys(graded.protocol for graded in GRADED))}")
    gradings = Gradings(options.samples, options.seed, Lines(quiet=options.json == "-"))
    curves = [gradings.curve(graded) for graded in chosen]
    if options.figure:
        write_whole(Path(options.figure), sensitivity_chart(curves, options.samples).encode())
    return {
        "seed": options.seed,
        "error": ERROR,
        "graded": graded_report(curves, options.samples),
        "as_expected": all(curve.points[0].caught for curve in curves),
    }


def compare(comparison: Comparison, samples: int, seed: int, tell: Lines) -> Distinction:
    """One test."""
    make = {**PLAIN_TWINS, **PLAIN_SCORES} if comparison.variant == "plain-twin" else EXPERIMENTS
    try:
        experiment = make[comparison.protocol](seed)
    except ImportError as problem:
        raise UserError(str(problem)) from None
    name = comparison.protocol + (f", {comparison.variant}" if comparison.variant else "")
    # What the server can compute is computed by the rules of the protocol that was run, broken or not.
    with broken(comparison.variant):
        real = real_features(experiment, samples, lambda done: tell(f"{name}, real sessions", done, samples))
    simulated = simulated_features(experiment, samples, lambda done: tell(f"{name}, simulated", done, samples))
    return distinguish(real, simulated, seed)


def broken(variant: str | None) -> AbstractContextManager[None]:
    """Whatever runs meanwhile is broken as `variant` says, or sound."""
    if variant is None:
        return nullcontext()
    if variant in COUNT_VARIANTS:
        return insecure_count(variant)
    if variant in SCORE_VARIANTS:
        return insecure_scores(variant)
    return substituted(ABORTS[variant]) if variant in ABORTS else insecure(variant)


def _entry(comparison: Comparison, result: Distinction, seconds: float) -> dict[str, Any]:
    return {
        "protocol": comparison.protocol,
        "variant": comparison.variant,
        "samples": result.samples,
        "judged": result.judged,
        "right": result.right,
        "accuracy": result.accuracy,
        "lower": result.lower,
        "upper": result.upper,
        "advantage_at_most": result.advantage_at_most,
        "telling_features": list(result.telling),
        "verdict": result.verdict,
        "expected": comparison.expected,
        "seconds": seconds,
    }


def show(report: dict[str, Any]) -> None:
    rows: list[list[str | int]] = [
        [
            entry["protocol"] + (f", {entry['variant']}" if entry["variant"] else ""),
            entry["samples"],
            f"{entry['accuracy']:.3f}",
            f"{entry['lower']:.3f}-{entry['upper']:.3f}",
            entry["verdict"],
            entry["expected"],
        ]
        for entry in report["results"]
    ]
    title = f"real against simulated views, seed {report['seed']}"
    table(title, ("protocol", "samples", "accuracy", "interval", "verdict", "expected"), rows)
    bounds = [
        f"{entry['protocol']} {entry['advantage_at_most']:.2f}"
        for entry in report["results"]
        if entry["variant"] is None
    ]
    say(f"advantage of this classifier at most: {', '.join(bounds)}")
    for entry in report["results"]:
        if entry["verdict"] == TOLD_APART:
            name = entry["protocol"] + (f", {entry['variant']}" if entry["variant"] else "")
            say(f"{name}: told apart by {'; '.join(entry['telling_features'])}")
    wrong = sum(entry["verdict"] not in (entry["expected"], TOO_FEW) for entry in report["results"])
    counts = ((wrong, "not as expected"), (report["inconclusive"], "inconclusive: more --samples are needed"))
    said = [f"{count} {'verdict is' if count == 1 else 'verdicts are'} {what}" for count, what in counts if count]
    say("; ".join(said) or "every verdict is as expected")


if __name__ == "__main__":
    sys.exit(main())
