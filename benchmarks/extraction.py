"""How much of a trained table answers to chosen queries give away: `python -m benchmarks.extraction --help`.

An asker chooses --queries at random and gets, of a made-up table of --entities rows of --width numbers, the mean scores
of all rows, or the --top best positions of each query in order. From means it solves for the rows; from positions it
estimates them (`secure_kg.attacks.extraction`). Answers are computed in clear, for every backend gives the same. The
same attacks on answers of real batches, of a small table: python -m benchmarks.attacks.

    recovered   rows of which no number is off by more than 0.001
    rms         the error of a number, relative to taking the mean row for every row
    explained   share of the variance of rows that the guess explains, up to scale
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from launch.command_line import OneLineParser, deliver, require_json, run_command
from protocols.scores.terms import MOST_ANSWERS
from secure_kg.attacks.extraction import (
    Extraction,
    chosen_queries,
    rows_from_means,
    rows_from_positions,
    scores_of,
)
from secure_kg.attacks.extraction_attempts import made_up_table
from secure_kg.foundation.console import table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import tracked
from secure_kg.foundation.seeds import generator


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.extraction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.extraction --queries 64 128 144 2000 --top 10 1000",
        allow_abbrev=False,
    )
    parser.add_argument("--entities", type=int, default=15_000, metavar="N", help="rows of the table [15000]")
    parser.add_argument("--width", type=int, default=128, metavar="D", help="numbers of a row [128]")
    parser.add_argument("--queries", type=int, nargs="+", default=[64, 144, 2000], metavar="Q", help="[64 144 2000]")
    parser.add_argument("--top", type=int, nargs="+", default=[10, 1000], metavar="K", help="answers each [10 1000]")
    parser.add_argument("--similarity", choices=("inner product", "squared distance"), default="inner product")
    parser.add_argument("--seed", type=int, default=0, help="of rows and queries [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if min(options.entities, options.width, *options.queries) < 1 or options.seed < 0:
        raise UserError("--entities, --width and --queries must be at least 1, --seed at least 0")
    if not all(1 <= top <= MOST_ANSWERS for top in options.top):
        raise UserError(f"--top must be 1 to {MOST_ANSWERS}")
    require_json(options.json)
    report = {**{name: getattr(options, name) for name in ("entities", "width", "similarity", "seed")}}
    report["attacks"] = [one for queries in options.queries for one in _attacks(options, queries)]
    deliver(report, options.json, _show)
    return 0


def _attacks(options: argparse.Namespace, queries: int) -> list[dict[str, Any]]:
    rows = made_up_table(options.seed, options.entities, options.width)
    asked = chosen_queries(options.width, queries, generator(options.seed, f"{queries} chosen queries"))
    scores = scores_of(rows, asked, options.similarity)
    found = [_figures("means", queries, Extraction.score(rows_from_means(asked, scores, options.similarity), rows))]
    for top in tracked(options.top, "positions"):
        best = list(np.argsort(-scores, axis=1, kind="stable")[:, :top])
        guess = rows_from_positions(asked, best, options.entities)
        found.append(_figures(f"{top} best positions", queries, Extraction.score(guess, rows)))
    return found


def _figures(opened: str, queries: int, found: Extraction) -> dict[str, Any]:
    return {
        "opened": opened,
        "queries": queries,
        "recovered": found.share,
        "rms": found.rms_error / found.rms_of_mean_row,
        "explained": found.explained,
    }


def _show(report: dict[str, Any]) -> None:
    rows = [
        [one["opened"], one["queries"], f"{one['recovered']:.1%}", f"{one['rms']:.2g}", f"{one['explained']:.1%}"]
        for one in report["attacks"]
    ]
    title = f"{report['entities']:,} rows of {report['width']} numbers, {report['similarity']}"
    table(title, ("opened", "queries", "recovered", "rms", "explained"), rows)


if __name__ == "__main__":
    sys.exit(main())
