"""The console script `secure-kg`: one sub-command for each launcher."""

import difflib
import importlib
import sys
from collections.abc import Sequence

from launch.commands import COMMANDS, CONSOLE_SCRIPT, script_names
from launch.hosts import environment
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.invocation import called_by_script


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of the command. 2: one line on standard error says what to mend."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else "--help"
    if name in COMMANDS:
        command = importlib.import_module(COMMANDS[name].module)
        with called_by_script(script_names()):
            return int(command.main(arguments[1:]))
    if environment.rank() not in (None, 0):
        return 0  # one rank speaks for all
    if name in ("-h", "--help"):
        say(_listing())
        return 0
    if name == "--version":
        from secure_kg import __version__

        say(f"{CONSOLE_SCRIPT} {__version__}")
        return 0
    close = difflib.get_close_matches(name, COMMANDS, n=1)
    fail(f"unknown command {name}; " + (f"did you mean {close[0]}?" if close else f"{CONSOLE_SCRIPT} alone lists them"))
    return 2


def _listing() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.text}" for name, command in COMMANDS.items()]
    usage = f"usage: {CONSOLE_SCRIPT} COMMAND [options]"
    return "\n".join([usage, "", *lines, "", f"{CONSOLE_SCRIPT} COMMAND --help explains a command."])


if __name__ == "__main__":
    sys.exit(main())
