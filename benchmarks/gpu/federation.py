"""A small job under mpirun, one rank per GPU where there are any, and its plain twin: do both end with one result?"""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from launch.hosts import environment
from secure_kg.foundation.errors import UserError
from secure_kg.runs.checkpoint import load_numbers
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import read_record

CLIENTS: Final = 3
_MODULE: Final = "launch.fedr_secagg"
_SETTINGS: Final = ("--dataset", "nations", "--preset", "small", "--rounds", "4", "--dim", "16", "--eval-every", "2",
                    "--patience", "9")  # fmt: skip
_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Twins:
    """A secure job, its repetition, and its plain twin."""

    device: str
    ranks: int
    secure_as_plain: bool
    """Models of all clients and the test MRR, to the last bit."""
    repeated: bool
    """A second secure job with the same settings."""
    mrr: float


def run_twins(device: str, folder: Path) -> Twins:
    """`device`: as `--device` takes it."""
    jobs = {"secagg": "secagg", "again": "secagg", "plain": "plain"}
    found = {name: _run(device, aggregation, folder / name) for name, aggregation in jobs.items()}
    secure, again, plain = found.values()
    return Twins(device, CLIENTS + 1, secure == plain, secure == again, secure[1])


def _run(device: str, aggregation: str, out: Path) -> tuple[tuple[str, ...], float]:
    """Digests of the clients' models, and the test MRR."""
    alignment = ("--alignment", "plain") if aggregation == "plain" else ()
    typed = [_MODULE, "--aggregation", aggregation, *alignment, "--device", device, "--out", str(out), *_SETTINGS]
    done = _call(environment.mpirun_command(CLIENTS + 1, typed))
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise UserError(f"the job under mpirun with --device {device} did not come to its end: {said}")
    models = [load_numbers(path)[0] for path in sorted(out.glob("clients/*/model.safetensors"))]
    digests = tuple(
        hashlib.sha256(b"".join(name.encode() + model[name].tobytes() for name in sorted(model))).hexdigest()
        for model in models
    )
    summary = read_record(out / "summary.json", Summary)
    return digests, float(summary.figures["mrr"])


def _call(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UserError(f"the job under mpirun did not come to its end in {_SECONDS:.0f} s") from None
