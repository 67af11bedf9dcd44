"""`ask federation.toml`: the asking site of a federation between organisations."""

import argparse
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from launch.between.questions import QuestionSite, asking_turn
from launch.hosts.network_answers import AskingSite, ask_session
from protocols.foundation.errors import ProtocolError
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.errors import InternalError, UserError
from secure_kg.provisioning.site_folder import DEFAULT_SITE, SiteFolder
from secure_kg.queries.language.reading import Question
from secure_kg.queries.retrieval.over_run import AskSettings
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.runs.score_budget import USUAL_ATOMS, USUAL_EXACT

if TYPE_CHECKING:
    from secure_kg.queries.retrieval.members import AskersView
    from secure_kg.queries.retrieval.parts import Outcome, Session

_OF_OTHERS: Final[dict[str, object]] = {
    "name_policy": Rules().names,
    "anchor_policy": Rules().anchors,
    "no_atoms": [],
    "allow_exact": None,
    "atom_budget": USUAL_ATOMS,
    "exact_budget": USUAL_EXACT,
    "allow_extraction": False,
}
"""Options that say what clients answer, and their usual values."""


def ask_between(
    options: argparse.Namespace,
    read: Callable[[], Sequence[Question]],
    settings: AskSettings,
    each: "Callable[[argparse.Namespace, AskSettings, AskersView, Question, Outcome], None]",
    show: "Callable[[argparse.Namespace, AskSettings, AskersView, Session, Sequence[Question]], int]",
) -> int:
    """The exit code of one session. `read`: the questions, on this site alone."""
    _check(options)
    note = fail if options.json == "-" else say
    site = QuestionSite.open(options.run, options.site or DEFAULT_SITE, note)
    questions = read()
    # Rules of this process are about its own facts; what it tells others meanwhile, the process that answers decides.
    own = Rules(names="none", anchors="none", facts=settings.rules.facts)
    settings = dataclasses.replace(settings, client=int(site.number), rules=own)
    pem = SiteFolder.open(site.site).identity_pem
    try:
        site.asked(settings)  # mistakes in options are told before anybody waits
        site.knowledge(own)
        with asking_turn(site) as rules:
            return ask_session(
                AskingSite(
                    site=site.own_site(),
                    settings=settings,
                    sign=lambda statement: statement.signed(pem, time.time()),
                    federation=site.roster.digest,
                    questions=questions,
                    each=lambda run, question, outcome: each(options, settings, run, question, outcome),
                    show=lambda run, session, asked: show(options, settings, run, session, asked),
                    meanwhile=None if rules is None else dataclasses.replace(site.answering(rules), aside=_never),
                )
            )
    except (ProtocolError, InternalError) as problem:
        raise UserError(str(problem)) from None


def _never() -> bool:
    return False


def _check(options: argparse.Namespace) -> None:
    for name, usual in _OF_OTHERS.items():
        if getattr(options, name) != usual:
            option = "--" + name.replace("_", "-")
            raise UserError(f"{option}: what other sites answer is theirs to say, with join --answer")
    if options.client is not None:
        raise UserError("--client: this site asks as the member that it is")
    if options.record is not None:
        raise UserError("--record: what the server sees is the server's to record, with serve --questions --record")
