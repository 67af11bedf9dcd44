"""The ledger: everything the server observed, field by field, beside what the protocols say it may see."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from protocols.alignment.psu import names as union_names
from protocols.foundation import wire
from protocols.foundation.disclosure import Field
from protocols.registry import AGGREGATIONS, ALIGNMENTS, SCORES
from secure_kg.audit.records.parts import LedgerLine, Passed
from secure_kg.audit.view.declarations import allowed_kinds, field_of
from secure_kg.audit.view.findings import Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted, in_rounds, named_clients

_UNDECLARED = Field("clear", "something that no protocol declares")


@dataclass(slots=True)
class Entry:
    """One field of one kind of message, or of one kind of sum, over a whole run."""

    kind: str
    name: str
    direction: str
    """received, sent, or computed: read from sums."""
    purpose: str
    declared: Field
    allowed: bool
    """Whether the run's settings let this message pass at all."""
    rounds: dict[int, list[int]] = field(default_factory=dict)
    """By round: messages and bytes."""
    parties: set[int] = field(default_factory=set)

    def add(self, number: int, size: int) -> None:
        counts = self.rounds.setdefault(number, [0, 0])
        counts[0] += 1
        counts[1] += size

    @property
    def messages(self) -> int:
        return sum(messages for messages, _ in self.rounds.values())

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.rounds.values())

    def record(self) -> LedgerLine:
        return LedgerLine(
            message=self.kind,
            field=self.name,
            direction=self.direction,
            purpose=self.purpose,
            field_class=self.declared.field_class,
            meaning=self.declared.meaning,
            declared=self.allowed and self.declared is not _UNDECLARED,
            messages=self.messages,
            bytes=self.bytes,
            first_round=min(self.rounds, default=0),
            last_round=max(self.rounds, default=0),
            rounds=len(self.rounds),
            by_round={
                str(number): Passed(messages=messages, bytes=size)
                for number, (messages, size) in sorted(self.rounds.items())
            },
            clients=sorted(self.parties),
        )


class Ledger:
    """`observe` every message, `opened` every sum that the server could read."""

    def __init__(self, config: RunConfig) -> None:
        self._config, self._allowed = config, allowed_kinds(config)
        self._entries: dict[tuple[str, str, str, str], Entry] = {}

    def observe(self, observation: Observation, *, heard: bool = True) -> None:
        """`heard`: whether an honest server says this, or goes by it. What a client sends unasked, of a kind that the
        run has no use for, is the client's doing (`said_in_order` counts it).
        """
        message = observation.message
        if not heard and observation.direction == "received" and type(message) not in self._allowed:
            return
        purpose = self._purpose(observation)
        names = type(message).__struct_fields__ or ("",)
        for name in names:
            key = observation.kind, name, observation.direction, purpose
            entry = self._entries.get(key)
            if entry is None:
                declared = self._declared(observation, name)
                if declared is None:
                    declared = _UNDECLARED if name else Field("public", "that it was sent, and when")
                entry = Entry(*key, declared, self._is_allowed(observation))
                self._entries[key] = entry
            entry.add(observation.round, _size(getattr(message, name)) if name else 0)
            entry.parties.add(observation.peer)

    def _purpose(self, observation: Observation) -> str:
        return _family(observation.purpose)

    def _declared(self, observation: Observation, name: str) -> Field | None:
        return field_of(type(observation.message), name, self._config)

    def _is_allowed(self, observation: Observation) -> bool:
        return type(observation.message) in self._allowed

    def opened(self, total: OpenedSum) -> None:
        """What the server read from a sum, or could have."""
        if total.vector is None or total.threshold == 0:
            return
        declared = _of_sum(total)
        purpose = _family(total.purpose)
        key = "(sum)", "total", "computed", purpose
        entry = self._entries.setdefault(key, Entry(*key, declared, True))
        entry.add(total.round, total.vector.nbytes)
        entry.parties |= total.contributors

    @property
    def entries(self) -> list[Entry]:
        return list(self._entries.values())

    def findings(self) -> list[Finding]:
        return [*_undeclared(self.entries), *_in_clear(self.entries)]


def _of_sum(total: OpenedSum) -> Field:
    if not total.read_by_server:
        return Field("masked", "the total of a sum that only clients can read")
    if total.purpose == union_names.PURPOSE:
        return Field("aggregate", "the names of the union, not who holds them")
    if total.attempt is not None:
        return Field("aggregate", "the tags of all names, without names and without holders")
    if total.purpose == "rows":
        return Field("aggregate", "the sum of each shared row, and how many clients contributed to it")
    return Field("aggregate", "results summed over the clients")


def _undeclared(entries: Iterable[Entry]) -> list[Finding]:
    odd = [entry for entry in entries if not entry.allowed or entry.declared is _UNDECLARED]
    if not odd:
        return []
    lines = [
        f"{entry.kind}.{entry.name or '(no fields)'} {entry.direction}, {entry.messages} messages" for entry in odd
    ]
    return [
        Finding(
            "undeclared-message",
            "high",
            "Messages passed that the run's settings do not provide for",
            tuple(lines[:20]),
            "The protocols of this run have no use for these messages, so nothing is promised about what is in them. "
            "Either the software of a party is not what it claims to be, or a new message was never declared.",
        )
    ]


# Name, title and advice of findings; {adding}, {aligning} and {scoring} are choices that hide what they work on.
_CLEAR_TEXTS: dict[tuple[str, str], tuple[str, str, str]] = {
    ("ClearNames", ""): (
        "clear-names",
        "The server read every client's names",
        "It knows which client holds which name. Use --alignment {aligning}: the server then learns their number only.",
    ),
    ("ClearInput", "rows"): (
        "clear-rows",
        "The server read every client's rows and which rows it holds",
        "From rows in clear, triples of a client can be reconstructed (see the attacks). Use --aggregation "
        "{adding}.",
    ),
    ("ClearInput", "holders"): (
        "clear-holders",
        "The server read which rows each client holds",
        "It knows by position what is in each client's graph. Use --aggregation {adding}.",
    ),
    ("ClearInput", "valid"): (
        "clear-validation-results",
        "The server read every client's validation results",
        "They carry each client's number of triples, its loss and its ranks. Use --aggregation {adding}.",
    ),
    ("ClearInput", "test"): (
        "clear-test-results",
        "The server read every client's test results",
        "They carry each client's number of triples and its ranks. Use --aggregation {adding}.",
    ),
    ("ClearQueries", "scores/plain"): (
        "clear-queries",
        "The server read the asker's queries",
        "It knows what was asked. Use one of the backends {scoring}.",
    ),
    ("ClearScores", "scores/plain"): (
        "clear-scores",
        "The server read every scorer's scores and which positions it holds",
        "With as many queries as a row has numbers it computes the trained table. Use one of the backends {scoring}.",
    ),
}


def _in_clear(entries: Iterable[Entry]) -> list[Finding]:
    """One for each kind of message, whether it was received, passed on or both."""
    findings: dict[tuple[str, str], Finding] = {}
    adding = " or ".join(name for name, one in AGGREGATIONS.items() if one.hides_contributions)
    aligning = " or ".join(name for name, one in ALIGNMENTS.items() if not one.server_reads_names)
    scoring = ", ".join(name for name, one in SCORES.items() if not one.server_reads_scores)
    for entry in entries:
        if entry.declared.field_class != "clear" or entry.declared is _UNDECLARED:
            continue
        usual = (f"clear-{entry.kind.lower()}-{entry.purpose}", f"The server read {entry.declared.meaning}", "")
        name, title, advice = _CLEAR_TEXTS.get((entry.kind, entry.purpose), usual)
        evidence = (
            f"{entry.kind}.{entry.name}: {counted(entry.messages, 'message')} of {named_clients(entry.parties)}, "
            f"{entry.bytes:,} bytes, {in_rounds(min(entry.rounds), max(entry.rounds))}"
        )
        advice = f"Nothing hides these data. {advice.format(aligning=aligning, adding=adding, scoring=scoring)}"
        known = findings.get((name, title))
        findings[name, title] = Finding(name, "high", title, (*(known.evidence if known else ()), evidence), advice)
    return list(findings.values())


def _family(purpose: str) -> str:
    """All attempts of a union are one purpose."""
    return "union" if purpose.startswith("union/") else purpose


def _size(value: object) -> int:
    match value:
        case np.ndarray():
            return int(value.nbytes)
        case bytes():
            return len(value)
        case str():
            return len(value.encode("utf-8", "surrogatepass"))
        case dict():
            return sum(_size(key) + _size(content) for key, content in value.items())
        case list():
            return sum(map(_size, value))
        case wire.Message():
            return 0
    return 8
