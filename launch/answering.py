"""`join --answer`: a site answers questions of others about a run that is complete, by its own rules and budgets."""

import argparse
from typing import Final

from launch.ask_rules import add_rule_options, number, rules_of
from protocols.registry import SCORES
from secure_kg.foundation.console import say
from secure_kg.foundation.errors import UserError
from secure_kg.queries.sessions.site_rules import BACKENDS, SiteRules

_USUAL: Final = sorted(SiteRules().scores)


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Those of `--answer`. Their defaults are those of `launch.ask`."""
    rules = parser.add_argument_group("answering questions of others, about a run that is complete")
    rules.add_argument("--answer", action="store_true", help="answer until stopped, by the rules below")
    rules.add_argument(
        "--min-holders",
        type=number,
        metavar="N",
        help="take part in no session in which fewer others need to hold an entity before they score it "
        "[2 where means are opened, else 1]",
    )
    rules.add_argument(
        "--scores",
        nargs="+",
        choices=BACKENDS,
        default=_USUAL,
        metavar="NAME",
        help=f"take part in sessions with these scores alone [{', '.join(_USUAL)}]",
    )
    rules.add_argument(
        "--sessions",
        type=number,
        default=SiteRules().sessions,
        metavar="N",
        help=f"how many sessions one asker has in ten minutes [{SiteRules().sessions}]",
    )
    add_rule_options(rules)


def answer_others(options: argparse.Namespace) -> int:
    """Until it is stopped."""
    _check(options)
    from launch.between.questions import QuestionSite, answer_until_stopped

    site = QuestionSite.open(options.federation, options.site, say)
    rules = SiteRules(
        rules=rules_of(options),
        min_holders=options.min_holders,
        scores=frozenset(options.scores),
        atom_budget=options.atom_budget,
        exact_budget=options.exact_budget,
        allow_extraction=options.allow_extraction,
        sessions=options.sessions,
    )
    site.knowledge(rules.rules)  # mistakes are told before anybody is connected
    say(f"{site.named(site.number)} answers questions about {site.run}, at {site.roster.server_url}; {told(rules)}")
    answer_until_stopped(site, rules)
    return 0


def told(rules: SiteRules) -> str:
    """What others get, in a line."""
    facts = "all relations" if rules.rules.exact is None else ", ".join(sorted(rules.rules.exact)) or "no relation"
    silent = f" (but for {', '.join(sorted(rules.rules.no_atoms))})" if rules.rules.no_atoms else ""
    limit = "without a limit of means" if rules.allow_extraction else "means within the usual budget"
    return (
        f"names: {rules.rules.names}; rows of anchors: {rules.rules.anchors}{silent}; {rules.atom_budget} vectors and "
        f"{limit}; stored facts of {facts}"
    )


def _check(options: argparse.Namespace) -> None:
    given = [name for name in ("data", "consent", "again") if getattr(options, name)]
    if given:
        raise UserError(f"--{given[0]}: is for taking part in a run; --answer goes on with the files of the last one")
    if options.allow_extraction and not any(SCORES[name].has_budget for name in options.scores):
        raise UserError("--allow-extraction: none of --scores opens means")
