"""Overhead of secure and secret aggregation next to their plain twin: `python -m benchmarks.overhead --help`.

The same training job runs once per setting, with the same seed and data; under mpirun or, with --link, between a server
and members that are connected through a proxy, which delays or limits every link:

    plain           names aligned in clear, sums in clear
    secagg          private set union, sums under pairwise masks
    secret          private set union, sums that the server cannot read either
    secagg_dropout  as secagg, and a client drops out in some rounds (it is stopped while it trains)
    secret_dropout  as secret, likewise

All jobs are there at once and take turns, round by round, in changing order, so that only one of them works at any time
and the machine's noise hits all alike. A round is timed by its server, from the moment it may begin until it has the
sum; evaluation is left out, and so are the first two rounds: in the first one nobody trains, in the second one the
trainers' inner loops are compiled. The ratio of a round is to the plain
round of the same number; reported are the median and an interval for it. What was spent waiting for a client that had
dropped out is told apart and not part of any ratio. In a round with a dropout one client less trains to the end. The
first dropout costs its round's sum, as a count of holders stands; figures are of the rounds of later ones, in which
holders are counted.

In the JSON, bytes_up of a setting is what all clients together send in one training round, the median of the rounds
counted, and bytes_ratio is exactly that over plain's bytes_up. run_bytes_up is of the whole run, with set-up and
evaluation.

Everything after -- goes to the training jobs as it is.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import overhead_sweep
from benchmarks.baton import WARM_UP, Job, Silence, in_order, running
from benchmarks.links.faults import parse_link
from benchmarks.overhead_figures import PLAIN, ratios_to_plain, setting_figures
from launch.command_line import OneLineParser, require_writable, run_command
from launch.hosts.environment import mpirun_command
from protocols.registry import AGGREGATIONS
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.standing_count import WARY_ROUNDS
from secure_kg.foundation.console import fail, say, table
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import write_json

SETTINGS: Final = ("plain", "secagg", "secret", "secagg_dropout", "secret_dropout")
WITH_DROPOUTS: Final = SETTINGS[3:]
_LAUNCHERS: Final = {"fedr": "launch.fedr_secagg", "fede": "launch.fede"}
_GB_PER_CLIENT: Final = 0.6
_GB_PER_SERVER: Final = 0.2
"""On FB15k-237; what a client needs by itself, with torch and numba, is half of it."""
_FIRST_SILENCE: Final = WARM_UP + 5
"""The server remembers the last four answers; until then it would wait as if every round compiled something."""
_ROUNDS_PER_SILENCE: Final = 3
"""One in which a client is lost, one without it, and one in which it is back."""
_USUAL_DROPOUTS: Final = 2
"""The first one comes while a count of holders stands, and costs that round's sum. Then holders are counted in each
round for a while: the sum of the second dropout's round is made without that client."""
_LEAST_CLIENTS_FOR_DROPOUTS: Final = 4


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    try:
        return run_command(lambda: _run(list(sys.argv[1:] if argv is None else argv)))
    except KeyboardInterrupt:  # the jobs have ended and their files are gone
        fail("interrupted")
        return 130


def _run(argv: list[str]) -> int:
    cut = argv.index("--") if "--" in argv else len(argv)
    options = _parser().parse_args(argv[:cut])
    options.training = argv[cut + 1 :]
    _check(options)
    if options.json not in (None, "-"):
        require_writable(Path(options.json))
    quiet = options.json == "-"
    report = overhead_sweep.measure(options, quiet) if options.sweep else measure(options, quiet)
    if quiet:
        say(json.dumps(report, indent=2, allow_nan=False))
        return 0
    overhead_sweep.show(report) if options.sweep else show(report)
    if options.json:
        write_json(Path(options.json), report)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.overhead",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""\
examples:
  python -m benchmarks.overhead --dataset kinships --rounds 30 --json overhead.json
  python -m benchmarks.overhead --dataset fb15k237.npz --strategy fede --rounds 12 --settings plain secagg secret
  python -m benchmarks.overhead --dataset umls -- --local-epochs 1 --batch-size 64
  python -m benchmarks.overhead --dataset umls --link delay=25ms --settings plain secagg secret
  python -m benchmarks.overhead --sweep clients""",
        allow_abbrev=False,
    )
    parser.add_argument("--dataset", default="umls", help="as for launch.fedr_secagg [umls]")
    parser.add_argument("--clients", type=int, default=5, metavar="C", help="number of clients [5]")
    parser.add_argument("--rounds", type=int, default=20, metavar="R", help="rounds of each setting [20]")
    parser.add_argument(
        "--strategy", choices=sorted(_LAUNCHERS), default="fedr", help="what is shared: relation or entity rows [fedr]"
    )
    parser.add_argument("--model", default="transe", help="embedding model [transe]")
    parser.add_argument("--dim", type=int, default=128, help="embedding dimension [128]")
    parser.add_argument("--seed", type=int, default=0, help="the same for all settings [0]")
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, metavar="S", help=f"which to measure: {', '.join(SETTINGS)} [all]"
    )
    parser.add_argument(
        "--dropouts",
        type=int,
        metavar="N",
        help="how often a client drops out in the settings with dropouts; 0: leave these out [2 where there are "
        f"{_LEAST_CLIENTS_FOR_DROPOUTS} clients and rounds enough]",
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=5.0,
        metavar="S",
        help="wait at least so many seconds for a dropout, and 5 times as long as it usually takes [5]",
    )
    parser.add_argument(
        "--memory-gb", type=float, metavar="GB", help="how much memory all jobs together may take [what is free]"
    )
    parser.add_argument(
        "--link",
        metavar="delay=25ms,rate=100Mbit",
        help="connect parties as between organisations, and have every link delayed and limited in each direction; "
        "delay=0ms: as it is [under mpirun, without]",
    )
    parser.add_argument(
        "--sweep",
        choices=overhead_sweep.SWEEPS,
        help="instead of training: how bytes and seconds of one round's sums grow with clients, rows or dimension",
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output alone")
    return parser


def _check(options: argparse.Namespace) -> None:
    if options.clients < 2 or options.rounds <= WARM_UP:
        raise UserError(f"--clients must be at least 2 and --rounds {WARM_UP + 1}: the first {WARM_UP} are not counted")
    if options.dim < 1 or not options.grace > 0:
        raise UserError("--dim must be at least 1 and --grace above 0")
    if options.link is not None:
        parse_link(options.link)
        if options.dropouts or options.sweep or set(options.settings or ()) & set(WITH_DROPOUTS):
            raise UserError("--link goes with neither --sweep nor settings with dropouts")
        options.dropouts = 0
    if options.settings is not None and PLAIN not in options.settings:
        raise UserError("--settings must contain plain: all ratios are to it")
    room = max(0, (options.rounds - _FIRST_SILENCE + 1) // _ROUNDS_PER_SILENCE)
    possible = room if options.clients >= _LEAST_CLIENTS_FOR_DROPOUTS else 0
    if options.dropouts is not None and options.dropouts < 0:
        raise UserError(f"--dropouts {options.dropouts}: must not be negative")
    asked = bool(set(options.settings or ()) & set(WITH_DROPOUTS))
    by_default = options.settings is None and options.dropouts is None
    if options.dropouts is None:
        options.dropouts = max(int(asked), min(_USUAL_DROPOUTS, possible))
    if not int(asked) <= options.dropouts <= possible:
        raise UserError(
            f"--dropouts {options.dropouts}: each takes {_ROUNDS_PER_SILENCE} rounds, of which the first is round "
            f"{_FIRST_SILENCE}, and {_LEAST_CLIENTS_FOR_DROPOUTS} clients; there is room for {possible}"
        )
    without = () if options.dropouts else WITH_DROPOUTS
    options.settings = [name for name in SETTINGS if name in (options.settings or SETTINGS) and name not in without]
    if not options.sweep:
        _check_memory(options, by_default)


def _check_memory(options: argparse.Namespace, by_default: bool) -> None:
    """`by_default`: nobody has asked for the settings with dropouts, so they may be left out."""
    there = options.memory_gb if options.memory_gb is not None else _free_gb()
    if by_default and there is not None and _needed_gb(options) > there:
        options.dropouts, options.settings = 0, [name for name in options.settings if name not in WITH_DROPOUTS]
        if options.json != "-":
            say(f"without dropouts: there is no room in memory for more than {len(options.settings)} jobs")
    needed = _needed_gb(options)
    if there is not None and needed > there:
        raise UserError(
            f"{len(options.settings)} jobs of {options.clients + 1} processes may take {needed:.1f} GB, of which "
            f"{there:.1f} are free: measure fewer with --settings, or say otherwise with --memory-gb"
        )


def _needed_gb(options: argparse.Namespace) -> float:
    """At most; of small graphs it is less."""
    per_job = _GB_PER_SERVER + int(options.clients) * _GB_PER_CLIENT
    return len(options.settings) * per_job


def _free_gb() -> float | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1e6 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None


def measure(options: argparse.Namespace, quiet: bool) -> dict[str, Any]:
    """All settings side by side, round by round."""
    tell = (lambda text: None) if quiet else say
    with tempfile.TemporaryDirectory(prefix="overhead-") as scratch:
        jobs = [_job(options, setting, Path(scratch)) for setting in options.settings]
        tell(f"starting {len(jobs)} jobs of {options.clients + 1} processes: {', '.join(options.settings)}")
        with running(jobs):
            step = 0
            while waiting := [job for job in jobs if job.ask is not None]:
                taken = [job.take_turn() for job in in_order(waiting, step)]
                step += 1
                told = "  ".join(f"{job.name} {job.turns[-1].seconds:.3f}" for job in waiting)
                tell(f"{taken[0].work} {taken[0].round}, seconds: {told}")
        plain = next(job for job in jobs if job.name == PLAIN)
        figures = {job.name: setting_figures(job, plain) for job in jobs}
    for setting in figures.values():
        setting["ratios_to_plain"] = ratios_to_plain(setting["parties"], figures[PLAIN]["parties"])
    twins = [figures[name]["mrr"] for name in options.settings if name not in WITH_DROPOUTS]
    return {
        **_environment(options),
        "settings": options.settings,
        **figures,
        "mrr_difference": max(abs(mrr - figures[PLAIN]["mrr"]) for mrr in twins),
    }


def _environment(options: argparse.Namespace) -> dict[str, Any]:
    names = ("dataset", "clients", "rounds", "strategy", "model", "dim", "seed", "dropouts", "grace", "training")
    return {
        "link": options.link,
        **{name: getattr(options, name) for name in names},
        "cores": len(os.sched_getaffinity(0)),
        "commit": _commit(),
        "python": sys.version.split()[0],
    }


def _commit() -> str | None:
    """Of the source tree this file is in; None outside of one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _job(options: argparse.Namespace, setting: str, scratch: Path) -> Job:
    aggregation, out = setting.removesuffix("_dropout"), scratch / setting
    arguments = ["--dataset", options.dataset, "--model", options.model, "--dim", str(options.dim)]
    arguments += ["--seed", str(options.seed), "--rounds", str(options.rounds), "--eval-every", str(options.rounds)]
    arguments += ["--checkpoint-every", "0", "--grace", str(options.grace)]
    arguments += options.training
    alignment = RunConfig().alignment if AGGREGATIONS[aggregation].hides_contributions else PLAIN
    arguments += ["--aggregation", aggregation, "--alignment", alignment]
    if options.link is not None:
        members = ["--clients", str(options.clients), "--link", options.link, "--out", str(out)]
        command = [sys.executable, "-m", "benchmarks.links.job", options.strategy, *members, "--", *arguments]
        return Job(setting, command, out, scratch, linked=True)
    command = mpirun_command(options.clients + 1, [_LAUNCHERS[options.strategy], *arguments, "--out", str(out)])
    silence = Silence(options.clients, silent_rounds(options.dropouts, options.rounds))
    return Job(setting, command, out, scratch, silence if setting in WITH_DROPOUTS else None)


def silent_rounds(dropouts: int, rounds: int) -> frozenset[int]:
    """In which rounds a client drops out: spread over the run, each time with room to come back, and soon enough after
    the one before for holders to be counted."""
    if not dropouts:
        return frozenset()
    apart = max(_ROUNDS_PER_SILENCE, min(WARY_ROUNDS, (rounds - _FIRST_SILENCE + 1) // dropouts))
    return frozenset(_FIRST_SILENCE + apart * number for number in range(dropouts))


def show(report: dict[str, Any]) -> None:
    settings = report["settings"]
    names = ["round_seconds", "ratio_to_plain", "cpu_ratio_to_plain", "bytes_up", "bytes_ratio"]
    names += ("client_bytes_ratio", "run_bytes_up", "setup_seconds", "setup_bytes_up", "waited_in_vain_seconds", "mrr")
    rows: list[list[str | int]] = [[name, *(_text(report[setting][name]) for setting in settings)] for name in names]
    for party in ("server", "client_mean", "client_max"):
        for name in ("round_cpu_seconds", "run_messages_up", "run_messages_down", "peak_memory_mb"):
            values = (report[setting]["parties"][party][name] for setting in settings)
            rows.append([f"{party} {name}", *map(_text, values)])
    for phase in report[PLAIN]["cpu_seconds"]:
        values = (report[setting]["cpu_seconds"][phase] / report["rounds"] for setting in settings)
        rows.append([f"cpu seconds per round: {phase}", *map(_text, values)])
    title = (
        f"{report['dataset']}, {report['clients']} clients, {report['strategy']}, {report['rounds']} rounds, "
        f"{report['model']} {report['dim']}"
    )
    table(title, ("", *settings), rows)
    for setting in settings[1:]:
        figures = report[setting]
        if figures["ratio_interval"] is None:
            lost = len(figures["abandoned_sums"])
            say(f"{setting}: no round with a dropout and a sum; {lost} sums were abandoned")
            continue
        low, high = figures["ratio_interval"]
        say(
            f"{setting}/plain: {figures['ratio_to_plain']:.3f} ({low:.3f} to {high:.3f}, "
            f"{100 * figures['ratio_coverage']:.0f} %, {figures['rounds_counted']} rounds), "
            f"bytes up {figures['bytes_ratio']:.4f}"
        )
    say(f"MRR of the runs without dropouts differs by {report['mrr_difference']:.1e}")


def _text(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4f}"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    sys.exit(main())
