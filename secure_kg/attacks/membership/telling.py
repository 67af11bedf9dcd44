"""Outcomes as the record of `attack.json`."""

from collections.abc import Mapping, Sequence
from typing import Final

from secure_kg.attacks.membership.bounds import Bounds
from secure_kg.attacks.membership.experiment import Findings, Outcome
from secure_kg.attacks.membership.measures import KNOWN_RATE
from secure_kg.attacks.membership.staged import VICTIM
from secure_kg.audit.records.membership import MembershipBound, MembershipOutcome, MembershipReport

NOTES: Final = (
    "AUC: the probability that a member scores above an other triple; 0.5 is guessing. The interval is DeLong's.",
    f"F1 has a threshold that {KNOWN_RATE:.0%} of triples lie above which the attacker knows to be no members. Best F1 "
    "has the best threshold by the truth, as DP-FLames reports it. Whoever always answers yes has the F1 beside it.",
    "An AUC far below 0.5 is an attack whose inequality stands the wrong way round, as A_CIP's does for distances.",
    "Secure aggregation hides who contributed what. It does not hide what all clients together have learned: means are "
    "what a federation is for, and they tell members. Rows of few holders tell most.",
)

PRIVATE_NOTES: Final = (
    "Bound: the largest AUC that any attack on a canary can have, by the noise of the run. An AUC whose whole interval "
    "lies above it is a fault in the run or in its proof.",
    "The white box has the model that the victim keeps. The attacking client takes its own share of the noise off the "
    "means. A server that reads uploads in clear meets one share of the noise, and a bound of its own.",
)


def experiment_report(about: str, settings: Mapping[str, str], findings: Findings) -> MembershipReport:
    """Of a staged federation."""
    return MembershipReport(
        about=about,
        settings=dict(settings),
        outcomes=[told(VICTIM, one) for one in findings.outcomes],
        holders_told=findings.holders_told,
        bound=None if findings.bounds is None else _bound(findings.bounds),
        notes=list(NOTES) + ([] if findings.bounds is None else list(PRIVATE_NOTES)),
    )


def recorded_report(
    about: str, settings: Mapping[str, str], outcomes: Sequence[tuple[int, Outcome]]
) -> MembershipReport:
    """Of a recorded run. The white box is the model that a client kept, which is that of its best round."""
    return MembershipReport(
        about=about,
        settings=dict(settings),
        outcomes=[told(client, one) for client, one in outcomes],
        notes=list(NOTES),
    )


def told(victim: int, one: Outcome) -> MembershipOutcome:
    """One outcome, with figures of four digits: more are noise."""
    measures = one.measures
    return MembershipOutcome(
        attack=one.attack,
        variant=one.variant,
        view=one.view,
        targets=one.kind,
        victim=victim,
        round=one.round,
        members=measures.members,
        others=measures.others,
        auc=round(measures.auc, 4),
        auc_low=round(measures.low, 4),
        auc_high=round(measures.high, 4),
        tpr_at_1_percent=round(measures.tpr, 4),
        f1=None if measures.f1 is None else round(measures.f1, 4),
        best_f1=round(measures.best_f1, 4),
        always_yes_f1=round(measures.always_yes, 4),
        roc=[(round(x, 4), round(y, 4)) for x, y in measures.roc],
    )


def _bound(bounds: Bounds) -> MembershipBound:
    statement = bounds.statement
    return MembershipBound(
        epsilon=statement.epsilon,
        delta=statement.delta.total,
        noise=round(statement.noise, 4),
        steps=statement.steps,
        best_guess=statement.best_guess,
        auc=round(bounds.auc, 6),
        upload_auc=None if bounds.upload_auc is None else round(bounds.upload_auc, 6),
    )
