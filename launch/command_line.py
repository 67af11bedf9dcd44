"""Manners of every command: one line on standard error for a mistake, exit code 2, no usage dump, no traceback."""

import argparse
import json
import re
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from launch.argument_errors import in_words
from launch.commands import script_names
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import CONSOLE_SCRIPT
from secure_kg.foundation.progress import shown, silence
from secure_kg.runs.run_folder import write_json


class OneLineParser(argparse.ArgumentParser):
    """Raises `UserError` where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        told = in_words(self, message)
        raise UserError(told if told.endswith("?") else f"{told}; see --help")

    def format_help(self) -> str:
        """Examples name the commands as the user does, who typed either `python -m launch.fede` or `secure-kg fede`."""
        if not is_console_script(self.prog):
            return super().format_help()
        self.description = _with_script_names(self.description)
        for action in self._actions:  # before lines are broken
            action.help = _with_script_names(action.help)
        self.epilog = _with_script_names(self.epilog, commands=False)
        return _as_console_script(super().format_help())


def is_console_script(prog: str) -> bool:
    return prog.startswith(f"{CONSOLE_SCRIPT} ")


def _with_script_names(text: str | None, *, commands: bool = True) -> str | None:
    """Launchers that a sentence names, such as launch.serve; `commands`: also python -m launch.serve, which in examples
    has columns to its right (`_as_console_script`)."""
    if text is None:
        return None
    names, before = script_names(), r"(?:python -m )?" if commands else r"(?<!python -m )"
    return re.sub(rf"{before}\b(launch\.\w+)", lambda found: names.get(found[1], found[0]), text)


def _as_console_script(text: str) -> str:
    """The same text with the console script's names. What stands in a column to the right of a command stays there."""
    names = script_names()

    def renamed(found: "re.Match[str]") -> str:
        name = names.get(found["module"], found["command"])
        column = " " * (len(found["command"]) - len(name)) if found["gap"] else ""
        return f"{name}{found['rest']}{found['gap']}{column}"

    command = r"(?P<command>python -m (?P<module>launch\.\w+))"
    rest = r"(?P<rest>(?:(?!python -m).)*?)"  # up to the next column, the end of the line or the next command
    return re.sub(command + rest + r"(?P<gap>   +|$|(?=python -m))", renamed, text, flags=re.MULTILINE)


def run_command(command: Callable[[], int]) -> int:
    """The exit code of `command`; a `UserError` becomes one line and 2. What lasts shows its progress."""
    try:
        with shown():
            return command()
    except UserError as problem:
        fail(str(problem))
        return 2
    except SystemExit as stop:  # --help
        return int(stop.code or 0)


def require_writable(path: Path) -> None:
    """Asked before work that may take minutes. Missing folders are made when the file is written, not here.

    Files are written whole, under another name first (`write_whole`), so that a device or a pipe would be replaced: it
    is refused. A symbolic link to a file is replaced by the file, and what it pointed to stays.
    """
    try:
        there = next(folder for folder in path.absolute().parents if folder.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
        mode = path.stat().st_mode if path.exists() else stat.S_IFREG
    except (OSError, ValueError) as problem:  # ValueError: a zero byte in the name
        reason = getattr(problem, "strerror", None) or "it is no name of a file"
        raise UserError(f"{path}: cannot be written ({reason})") from None
    if stat.S_ISDIR(mode):
        raise UserError(f"{path}: cannot be written (it is a folder)")
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: cannot be written (it is no regular file, and would be replaced)")


def require_json(path: str | None) -> None:
    """The same for the file of `--json FILE`; `-` stands for standard output, which then has no progress on it."""
    if path == "-":
        silence()
    elif path is not None:
        require_writable(Path(path))


def deliver(report: dict[str, Any], path: str | None, show: Callable[[dict[str, Any]], None]) -> None:
    """Show a report to people and write it to the file of `--json FILE`; with `-` as JSON and nothing else."""
    if path == "-":
        say(json.dumps(report, indent=2, allow_nan=False))
        return
    show(report)
    if path is not None:
        write_json(Path(path), report)
