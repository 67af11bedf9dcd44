"""Options of `launch.ask` and of sites that answer: what a client says when it is asked, and how much."""

import argparse
from typing import get_args

from launch.ask_exact import add_rules, exact_rules
from secure_kg.queries.retrieval.rules import NamePolicy, Rules
from secure_kg.runs.score_budget import USUAL_ATOMS


def add_rule_options(rules: "argparse._ArgumentGroup") -> None:
    """Their options."""
    rules.add_argument(
        "--name-policy",
        choices=get_args(NamePolicy),
        default=Rules().names,
        help="which entities a client names: all of its own; shared: those whose rows were averaged, as enough clients "
        "hold them; none [shared]",
    )
    rules.add_argument(
        "--anchor-policy",
        choices=get_args(NamePolicy),
        default=Rules().anchors,
        help="of which entities a client gives the row to whoever asks for their name, likewise [all]",
    )
    rules.add_argument(
        "--no-atoms", nargs="+", default=[], metavar="RELATION", help="relations that no client follows for others"
    )
    rules.add_argument(
        "--atom-budget",
        type=number,
        default=USUAL_ATOMS,
        metavar="N",
        help=f"how many vectors of the model a client helps to find, in equal shares for all askers [{USUAL_ATOMS}]",
    )
    rules.add_argument("--allow-extraction", action="store_true", help="open means without a limit")
    add_rules(rules)


def rules_of(options: argparse.Namespace) -> Rules:
    """What they say."""
    return Rules(
        options.name_policy,
        frozenset(options.no_atoms),
        exact_rules(options),
        options.exact_facts,
        options.anchor_policy,
    )


def number(text: str) -> int:
    """An option that is a whole number from 1 on."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) < 1 << 31:
        raise argparse.ArgumentTypeError("must be a whole number from 1 on")
    return int(text)
