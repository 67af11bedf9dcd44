"""The console script `secure-kg`: one sub-command for each launcher."""

import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import Final

from launch.commands import COMMANDS, grouped, script_names
from launch.hosts import environment
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.invocation import CONSOLE_SCRIPT, called_by_script

_FIRST: Final = (
    ("demo", "a whole federation on this machine: train, audit, look"),
    ("doctor", "does this machine have what a run needs?"),
    ("fedr --dataset FILE", "train on your triples: lines head<TAB>relation<TAB>tail"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of the command. 2: one line on standard error says what to mend."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["help"] and len(arguments) == 2 and arguments[1] in COMMANDS:
        arguments = [arguments[1], "--help"]
    name = arguments[0] if arguments else ""
    if name in COMMANDS:
        command = importlib.import_module(COMMANDS[name].module)
        with called_by_script(script_names()):
            return int(command.main(arguments[1:]))
    if environment.rank() not in (None, 0):
        return 0  # one rank speaks for all
    if name == "--version":
        from secure_kg import __version__

        say(f"{CONSOLE_SCRIPT} {__version__}")
        return 0
    if name in ("", "-h", "--help", "help") and len(arguments) < 2:
        say(_listing() if name else _overview())
        return 0
    fail(_unknown(arguments))
    return 2


def _unknown(arguments: Sequence[str]) -> str:
    if arguments[0] == "help" and len(arguments) > 2:
        return f"help explains one command: {CONSOLE_SCRIPT} help {arguments[1]}"
    name = arguments[1] if arguments[0] == "help" else arguments[0]
    if name.startswith("-"):
        return f"unknown option {name}; options come after a command, and {CONSOLE_SCRIPT} --help lists commands"
    close = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {close[0]}?" if close else f"{CONSOLE_SCRIPT} alone lists them"
    return f"unknown command {name}; {hint}"


def _overview() -> str:
    """One screen for a newcomer: what to do first, and what there is."""
    first = [f"{CONSOLE_SCRIPT} {name}" for name, _ in _FIRST]
    width = max(map(len, first))
    lines = ["Train knowledge-graph embeddings together without showing each other any triple.", "", "first:"]
    lines += [f"  {name:<{width}}  {text}" for name, (_, text) in zip(first, _FIRST, strict=True)]
    titles = dict(grouped())
    width = max(map(len, titles))
    lines += ["", "commands:", *(f"  {title:<{width}}  {', '.join(names)}" for title, names in titles.items())]
    return "\n".join([*lines, "", *_more()])


def _listing() -> str:
    """Every command in a line."""
    width = max(map(len, COMMANDS))
    lines = [f"usage: {CONSOLE_SCRIPT} COMMAND [options]"]
    for title, names in grouped():
        lines += ["", title, *(f"  {name:<{width}}  {COMMANDS[name].text}" for name in names)]
    return "\n".join([*lines, "", *_more()])


def _more() -> tuple[str, ...]:
    width = len(f"{CONSOLE_SCRIPT} help COMMAND")
    texts = {"--help": "what each command does", "help COMMAND": "its options", "--version": ""}
    return tuple(f"{f'{CONSOLE_SCRIPT} {name}':<{width}}  {text}".rstrip() for name, text in texts.items())


if __name__ == "__main__":
    sys.exit(main())
