"""What clients hold: `python -m benchmarks.statistics` (FedR, Table 5; FedE, Table 2).

Entities, relations and triples of a client, mean and standard deviation over the clients, counted in the very parts
that runs train on: published splits as they are, others as the seed divides them. The paper's figures stand beside.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.reproduction.paper_figures import FEDE_TABLE_2, FEDR_TABLE_5
from benchmarks.reproduction.rendering import markdown_table
from benchmarks.reproduction.table import Dataset
from benchmarks.reproduction.tables import TABLES
from launch.command_line import OneLineParser, deliver, require_json, require_writable, run_command
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import By, partition
from secure_kg.data.sources import load_source
from secure_kg.foundation.console import table
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import write_whole

_COUNTED: Final = ("entities", "relations", "triples")
_PAPERS: Final = {"fedr-table5": "fedr-table2", "fede-table2": "fede-table5"}
"""The tables whose data sets they are about."""
_EPILOG: Final = """\
DIR of --data-root is that of python -m benchmarks.reproduce --help. What is not there is said to be absent.

example:
  python -m benchmarks.statistics fedr-table5 --data-root DIR --markdown table5.md"""


def main(argv: Sequence[str] | None = None) -> int:
    """0: counted. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.statistics",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("table", choices=list(_PAPERS), metavar="TABLE", help=" or ".join(_PAPERS))
    parser.add_argument("--data-root", required=True, type=Path, metavar="DIR", help="where the data sets lie")
    parser.add_argument("--dataset", nargs="+", metavar="NAME", help="data sets [all of the table]")
    parser.add_argument("--clients", nargs="+", type=int, metavar="C", help="numbers of clients [the table's]")
    parser.add_argument("--seed", type=int, default=0, help="divides what is not divided yet [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    parser.add_argument("--markdown", metavar="FILE", help="write the table to FILE")
    return parser


def _run(options: argparse.Namespace) -> int:
    about = TABLES[_PAPERS[options.table]]
    names = options.dataset or list(about.datasets)
    for name in names:
        if name not in about.datasets:
            raise UserError(f"--dataset {name}: there are {', '.join(about.datasets)}")
    if min(options.clients or [2]) < 2 or options.seed < 0:
        raise UserError("--clients must be at least 2, and --seed not negative")
    require_json(options.json)
    if options.markdown:
        require_writable(Path(options.markdown))
    lines = [
        _line(options, name, about.datasets[name], clients)
        for name in names
        for clients in options.clients or _usual_clients(options.table, name)
    ]
    report = {"table": options.table, "seed": options.seed, "lines": lines}
    deliver(report, options.json, _show)
    if options.markdown:
        columns, rows = _cells(lines)
        write_whole(Path(options.markdown), ("\n".join(markdown_table(columns, rows)) + "\n").encode())
    return 0


def _usual_clients(of: str, dataset: str) -> list[int]:
    return list((FEDR_TABLE_5 if of == "fedr-table5" else FEDE_TABLE_2)[_graph(dataset)])


def _graph(dataset: str) -> str:
    """The data set without what was done to it: the papers name the graph alone."""
    return dataset.removesuffix("-published").removesuffix("-fedlu")


def _line(options: argparse.Namespace, name: str, dataset: Dataset, clients: int) -> dict[str, Any]:
    path = options.data_root / dataset.where(clients)
    line: dict[str, Any] = {"dataset": name, "clients": clients, "paper": _paper(options.table, name, clients)}
    line["divided"] = "as published" if dataset.published else f"by {dataset.by}, seed {options.seed}"
    if not path.exists():
        return line | {"absent": str(path.relative_to(options.data_root))}
    by: By = "relations" if dataset.by == "relations" else "triples"
    return line | counts(partition(load_source(str(path)), clients, by, options.seed))


def counts(graphs: Sequence[ClientGraph]) -> dict[str, Any]:
    """Means over clients with the deviation of a sample, as the papers print it; the smallest and the largest."""
    values = {
        "entities": [len(graph.entities) for graph in graphs],
        "relations": [len(graph.relations) for graph in graphs],
        "triples": [len(graph.train) + len(graph.valid) + len(graph.test) for graph in graphs],
    }
    return {
        name: {
            "mean": statistics.fmean(found),
            "deviation": statistics.stdev(found),
            "least": min(found),
            "most": max(found),
        }
        for name, found in values.items()
    }


def _paper(of: str, dataset: str, clients: int) -> dict[str, tuple[float, float | None]]:
    """Means and deviations, as far as they are printed."""
    if of == "fedr-table5" and (five := FEDR_TABLE_5[_graph(dataset)].get(clients)):
        return {"entities": (five[0], five[1]), "relations": (five[2], five[3])}
    if of == "fede-table2" and (two := FEDE_TABLE_2[_graph(dataset)].get(clients)):
        return {"relations": (two[0], None), "entities": (two[1], None), "triples": (two[2], None)}
    return {}


def _cells(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    columns = ["data/clients", "divided"]
    printed_by = {name for line in lines for name in line["paper"]}
    for name in _COUNTED:
        columns += [f"{name} paper"] if name in printed_by else []
        columns += [f"{name} here" if name in printed_by else name]
    rows = []
    for line in lines:
        row = [f"{line['dataset']}/{line['clients']}", line["divided"]]
        for name in _COUNTED:
            printed, found = line["paper"].get(name), line.get(name)
            if name in printed_by:
                row.append("–" if printed is None else _text(*printed))
            row += ["absent" if found is None else _text(found["mean"], found["deviation"])]
        rows.append(row)
    return columns, rows


def _text(mean: float, deviation: float | None) -> str:
    return f"{mean:,.2f}" if deviation is None else f"{mean:,.2f} ± {deviation:,.2f}"


def _show(report: dict[str, Any]) -> None:
    columns, rows = _cells(report["lines"])
    table(f"what clients hold ({report['table']})", columns, rows)


if __name__ == "__main__":
    sys.exit(main())
