"""Completion of the command line: `secure-kg completion bash` prints a script for the shell."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Final

from launch.command_line import OneLineParser, run_command
from secure_kg.foundation.console import say
from secure_kg.foundation.invocation import command

_SHELLS: Final = ("bash", "zsh", "fish")
_DESCRIPTION: Final = """\
Print a script that completes commands, options and their values in a shell. It is generated from the options that the
commands really have, so it is to be made again after an update."""

_EXAMPLES: Final = """\
examples, each for all later sessions:
  python -m launch.completion bash > ~/.local/share/bash-completion/completions/secure-kg
  python -m launch.completion zsh > ~/.zfunc/_secure-kg            with ~/.zfunc in $fpath, before compinit
  python -m launch.completion fish > ~/.config/fish/completions/secure-kg.fish

For one session of bash: source <(secure-kg completion bash). All commands are looked at, which takes some seconds."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: printed. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = OneLineParser(
        prog=command("launch.completion"),
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("shell", choices=_SHELLS, help="whose script")
    return parser


def _run(options: argparse.Namespace) -> int:
    from launch.completions.words import all_words

    script: str = importlib.import_module(f"launch.completions.{options.shell}").script(list(all_words()))
    say(script)
    return 0


if __name__ == "__main__":
    sys.exit(main())
