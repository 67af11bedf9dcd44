"""Whole jobs through their launchers in this process: what a user would see, without the start of any process."""

import contextlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from launch import fedr_secagg
from launch.hosts.registry import HOSTS, Entry
from tests.support.mpi_jobs import Ended

TOY = Entry("tests.support.toy_host", "every party is a thread")


def run_in_threads(
    ranks: int | None, *options: str, cwd: Path, launcher: Callable[[Sequence[str]], int] = fedr_secagg.main
) -> Ended:
    """As `run_job`, with threads for processes. None: as many as the resumed run had."""
    number = [] if ranks is None else ["-n", str(ranks)]
    out, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(HOSTS, "toy", TOY)
        patch.chdir(cwd)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = launcher(["--host", "toy", *number, *options])
    return Ended(code, out.getvalue(), errors.getvalue())
