"""Checks of the folder in which a run would be written: write access, permissions of files, runs that lie there."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from launch.checkup.finding import Finding, graded
from launch.hosts.job import RUNS
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import counted
from secure_kg.runs.next_step import resume_command
from secure_kg.runs.run_folder import read_config

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def folder() -> Iterator[Finding]:
    here = Path.cwd()
    yield _write_access(here)
    yield _permissions(here)
    yield _keys(here)
    yield _unfinished(here)


def _write_access(here: Path) -> Finding:
    place = here / RUNS if (here / RUNS).exists() else here
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as problem:
        step = "go to a folder of your own, or choose one with --out"
        return Finding("this folder", "problem", f"{place}: cannot be written ({problem.strerror})", step)
    return Finding("this folder", "ok", f"{place} can be written")


def _permissions(here: Path) -> Finding:
    """Private files must stay private: some disks (FAT, some network shares) keep no modes."""
    about = "permissions"
    try:
        with tempfile.NamedTemporaryFile(dir=here) as file:
            os.chmod(file.name, 0o600)
            kept = stat.S_IMODE(os.stat(file.name).st_mode) == 0o600
    except OSError:
        return Finding(about, "note", "cannot be told where nothing can be written", "see the line above")
    open_to_all = bool(here.stat().st_mode & stat.S_IWOTH) and not here.stat().st_mode & stat.S_ISVTX
    told = [] if kept else ["this disk does not keep files private"]
    told += ["everybody may write to this folder"] if open_to_all else []
    return graded(
        about,
        "; ".join(told) or "files can be kept private",
        note=bool(told),
        next_step="keep keys and clients' folders in a place where mode 0600 holds, in a folder of mode 0700",
    )


def _keys(here: Path) -> Finding:
    """Private keys of identities that others can read."""
    found = [*here.glob("*.key"), *here.glob("keys/*.key")]
    wide = [path for path in found if path.stat().st_mode & _OTHERS]
    names = " ".join(str(path.relative_to(here)) for path in wide[:3])
    fine = f"{counted(len(found), 'key')} here, all private" if found else "none"
    return graded(
        "private keys",
        f"{names}: readable by others" if wide else fine,
        note=bool(wide),
        next_step=f"chmod 600 {names}",
    )


def _unfinished(here: Path) -> Finding:
    runs = sorted(path.parent for path in here.glob(f"{RUNS}/*/config.toml"))
    open_ones = [path for path in runs if not (path / "summary.json").exists()]
    shown = open_ones[-1].relative_to(here) if open_ones else Path()
    return graded(
        "runs",
        f"{len(runs) - len(open_ones)} finished, {len(open_ones)} not" if runs else "none here yet",
        note=bool(open_ones),
        next_step=f"if no job is running there: {_resumed(here / shown, shown)}, or remove the folder",
    )


def _resumed(path: Path, shown: Path) -> str:
    try:
        strategy = read_config(path).strategy
    except UserError:
        strategy = ""
    return resume_command(shown, strategy)
