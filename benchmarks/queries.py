"""Logical queries, drawn and answered, one thread: `python -m benchmarks.queries --help`.

With --dataset, the graph is divided among clients by relations. For every type, queries are drawn from the first
client's own graph (in-graph) and across all clients' graphs (cross-graph); every cross-graph query is checked again,
by another way than the sampler's. Then they are answered on train, on train and valid, and on all triples, and easy
and hard answers are told apart. Figures are queries per second of the processor.

With --published, all answers of published query sets are computed and compared with the published ones. Every published
query has a hard answer, so those without one are counted too, also where answers were not published.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from launch.command_line import OneLineParser, require_writable, run_command
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.foundation.console import fail, say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import seed_sequence
from secure_kg.queries.answers import answer_rows, staged_answers
from secure_kg.queries.clients import QueryClients
from secure_kg.queries.edges import Ids, Stages
from secure_kg.queries.published import different_answers, read_names, read_queries, read_stages
from secure_kg.queries.sampling import Sampler
from secure_kg.queries.structures import STRUCTURES
from secure_kg.runs.run_folder import write_json

T = TypeVar("T")
FILES = {"valid": "queries-valid.npz", "test": "queries-test.npz", "betae": "betae-queries-test.npz"}
"""Of a published set: Query2box's queries, and BetaE's test queries where there are some, without their answers."""
_WARM_UP = 16


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured, or all as published. 1: some answers are not. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.queries",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--dataset", help="a PyKEEN data set, a folder, a triple file or a federated .npz [umls]")
    what.add_argument(
        "--published", metavar="FOLDER", help="compare the answers of FOLDER/queries-valid.npz and -test.npz"
    )
    parser.add_argument("--graph", metavar="FOLDER", help="triples of the published queries [the same folder]")
    parser.add_argument("--clients", type=int, default=3, help="who divide the relations among them [3]")
    parser.add_argument("--draws", type=int, default=100_000, metavar="N", help="queries drawn of each type [100000]")
    parser.add_argument("--answers", type=int, default=4000, metavar="N", help="of them, how many are answered [4000]")
    parser.add_argument("--seed", type=int, default=0, help="of the division and of the draws [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.graph and not options.published:
        raise UserError("--graph goes with --published")
    if not 1 <= options.answers <= options.draws:
        raise UserError("--answers must be at least 1, and --draws at least as many")
    to_file = options.json not in (None, "-")
    if to_file:
        require_writable(Path(options.json))
    report = compare(options) if options.published else measure(options)
    if options.json == "-":
        say(json.dumps(report, indent=2, allow_nan=False))
    elif options.published:
        show_comparison(report)
    else:
        show_speed(report)
    if to_file:
        write_json(Path(options.json), report)
    if report.get("different"):
        fail(f"{report['different']:,} of {report['compared']:,} answer sets are not as published")
        return 1
    return 0


# --- speed ------------------------------------------------------------------------------------------------------------


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Queries per processor second, by type, in-graph and cross-graph."""
    dataset = options.dataset or "umls"
    clients = QueryClients.of(partition(load_source(dataset), options.clients, "relations", options.seed))
    kinds: dict[str, Any] = {}
    for kind in STRUCTURES:
        inside = Sampler(clients.own[0].test, seed_sequence(options.seed, "in", kind))
        kinds[kind] = {"in_graph": _speed(clients.own[0], inside, kind, options)[0]}
        if kind != "1p" and len(clients.own) > 1:
            across = Sampler(clients.together.test, seed_sequence(options.seed, "across", kind), clients.holders)
            kinds[kind]["cross_graph"], rows = _speed(clients.together, across, kind, options)
            if not clients.holders.cross_graph(STRUCTURES[kind], rows).all():
                raise AssertionError("a query that was drawn as cross-graph lies in one graph")
    return {
        "dataset": Path(dataset).name,
        "clients": len(clients.own),
        "entities": len(clients.entities),
        "relations": len(clients.relations),
        "edges": len(clients.together.test.edges.targets) // 2,
        "seed": options.seed,
        "draws": options.draws,
        "answered": options.answers,
        "types": kinds,
    }


def _speed(stages: Stages, sampler: Sampler, kind: str, options: argparse.Namespace) -> tuple[dict[str, Any], Ids]:
    """The figures of one type, and the rows that were drawn."""
    structure = STRUCTURES[kind]
    staged_answers(stages, structure, sampler.draw(kind, _WARM_UP).rows)  # compiles
    drawn, draw_seconds = _timed(lambda: sampler.draw(kind, options.draws))
    rows = drawn.rows[: options.answers]
    staged, answer_seconds = _timed(lambda: staged_answers(stages, structure, rows))
    figures = {
        "drawn_per_s": options.draws / draw_seconds,
        "answered_per_s": len(rows) / answer_seconds,
        "median_answers": float(np.median(staged.test.easy.counts + staged.test.hard.counts)),
        "share_with_hard_answers": float(np.mean(staged.test.hard.counts > 0)),
    }
    return figures, drawn.rows


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started = time.process_time()
    result = work()
    return result, max(time.process_time() - started, 1e-9)


def show_speed(report: dict[str, Any]) -> None:
    rows: list[list[str | int]] = [
        [
            kind,
            where.replace("_", "-"),
            round(found["drawn_per_s"]),
            round(found["answered_per_s"]),
            f"{found['median_answers']:,.0f}",
            f"{found['share_with_hard_answers']:.0%}",
        ]
        for kind, places in report["types"].items()
        for where, found in places.items()
    ]
    title = (
        f"{report['dataset']}, {report['clients']} clients: {report['entities']:,} entities, {report['edges']:,} edges"
    )
    table(title, ("type", "", "drawn/s", "answered/s", "median answers", "with hard answers"), rows)
    say("one thread, processor seconds; answers on three graphs, with the easy and hard sets of valid and test")


# --- published answers ------------------------------------------------------------------------------------------------


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """How many answer sets are as published, by file and type."""
    folder = Path(options.published)
    names = read_names(folder)
    stages, left_out = read_stages(Path(options.graph or folder), names)
    graphs = {"valid": (stages.train, stages.valid)}
    found: list[dict[str, Any]] = []
    for part, file in FILES.items():
        if part == "betae" and not (folder / file).is_file():
            continue
        smaller, larger = graphs.get(part, (stages.valid, stages.test))
        for queries in read_queries(folder / file, names).values():
            every = answer_rows(larger, STRUCTURES[queries.kind], queries.rows)
            hard = every.without(answer_rows(smaller, STRUCTURES[queries.kind], queries.rows))
            found.append(
                {
                    "part": part,
                    "type": queries.kind,
                    "queries": len(queries.rows),
                    "hard_answers": len(hard.entities),
                    "without_hard_answer": int((hard.counts == 0).sum()),
                    "compared": 0 if queries.hard is None else len(queries.rows),
                    "different": len(different_answers(queries, hard, every.counts)),
                }
            )
    totals = {
        key: sum(one[key] for one in found) for key in ("queries", "without_hard_answer", "compared", "different")
    }
    return {"published": folder.resolve().name, "triples_left_out": left_out, **totals, "types": found}


def show_comparison(report: dict[str, Any]) -> None:
    keys = ("part", "type", "queries", "hard_answers", "without_hard_answer", "compared", "different")
    columns = ("part", "type", "queries", "hard answers", "without one", "compared", "not as published")
    table(report["published"], columns, [[one[key] for key in keys] for one in report["types"]])
    equal = report["compared"] - report["different"]
    say(
        f"{equal:,} of {report['compared']:,} answer sets are as published; {report['without_hard_answer']:,} of "
        f"{report['queries']:,} queries have no hard answer"
    )


if __name__ == "__main__":
    sys.exit(main())
