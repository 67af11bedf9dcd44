"""Manners of every command: one line on standard error for a mistake, exit code 2, no usage dump, no traceback."""

import argparse
from collections.abc import Callable
from typing import NoReturn

from secure_kg.console import fail
from secure_kg.errors import UserError


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
