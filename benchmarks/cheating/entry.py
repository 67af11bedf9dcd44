"""One cheat: what it is after, what is promised against it, and how its success is judged."""

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from benchmarks.cheating.claims import Claims
from benchmarks.cheating.question_stage import QuestionStage
from benchmarks.cheating.score_stage import ScoreStage
from benchmarks.cheating.spoils import refusals
from benchmarks.cheating.stage import Stage
from secure_kg.audit.audit import Audit, audit
from secure_kg.audit.scores.audit import ScoreAudit, audit_scores
from secure_kg.audit.scores.session import open_session
from secure_kg.audit.view.read import open_run
from secure_kg.foundation.errors import UserError

Expected = Literal["stopped", "caught", "out of scope", "clean"]
Outcome = Literal["stopped", "caught", "succeeded", "out of scope", "clean", "accused"]
"""stopped: nothing was lost. caught: an audit names it, whatever was lost. succeeded: it was lost, unnamed by an audit.
out of scope: it was lost, as SECURITY.md says. clean, accused: honest parties, without and with a high finding."""
_MOST_REASONS: Final = 3
AnyStage = Stage | ScoreStage | QuestionStage


@dataclass(frozen=True, slots=True)
class Played:
    """How a cheat went."""

    stage: AnyStage
    got: bool
    """Whether it has what it was after: measured against the truth."""
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """`expected` as in the module `zoo`. `findings`: any of these, as high ones, names the cheat in an audit."""

    name: str
    wants: str
    claims: Claims
    """What it is against; of an honest party nothing."""
    expected: Expected
    findings: tuple[str, ...]
    play: Callable[[Path], Played]
    party: Literal["server", "client"] = "server"
    """Who cheats."""
    unnamed: str = ""
    """Why no finding can name a cheat that is stopped: what it leaves in a transcript, honest parties leave, too."""
    unrefused: str = ""
    """Why nobody refuses a cheat that is stopped: it has its way, and that gives it nothing."""
    shows: tuple[str, ...] = ()
    """Findings that an audit must have, of whatever severity, although they do not name the cheat."""
    needs: Callable[[], AbstractContextManager[None]] = nullcontext
    """What must be registered while it is played and audited."""
    not_covered: str = ""
    """Of a cheat that is out of scope: the words of SECURITY.md that say so."""
    packages: tuple[str, ...] = ()
    """Packages beyond the project's own requirements that the cheat takes."""

    @property
    def missing(self) -> list[str]:
        """Those of its packages that are not installed: it cannot be played then."""
        return [package for package in self.packages if find_spec(package) is None]


@dataclass(frozen=True, slots=True)
class Audited:
    exit_code: int | None
    high: tuple[str, ...]
    others: tuple[str, ...]
    problem: str = ""


def perform(entry: Entry) -> dict[str, Any]:
    """The cheat, the audit of what it has left behind, and the judgement: one record of the command's JSON."""
    started = time.process_time()
    with entry.needs(), tempfile.TemporaryDirectory(prefix=f"cheating-{entry.name}-") as folder:
        played = entry.play(Path(folder))
        audited = _audited(played.stage)
        refused, crashed, ends = _ended(played.stage)
    found = [finding for finding in entry.findings if finding in audited.high]
    outcome = _outcome(entry, played.got, audited, bool(found))
    return {
        "name": entry.name,
        "party": entry.party,
        "wants": entry.wants,
        "claims": [claim.number for claim in entry.claims],
        "claim": entry.claims[0].says if entry.claims else "",
        "not_covered": entry.not_covered,
        "expected": entry.expected,
        "expected_findings": list(entry.findings),
        "why_unnamed": entry.unnamed,
        "why_unrefused": entry.unrefused,
        "also_expected": list(entry.shows),
        "outcome": outcome,
        "ok": _ok(entry, outcome, audited, bool(found), bool(refused)) and not crashed,
        "got": played.got,
        "refused_by": sorted(refused),
        "crashes": crashed,
        "reasons": sorted(set(refused.values()))[:_MOST_REASONS],
        "audit_exit": audited.exit_code,
        "audit_high": list(audited.high),
        "audit_other": list(audited.others),
        "audit_problem": audited.problem,
        "server_ends": ends,
        "evidence": played.evidence,
        "cpu_seconds": round(time.process_time() - started, 2),
    }


def _ended(stage: AnyStage) -> tuple[dict[str, str], list[str], list[str]]:
    """Who has refused and why, what has crashed, and how each session ended for the server."""
    if isinstance(stage, ScoreStage | QuestionStage):
        return stage.refused, stage.crashed, [stage.server_end]
    crashed = [reason for session in stage.sessions for reason in session.crashed.values()]
    return refusals(stage), crashed, [session.server_error or "done" for session in stage.sessions]


def _audited(stage: AnyStage) -> Audited:
    """An audit of the run with pinned identities and all clients' receipts; score queries leave none."""
    told: Audit | ScoreAudit
    try:
        if isinstance(stage, ScoreStage | QuestionStage):
            session = open_session(stage.run)
            if session is None:
                raise UserError("the session left no record")
            told = audit_scores(session, stage.directory)
        else:
            told = audit(open_run(stage.run), stage.run / "clients", stage.directory)
    except UserError as problem:
        return Audited(None, (), (), str(problem))
    high = tuple(one.id for one in told.findings if one.severity == "high")
    return Audited(told.exit_code, high, tuple(one.id for one in told.findings if one.severity != "high"))


def _outcome(entry: Entry, got: bool, audited: Audited, found: bool) -> Outcome:
    if entry.expected == "clean":
        return "accused" if audited.high or got else "clean"
    if not got:
        return "caught" if found and entry.expected == "caught" else "stopped"
    if found:
        return "caught"
    return "out of scope" if entry.expected == "out of scope" else "succeeded"


def _ok(entry: Entry, outcome: Outcome, audited: Audited, found: bool, refused: bool) -> bool:
    named = (found and audited.exit_code == 3) or not entry.findings
    if not set(entry.shows) <= {*audited.high, *audited.others}:
        return False
    match entry.expected:
        case "stopped":
            return outcome == "stopped" and (refused or bool(entry.unrefused)) and named
        case "caught":
            return outcome == "caught" and named
        case "out of scope" | "clean":
            return outcome == entry.expected
