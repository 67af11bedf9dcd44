"""Finished runs of `launch.fedcqa` judged by queries across their clients' graphs: `python -m benchmarks.cross_graph`.

Cross-graph queries have relations of at least two clients, so no client can draw them and no run reports them. Here
everybody's triples and models are read, as only an experiment can. Runs on the same clients' graphs are judged by the
same queries; --seed draws them. Every entity that somebody holds is a candidate. In-graph figures are those of the
runs' own summaries.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.judging.across import judge
from benchmarks.judging.judged_by import JudgedBy
from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.evaluation.query_metrics import KINDS
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError

_SHOWN = ("mrr", "hits@3")


def main(argv: Sequence[str] | None = None) -> int:
    """0: judged. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.cross_graph",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    usual = JudgedBy()
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders of finished runs")
    parser.add_argument("--part", choices=("valid", "test"), default=usual.part, help="whose triples make answers hard")
    parser.add_argument("--queries", type=int, default=usual.queries, metavar="N", help="of each type [500]")
    parser.add_argument("--seed", type=int, default=usual.seed, help="draws the queries [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.queries < 1 or options.seed < 0:
        raise UserError("--queries must be positive, and --seed not negative")
    require_json(options.json)
    torch.set_num_threads(1)
    judged = JudgedBy(options.part, options.queries, options.seed)
    runs = [judge(run, judged) for run in options.runs]
    report = {"part": judged.part, "queries": judged.queries, "seed": judged.seed, "min_holders": 1, "runs": runs}
    deliver(report, options.json, _show)
    return 0


def _show(report: dict[str, Any]) -> None:
    runs = report["runs"]
    rows = [
        [one["run"], one["strategy"], *(_number(one[part], name) for part in ("in-graph", "cross") for name in _SHOWN)]
        for one in runs
    ]
    columns = ("run", "strategy", "in-graph MRR", "Hits@3", "cross-graph MRR", "Hits@3")
    table(f"{report['queries']} cross-graph queries of each type, {report['part']} part", columns, rows)
    kinds = [kind for kind in KINDS if any(kind in (one["cross"] or {}).get("types", {}) for one in runs)]
    by_type = [
        [one["run"], *(_number(one["cross"] and one["cross"]["types"][kind], "mrr") for kind in kinds)] for one in runs
    ]
    table("cross-graph MRR by type", ("run", *kinds), by_type)
    say("every entity that somebody holds is a candidate; in-graph figures are those of each run's summary")


def _number(figures: dict[str, Any] | None, name: str) -> str:
    return "–" if figures is None or figures[name] is None else f"{figures[name]:.4f}"


if __name__ == "__main__":
    sys.exit(main())
