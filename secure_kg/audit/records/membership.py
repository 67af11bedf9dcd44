"""Record of membership attacks: `attack.json`."""

from typing import ClassVar

import msgspec

from secure_kg.runs.records.record import Record

MENDED = "mended"
BOUNDED = ("canaries",)
"""Targets of which a coin has decided, and nothing else: a bound is about these."""


class MembershipOutcome(Record, kw_only=True, frozen=True):
    """One attack on one kind of targets after one round."""

    kind: ClassVar[str] = "outcome of a membership attack"

    attack: str
    """`A_SI`, `A_CIP`, `A_CIA`, `white box` or `attacker alone`."""
    variant: str
    """`as printed` or `mended`; empty for the bounds."""
    view: str
    """What the attacker looks at."""
    targets: str
    """`canaries`, `real`, `corrupted` or `attribution`."""
    victim: int
    round: int
    members: int
    others: int
    auc: float
    auc_low: float
    """Of the 95 % interval."""
    auc_high: float
    tpr_at_1_percent: float
    """True positives where at most 1 % of the others are called members."""
    f1: float | None
    """With a threshold from triples that the attacker knows to be no members."""
    best_f1: float
    """With the best of all thresholds, which needs the truth."""
    always_yes_f1: float
    roc: list[tuple[float, float]]
    """(rate of false positives, rate of true ones)."""

    @property
    def name(self) -> str:
        """The attack in words, without targets and round."""
        told = f"{self.attack} {self.variant}".strip()
        return f"{told}, {self.view}"


class MembershipBound(Record, kw_only=True, frozen=True):
    """What the privacy statement of a run allows any attack."""

    kind: ClassVar[str] = "bound on membership attacks"

    epsilon: float
    delta: float
    noise: float
    """The noise multiplier."""
    steps: int
    best_guess: float
    """The largest share of right guesses about one triple, by epsilon and delta alone."""
    auc: float
    """The largest AUC, of whoever sees all that is released."""
    upload_auc: float | None = None
    """The same of a server that reads contributions in clear, with a share of the noise each."""


class MembershipReport(Record, kw_only=True, frozen=True):
    """All attacks of one experiment, or on one recorded run."""

    kind: ClassVar[str] = "report of membership attacks"

    about: str
    """What was attacked, in one line."""
    settings: dict[str, str]
    outcomes: list[MembershipOutcome]
    holders_told: float | None = None
    """The share of shared rows of which a client tells the number of holders from first means; None: not tried."""
    bound: MembershipBound | None = None
    """Of a run with differential privacy."""
    notes: list[str] = msgspec.field(default_factory=list)

    def bound_of(self, one: MembershipOutcome) -> float | None:
        """The largest AUC that an attack can have; None: nothing bounds it, or it looks at no private run."""
        if self.bound is None or one.attack == "attacker alone" or one.targets not in BOUNDED:
            return None
        return self.bound.upload_auc if one.view == "upload" else self.bound.auc

    @property
    def last(self) -> list[MembershipOutcome]:
        """Of each attack on each kind of targets and victim the outcome of its last round."""
        found: dict[tuple[str, str, int], MembershipOutcome] = {}
        for one in self.outcomes:
            key = (one.name, one.targets, one.victim)
            if key not in found or found[key].round <= one.round:
                found[key] = one
        return list(found.values())


class MembershipSweep(Record, kw_only=True, frozen=True):
    """The same federation attacked under several budgets: `sweep.json`."""

    kind: ClassVar[str] = "sweep of membership attacks"

    about: str
    reports: list[MembershipReport]
    """In the order of epsilon; those without differential privacy last."""
    notes: list[str] = msgspec.field(default_factory=list)
