"""The demonstration: `secure-kg demo`, a federation of five clients in any folder."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from launch.command_line import OneLineParser, require_writable, run_command
from launch.hosts import environment
from launch.hosts.job import RUNS
from secure_kg.foundation.console import say
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command

_ROUNDS: Final = 30
_DESCRIPTION: Final = f"""\
Train FedR on UMLS, which is included: 1 server and 5 clients on this machine, private union of names, secure sums, and
a transcript of all that the server saw. It is the job of `make demo`, stopped after {_ROUNDS} rounds; --full goes on
until validation no longer improves, as that one does."""

_EXAMPLES: Final = """\
examples:
  python -m launch.demo
  python -m launch.demo --full --out runs/umls          some 110 rounds

It needs no data and no network, and writes into runs/ of the current folder."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: done, and the last lines say what comes next. 2: one line on standard error says what to mend."""
    if environment.rank() not in (None, 0):
        return 0  # one rank speaks for all
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = OneLineParser(
        prog=command("launch.demo"),
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--full", action="store_true", help=f"not {_ROUNDS} rounds only")
    parser.add_argument("--out", type=Path, metavar="DIR", help="new run folder [runs/demo, runs/demo-2, ...]")
    return parser


def _run(options: argparse.Namespace) -> int:
    if environment.rank() is not None:
        raise UserError(f"{command('launch.demo')} starts mpirun by itself: leave out mpirun")
    out = options.out if options.out is not None else _new_folder()
    require_writable(out / "summary.json")
    from launch import fedr_secagg

    rounds = [] if options.full else ["--rounds", str(_ROUNDS)]
    code = fedr_secagg.main([*rounds, "--transcript", "--out", str(out)])
    if code == 0:
        _say_next(out)
    return code


def _new_folder() -> Path:
    names = ("demo" if number == 1 else f"demo-{number}" for number in range(1, 10_000))
    return next(path for name in names if not (path := RUNS / name).exists())


def _say_next(out: Path) -> None:
    audits = Path("audits") / out.name
    question = "--client 1 --head antibiotic --relation treats"
    steps = {
        f"open {out / 'report.html'}": "in a browser: results, costs, who learned what",
        f"{command('launch.predict')} {out} {question}": "what a client's model says",
        f"{command('launch.audit')} {out} --truth {out / 'clients'} --out {audits}": "what the server could see",
        f"{command('launch.fedr_secagg')} --dataset FILE": "the same on your triples, lines head<TAB>relation<TAB>tail",
    }
    say("next:")
    for step, text in steps.items():
        say(f"  {step}\n      {text}")


if __name__ == "__main__":
    sys.exit(main())
