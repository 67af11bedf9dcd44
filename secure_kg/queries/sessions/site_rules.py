"""What a site answers, by its own decision: no message widens it."""

from dataclasses import dataclass, field
from typing import Any, Final

from protocols.registry import SCORES
from secure_kg.queries.retrieval.over_run import AskSettings
from secure_kg.queries.retrieval.rules import Exact, Rules
from secure_kg.queries.sessions.statement import Statement, StatementRefused
from secure_kg.runs.score_budget import USUAL_ATOMS, USUAL_EXACT

BACKENDS: Final = tuple(name for name, one in SCORES.items() if not one.own_process)
"""Those that a site may allow."""
MOST_SESSIONS: Final = 60
"""Of one asker, within the time for which a statement is good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRules:
    """The rules and budgets of one site, for all sessions of others."""

    rules: Rules = field(default_factory=Rules)
    min_holders: int | None = None
    """The least number of holders below which it takes part in no session; None: what the asked backend usually has."""
    scores: frozenset[str] = frozenset(name for name in BACKENDS if not SCORES[name].server_reads_scores)
    """Backends by which it scores: by default none that shows the server what it answers."""
    atom_budget: int = USUAL_ATOMS
    exact_budget: int = USUAL_EXACT
    allow_extraction: bool = False
    sessions: int = MOST_SESSIONS

    def require_within(self, statement: Statement) -> None:
        """`StatementRefused` for settings that are wider than these rules."""
        usual = SCORES[statement.scores].default_least
        least = usual if self.min_holders is None else self.min_holders
        if statement.exact != Exact.ONLY:
            if statement.scores not in self.scores:
                allowed = ", ".join(sorted(self.scores))
                raise StatementRefused(f"its rules allow --scores {allowed}, not {statement.scores}")
            if statement.least < least:
                raise StatementRefused(f"its rules want --min-holders {least} at least, not {statement.least}")

    def settings(self) -> AskSettings:
        """Those of this site alone; the rest is the asker's to state."""
        return AskSettings(
            rules=self.rules,
            atom_budget=self.atom_budget,
            exact_budget=self.exact_budget,
            allow_extraction=self.allow_extraction,
        )

    def to_json(self) -> dict[str, Any]:
        exact = self.rules.exact
        return {
            "names": self.rules.names,
            "anchors": self.rules.anchors,
            "no_atoms": sorted(self.rules.no_atoms),
            "exact": None if exact is None else sorted(exact),
            "facts": self.rules.facts,
            "min_holders": self.min_holders,
            "scores": sorted(self.scores),
            "atom_budget": self.atom_budget,
            "exact_budget": self.exact_budget,
            "allow_extraction": self.allow_extraction,
            "sessions": self.sessions,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "SiteRules":
        """What `to_json` has written in this site's own private folder."""
        exact = values["exact"]
        return cls(
            rules=Rules(
                values["names"],
                frozenset(values["no_atoms"]),
                None if exact is None else frozenset(exact),
                values["facts"],
                values["anchors"],
            ),
            min_holders=values["min_holders"],
            scores=frozenset(values["scores"]),
            atom_budget=values["atom_budget"],
            exact_budget=values["exact_budget"],
            allow_extraction=values["allow_extraction"],
            sessions=values["sessions"],
        )
