"""Finished runs side by side: `python -m launch.compare RUN RUN ...`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from launch.command_line import OneLineParser, deliver, require_json, require_writable, run_command
from secure_kg.foundation.console import say, table
from secure_kg.foundation.invocation import command
from secure_kg.runs.run_folder import write_whole

if TYPE_CHECKING:
    from secure_kg.report.comparison import ComparedRun

_DESCRIPTION: Final = """\
Put finished runs side by side: settings that differ, test results, validation by round, seconds and bytes by phase,
dropouts, who learned what, and privacy statements. Runs of any strategy can be compared; where figures are on other
data or of another task, the page says so."""

_MOST_IN_A_TABLE: Final = 3
"""Runs whose disclosures a terminal has room for."""
_EXAMPLES: Final = """\
examples:
  python -m launch.compare runs/demo runs/local
  python -m launch.compare runs/* --out comparison.html --json comparison.json

FILE is one page without anything from elsewhere. Exit code 0: done. 2: a mistake, told in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: done. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = OneLineParser(
        prog=command("launch.compare"),
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="folders of finished runs")
    parser.add_argument(
        "--out", type=Path, default=Path("comparison.html"), metavar="FILE", help="the page [comparison.html]"
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    require_writable(options.out)
    require_json(options.json)
    from secure_kg.report.comparison import open_runs, record
    from secure_kg.report.comparison_page import comparison_page

    runs = open_runs(options.runs)
    write_whole(options.out, comparison_page(runs).encode())
    deliver(record(runs), options.json, lambda _: _show(runs, options.out))
    return 0


def _show(runs: "Sequence[ComparedRun]", page: Path) -> None:
    from secure_kg.report.comparison import differing, subjects, warnings
    from secure_kg.report.comparison_page import told

    for text in warnings(runs):
        say(f"warning: {text}")
    names = [run.name for run in runs]
    columns = ("run", "what", "MRR", "Hits@10", "rounds", "seconds", "MB up", "MB down", "dropouts")
    table("results and costs", columns, [_row(run) for run in runs])
    for run in runs:
        if (statement := run.summary.statement) is not None:
            say(f"{run.name}: {statement.lines()[0]}")
    if different := differing(runs):
        rows = [[name, *map(told, values)] for name, values in different.items()]
        table("settings that differ", ("", *names), rows)
    if len(runs) > _MOST_IN_A_TABLE:
        say(f"who learned what, side by side, is on the page: {page}")
        return
    learned = {about: [run.learned(about)[0] or "–" for run in runs] for about in subjects(runs)}
    if rows := [[about, *words] for about, words in learned.items() if len(set(words)) > 1]:
        table("what the server learned, where it differs", ("", *names), rows)
    say(f"page: {page}")


def _row(run: "ComparedRun") -> list[str | int]:
    summary = run.summary
    scores = [f"{summary.figures[name]:.4f}" if isinstance(summary.figures.get(name), float) else "–"
              for name in ("mrr", "hits@10")]  # fmt: skip
    sizes = [f"{size / 1e6:.1f}" for size in (summary.bytes_up, summary.bytes_down)]
    rounds = f"{summary.rounds} ({summary.best_round})"
    return [run.name, run.how, *scores, rounds, f"{summary.seconds_total:.1f}", *sizes, len(summary.dropouts)]


if __name__ == "__main__":
    sys.exit(main())
