"""Options of `launch.ask` about stored facts: what the asker wants, and what clients tell."""

import argparse
from typing import get_args

from secure_kg.foundation.errors import UserError
from secure_kg.queries.retrieval.rules import Exact, FactParts, Rules
from secure_kg.runs.score_budget import USUAL_EXACT


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the asker wants."""
    wanted = parser.add_mutually_exclusive_group()
    wanted.add_argument(
        "--exact", action="store_true", help="stored answers, too: what the facts of all clients give, without a model"
    )
    wanted.add_argument("--exact-only", action="store_true", help="stored answers and no predicted ones")


def add_rules(rules: "argparse._ArgumentGroup") -> None:
    """What clients tell."""
    rules.add_argument(
        "--allow-exact",
        nargs="*",
        metavar="RELATION",
        help="relations of whose stored facts a client tells others; without a name: all of them [none]",
    )
    rules.add_argument(
        "--exact-facts",
        choices=get_args(FactParts),
        default=Rules().facts,
        help="which triples of a client are stored facts: those that it has trained on, or those of all parts of its "
        "graph [train]",
    )
    rules.add_argument(
        "--exact-budget",
        type=_number,
        default=USUAL_EXACT,
        metavar="N",
        help="how many atoms a client answers from stored facts, over all sessions over this run and in equal shares "
        f"for all askers [{USUAL_EXACT}]",
    )


def check_exact(options: argparse.Namespace) -> None:
    """Before anything is loaded."""
    if options.exact_only and options.hide_query:
        raise UserError("--hide-query is for scores, and --exact-only has none")
    if options.allow_exact is not None and not (options.exact or options.exact_only):
        raise UserError("--allow-exact goes with --exact or --exact-only, on every rank")


def exact_of(options: argparse.Namespace) -> Exact:
    if options.exact_only:
        return Exact.ONLY
    return Exact.BESIDE if options.exact else Exact.NO


def exact_rules(options: argparse.Namespace) -> frozenset[str] | None:
    """Of which relations clients tell; None: of all."""
    if options.allow_exact is None:
        return frozenset()
    return frozenset(options.allow_exact) or None


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text) < 1 << 31:
        raise argparse.ArgumentTypeError("must be a whole number from 0 on")
    return int(text)
