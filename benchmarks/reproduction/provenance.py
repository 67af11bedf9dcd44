"""Provenance of a figure: the version of the program it comes from."""

import subprocess
from pathlib import Path


def commit() -> str | None:
    """The short commit of this source tree, marked if files were changed since; None outside a repository."""
    head = _git("rev-parse", "--short", "HEAD")
    if head is None:
        return None
    return f"{head}, files changed" if _git("status", "--porcelain", "--untracked-files=no") else head


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except OSError:  # no git
        return None
    return done.stdout.strip() if done.returncode == 0 else None
