"""Cost of one masked sum for each party: `python -m benchmarks.secagg --help`.

The objects of a real job add up random vectors in one process, without a network (`protocols.sums.secagg.simulation`),
and the sum is compared with the plain one. Beside them, and in turns with them because a busy machine's speed changes
from second to second: the bare AES-256-CTR keystream of the same number of streams and bytes, and Flower's functions
for the same work if the package `flwr` is installed. Ratios are medians over neighbours in time.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import flower_peer
from benchmarks.masked_sum_timing import Masking, MeasuredSum, Sharing
from launch.command_line import OneLineParser, require_writable, run_command
from protocols.foundation.errors import ProtocolError
from protocols.primitives.group import Group, PrimeField, Ring
from protocols.sums.secagg.params import ThreatModel, complete_parameters, sparse_parameters
from protocols.sums.secagg.step_costs import Spread, StepCost
from secure_kg.foundation.console import fail, say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import Lines
from secure_kg.runs.run_folder import write_json

GROUPS: Final[dict[str, Group]] = {"32": Ring(32), "64": Ring(64), "field": PrimeField()}
PUBLISHED: Final = {
    "source": "Bonawitz et al., CCS 2017",
    "clients": 1000,
    "dim": 100_000,
    "dropout": 0.1,
    "graph": "complete",
    "server_seconds": 181.0,
    "client_seconds": 1.7,
    "note": "another machine and another language: only the order of magnitude can be compared",
}
_MASKINGS_PER_REPETITION: Final = 3


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured, and the sum was exact. 1: it was not. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _run(options: argparse.Namespace) -> int:
    if options.clients < 2 or options.dim < 1 or options.repeat < 1 or options.seed < 0:
        raise UserError("--clients must be at least 2, --dim and --repeat at least 1, --seed at least 0")
    if not 0 <= options.dropout < 1:
        raise UserError(f"--dropout {options.dropout} is no fraction of the clients: at least 0, less than 1")
    to_file = options.json not in (None, "-")
    if to_file:
        require_writable(Path(options.json))
    try:
        report = measure(options)
    except ProtocolError as problem:
        raise UserError(str(problem)) from None
    if options.json == "-":
        say(json.dumps(report, indent=2, allow_nan=False))
    else:
        show(report)
    if to_file:
        write_json(Path(options.json), report)
    if not report["sum_is_exact"]:
        fail("the sum is not that of the survivors' inputs")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.secagg",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.secagg --clients 1000 --dim 100000 --repeat 1 --json secagg.json",
        allow_abbrev=False,
    )
    parser.add_argument("--clients", type=int, default=10, metavar="N", help="number of clients [10]")
    parser.add_argument("--dim", type=int, default=1_000_000, metavar="D", help="entries of a vector [1000000]")
    parser.add_argument(
        "--dropout", type=float, default=0.1, metavar="F", help="share of clients silent after sharing keys [0.1]"
    )
    parser.add_argument("--corrupt", type=float, default=0.2, metavar="F", help="share that may be corrupt [0.2]")
    parser.add_argument("--server", choices=("semi-honest", "active"), default="semi-honest", help="[semi-honest]")
    parser.add_argument("--graph", choices=("sparse", "complete"), help="[sparse; complete if the server is active]")
    parser.add_argument("--group", choices=tuple(GROUPS), default="32", help="bits of the ring, or the field [32]")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="sums to take the median of [5]")
    parser.add_argument("--seed", type=int, default=0, help="of inputs and dropouts [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def measure(options: argparse.Namespace) -> dict[str, Any]:
    model = ThreatModel(options.corrupt, options.dropout, options.server)
    graph = options.graph or ("complete" if options.server == "active" else "sparse")
    parameters = (sparse_parameters if graph == "sparse" else complete_parameters)(options.clients, model)
    group = GROUPS[options.group]
    tell = Lines(quiet=options.json == "-")
    flower = flower_peer.load()
    sums = [MeasuredSum(options, parameters, model, group, tell, number) for number in range(1, options.repeat + 1)]
    masking = Masking(parameters, group, options.dim, flower)
    sharing = Sharing(parameters, flower)
    for number in range(1, options.repeat * _MASKINGS_PER_REPETITION + 1):
        tell("masking and sharing", number, options.repeat * _MASKINGS_PER_REPETITION)
        masking.measure()
        sharing.measure(number)
    return _report(options, sums, masking, sharing, flower)


def _report(
    options: argparse.Namespace,
    sums: list[MeasuredSum],
    masking: Masking,
    sharing: Sharing,
    flower: flower_peer.FlowerPeer | None,
) -> dict[str, Any]:
    results = [done.result for done in sums]
    first = results[0]
    phases = [_phase([result.setup for result in results])]
    phases += [_phase(list(steps)) for steps in zip(*(result.steps for result in results), strict=True)]
    return {
        "clients": options.clients,
        "dim": options.dim,
        "dropout": options.dropout,
        "corrupt": options.corrupt,
        "server": options.server,
        "graph": "complete" if first.parameters.complete else "sparse",
        "group": options.group,
        "repeat": options.repeat,
        "seed": options.seed,
        **_sum_figures(options, sums),
        **_peer_figures(options, sums, masking, sharing, flower),
        "phases": phases,
        "published": PUBLISHED,
    }


def _sum_figures(options: argparse.Namespace, sums: list[MeasuredSum]) -> dict[str, Any]:
    """Of whole sums: parameters, seconds and bytes."""
    results = [done.result for done in sums]
    first, up = results[0], results[0].client_bytes_up
    return {
        "degree": first.parameters.degree,
        "threshold": first.parameters.threshold,
        "min_survivors": first.parameters.min_survivors,
        "survivors": len(first.survivors),
        "sum_is_exact": all(done.exact for done in sums),
        "client_seconds": statistics.median(result.client_seconds for result in results),
        "client_setup_seconds": statistics.median(result.setup.client_seconds.mean for result in results),
        "client_codec_seconds": statistics.median(
            sum(step.client_codec_seconds.mean for step in result.steps) for result in results
        ),
        "server_seconds": statistics.median(result.server_seconds for result in results),
        "server_codec_seconds": statistics.median(
            sum(step.server_codec_seconds for step in result.steps) for result in results
        ),
        "client_bytes_up": round(up),
        "client_bytes_down": round(first.client_bytes_down),
        "expansion": up / (4 * options.dim),
    }


def _peer_figures(
    options: argparse.Namespace,
    sums: list[MeasuredSum],
    masking: Masking,
    sharing: Sharing,
    flower: flower_peer.FlowerPeer | None,
) -> dict[str, Any]:
    """Of masks and shares next to the bare cipher and to Flower."""
    results = [done.result for done in sums]
    first = results[0]
    stream_bytes = options.dim * first.layout.group.element_bytes
    stream_seconds = statistics.median(masking.bare) / masking.streams
    return {
        "keystream_seconds": stream_seconds,
        "keystream_bytes_per_second": stream_bytes / stream_seconds,
        "mask_streams": masking.streams,
        "mask_seconds": statistics.median(masking.mask),
        "mask_over_keystream": masking.mask_over_keystream,
        "unmask_expansions": first.expansions,
        "unmask_step_seconds": statistics.median(result.steps[-1].server_close_seconds for result in results),
        "unmask_over_keystream": masking.unmask_over_keystream,
        "unmask_step_over_keystream": statistics.median(done.step_over_keystream for done in sums),
        "encode_seconds": statistics.median(masking.encode) if masking.encode else None,
        "share_recombine_seconds": statistics.median(sharing.seconds),
        "flower_version": flower.version if flower else None,
        "flower_encode_mask_seconds": statistics.median(masking.flower_seconds) if masking.flower_seconds else None,
        "flower_share_recombine_seconds": (
            statistics.median(sharing.flower_seconds) if sharing.flower_seconds else None
        ),
        "flower_speedup": masking.flower_speedup,
        "flower_encode_mask_speedup": masking.flower_speedup,
        "flower_share_speedup": sharing.flower_speedup,
    }


def _phase(costs: list[StepCost]) -> dict[str, Any]:
    """One step over all repetitions: medians of seconds; the bytes are the same every time."""
    first = costs[0]
    return {
        "name": first.name,
        "clients": first.clients,
        "client_seconds": _median_spread([cost.client_seconds for cost in costs]),
        "client_codec_seconds": _median_spread([cost.client_codec_seconds for cost in costs]),
        "server_seconds": statistics.median(cost.server_seconds for cost in costs),
        "server_codec_seconds": statistics.median(cost.server_codec_seconds for cost in costs),
        "client_bytes_up": round(first.bytes_up.mean),
        "client_bytes_down": round(first.bytes_down.mean),
        "all_bytes_up": round(first.bytes_up.total),
        "all_bytes_down": round(first.bytes_down.total),
    }


def _median_spread(spreads: list[Spread]) -> dict[str, float]:
    return {
        name: statistics.median(getattr(spread, name) for spread in spreads) for name in ("mean", "median", "maximum")
    }


def show(report: dict[str, Any]) -> None:
    rows: list[list[str | int]] = [
        [
            phase["name"],
            phase["clients"],
            _milliseconds(phase["client_seconds"]["mean"]),
            _milliseconds(phase["client_seconds"]["maximum"]),
            _text(phase["server_seconds"]),
            phase["client_bytes_up"],
            phase["client_bytes_down"],
        ]
        for phase in report["phases"]
    ]
    rows.append(
        [
            "the sum, without set-up",
            report["survivors"],
            _milliseconds(report["client_seconds"]),
            "",
            _text(report["server_seconds"]),
            report["client_bytes_up"],
            report["client_bytes_down"],
        ]
    )
    title = (
        f"{report['clients']:,} clients, {report['dim']:,} entries, {report['dropout']:.0%} dropouts; "
        f"{report['degree']} neighbours, threshold {report['threshold']}; medians of {report['repeat']}"
    )
    columns = ("", "clients", "client ms", "slowest ms", "server s", "bytes up", "bytes down")
    table(title, columns, rows)
    say(f"sum {'exact' if report['sum_is_exact'] else 'WRONG'}; upload {report['expansion']:.3f} x 4 bytes per entry")
    say(
        f"serialisation, not in the table: {_milliseconds(report['client_codec_seconds'])} ms per client, "
        f"{_text(report['server_codec_seconds'])} s for the server"
    )
    say(
        f"bare AES-256-CTR: {_milliseconds(report['keystream_seconds'])} ms per stream "
        f"({report['keystream_bytes_per_second'] / 1e9:.1f} GB/s); masking with {report['mask_streams']} streams takes "
        f"{report['mask_over_keystream']:.2f} x as long, removing as many {report['unmask_over_keystream']:.2f} x; the "
        f"server's whole last step, {report['unmask_expansions']:,} masks and their keys rebuilt from shares, "
        f"{report['unmask_step_over_keystream']:.2f} x per mask"
    )
    _show_flower(report)
    _show_published(report)


def _show_published(report: dict[str, Any]) -> None:
    published = report["published"]
    theirs = (
        f"{published['source']}: {published['clients']:,} clients, {published['dim']:,} entries, "
        f"{published['dropout']:.0%} dropouts, {published['graph']} graph: server {published['server_seconds']:g} s, "
        f"client {published['client_seconds']} s; {published['note']}"
    )
    if any(report[name] != published[name] for name in ("clients", "dim", "dropout")):
        say(f"for another size than here, {theirs}")
        return
    say(theirs)
    say(
        f"here, {report['graph']} graph: server {_text(report['server_seconds'])} s, client "
        f"{_text(report['client_seconds'])} s"
    )


def _show_flower(report: dict[str, Any]) -> None:
    if report["flower_version"] is None:
        say("Flower: the package flwr is not installed, so there is no comparison")
        return
    parts = []
    if report["flower_encode_mask_speedup"] is not None:
        parts.append(
            f"quantising and masking {_text(report['flower_encode_mask_seconds'])} s, "
            f"{report['flower_encode_mask_speedup']:.1f} x ours"
        )
    parts.append(
        f"sharing and recombining {_text(report['flower_share_recombine_seconds'])} s, "
        f"{report['flower_share_speedup']:.1f} x ours"
    )
    say(f"Flower {report['flower_version']}: " + "; ".join(parts))


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.2f}"


def _text(seconds: float) -> str:
    return f"{seconds:.4f}" if seconds < 10 else f"{seconds:.1f}"


if __name__ == "__main__":
    sys.exit(main())
