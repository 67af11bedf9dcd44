"""Cost of ranking answers over everybody's scores, by backend: `python -m benchmarks.scores --help`.

One client asks a batch of --queries. Every client holds a random --share of --entities and has made-up scores of them;
the parties, protocols and messages are those of a real federation. Every answer is compared with the one computed in
clear. Backends take turns, so that the machine's noise hits all alike, and each has a first batch that is not counted.

    python -m benchmarks.scores ...                  all parties as threads of one process; Python runs one at a time.
                                                     crypten, which needs a process per party, comes after the others
    ... --carrier processes                          every party in a process that this one starts
    mpirun -n 6 python -m benchmarks.scores ...      1 server and 5 clients, one to a rank, as in a real job

What the columns and the fields of --json mean, medians over --repeat:

    seconds_per_query      until the asker has its answers, by the clock on the wall
    cpu_seconds_per_query  processor seconds of all parties together; background_cpu_seconds_per_query is what is not
                           of the parties' own threads: work ahead, and up to a millisecond per batch of measuring
    first_batch            of the batch that is not counted, in which keys and tables are made
    bytes_per_client       sent and received per query, the mean over clients; parties has asker, scorer and server.
                           What CrypTen sends in a group of its own is group_bytes, counted where it is sent
    rounds                 per batch: how often a client sends something that the others wait for, the most of any
    max_abs_error          against scores that were never rounded; where positions alone are opened, of the mean scores
                           at each rank
    same_ranking           whether all answers are those that were computed in clear, with the same rounding
    ratios                 ratios[what][a][b]: how many times as much a takes as b, the median over repetitions; only of
                           backends that took turns, with parties of one kind (carrier)
    load_average_before    of the last minute. On a machine that is busy with other things seconds say little, least of
                           all where processes wait for each other; load_average_after has this job's own work in it
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks.scoring import backends as choosing
from benchmarks.scoring import peers
from benchmarks.scoring.carriers import (
    CarrierFailed,
    ProcessJob,
    all_may_begin,
    in_processes,
    in_ranks,
    in_threads,
    meeting,
)
from benchmarks.scoring.figures import backend_figures, ratios, repetitions
from benchmarks.scoring.party import MODEL, BatchCost, Measured
from benchmarks.scoring.rendering import show
from benchmarks.scoring.workload import Workload
from launch.command_line import OneLineParser, require_writable, run_command
from launch.hosts import environment
from protocols.bundles import ScoreBackend
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import SERVER, new_session
from protocols.registry import SCORES
from protocols.scores.budget import Helpers, default_limit
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import Lines
from secure_kg.runs.run_folder import write_json
from secure_kg.runs.score_recording import require_unused

DEFAULT_CLIENTS: Final = 5
THREADS: Final = "threads"
PROCESSES: Final = "processes"
RANKS: Final = "ranks"
Carried: TypeAlias = dict[str, list[BatchCost]]


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured, and all rankings were right. 1: one was not. 2: one line on standard error says what to mend."""
    if environment.rank() in (None, SERVER):
        return run_command(lambda: _run(_parser().parse_args(argv)))
    try:
        return _run(_parser().parse_args(argv))
    except (UserError, SystemExit):
        return 0  # rank 0 says it


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.scores",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python -m benchmarks.scores --entities 15000 --queries 64 --backends plain masked bfv\n"
        "  python -m benchmarks.scores --peers --json scores.json\n"
        "  mpirun -n 6 python -m benchmarks.scores --backends topk --entities 75000",
        allow_abbrev=False,
    )
    parser.add_argument("--entities", type=int, default=15_000, metavar="N", help="positions of the union [15000]")
    parser.add_argument(
        "--clients", type=int, metavar="C", help="clients, the asker included [5; under mpirun one less than ranks]"
    )
    parser.add_argument("--queries", type=int, default=1, metavar="Q", help="queries of a batch [1]")
    parser.add_argument("--top", type=int, default=10, metavar="K", help="answers per query [10]")
    parser.add_argument("--share", type=float, default=0.6, metavar="F", help="of the entities each client holds [0.6]")
    parser.add_argument(
        "--min-holders", type=int, metavar="M", help="scorers that must hold an entity [2 where means open, else 1]"
    )
    parser.add_argument(
        "--backends", nargs="+", metavar="NAME", help=f"of {', '.join(choosing.known())} [all that are installed]"
    )
    parser.add_argument("--carrier", choices=(THREADS, PROCESSES), default=THREADS, help="without mpirun [threads]")
    parser.add_argument("--paillier-bits", type=int, metavar="B", help="length of Paillier keys [3072]")
    parser.add_argument(
        "--peers",
        action="store_true",
        help="measure others for comparison: phe with one score to a ciphertext at 2048 bits (a sample, extrapolated) "
        "beside ours at 2048 bits, and one comparison and one argmax by CrypTen",
    )
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="batches to take the median of [5]")
    parser.add_argument("--seed", type=int, default=0, help="of holdings and scores [0]")
    parser.add_argument(
        "--dimensions", type=int, default=256, metavar="D", help="numbers in a row of the table that is scored [256]"
    )
    parser.add_argument(
        "--allow-extraction",
        action="store_true",
        help="open means of more queries per batch than the clients' budgets, by which half of --dimensions are opened",
    )
    parser.add_argument(
        "--hide-query",
        nargs="?",
        const="inner",
        metavar="SCORE",
        help="measure topk-hidden, too: topk by which scorers do not see the queries; rows of --dimensions are scored "
        "by inner products [inner] or squared distances (squared)",
    )
    parser.add_argument(
        "--record", type=Path, metavar="DIR", help="record what the server sees, for python -m launch.audit DIR"
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    work = _workload(options)
    leads = environment.rank() in (None, SERVER)
    quiet = options.json == "-" or not leads
    chosen = choosing.choose(options, lambda line: None if quiet else say(line))
    options.paillier_bits = choosing.key_bits(chosen, options.paillier_bits)
    bundles = choosing.bundles(choosing.with_variants(chosen, options), options.paillier_bits)
    measured = Measured(
        work, bundles, options.repeat, Lines(quiet), options.allow_extraction, options.record, options.hide_query
    )
    measured.hidden  # noqa: B018  refuses what cannot be hidden
    for bundle in measured.bundles.values():
        _refuse_what_does_not_fit(work, bundle)
        _refuse_extraction(work, bundle, options.allow_extraction)
    if not all_may_begin(lambda: _refuse_files(measured, options)):
        return 0  # rank 0 says why
    load = os.getloadavg()[0]
    carried = _carried(measured, options)
    code = 0
    if carried is not None:
        code = _told(_report(options, measured, carried, load), options)
    if environment.rank() is not None:
        _leave_together()
    return code


def _told(report: dict[str, Any], options: argparse.Namespace) -> int:
    """Show and write a report; the exit code."""
    if options.json == "-":
        say(json.dumps(report, indent=2, allow_nan=False))
    else:
        show(report)
        if options.json is not None:
            write_json(Path(options.json), report)
    wrong = [name for name, figures in report["backends"].items() if not figures["same_ranking"]]
    if wrong:
        fail(f"not the ranking that was computed in clear: {', '.join(wrong)}")
    return 1 if wrong else 0


def _workload(options: argparse.Namespace) -> Workload:
    ranks = environment.size() if environment.rank() is not None else None
    clients = options.clients if options.clients is not None else (ranks or DEFAULT_CLIENTS + 1) - 1
    if ranks is not None and ranks != clients + 1:
        raise UserError(f"--clients {clients}: needs mpirun -n {clients + 1}, a server and its clients, not {ranks}")
    if options.repeat < 1 or options.seed < 0 or not 0 < options.share <= 1:
        raise UserError("--repeat must be at least 1, --seed at least 0, --share above 0 and at most 1")
    if clients < 3:
        raise UserError("--clients must be at least 3: one asks, and two others score")
    if options.min_holders is not None and not 1 <= options.min_holders < clients:
        raise UserError(f"--min-holders must be 1 to {clients - 1}, the number of scorers")
    if options.dimensions < 1:
        raise UserError("--dimensions must be at least 1")
    size = (options.entities, clients, options.queries, options.top)
    return Workload(*size, options.share, options.seed, options.min_holders, options.dimensions)


def _refuse_what_does_not_fit(work: Workload, bundle: ScoreBackend) -> None:
    """Before any work is done."""
    try:
        work.terms(bundle)
    except (ValueError, ProtocolError) as problem:
        raise UserError(str(problem)) from None


def _refuse_extraction(work: Workload, bundle: ScoreBackend, allowed: bool) -> None:
    """What every scorer would refuse, before any work is done."""
    limit = default_limit(work.dimensions, Helpers.of(work.clients, MODEL))
    if bundle.has_budget and not allowed and work.queries > limit:
        raise UserError(
            f"--queries {work.queries}: {bundle.name} opens means, and clients keep a budget of {limit} queries per "
            f"table of --dimensions {work.dimensions}; use a backend that opens positions, or say --allow-extraction"
        )


def _refuse_files(measured: Measured, options: argparse.Namespace) -> None:
    """`UserError` for files that cannot be written; asked where they are written."""
    if options.json not in (None, "-"):
        require_writable(Path(options.json))
    if options.record is not None:
        _require_one_session(measured, options)


def _require_one_session(measured: Measured, options: argparse.Namespace) -> None:
    """A folder holds the record of one session; parties as threads and parties as processes make two."""
    apart = _apart(measured, options)
    if environment.rank() is None and apart and len(apart) < len(measured.bundles):
        raise UserError(f"--record: {', '.join(apart)} would be a session of its own; record it by itself")
    require_unused(options.record)


def _apart(measured: Measured, options: argparse.Namespace) -> list[str]:
    """Backends that are measured in processes."""
    apart = [name for name, one in measured.bundles.items() if one.own_process or options.carrier == PROCESSES]
    if options.peers and "topk" in measured.bundles and "topk" not in apart:
        apart.append("topk")  # to stand beside CrypTen, whose parties are processes: they share cores in another way
    return apart


def _carried(measured: Measured, options: argparse.Namespace) -> Carried | None:
    """Costs by carrier; None at a rank that is not the server's."""
    if environment.rank() is not None:
        costs = _in_ranks(measured)
        return None if costs is None else {RANKS: costs}
    apart = _apart(measured, options)
    together = {name: one for name, one in measured.bundles.items() if name not in apart}
    carried: Carried = {}
    try:
        if together:
            carried[THREADS] = in_threads(replace(measured, bundles=together))
        if apart:
            measured.tell(f"in processes: {', '.join(apart)}")
            job = ProcessJob(
                measured.work,
                tuple(apart),
                options.paillier_bits,
                options.repeat,
                new_session(),
                measured.allow_extraction,
                measured.record,
                measured.similarity,
            )
            carried[PROCESSES] = in_processes(job)
    except (ProtocolError, CarrierFailed) as problem:
        raise UserError(str(problem)) from None
    return carried


def _in_ranks(measured: Measured) -> list[BatchCost] | None:
    from mpi4py import MPI

    try:
        return in_ranks(measured, MPI.COMM_WORLD)
    except Exception as problem:  # the other ranks wait for this one
        fail(f"rank {environment.rank()}: {type(problem).__name__}: {problem}")
        MPI.COMM_WORLD.Abort(1)
        raise


def _leave_together() -> None:
    """Ranks that are done would wait in MPI's own way, which takes the cores from those that still measure."""
    from mpi4py import MPI

    meeting(MPI.COMM_WORLD)()


def _report(options: argparse.Namespace, measured: Measured, carried: Carried, before: float) -> dict[str, Any]:
    """`before`: the load of the machine before anything was measured."""
    work, figures = measured.work, dict[str, Any]()
    measured_peers = _peers(options, measured) if options.peers else {}
    for name, bundle in measured.bundles.items():
        carrier = next(one for one, costs in carried.items() if any(cost.backend == name for cost in costs))
        found = repetitions(carried[carrier], name, shared_process=carrier == THREADS)
        figures[name] = backend_figures(found, bundle, work, carrier)
    return {
        "entities": work.entities,
        "clients": work.clients,
        "queries": work.queries,
        "top": work.top,
        "share": work.share,
        "seed": work.seed,
        "repeat": options.repeat,
        "cores": os.cpu_count(),
        "load_average_before": before,
        "load_average_after": os.getloadavg()[0],
        "backends": figures,
        "ratios": ratios(figures),
        "peers": measured_peers,
        "peer_ratios": _peer_ratios(figures, measured_peers, work.queries),
    }


def _peers(options: argparse.Namespace, measured: Measured) -> dict[str, Any]:
    """Those whose packages are installed."""
    found: dict[str, Any] = {}
    if not choosing.missing(SCORES["paillier"]):
        found[peers.UNPACKED] = peers.unpacked_phe(measured.work, options.repeat, measured.tell)
    if not choosing.missing(SCORES["crypten"]):
        found |= peers.crypten_functions(measured.work, options.repeat, measured.tell)
    return found


def _peer_ratios(figures: dict[str, Any], measured_peers: dict[str, Any], queries: int) -> dict[str, Any]:
    """Each peer beside ours. Of phe: at the same key length where that was measured."""
    found: dict[str, Any] = {}
    if peers.UNPACKED in measured_peers:
        ours = [name for name in (choosing.PAILLIER, choosing.PAILLIER_2048) if name in figures]
        unpacked = measured_peers[peers.UNPACKED]
        found[peers.UNPACKED] = {name: peers.over_unpacked(unpacked, figures[name], queries) for name in ours}
    if peers.COMPARISON in measured_peers:
        opening_positions = [
            name for name in ("topk", "crypten") if name in figures and figures[name]["carrier"] != THREADS
        ]
        found[peers.COMPARISON] = {
            name: peers.over_functions(measured_peers, figures[name]) for name in opening_positions
        }
    return found


if __name__ == "__main__":
    sys.exit(main())
