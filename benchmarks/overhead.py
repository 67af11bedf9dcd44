"""What secure and secret aggregation cost next to their plain twin: `python -m benchmarks.overhead --help`.

The same training job runs under mpirun with `--aggregation plain`, `secagg` and `secret` in turn, several times, with
the same seed and data, aligned in clear for the first and by private set union for the others. Reported are medians and
the ratios to plain of each repetition; times of single runs on a busy machine mean little, ratios of neighbours more.
A round is what lies between set-up and results, evaluation left out; set-up (keys, alignment) is told apart.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from launch.command_line import OneLineParser, require_writable, run_command
from launch.environment import mpirun_command
from secure_kg.console import say, table
from secure_kg.errors import UserError
from secure_kg.federation.run_folder import write_json
from secure_kg.federation.stopwatch import PHASES

SETTINGS: Final = ("plain", "secagg", "secret")
SECURE: Final = SETTINGS[1:]


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _run(options: argparse.Namespace) -> int:
    if options.clients < 2 or options.rounds < 1 or options.repeat < 1:
        raise UserError("--clients must be at least 2, --rounds and --repeat at least 1")
    if options.json not in (None, "-"):
        require_writable(Path(options.json))
    report = measure(options)
    if options.json == "-":
        say(json.dumps(report, indent=2))
        return 0
    show(report)
    if options.json:
        write_json(Path(options.json), report)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.overhead",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.overhead --dataset kinships --clients 5 --rounds 20 --json overhead.json",
        allow_abbrev=False,
    )
    parser.add_argument("--dataset", default="umls", help="as for launch.fedr_secagg [umls]")
    parser.add_argument("--clients", type=int, default=5, metavar="C", help="number of clients [5]")
    parser.add_argument("--rounds", type=int, default=10, metavar="R", help="training rounds per run [10]")
    parser.add_argument("--model", default="transe", help="embedding model [transe]")
    parser.add_argument("--dim", type=int, default=128, help="embedding dimension [128]")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each kind [3]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run each setting in turn, as often as asked for."""
    runs: dict[str, list[dict[str, Any]]] = {setting: [] for setting in SETTINGS}
    with tempfile.TemporaryDirectory() as scratch:
        for repetition in range(options.repeat):
            for setting in SETTINGS:
                if options.json != "-":
                    say(f"{repetition + 1}/{options.repeat}: {setting}")
                runs[setting].append(_train(options, setting, Path(scratch) / f"{setting}-{repetition}"))
    per_setting = {setting: _figures(runs[setting], options.rounds) for setting in SETTINGS}
    plain = per_setting["plain"]
    ratios = {
        setting: [
            _round_seconds(run, options.rounds) / _round_seconds(twin, options.rounds)
            for run, twin in zip(runs[setting], runs["plain"], strict=True)
        ]
        for setting in SETTINGS
    }
    return {
        "dataset": options.dataset,
        "clients": options.clients,
        "rounds": options.rounds,
        "model": options.model,
        "dim": options.dim,
        "repeat": options.repeat,
        **{
            setting: figures
            | {
                "ratio_to_plain": statistics.median(ratios[setting]),
                "ratios": ratios[setting],
                "bytes_ratio": figures["round_bytes_up"] / plain["round_bytes_up"],
            }
            for setting, figures in per_setting.items()
        },
        "mrr_difference": max(abs(per_setting[setting]["mrr"] - plain["mrr"]) for setting in SECURE),
    }


def show(report: dict[str, Any]) -> None:
    names = ("round_seconds", "ratio_to_plain", "round_bytes_up", "bytes_ratio", "setup_bytes_up", "mrr")
    rows: list[list[str | int]] = [[name, *(_text(report[setting][name]) for setting in SETTINGS)] for name in names]
    rows += [
        [f"seconds {phase}", *(_text(report[setting]["seconds"][phase]) for setting in SETTINGS)] for phase in PHASES
    ]
    title = (
        f"{report['dataset']}, {report['clients']} clients, {report['rounds']} rounds, {report['model']} "
        f"{report['dim']}: medians of {report['repeat']}"
    )
    table(title, ("", *SETTINGS), rows)
    for setting in SECURE:
        ratios = report[setting]["ratios"]
        say(f"{setting}/plain of each repetition: {min(ratios):.3f} to {max(ratios):.3f}")
    say(f"MRR differs by {report['mrr_difference']:.1e}")


def _train(options: argparse.Namespace, setting: str, out: Path) -> dict[str, Any]:
    arguments = ["--dataset", options.dataset, "--model", options.model, "--dim", str(options.dim)]
    arguments += ["--rounds", str(options.rounds), "--eval-every", str(options.rounds), "--checkpoint-every", "0"]
    alignment = "plain" if setting == "plain" else "psu"
    arguments += ["--aggregation", setting, "--alignment", alignment, "--out", str(out)]
    command = mpirun_command("launch.fedr_secagg", options.clients + 1, arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise UserError(f"the {setting} run failed: {lines[-1].removeprefix('error: ')}")
    result: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return result


def _round_seconds(run: dict[str, Any], rounds: int) -> float:
    """Wall-clock seconds of a round, by the server's clock. Ranking takes a client's time, not the sums'."""
    spent = float(run["seconds_total"]) - float(run["setup"]["seconds"]) - float(run["seconds"]["evaluate"])
    return spent / rounds


def _round_bytes(run: dict[str, Any], rounds: int) -> float:
    """Bytes up of a round, of all clients together."""
    return float(run["bytes_up"] - run["setup"]["bytes_up"]) / rounds


def _figures(runs: list[dict[str, Any]], rounds: int) -> dict[str, Any]:
    return {
        "round_seconds": statistics.median(_round_seconds(run, rounds) for run in runs),
        "bytes_up": runs[0]["bytes_up"],
        "round_bytes_up": _round_bytes(runs[0], rounds),
        "setup_bytes_up": runs[0]["setup"]["bytes_up"],
        "bytes_down": runs[0]["bytes_down"],
        "mrr": runs[0]["mrr"],
        "seconds": {phase: statistics.median(run["seconds"][phase] for run in runs) for phase in PHASES},
    }


def _text(value: float | int) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


if __name__ == "__main__":
    sys.exit(main())
