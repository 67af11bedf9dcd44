"""Proof on a page that a GPU trains as the CPU does: `python -m benchmarks.gpu_check --out report.html`.

Every learner, kernel, ranking and mark is compared with its CPU twin, each with the largest difference, the allowed one
and the reason for it. Runs are repeated and resumed on the same GPU and must agree to the last bit. A small federation
runs under mpirun, one rank per GPU, and must end as its plain twin does. Throughput stands beside that of one CPU core,
and what repeatable sums cost beside sums in any order.

Where torch finds no GPU the same checks run on a pretended one (values in the memory of the CPU, routes and rules of a
GPU), the federation runs on the CPU, and the page says so.

Exit code 0: checked on a GPU, and everything holds. 1: something does not hold. 2: one line says what to mend. 3: what
runs without a GPU holds, and no GPU was there.
"""

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.gpu.page import by_bound, by_name, page, verdict
from benchmarks.reproduction.provenance import commit
from launch.command_line import OneLineParser, require_json, require_writable, run_command
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import Lines
from secure_kg.runs.run_folder import write_json, write_whole

NO_GPU: Final = 3
_PROGRAM: Final = "python -m benchmarks.gpu_check"
_SPEED_MODELS: Final = ("TransE", "RotatE", "DistMult", "ComplEx")


def main(argv: Sequence[str] | None = None) -> int:
    """The exit codes of the module's docstring."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=_PROGRAM, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--triples", type=int, default=8192, metavar="N", help="triples per round when timed [8192]")
    parser.add_argument("--skip", choices=("speed", "federation"), action="append", default=[],
                        help="leave a part out; the page says that it is missing")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the page to FILE (HTML, one file)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.triples < 1:
        raise UserError("--triples must be at least 1")
    require_json(options.json)
    if options.out is not None:
        require_writable(options.out)
    report = measure(options)
    if options.out is not None:
        write_whole(options.out, page(report).encode())
    if options.json == "-":
        say(json.dumps(report, indent=2, allow_nan=False))
    else:
        show(report)
        if options.json is not None:
            write_json(Path(options.json), report)
    if not report["holds"]:
        return 1
    return 0 if report["gpus"] else NO_GPU


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Everything that this machine can show."""
    from benchmarks.gpu.speed import measure as speed_of
    from secure_kg.learning import device as devices

    tell = Lines(quiet=options.json == "-")
    found = devices.gpus()
    places = [one.device for one in found]
    devices.pick_device(0)
    compared = [
        {**asdict(one), "holds": one.holds, "device": place}
        for place, found_there in _compared(places, tell)
        for one in found_there
    ]
    speeds = []
    if "speed" not in options.skip:
        for model in _SPEED_MODELS:
            tell(f"throughput: {model}")
            speeds.append(speed_of(model, devices.CPU, options.triples))
            for place in places[:1]:
                speeds += [speed_of(model, place, options.triples, repeatable=one) for one in (True, False)]
    twins = None if "federation" in options.skip else _federation("cuda" if found else "cpu", tell)
    return {
        "command": _PROGRAM,
        "commit": commit(),
        **_machine(),
        "gpus": [asdict(one) for one in found],
        "compared": compared,
        "speeds": [asdict(one) for one in speeds],
        "federation": twins,
        "skipped": sorted(set(options.skip)),
        "holds": all(one["holds"] for one in compared)
        and (twins is None or (twins["secure_as_plain"] and twins["repeated"])),
    }


def _compared(places: Sequence[Any], tell: Lines) -> list[tuple[str, list[Any]]]:
    from benchmarks.gpu.pretended import PretendedGpu
    from benchmarks.gpu.twins import compare_all

    if places:
        return [(str(place), compare_all(place, tell)) for place in places]
    with PretendedGpu() as gpu:
        return [("pretended", compare_all(gpu.device, tell))]


def _federation(device: str, tell: Lines) -> dict[str, Any]:
    from benchmarks.gpu.federation import run_twins

    tell(f"federation under mpirun, --device {device}")
    with tempfile.TemporaryDirectory() as folder:
        return asdict(run_twins(device, Path(folder)))


def _machine() -> dict[str, Any]:
    import torch

    from secure_kg.learning.device import CPU, computed_on

    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "driver": _driver(),
        "cpu": computed_on(CPU),
        "python": platform.python_version(),
    }


def _driver() -> str | None:
    """Of the GPUs, as the vendor's tool says; None without the tool."""
    if (tool := shutil.which("nvidia-smi")) is None:
        return None
    asked = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said[0] if said else None


def show(report: dict[str, Any]) -> None:
    """For a terminal: what does not hold, and the largest differences."""
    say(verdict(report))
    driver = f", driver {report['driver']}" if report["driver"] else ""
    say(f"torch {report['torch']}, CUDA {report['cuda'] or 'none'}{driver}; {report['cpu']}")
    names = [[device, name, what, "yes" if holds else "NO"] for device, name, what, holds in by_name(report)]
    table("", ("device", "learner or kernel", "what was compared", "holds"), names)
    table("", ("what", "largest difference", "allowed", "because", "hold"), [list(line) for line in by_bound(report)])
    for one in report["speeds"]:
        how = "" if one["device"] == "cpu" else ", repeatable" if one["repeatable"] else ", sums in any order"
        say(f"{one['model']} on {one['device']}{how}: {one['triples_per_second']:,.0f} triples/s")
    if (twins := report["federation"]) is not None:
        alike = "to the last bit" if twins["secure_as_plain"] else "OTHERWISE than"
        say(f"mpirun -n {twins['ranks']}, --device {twins['device']}: secure and plain end alike {alike}; "
            f"again: {'the same bits' if twins['repeated'] else 'OTHER BITS'}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
