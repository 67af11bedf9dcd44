"""Cost of ranking answers over everybody's scores, by backend: `python -m benchmarks.scores --help`.

One client asks a batch of --queries. Every client holds a random --share of --entities and has made-up scores of them;
the parties, protocols and messages are those of a real federation. Every answer is compared with the one computed in
clear. Backends take turns, so that the machine's noise hits all alike, and each has a first batch that is not counted.

    python -m benchmarks.scores ...                  all parties as threads of one process; Python runs one at a time
    mpirun -n 6 python -m benchmarks.scores ...      1 server and 5 clients as processes, one to a rank

What the columns and the fields of --json mean, medians over --repeat:

    seconds_per_query      until the asker has its answers, by the clock on the wall
    cpu_seconds_per_query  processor seconds of all parties together; background_cpu_seconds_per_query is what is not
                           of the parties' own threads: work ahead, and up to a millisecond per batch of measuring
    first_batch            of the batch that is not counted, in which keys and tables are made
    bytes_per_client       sent and received per query, the mean over clients; parties has asker, scorer and server
    rounds                 per batch: how often a client sends something that the others wait for, the most of any
    max_abs_error          against scores that were never rounded; where positions alone are opened, of the mean scores
                           at each rank
    same_ranking           whether all answers are those that were computed in clear, with the same rounding
    ratios                 ratios[what][a][b]: how many times as much a takes as b, the median over repetitions
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.masked_sum_timing import Teller
from benchmarks.scoring import backends as choosing
from benchmarks.scoring import peers
from benchmarks.scoring.carriers import in_ranks, in_threads
from benchmarks.scoring.figures import backend_figures, ratios, repetitions
from benchmarks.scoring.party import BatchCost, Measured
from benchmarks.scoring.rendering import show
from benchmarks.scoring.workload import Workload
from launch.command_line import OneLineParser, require_writable, run_command
from launch.hosts import environment
from protocols.bundles import ScoreBackend
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import SERVER
from protocols.registry import SCORES
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import write_json

DEFAULT_CLIENTS: Final = 5


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
    parser.add_argument("--paillier-bits", type=int, default=3072, metavar="B", help="length of Paillier keys [3072]")
    parser.add_argument(
        "--peers",
        action="store_true",
        help="measure others for comparison: phe with one score to a ciphertext at 2048 bits (a sample, extrapolated) "
        "beside ours at 2048 bits, and one comparison and one argmax by CrypTen",
    )
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="batches to take the median of [5]")
    parser.add_argument("--seed", type=int, default=0, help="of holdings and scores [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    work = _workload(options)
    leads = environment.rank() in (None, SERVER)
    to_file = options.json not in (None, "-")
    if to_file and leads:
        require_writable(Path(options.json))
    quiet = options.json == "-" or not leads
    chosen = choosing.choose(options, lambda line: None if quiet else say(line))
    measured = Measured(work, choosing.bundles(chosen, options), options.repeat, Teller(quiet))
    for bundle in measured.bundles.values():
        _refuse_what_does_not_fit(work, bundle)
    costs = _carried(measured)
    if costs is None:
        return 0
    report = _report(options, measured, costs)
    if options.json == "-":
        say(json.dumps(report, indent=2, allow_nan=False))
    else:
        show(report)
    if to_file:
        write_json(Path(options.json), report)
    wrong = [name for name, figures in report["backends"].items() if not figures["same_ranking"]]
    if wrong:
        fail(f"not the ranking that was computed in clear: {', '.join(wrong)}")
        return 1
    return 0


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
    size = (options.entities, clients, options.queries, options.top)
    return Workload(*size, options.share, options.seed, options.min_holders)


def _refuse_what_does_not_fit(work: Workload, bundle: ScoreBackend) -> None:
    """Before any work is done."""
    try:
        work.terms(bundle)
    except (ValueError, ProtocolError) as problem:
        raise UserError(str(problem)) from None


def _carried(measured: Measured) -> list[BatchCost] | None:
    """The costs of all parties; None at a rank that is not the server's."""
    if environment.rank() is None:
        try:
            return in_threads(measured)
        except ProtocolError as problem:
            raise UserError(str(problem)) from None
    from mpi4py import MPI

    try:
        return in_ranks(measured, MPI.COMM_WORLD)
    except Exception as problem:  # the other ranks wait for this one
        fail(f"rank {environment.rank()}: {type(problem).__name__}: {problem}")
        MPI.COMM_WORLD.Abort(1)
        raise


def _report(options: argparse.Namespace, measured: Measured, costs: list[BatchCost]) -> dict[str, Any]:
    in_one_process, work = environment.rank() is None, measured.work
    figures = {
        name: backend_figures(repetitions(costs, name, in_one_process), bundle, work)
        for name, bundle in measured.bundles.items()
    }
    measured_peers: dict[str, Any] = {}
    if options.peers and not choosing.missing(SCORES[choosing.PAILLIER]):
        measured_peers[peers.UNPACKED] = peers.unpacked_phe(work, options.repeat, measured.tell)
    return {
        "entities": work.entities,
        "clients": work.clients,
        "queries": work.queries,
        "top": work.top,
        "share": work.share,
        "seed": work.seed,
        "repeat": options.repeat,
        "carrier": "threads of one process" if in_one_process else "processes under mpirun",
        "backends": figures,
        "ratios": ratios(figures),
        "peers": measured_peers,
        "peer_ratios": _peer_ratios(figures, measured_peers, work.queries),
    }


def _peer_ratios(figures: dict[str, Any], measured_peers: dict[str, Any], queries: int) -> dict[str, Any]:
    """The peer beside ours, at the same key length where that was measured."""
    if peers.UNPACKED not in measured_peers:
        return {}
    ours = [name for name in (choosing.PAILLIER, choosing.PAILLIER_2048) if name in figures]
    return {name: peers.over_unpacked(measured_peers[peers.UNPACKED], figures[name], queries) for name in ours}


if __name__ == "__main__":
    sys.exit(main())
