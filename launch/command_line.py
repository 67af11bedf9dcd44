"""Manners of every command: one line on standard error for a mistake, exit code 2, no usage dump, no traceback."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from secure_kg.foundation.console import fail
from secure_kg.foundation.errors import UserError


class OneLineParser(argparse.ArgumentParser):
    """Raises `UserError` where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see --help")


def run_command(command: Callable[[], int]) -> int:
    """The exit code of `command`; a `UserError` becomes one line and 2."""
    try:
        return command()
    except UserError as problem:
        fail(str(problem))
        return 2
    except SystemExit as stop:  # --help
        return int(stop.code or 0)


def require_writable(path: Path) -> None:
    """Asked before work that may take minutes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as problem:
        raise UserError(f"{path}: cannot be written ({problem.strerror})") from None
    if path.is_dir():
        raise UserError(f"{path}: cannot be written (it is a folder)")
