"""Options that say how files of triples are read, for commands that have no settings of a run."""

import argparse
from typing import get_args

from secure_kg.data.readers.interface import Literals, Reading


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--literals",
        choices=get_args(Literals),
        default="drop",
        help="triples whose tail is a literal: dropped and counted (default), or kept with the literal as an entity",
    )
    parser.add_argument(
        "--columns",
        default="",
        metavar="H,R,T",
        help="head,relation,tail of a table: names of its columns, or their numbers if it has no header",
    )


def reading_of(options: argparse.Namespace) -> Reading:
    return Reading(options.literals, options.columns)
