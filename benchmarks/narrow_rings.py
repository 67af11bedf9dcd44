"""What a narrow ring costs and saves: whole runs under each width of ring, compared seed by seed with 32 bits.

Every run is a real training job with the same settings but for `--ring-bits` and the seed. The difference of a seed is
between two runs that begin alike, so the mean of the differences says more than the two means. Runs that are finished
in the folder of `--out` are not run again.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.reproduction.provenance import commit
from launch.command_line import OneLineParser, require_writable, run_command
from secure_kg.foundation.console import say
from secure_kg.foundation.errors import UserError
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import read_record, write_json

WIDE: Final = 32
"""Bits of the ring that the others are compared with."""
_PROGRAM: Final = "python -m benchmarks.narrow_rings"


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished run."""

    bits: int
    seed: int
    clip: float
    mrr: float
    """Tail side, test, at the best round by validation."""
    both_sides: float
    rounds: int
    bytes_up: float
    """Of all clients in a round, with its share of evaluations and results, and without set-up."""
    bytes_down: float
    clipped: int
    max_error: float

    @classmethod
    def of(cls, bits: int, seed: int, summary: Summary) -> "Measured":
        rounds, setup = summary.rounds, summary.setup
        return cls(
            bits=bits,
            seed=seed,
            clip=float(summary.config["clip"]),
            mrr=_figure(summary.figures, "mrr"),
            both_sides=_figure(summary.figures.get("both_sides"), "mrr"),
            rounds=rounds,
            bytes_up=(summary.bytes_up - setup.bytes_up) / rounds,
            bytes_down=(summary.bytes_down - setup.bytes_down) / rounds,
            clipped=int(_known(summary.clipped_values)),
            max_error=_known(summary.max_fixed_point_error),
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """One width against the wide one, over the seeds."""

    bits: int
    clip: float
    mrr: float
    differences: tuple[float, ...]
    """In tail MRR, by seed: this width less the wide one."""
    both_sides_differences: tuple[float, ...]
    up_ratio: float
    down_ratio: float
    bytes_ratio: float
    """Up and down together."""
    clipped: int
    max_error: float

    @property
    def difference(self) -> float:
        return statistics.fmean(self.differences)


def compare(runs: Sequence[Measured]) -> list[Compared]:
    """Each width against the wide one; every seed must have a run of both."""
    wide = {run.seed: run for run in runs if run.bits == WIDE}
    found = []
    for bits in sorted({run.bits for run in runs} - {WIDE}):
        pairs = [(run, wide[run.seed]) for run in runs if run.bits == bits]
        up, down = (
            sum(getattr(one, name) for one, _ in pairs) / sum(getattr(other, name) for _, other in pairs)
            for name in ("bytes_up", "bytes_down")
        )
        both = sum(one.bytes_up + one.bytes_down for one, _ in pairs)
        found.append(
            Compared(
                bits=bits,
                clip=pairs[0][0].clip,
                mrr=statistics.fmean(one.mrr for one, _ in pairs),
                differences=tuple(one.mrr - other.mrr for one, other in pairs),
                both_sides_differences=tuple(one.both_sides - other.both_sides for one, other in pairs),
                up_ratio=up,
                down_ratio=down,
                bytes_ratio=both / sum(other.bytes_up + other.bytes_down for _, other in pairs),
                clipped=sum(one.clipped for one, _ in pairs),
                max_error=max(one.max_error for one, _ in pairs),
            )
        )
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=_PROGRAM,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"example: {_PROGRAM} --dataset umls --bits 16 20 24 --seeds 0 1 2 --out runs/narrow -- --strategy fede",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--bits", type=int, nargs="+", default=[16, 20, 24], metavar="B", help="widths beside 32 [16 20 24]")
    add("--seeds", type=int, nargs="+", default=[0, 1, 2], metavar="S", help="[0 1 2]")
    add("--dataset", default="umls", metavar="NAME", help="as for a run [umls]")
    add("--clients", type=int, default=5, metavar="N", help="as the data set's split has, if it has one [5]")
    add("--out", type=Path, required=True, metavar="DIR", help="for the run folders, one for each width and seed")
    add("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    add("options", nargs="*", metavar="OPTION", help="behind --: further options of the runs, --strategy fede say")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.json is not None:
        require_writable(options.json)
    if WIDE in options.bits:
        raise UserError(f"--bits: {WIDE} is what the others are compared with")
    runs = []
    for seed in options.seeds:
        for bits in (WIDE, *options.bits):
            folder = options.out / f"{bits}-bits-seed-{seed}"
            summary = _finished(folder, _command(options, bits, seed, folder))
            run = Measured.of(bits, seed, summary)
            runs.append(run)
            say(
                f"{bits} bits, seed {seed}: MRR {run.mrr:.4f}, {run.rounds} rounds, {run.bytes_up:,.0f} bytes up in one"
            )
    compared = compare(runs)
    for one in compared:
        say(_told(one))
    if options.json is not None:
        figures = {"commit": commit(), "dataset": options.dataset, "options": options.options}
        together = [{**asdict(one), "difference": one.difference} for one in compared]
        write_json(options.json, {**figures, "runs": [asdict(run) for run in runs], "compared": together})
    return 0


def _told(one: Compared) -> str:
    by_seed = ", ".join(f"{difference:+.4f}" for difference in one.differences)
    return (
        f"{one.bits} bits against {WIDE}: MRR {one.mrr:.4f}, {one.difference:+.4f} ({by_seed}); bytes of a round "
        f"{one.bytes_ratio:.4f} (up {one.up_ratio:.4f}, down {one.down_ratio:.4f}); clip {one.clip:g}, "
        f"{one.clipped} values clipped, error at most {one.max_error:.1e}"
    )


def _command(options: argparse.Namespace, bits: int, seed: int, folder: Path) -> list[str]:
    job = [sys.executable, "-m", "launch.fedr_secagg", "-n", str(options.clients + 1), "--dataset", options.dataset]
    return [*job, "--ring-bits", str(bits), "--seed", str(seed), "--out", str(folder), *options.options]


def _finished(folder: Path, job: Sequence[str]) -> Summary:
    """The summary of a run, which is made now unless it is there."""
    if not (folder / "summary.json").exists():
        done = subprocess.run(job, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise UserError(f"{folder}: the run failed: {said[-1] if said else f'exit code {done.returncode}'}")
    return read_record(folder / "summary.json", Summary)


def _figure(figures: object, name: str) -> float:
    value = figures.get(name) if isinstance(figures, dict) else None
    return _known(value if isinstance(value, int | float) else None)


def _known(value: float | None) -> float:
    if value is None:
        raise UserError("a run whose results are not on this machine cannot be compared")
    return value


if __name__ == "__main__":
    sys.exit(main())
