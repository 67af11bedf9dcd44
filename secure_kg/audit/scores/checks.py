"""Base class of the checks of a score session, and the checks of a training run that do not apply to one."""

from typing import Final

from protocols.scores.messages import BatchServed
from protocols.session.conversation import Abandon
from secure_kg.audit.checks.abandoned_sums import AbandonedSums
from secure_kg.audit.checks.completeness import Completeness
from secure_kg.audit.checks.evaluations import Evaluations
from secure_kg.audit.checks.few_holders import FewHolders
from secure_kg.audit.checks.honest_totals import HonestTotals
from secure_kg.audit.checks.participation import Differences
from secure_kg.audit.checks.passed_over import PassedOver
from secure_kg.audit.checks.refusals import Refusals
from secure_kg.audit.checks.resuming import Resuming
from secure_kg.audit.checks.same_for_all import SameForAll
from secure_kg.audit.checks.secrets import Weights
from secure_kg.audit.checks.side_channels import Sizes, Times
from secure_kg.audit.checks.tables_brought import TablesBrought
from secure_kg.audit.checks.union_answers import UnionAnswers
from secure_kg.audit.checks.verdicts import Verdicts
from secure_kg.audit.scores.session import ScoredSession
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import CheckResult
from secure_kg.audit.view.read import Observation

_TRAINING: Final = "not asked of score queries, which train nothing and share no table"
_NOT_ASKED: Final[dict[type[Check], str]] = {
    AbandonedSums: "not asked of score queries: a batch may be asked three times, and why an attempt ended is not "
    "looked at",
    Completeness: "not asked of score queries: their record lists batches that may come, not those that came",
    HonestTotals: "not asked of score queries: their totals are looked at by score-totals",
    TablesBrought: _TRAINING,
    Resuming: _TRAINING,
    Evaluations: _TRAINING,
    PassedOver: _TRAINING,
    SameForAll: _TRAINING,
    Refusals: "not asked of score queries: clients keep no record of openings beyond the session",
    Verdicts: _TRAINING,
    UnionAnswers: "no union in a session of score queries",
    Weights: "no union in a session of score queries",
    FewHolders: "not asked of score queries: the server reads no counts, and under plain scores everything",
    Differences: "not asked of score queries: the server reads no sums, and under plain scores everything",
    Sizes: "not asked of score queries: sizes follow from the terms (protocols/costs), and are not compared here",
    Times: "not asked of score queries",
}


class ScoreCheck(Check):
    """One question about a score session."""

    def __init__(self, session: ScoredSession) -> None:
        super().__init__(session.config, len(session.record.parties))
        self.session = session

    @staticmethod
    def ends(observation: Observation) -> bool:
        """Whether a message does no more than end a batch or an attempt."""
        return isinstance(observation.message, BatchServed | Abandon)


def not_asked() -> list[CheckResult]:
    """The questions of other audits that this one leaves open, and why. None of them counts as passed."""
    return [CheckResult(check.id, check.question, 0, why, ()) for check, why in _NOT_ASKED.items()]
