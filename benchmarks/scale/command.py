"""How costs grow with clients, rows and dimension, and a model to a thousand clients: `python -m benchmarks.scale`.

Measures masked sums, unions and secret rounds of 2 to 16 clients, all parties in this process; fits a model of
processor seconds and memory to them; checks it on points of up to 300 clients that it was not fitted to; and counts the
bytes of up to a thousand clients in closed form. docs/scale.md is what it writes.
"""

import argparse
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.reproduction.provenance import commit
from benchmarks.scale import measuring, paper
from benchmarks.scale.measuring import KINDS, Point, Size
from benchmarks.scale.model import Fit, fit
from benchmarks.scale.rendering import figure, markdown
from launch.command_line import OneLineParser, require_json, require_writable, run_command
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import Lines
from secure_kg.runs.run_folder import write_json, write_whole

_TINY: Final = {
    "fitted": (
        *(Size("sum", clients, rows, 4) for clients in (2, 4) for rows in (8, 64)),
        *(Size("union", clients, names) for clients in (2, 4) for names in (16, 64)),
        *(Size("secret round", clients, rows, 4) for clients in (3, 4) for rows in (8, 32)),
    ),
    "held_out": (Size("sum", 3, 32, 4), Size("union", 3, 32), Size("secret round", 5, 16, 4)),
}


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="take the median of so many [3]")
    parser.add_argument("--tiny", action="store_true", help="a few points of a few entries, to see that all works")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the document to FILE")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="write its figure to FILE (SVG)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.repeat < 1:
        raise UserError("--repeat must be at least 1")
    require_json(options.json)
    for path in filter(None, (options.markdown, options.figure)):
        require_writable(path)
    report, fits = measure(options)
    if options.markdown is not None:
        write_whole(options.markdown, markdown(report, fits).encode())
    if options.figure is not None:
        write_whole(options.figure, figure(report, fits).encode())
    if options.json == "-":
        say(json.dumps(report, indent=2, allow_nan=False))
    else:
        show(fits)
        if options.json is not None:
            write_json(Path(options.json), report)
    return 0


def measure(options: argparse.Namespace) -> tuple[dict[str, Any], list[Fit]]:
    """All points, the model, and what it says."""
    tell = Lines(quiet=options.json == "-")
    sizes = _TINY if options.tiny else {"fitted": measuring.FITTED, "held_out": measuring.HELD_OUT}
    found: dict[str, list[Point]] = {}
    for part, ones in sizes.items():
        found[part] = []
        for number, size in enumerate(ones, start=1):
            tell(f"{part.replace('_', ' ')}", number, len(ones))
            found[part].append(measuring.measure(size, options.repeat))
    fits = fit(found["fitted"], found["held_out"])
    report = {
        "commit": commit(),
        "machine": f"{platform.machine()}, {platform.system()}",
        "repeat": options.repeat,
        **{part: [one.to_json() for one in points] for part, points in found.items()},
        "model": [asdict(one) | {"usual_error": one.usual_error, "largest_error": one.largest_error} for one in fits],
        "paper": [paper.on_paper(fits, clients).to_json() for clients in paper.CLIENTS],
        "peak_process_megabytes": measuring.process_peak(),
    }
    return report, fits


def show(fits: Sequence[Fit]) -> None:
    """For a terminal: how far the model is from what it has not seen."""
    rows = [
        [kind, one.quantity.replace("_", " "), f"{one.usual_error:.0%}", f"{one.largest_error:.0%}"]
        for kind in KINDS
        for one in fits
        if one.kind == kind
    ]
    table("the model on points that it was not fitted to", ("", "quantity", "usual error", "largest error"), rows)
