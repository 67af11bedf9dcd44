"""A party of a federation and the finished run that questions are about, from its own records and files."""

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from launch.between.run_records import known_run
from launch.between.turns import SiteTurns
from launch.hosts.network_answers import Answering, OwnSite, answer_sessions
from protocols.foundation.identifiers import SERVER, PartyId
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.parsing import json_of
from secure_kg.foundation.visible import shown
from secure_kg.provisioning.private_files import read_private, write_private
from secure_kg.provisioning.record import accepted_roster, own_number
from secure_kg.provisioning.roster import Roster
from secure_kg.provisioning.signing import KEYS, keys_folder
from secure_kg.provisioning.tls import client_tls
from secure_kg.queries.retrieval.over_run import AskSettings, RunAsked
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.sessions.checks import SiteChecks
from secure_kg.queries.sessions.seen import SeenStatements
from secure_kg.queries.sessions.site_rules import SiteRules
from secure_kg.runs.key_files import record_folder
from secure_kg.runs.run_folder import read_config

if TYPE_CHECKING:
    from protocols.transport.base import Transport
    from secure_kg.queries.retrieval.knowledge import Knowledge
    from secure_kg.queries.retrieval.parts import Member

_LOOK_SECONDS: Final = 0.1
_RULES: Final = "answering.json"
"""The rules of the process that answers, for one that asks and stands in for it meanwhile."""


@dataclass(frozen=True, slots=True)
class QuestionSite:
    """A member and its part of a run that is complete. Data and model are read once."""

    federation: Path
    site: Path
    roster: Roster
    number: PartyId
    run: Path
    """The folder of the run, of which this site has its own files alone."""
    config: RunConfig
    report: Callable[[str], None]
    _loaded: "dict[Rules, Knowledge]" = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, federation: Path, site: Path, report: Callable[[str], None]) -> "QuestionSite":
        """`UserError` in one line for a party that has no such run."""
        os.umask(0o077)  # what this site writes is for nobody else
        roster = accepted_roster(federation, site)
        number = own_number(roster, site)
        if number == SERVER:
            serving = f"{command('launch.serve')} {shown(federation)} --questions"
            raise UserError(f"{shown(site)}: this is the server, not a member; {serving} serves questions")
        known = known_run(site, roster.digest)
        if known is None or not (known.path / "result.json").exists():
            how = f"{command('launch.join')} takes part in one"
            raise UserError(f"{shown(site)}: this site has no run of this federation that has come to its end; {how}")
        run = known.path.parents[1]
        config = read_config(run)
        if config.digest() != roster.settings.digest():
            raise UserError(f"{shown(run)}: a run with other settings than those of {shown(federation)}")
        active = config.adversary == "active"
        config = dataclasses.replace(config, keys=str(keys_folder(roster, site)) if active else None)
        return cls(federation, site, roster, number, run, config, report)

    @property
    def turns(self) -> SiteTurns:
        return SiteTurns(self.site)

    def names(self) -> dict[int, str]:
        return {int(member.number): member.name for member in self.roster.members}

    def named(self, number: int) -> str:
        return f"{self.names().get(number, 'client')} ({number})"

    def asked(self, settings: AskSettings) -> RunAsked:
        return RunAsked(self.run, settings, self.config)

    def member(self, run: RunAsked) -> "Member":
        """With budgets that hold for all sessions of this site, whoever asks."""
        from secure_kg.queries.retrieval.members import member_with

        knowledge = self.knowledge(run.settings.rules)
        return member_with(run, self.number, knowledge, record_folder(self.site / KEYS, int(self.number)))

    def knowledge(self, rules: Rules) -> "Knowledge":
        if rules not in self._loaded:
            import torch

            from secure_kg.queries.retrieval.files import load_knowledge

            torch.set_num_threads(1)
            clients = len(self.roster.members)
            self._loaded[rules] = load_knowledge(self.run, self.config, clients, int(self.number), rules)
        return self._loaded[rules]

    def own_site(self) -> OwnSite:
        return OwnSite(me=self.number, link=self.link, run=self.asked, member=self.member, report=self.report)

    def link(self) -> "Transport":
        from protocols.transport.https.impatient import ImpatientClientTransport

        tls = client_tls(self.roster, self.site)
        url, digest = self.roster.server_url, self.roster.digest
        return ImpatientClientTransport(url, tls, self.number, digest, notice=self.report)

    def checks(self, rules: SiteRules) -> SiteChecks:
        """By the newest roster that this site has been given."""
        knowledge = self.knowledge(rules.rules)
        return SiteChecks(
            me=self.number,
            federation=self.roster.digest,
            union=knowledge.positions.digest,
            table=knowledge.table,
            rules=rules,
            seen=SeenStatements(self.site),
            identity=identities(self._newest()),
        )

    def _newest(self) -> Roster:
        """Read again for each session: a member that was revoked meanwhile begins none."""
        newest = accepted_roster(self.federation, self.site)
        if newest.digest != self.roster.digest:
            raise UserError(f"{shown(self.federation)}: has other settings or members now; start this command again")
        if self.config.adversary == "active":
            keys_folder(newest, self.site)
        return newest

    def answering(self, rules: SiteRules) -> Answering:
        return Answering(
            site=self.own_site(),
            checks=lambda: self.checks(rules),
            aside=self.turns.somebody_asks,
            named=self.named,
        )


def identities(roster: Roster) -> Callable[[PartyId], bytes | None]:
    """Of members that are not revoked, by number."""

    def identity(party: PartyId) -> bytes | None:
        member = roster.member(int(party))
        return None if member is None or member.revoked else member.identity

    return identity


def answer_until_stopped(site: QuestionSite, rules: SiteRules, how: Answering | None = None) -> None:
    """Answer others' sessions; a process of this site that asks has the link first."""
    with site.turns.answering():
        write_private(site.site / _RULES, (json.dumps(rules.to_json()) + "\n").encode())
        answering = site.answering(rules) if how is None else how
        while not answering.stopped():
            with site.turns.linked():
                answer_sessions(answering)
            while site.turns.somebody_asks() and not answering.stopped():
                time.sleep(_LOOK_SECONDS)


@contextmanager
def asking_turn(site: QuestionSite) -> Iterator[SiteRules | None]:
    """The link, for a process that asks. The rules by which it answers others meanwhile; None: it answers nobody."""
    with site.turns.asking(site.report):
        yield _rules_in(site.site) if site.turns.somebody_answers() else None


def _rules_in(site: Path) -> SiteRules:
    try:
        return SiteRules.from_json(json_of(read_private(site / _RULES)))
    except (ValueError, KeyError, TypeError, AttributeError):
        how = "start the process that answers again"
        raise UserError(f"{shown(site / _RULES)}: not the rules of a site; {how}") from None
