"""What one masked sum costs each party: `python -m benchmarks.secagg --help`.

The objects of a real job add up random vectors in one process, without a network (`protocols.secagg.simulation`), and
the sum is compared with the plain one. Beside them, and in turns with them because a busy machine's speed changes from
second to second: the bare AES-256-CTR keystream of the same number of streams and bytes, and Flower's functions for the
same work if the package `flwr` is installed. Ratios are medians over neighbours in time.
"""

import argparse
import json
import random
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from benchmarks import flower_peer
from launch.command_line import OneLineParser, run_command
from protocols.errors import ProtocolError
from protocols.identifiers import PartyId, new_session
from protocols.primitives.group import MODULUS, Group, GroupVector, PrimeField, Ring
from protocols.primitives.keys import AgreementKey
from protocols.primitives.prg import KEY_BYTES, combine_keystreams
from protocols.primitives.shamir import recombine, split
from protocols.secagg.channels import Channels
from protocols.secagg.client import Ready, SecAggClient
from protocols.secagg.params import SumParameters, ThreatModel, complete_parameters, sparse_parameters
from protocols.secagg.server import Step
from protocols.secagg.simulation import PURPOSE, ROUND, Inputs, SimulationResult, Spread, StepCost, simulate
from protocols.secagg.terms import Terms
from protocols.sums import Contribution, SumLayout
from secure_kg.console import fail, say, table
from secure_kg.errors import UserError
from secure_kg.federation.run_folder import write_json

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
_CHUNK_BYTES: Final = 1 << 19
"""The bare cipher is fastest if what it writes stays in the cache."""
_ZEROS: Final = bytes(_CHUNK_BYTES)
_MASKINGS_PER_REPETITION: Final = 3
_SAY_EVERY_SECONDS: Final = 10.0
_ENOUGH_SECONDS: Final = 5.0


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
        _require_writable(Path(options.json))
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


def _require_writable(path: Path) -> None:
    """Before the work, which may take minutes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as problem:
        raise UserError(f"{path}: cannot be written ({problem.strerror})") from None
    if path.is_dir():
        raise UserError(f"{path}: cannot be written (it is a folder)")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    model = ThreatModel(options.corrupt, options.dropout, options.server)
    graph = options.graph or ("complete" if options.server == "active" else "sparse")
    parameters = (sparse_parameters if graph == "sparse" else complete_parameters)(options.clients, model)
    group = GROUPS[options.group]
    tell = _Teller(quiet=options.json == "-")
    flower = flower_peer.load()
    sums = [_Sum(options, parameters, model, group, tell, number) for number in range(1, options.repeat + 1)]
    masking = _Masking(parameters, group, options.dim, flower)
    sharing = _Sharing(parameters, flower)
    for number in range(1, options.repeat * _MASKINGS_PER_REPETITION + 1):
        tell(f"masking {number}/{options.repeat * _MASKINGS_PER_REPETITION}")
        masking.measure()
        tell(f"sharing {number}/{options.repeat * _MASKINGS_PER_REPETITION}")
        sharing.measure(number)
    return _report(options, sums, masking, sharing, flower)


class _Teller:
    """Says how far a long job is, at most every ten seconds."""

    def __init__(self, quiet: bool) -> None:
        self._quiet, self._last = quiet, time.monotonic()

    def __call__(self, text: str) -> None:
        if not self._quiet and time.monotonic() - self._last > _SAY_EVERY_SECONDS:
            self._last = time.monotonic()
            say(text)


def bare_keystream(streams: int, length: int) -> float:
    """Seconds for AES-256-CTR alone: `streams` fresh keys, `length` bytes each, into a buffer that is used again."""
    keys = [secrets.token_bytes(KEY_BYTES) for _ in range(streams)]
    buffer = bytearray(_CHUNK_BYTES + 16)
    started = time.perf_counter()
    for key in keys:
        cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        for start in range(0, length, _CHUNK_BYTES):
            cipher.update_into(_ZEROS[: length - start], buffer)
    return time.perf_counter() - started


def random_inputs(group: Group, length: int, seed: int) -> Inputs:
    """Uniform inputs, the same for the same seed."""
    limit = 1 << group.bits if isinstance(group, Ring) else MODULUS

    def input_of(party: PartyId) -> GroupVector:
        vector: GroupVector = np.random.default_rng((seed, party)).integers(0, limit, length, dtype=group.dtype)
        return vector

    return input_of


def drop_out(clients: int, fraction: float, seed: int) -> dict[Step, frozenset[PartyId]]:
    """floor(fraction n) clients that share their keys and then fall silent: the place that costs the server most."""
    silent = ThreatModel(corrupt=0.0, dropout=fraction).silent_of(clients)
    drawn = random.Random(seed).sample(range(1, clients + 1), silent)
    return {Step.MASKED_INPUT: frozenset(PartyId(number) for number in drawn)}


_IN_A_ROW: Final = 3


class _Sum:
    """One simulated sum with its plain twin, and the bare keystream just before and after the server unmasks."""

    def __init__(
        self,
        options: argparse.Namespace,
        parameters: SumParameters,
        model: ThreatModel,
        group: Group,
        tell: _Teller,
        number: int,
    ) -> None:
        self._inputs = random_inputs(group, options.dim, options.seed)
        self._group, self._plain = group, group.zeros(options.dim)
        self._tell, self._what = tell, f"sum {number}/{options.repeat}"
        # Long enough to be measured, short next to the sum.
        self._streams = max(1, min(100, (1 << 26) // self._plain.nbytes))
        self._bare: list[float] = []
        self.result: SimulationResult = simulate(
            options.clients,
            options.dim,
            model=model,
            group=group,
            dropped=drop_out(options.clients, options.dropout, options.seed),
            inputs=self._input,
            parameters=parameters,
            progress=self._progress,
        )
        self._measure_bare()
        self.exact = bool(np.array_equal(self.result.total, self._plain))
        close = self.result.steps[-1].server_close_seconds
        self.step_over_keystream = close / self.result.expansions / statistics.fmean(self._bare)

    def _input(self, party: PartyId) -> GroupVector:
        vector = self._inputs(party)
        self._group.add_into(self._plain, vector)  # only survivors are asked for their input
        return vector

    def _progress(self, step: str, done: int, of: int) -> None:
        self._tell(f"{self._what}: {step} {done:,}/{of:,}")
        if step == Step.UNMASKING.value and done == of:
            self._measure_bare()

    def _measure_bare(self) -> None:
        self._bare.append(bare_keystream(self._streams, self._plain.nbytes) / self._streams)


@dataclass
class _Masking:
    """A client's encoding and masking (`SecAggClient.set_input`), the bare keystream, and Flower's, in turns."""

    parameters: SumParameters
    group: Group
    dim: int
    flower: flower_peer.FlowerPeer | None
    bare: list[float] = field(default_factory=list)
    encode: list[float] = field(default_factory=list)
    mask: list[float] = field(default_factory=list)
    unmask: list[float] = field(default_factory=list)
    flower_seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        parties = tuple(PartyId(number) for number in range(1, self.parameters.participants + 1))
        self.party = parties[len(parties) // 2]  # adds about as many masks as it subtracts
        self._terms = Terms(new_session(), bytes(32), ROUND, PURPOSE, parties, self.parameters, self.group, self.dim)
        self._peers = self._terms.graph.neighbours(self.party)
        self._values = np.random.default_rng(0).normal(0.0, 1.0, self.dim).astype(np.float32)
        self._layout = (
            SumLayout(self.dim, 0, flower_peer.CLIPPING_RANGE, 0, len(parties), self.group.bits)
            if isinstance(self.group, Ring)
            else None
        )
        self._vector = self.group.zeros(self.dim)  # used again every time, as by a client with many rounds
        self._vector[:] = 1
        self._measure_bare()

    @property
    def streams(self) -> int:
        return len(self._peers) + 1

    @property
    def mask_over_keystream(self) -> float:
        return self._over_bare(self.mask)

    @property
    def unmask_over_keystream(self) -> float:
        return self._over_bare(self.unmask)

    def _over_bare(self, seconds: list[float]) -> float:
        around = zip(self.bare, self.bare[1:], strict=False)
        return statistics.median(own / statistics.fmean(pair) for own, pair in zip(seconds, around, strict=True))

    @property
    def flower_speedup(self) -> float | None:
        if not self.flower_seconds:
            return None
        ours = [encode + mask for encode, mask in zip(self.encode, self.mask, strict=True)]
        return statistics.median(theirs / own for theirs, own in zip(self.flower_seconds, ours, strict=True))

    def measure(self) -> None:
        """The best of a few in a row on each side, as is usual for short work: the first finds cold caches."""
        own = [self._encode_and_mask() for _ in range(_IN_A_ROW)]
        self.mask.append(min(mask for _, mask in own))
        if self._layout is not None:
            self.encode.append(min(encode for encode, _ in own))
        self.unmask.append(min(self._unmask() for _ in range(_IN_A_ROW)))
        self._measure_bare()
        if self.flower is not None and self._layout is not None:
            self.flower_seconds.append(min(self._flower(self.flower) for _ in range(_IN_A_ROW)))

    def _encode_and_mask(self) -> tuple[float, float]:
        client = self._ready_client()
        started = time.perf_counter()
        if self._layout is None:  # fixed point is for the rings
            vector = random_inputs(self.group, self.dim, 0)(self.party)
        else:
            contribution = Contribution(self._values, np.zeros(0, dtype=np.int64))
            vector = self._layout.encode(contribution, into=self._vector).vector
        encoded = time.perf_counter()
        client.set_input(vector)
        return encoded - started, time.perf_counter() - encoded

    def _unmask(self) -> float:
        """The server takes as many masks from its sum as a client has added: all of them are its to subtract or add."""
        keys = [secrets.token_bytes(KEY_BYTES) for _ in range(self.streams)]
        return _seconds(lambda: combine_keystreams(self._vector, self.group, subtracted=keys))

    def _flower(self, flower: flower_peer.FlowerPeer) -> float:
        keys = {peer: secrets.token_bytes(KEY_BYTES) for peer in self._peers}
        added = [key for peer, key in keys.items() if peer < self.party]
        subtracted = [key for peer, key in keys.items() if peer > self.party]
        seed = secrets.token_bytes(KEY_BYTES)
        return _seconds(lambda: flower.encode_and_mask(self._values, seed, added, subtracted))

    def _measure_bare(self) -> None:
        length = self.dim * self.group.element_bytes
        self.bare.append(min(bare_keystream(self.streams, length) for _ in range(_IN_A_ROW)))

    def _ready_client(self) -> SecAggClient:
        """A client that waits for its input, with fresh keys in place of agreed ones."""
        client = SecAggClient(self.party, self._terms, Channels(AgreementKey(), {}), None)
        masks = {peer: secrets.token_bytes(KEY_BYTES) for peer in self._peers}
        client.state = Ready(masks, secrets.token_bytes(KEY_BYTES), b"", {})
        return client


@dataclass
class _Sharing:
    """Sharing a secret of 32 bytes among a client's neighbourhood and recombining it, and Flower's, in turns."""

    parameters: SumParameters
    flower: flower_peer.FlowerPeer | None
    seconds: list[float] = field(default_factory=list)
    flower_seconds: list[float] = field(default_factory=list)

    def measure(self, number: int) -> None:
        secret = secrets.token_bytes(KEY_BYTES)
        threshold, holders = self.parameters.threshold, self.parameters.degree + 1
        # Other points every time: what is remembered of earlier ones must not help.
        points = range(number, number + holders)

        def ours() -> None:
            shares = split(secret, points, threshold)
            recombine({point: shares[point] for point in points[:threshold]}, threshold)

        self.seconds.append(_seconds(ours))
        # Among a thousand holders Flower takes minutes: one such figure is enough.
        if self.flower is not None and max(self.flower_seconds, default=0.0) < _ENOUGH_SECONDS:
            flower = self.flower
            self.flower_seconds.append(_seconds(lambda: flower.share_and_recombine(secret, threshold, holders)))

    @property
    def flower_speedup(self) -> float | None:
        if not self.flower_seconds:
            return None
        return statistics.median(a / b for a, b in zip(self.flower_seconds, self.seconds, strict=False))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _report(
    options: argparse.Namespace,
    sums: list[_Sum],
    masking: _Masking,
    sharing: _Sharing,
    flower: flower_peer.FlowerPeer | None,
) -> dict[str, Any]:
    results = [done.result for done in sums]
    first = results[0]
    phases = [_phase([result.setup for result in results])]
    phases += [_phase(list(steps)) for steps in zip(*(result.steps for result in results), strict=True)]
    stream_bytes = options.dim * first.group.element_bytes
    stream_seconds = statistics.median(masking.bare) / masking.streams
    up = first.client_bytes_up
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
        "phases": phases,
        "published": PUBLISHED,
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
