"""What a site checks when a session begins, by its own records alone: its roster, its model, its rules, its clock."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from protocols.foundation.identifiers import PartyId
from secure_kg.queries.sessions.messages import BeginSession
from secure_kg.queries.sessions.seen import SeenStatements
from secure_kg.queries.sessions.site_rules import SiteRules
from secure_kg.queries.sessions.statement import (
    Statement,
    StatementRefused,
    read_statement,
    require_signature,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteChecks:
    """Of one site. `identity`: that of a member by the site's newest roster; None for one that has none any more."""

    me: PartyId
    federation: bytes
    union: bytes
    table: bytes
    rules: SiteRules
    seen: SeenStatements
    identity: Callable[[PartyId], bytes | None]
    clock: Callable[[], float] = time.time

    def admitted(self, begin: BeginSession) -> Statement:
        """The statement of a session that this site takes part in; `StatementRefused` for any other.

        The record is written last: a session that is refused leaves its number unused, and nobody can fill the record.
        """
        statement = read_statement(begin.statement)
        asker = PartyId(statement.asker)
        if asker == self.me:
            raise StatementRefused("a session in this site's own name, which it has not asked for")
        require_signature(begin.statement, begin.signature, self.identity(asker))
        if statement.federation != self.federation.hex():
            raise StatementRefused("a session of another federation, or of one with other settings")
        if statement.union != self.union.hex():
            raise StatementRefused("a session over another run than the one of this site")
        if statement.table != self.table.hex():
            raise StatementRefused("the asker has another model than this client")
        self.rules.require_within(statement)
        self.seen.begin(statement, self.clock(), self.rules.sessions)
        return statement
