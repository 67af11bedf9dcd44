"""Parts of `audit.json`: settings, verdict, findings, checks, ledger, attacks, sums, traffic, notes."""

from typing import ClassVar, Literal

import msgspec

from secure_kg.runs.records.record import Record

Severity = Literal["high", "medium", "low", "info"]


class AuditedSettings(Record, kw_only=True, frozen=True):
    """The settings of the run that an audit goes by."""

    kind: ClassVar[str] = "record of settings"

    strategy: str
    alignment: str
    aggregation: str
    adversary: str
    clients: int
    min_holders: int
    client_fraction: float
    reveal_names: bool


class AuditedBatches(Record, kw_only=True, frozen=True):
    """One batch of score queries, and its attempts."""

    kind: ClassVar[str] = "record of a batch"

    backend: str
    round: int
    asker: int
    positions: int
    queries: int
    top: int
    least: int

    def __str__(self) -> str:
        return (
            f"round {self.round}: {self.backend}, {self.queries} queries of client {self.asker} over {self.positions} "
            f"positions, best {self.top}, at least {self.least} holders"
        )


class AuditedScores(Record, kw_only=True, frozen=True):
    """The settings of the session of score queries that an audit goes by."""

    kind: ClassVar[str] = "record of settings"

    backends: list[str]
    adversary: str
    clients: int
    allow_extraction: bool
    batches: list[AuditedBatches]


class Verdict(Record, kw_only=True, frozen=True):
    """The audit in a word: how many findings are of severity high."""

    kind: ClassVar[str] = "verdict of an audit"

    high: int
    exit_code: int


class Finding(Record, frozen=True):
    """One statement, as it stands in `audit.json`."""

    kind: ClassVar[str] = "finding of an audit"

    id: str
    """Of the kind of finding, e.g. `clear-names`; the same in every audit."""
    severity: Severity
    title: str
    evidence: tuple[str, ...]
    """Single observations that show it, a few of many."""
    explanation: str
    """What it means for a client, and what to do about it."""


class CheckRecord(Record, kw_only=True, frozen=True):
    """One check. `findings`: their ids."""

    kind: ClassVar[str] = "check of an audit"

    id: str
    question: str
    looked_at: str
    status: str
    findings: list[str]


class Passed(Record, kw_only=True, frozen=True):
    """What passed the server in one round."""

    kind: ClassVar[str] = "count of messages"

    messages: int
    bytes: int


class LedgerLine(Record, kw_only=True, frozen=True):
    """One field of one kind of message, over the whole run."""

    kind: ClassVar[str] = "line of a ledger"

    message: str = msgspec.field(name="kind")
    field: str
    direction: str
    purpose: str
    field_class: str = msgspec.field(name="class")
    meaning: str
    declared: bool
    messages: int
    bytes: int
    first_round: int
    """0: the set-up."""
    last_round: int
    rounds: int
    by_round: dict[str, Passed] = msgspec.field(default_factory=dict)
    clients: list[int]


class AttackResult(Record, frozen=True):
    """One attack on one view, scored."""

    kind: ClassVar[str] = "result of an attack"

    id: str
    """Short and stable, for machines."""
    title: str
    against: str
    """"client 2", or "aggregate"."""
    knowledge: str
    """What the attacker had, in words."""
    scores: dict[str, float]
    chance: dict[str, float]
    """What guessing gets, under the same keys."""
    succeeded: bool
    """Clearly better than chance, by the rule of `secure_kg.attacks.result`."""
    explanation: str
    """One or two sentences for somebody who answers for the data."""
    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    """How many elements the scores are shares of."""

    def __post_init__(self) -> None:
        if self.scores.keys() != self.chance.keys():
            raise ValueError("every score needs what chance gets, and nothing else does")


class SumLine(Record, kw_only=True, frozen=True):
    """One sum, and whether the server could read it."""

    kind: ClassVar[str] = "sum in an audit"

    round: int
    purpose: str
    contributors: list[int]
    threshold: int
    read_by_server: bool
    problem: str = ""
    """Why it could not be computed again, if it could not."""


class BothWays(Record, kw_only=True, frozen=True):
    """Bytes to and from the server."""

    kind: ClassVar[str] = "count of bytes"

    up: int
    down: int


class Traffic(Record, kw_only=True, frozen=True):
    """All messages of a run, headers included."""

    kind: ClassVar[str] = "record of traffic"

    messages: int
    bytes_up: int
    bytes_down: int
    bytes_by_round: dict[str, BothWays]
    bytes_by_kind: dict[str, BothWays]


class Note(Record, kw_only=True, frozen=True):
    """A limit of every audit."""

    kind: ClassVar[str] = "note of an audit"

    title: str
    text: str
