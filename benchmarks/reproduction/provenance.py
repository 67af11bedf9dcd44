"""Provenance of a figure: the version of the program, the data and the machine it comes from."""

import hashlib
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Final

RESULTS_VERSION: Final = 1
"""Raised when the same run may end with other figures than before, beyond what rounding does. Runs of different
versions are not compared.

1: the first; triples in groups of 128 share their negatives, first rows are agreed on in the first round.
"""

_KEPT: Final = 16
_PACKAGES: Final = ("torch", "numpy", "numba")


def commit() -> str | None:
    """The short commit of this source tree, marked if code was changed since; None outside a repository."""
    head = _git("rev-parse", "--short", "HEAD")
    if head is None:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":(top)*.py", ":(top)*.lock")
    return f"{head}, files changed" if changed else head


def digest_of(data: Path) -> str:
    """The beginning of the SHA-256 of a data set: of its file, or of the triple files of its folder and their names."""
    files = [data] if data.is_file() else sorted(path for path in data.glob("*.tsv*") if path.is_file())
    state = hashlib.sha256()
    for path in files:
        state.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return state.hexdigest()[:_KEPT]


def machine() -> dict[str, str | int]:
    """What a run's seconds depend on. No names of hosts and no paths."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except OSError:  # no git
        return None
    return done.stdout.strip() if done.returncode == 0 else None
