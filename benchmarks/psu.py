"""Cost of one private set union for each party: `python -m benchmarks.psu --help`.

The functions of a real job align the names of all clients in one process, without a network
(`protocols.alignment.psu.simulation`), and every position is checked against the names. The union has --elements names.
A share --overlap of them is held by every client; the others are dealt out evenly, each to one client alone. Seconds
are those of computing, without serialisation; of a client they are the mean. Beside it stand published protocols for
the same problem, measured by their authors on other machines and against other adversaries.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from launch.command_line import OneLineParser, require_writable, run_command
from protocols.alignment.psu.attempts import MAX_BOUND
from protocols.alignment.psu.simulation import UnionCost, simulate_union
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import Step
from secure_kg.foundation.console import fail, say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import Lines
from secure_kg.runs.run_folder import write_json

CORRUPT: Final = 0.2
"""Share of clients that may be on the server's side in the masked sum, as in `benchmarks.secagg`."""
PUBLISHED: Final = [
    {
        "source": "Kolesnikov et al., ASIACRYPT 2019",
        "parties": 2,
        "elements_each": 1 << 20,
        "seconds": 238.0,
        "megabytes": 144.0,
        "what": "in all, one thread",
        "adversary": "semi-honest, either party",
        "difference": "two parties and no server; the receiver learns the names of the union",
    },
    {
        "source": "Liu and Gao, ASIACRYPT 2023",
        "parties": 7,
        "elements_each": 1 << 20,
        "seconds": 46.0,
        "what": "in all",
        "adversary": "semi-honest, not the leader together with a client",
        "difference": "no server; the leader, one of the parties, learns the names of the union",
    },
    {
        "source": "Dong et al., USENIX Security 2025",
        "parties": 3,
        "elements_each": 1 << 20,
        "seconds": 4.4,
        "what": "online phase alone",
        "adversary": "semi-honest, any parties together",
        "difference": "no server; the leader, one of the parties, learns the names of the union",
    },
]
ADVERSARY: Final = "semi-honest, not the server together with a client"
CAVEAT: Final = (
    "Ours needs a server that does not collude with a client for names to stay hidden, and every client sends a table "
    "of the size of the union, not of its own set. Nobody learns the names of the union: the server learns its size, a "
    "client its size and the positions of its own names. Theirs are other machines, languages, networks and sizes: "
    "only orders of magnitude can be compared."
)


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured, and all positions were right. 1: they were not. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _run(options: argparse.Namespace) -> int:
    _check(options)
    to_file = options.json not in (None, "-")
    if to_file:
        require_writable(Path(options.json))
    try:
        report = measure(options)
    except ProtocolError as problem:
        raise UserError(str(problem)) from None
    except AssertionError as problem:
        fail(str(problem))
        return 1
    if options.json == "-":
        say(json.dumps(report, indent=2, allow_nan=False))
    else:
        show(report)
    if to_file:
        write_json(Path(options.json), report)
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.clients < 2:
        raise UserError("--clients must be at least 2")
    if not 1 <= options.elements <= MAX_BOUND:
        raise UserError(f"--elements must be 1 to {MAX_BOUND:,}")
    if not 0 <= options.overlap <= 1:
        raise UserError(f"--overlap {options.overlap} is no share of the elements: 0 to 1")
    if not 0 <= options.max_dropouts < options.clients:
        raise UserError("--max-dropouts must be at least 0 and less than --clients")


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.psu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example, with sets as large as those of the published figures:\n"
        "  python -m benchmarks.psu --clients 7 --elements 1048576 --overlap 1 --json psu.json",
        allow_abbrev=False,
    )
    parser.add_argument("--clients", type=int, default=5, metavar="C", help="number of clients [5]")
    parser.add_argument("--elements", type=int, default=14_541, metavar="N", help="names in the union [14541]")
    parser.add_argument(
        "--overlap",
        type=float,
        default=0.5,
        metavar="F",
        help="share of the names that every client holds; each of the others is held by one client [0.5]",
    )
    parser.add_argument(
        "--max-dropouts",
        type=int,
        default=0,
        metavar="K",
        help="so many clients may drop out, and do, once they have shared their keys: the most costly moment. The "
        "union is then that of the others [0]",
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def names_of(clients: int, elements: int, overlap: float) -> dict[PartyId, list[str]]:
    """The first `overlap` * `elements` names for every client, the others dealt out in turn."""
    names = [f"/m/{number:08x}" for number in range(elements)]
    shared = round(overlap * elements)
    return {PartyId(client + 1): names[:shared] + names[shared + client :: clients] for client in range(clients)}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    tell = Lines(quiet=options.json == "-")
    started = time.perf_counter()
    names = names_of(options.clients, options.elements, options.overlap)
    cost = simulate_union(
        names,
        options.elements,
        model=ThreatModel(CORRUPT, options.max_dropouts / options.clients),
        dropped={Step.MASKED_INPUT: sorted(names)[options.clients - options.max_dropouts :]},
        progress=lambda step, done, of: tell(f"{step}, clients", done, of),
    )
    seconds = time.perf_counter() - started
    return _report(options, cost, [len(held) for held in names.values()], seconds)


def _report(options: argparse.Namespace, cost: UnionCost, set_sizes: list[int], seconds: float) -> dict[str, Any]:
    return {
        "clients": options.clients,
        "elements": options.elements,
        "overlap": options.overlap,
        "max_dropouts": options.max_dropouts,
        "set_sizes": set_sizes,
        "union": cost.union,
        "survivors": len(cost.survivors),
        "attempts": cost.attempts,
        "client_seconds": cost.client_seconds,
        "client_parts": dict(cost.client_parts),
        "server_seconds": cost.server_seconds,
        "server_parts": dict(cost.server_parts),
        "total_seconds": seconds,
        "client_bytes_up": round(cost.client_bytes_up),
        "client_bytes_down": round(cost.client_bytes_down),
        "places_bytes": cost.places_bytes,
        "bytes_up_per_element": cost.client_bytes_up / options.elements,
        "peak_mb": _peak_bytes() / 1e6,
        "adversary": ADVERSARY,
        "published": PUBLISHED,
        "caveat": CAVEAT,
    }


def _peak_bytes() -> int:
    """The most memory this process has had at once, libraries and all."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def show(report: dict[str, Any]) -> None:
    smallest, largest = min(report["set_sizes"]), max(report["set_sizes"])
    each = f"{largest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    megabytes = f"{report['clients'] * (report['client_bytes_up'] + report['client_bytes_down']) / 1e6:.1f}"
    one_after_the_other = report["client_seconds"] + report["server_seconds"]
    rows: list[list[str | int]] = [
        ["here", report["clients"], each, f"{seconds:.3f}", megabytes, what]
        for seconds, what in (
            (one_after_the_other, "a client, then the server; no network"),
            (report["total_seconds"], "everybody in one process; no network"),
        )
    ]
    rows += [
        [
            theirs["source"],
            theirs["parties"],
            f"{theirs['elements_each']:,}",
            f"{theirs['seconds']:g}",
            f"{theirs['megabytes']:g}" if "megabytes" in theirs else "",
            theirs["what"],
        ]
        for theirs in report["published"]
    ]
    title = f"union of {report['union']:,} names, {report['overlap']:.0%} of {report['elements']:,} held by everybody"
    table(title, ("", "parties", "names each", "seconds", "MB in all", "of what"), rows)
    say(f"a client {_parts(report['client_seconds'], report['client_parts'])}")
    say(f"the server {_parts(report['server_seconds'], report['server_parts'])}")
    say(
        f"a client sends {report['client_bytes_up']:,} bytes ({report['bytes_up_per_element']:.1f} for each of "
        f"--elements) and is sent {report['client_bytes_down']:,}; attempts: {report['attempts']}; survivors: "
        f"{report['survivors']} of {report['clients']}"
    )
    say(
        f"everybody in one process, with making the names and checking the result: {report['total_seconds']:.2f} s, "
        f"{report['peak_mb']:,.0f} MB at most"
    )
    for theirs in report["published"]:
        say(f"{theirs['source']}: {theirs['adversary']}; {theirs['difference']}")
    say(f"here: {report['adversary']}")
    say(report["caveat"])


def _parts(seconds: float, parts: dict[str, float]) -> str:
    return f"{seconds:.3f} s: " + ", ".join(f"{name} {part:.3f}" for name, part in parts.items())


if __name__ == "__main__":
    sys.exit(main())
