"""Completion of the command line: `secure-kg completion bash` prints a script for the shell."""

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from launch.command_line import OneLineParser, run_command
from launch.commands import COMMANDS, script_names
from launch.completions.words import Words, words_of
from launch.main import Launcher
from secure_kg.foundation.console import say
from secure_kg.foundation.invocation import called_by_script, command

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


def all_words() -> Iterator[Words]:
    """Of every command."""
    with called_by_script(script_names()):
        for name, one in COMMANDS.items():
            yield words_of(name, one.text, parser_of(one.module))


def parser_of(module: str) -> argparse.ArgumentParser:
    """The parser of a launcher."""
    launcher = importlib.import_module(module)
    if (job := getattr(launcher, "LAUNCHER", None)) is not None:
        return _of_job(job)
    parser: argparse.ArgumentParser = launcher.make_parser()
    return parser


def _of_job(job: Launcher) -> argparse.ArgumentParser:
    from launch.hosts.registry import chosen_host
    from launch.options import make_parser

    return make_parser(job.prog, job.description, job.epilog, job.defaults, chosen_host([]))


def _run(options: argparse.Namespace) -> int:
    script: str = importlib.import_module(f"launch.completions.{options.shell}").script(list(all_words()))
    say(script)
    return 0


if __name__ == "__main__":
    sys.exit(main())
