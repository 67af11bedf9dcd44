"""A whole audit of a run: the checks, the attacks if the clients' folders are there, and what people see of it."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from protocols.foundation.identifiers import PartyId
from secure_kg.attacks.result import AttackResult
from secure_kg.attacks.truth import Truth
from secure_kg.audit.attacking import ReadSums, attack_run, clear_upload
from secure_kg.audit.audit import Audit, audit
from secure_kg.audit.records.parts import Finding
from secure_kg.audit.view.findings import SEVERITIES, CheckResult
from secure_kg.audit.view.flow import Flow
from secure_kg.audit.view.read import AuditedRun
from secure_kg.data.client_data import load_graph
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.console import table_text
from secure_kg.foundation.errors import UserError
from secure_kg.report.audit_page import audit_page
from secure_kg.report.audit_verdict import verdict
from secure_kg.report.audit_view import Upload, Words, masked
from secure_kg.report.audit_view import picture as grey
from secure_kg.report.html import prose, tag
from secure_kg.report.in_notebooks import plain_table
from secure_kg.report.picture import Picture, grey_panel, picture
from secure_kg.runs.run_folder import write_json, write_whole

MODEL: Final = "model.safetensors"
"""What a client has at its end; one that dropped out has none, and is not attacked."""
LEAKS: Final = (0.3, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """What the auditor was given besides the transcript."""

    truth: Path | None = None
    """The clients' folders: attacks are tried and scored."""
    receipts: Path | None = None
    """The clients' folders with their receipts."""
    identities: Mapping[PartyId, bytes] | None = None
    colluder: int = 1
    """The client that tells the attacker what it knows."""
    leaks: Sequence[float] = LEAKS
    """How much of that it tells, one attack for each."""
    membership: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class AuditOutcome:
    """What an audit has found. `findings` come first; `save` writes the page for people and the file for machines."""

    audit: Audit
    upload: Upload | None = None
    """Rows of one client as the server received them."""
    clear_side: Words | None = field(default=None)
    """The same before masks were added, where the auditor was given it."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The worst first. Severity `high`: the server got to know something that the protocols promise to hide."""
        return self.audit.findings

    @property
    def high(self) -> int:
        """How many findings are of severity high."""
        return self.audit.high

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        return self.audit.checks

    @property
    def attacks(self) -> tuple[AttackResult, ...]:
        return self.audit.attacks

    @property
    def verdict(self) -> str:
        """One sentence."""
        return verdict(self.audit.record())[0]

    def page(self) -> str:
        """The whole report as a page of HTML, with no other file."""
        return audit_page(self.audit.record(), self.upload, self.clear_side)

    def save(self, folder: str | Path) -> Path:
        """Write `audit.html` and `audit.json` to a folder; returns the path of the page."""
        page = Path(folder) / "audit.html"
        write_json(Path(folder) / "audit.json", self.audit.record().to_json())
        write_whole(page, self.page().encode())
        return page

    def picture(self) -> Picture:
        """One client's rows side by side: in clear, and as the server received them. `UserError` if none were sent."""
        if self.upload is None or not self.upload.words.size:
            raise UserError("no rows were sent in this run, so there is no upload to show")
        words, whose = self.upload.words, f"client {self.upload.client}, round {self.upload.round}"
        if self.upload.in_clear:
            panels = [
                grey_panel("What the server received: the rows", grey(words)),
                grey_panel("What it would receive under masks", grey(masked(words))),
            ]
        else:
            clear = self.clear_side
            before = [] if clear is None else [grey_panel("The client's rows, before masks", grey(clear))]
            panels = [*before, grey_panel("What the server received", grey(words))]
        note = (
            "One point for each number; black is the smallest in a picture, white the largest.\n"
            "In clear, a band of one grey is a row that the client does not hold."
        )
        return picture(f"Rows of one client ({whose})", panels, note)

    def __repr__(self) -> str:
        counts = {name: sum(one.severity == name for one in self.findings) for name in SEVERITIES}
        head = ", ".join(f"{count} {name}" for name, count in counts.items())
        lines = [f"Audit: {self.verdict}", f"findings: {head}; checks: {len(self.checks)}; {self._attacks_told()}"]
        if self.findings:
            lines.append(table_text("", ("severity", "finding"), [[one.severity, one.title] for one in self.findings]))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        body = [[one.severity, one.title] for one in self.findings]
        return tag("div", tag("p", tag("b", self.verdict)), plain_table(("severity", "finding"), body),
                   tag("p", prose(self._attacks_told())))  # fmt: skip

    def _attacks_told(self) -> str:
        won = sum(bool(one.succeeded) for one in self.attacks)
        return f"attacks: {won} of {len(self.attacks)} succeeded" if self.attacks else self.audit.not_attacked


def audit_run(
    run: AuditedRun,
    settings: AuditSettings,
    progress: Callable[[int], None] = lambda messages: None,
    note: Callable[[str], None] = lambda line: None,
) -> AuditOutcome:
    """All that can be said of a run. `progress` is told how many messages were read, `note` of attacks, a line each."""
    sums = ReadSums()
    told = audit(run, settings.receipts, settings.identities, progress, sums.take)
    attacked = _attacked(run, told.flow, sums, settings, note)
    told = dataclasses.replace(told, attacks=attacked.results, not_attacked=attacked.not_tried)
    return AuditOutcome(told, _upload(told.flow), attacked.clear_side)


@dataclass(frozen=True, slots=True)
class _Attacked:
    """What attacks have shown, and what the pictured upload was before masks were added, where that is known."""

    results: tuple[AttackResult, ...] = ()
    not_tried: str = ""
    clear_side: Words | None = None


def _attacked(
    run: AuditedRun, flow: Flow, sums: ReadSums, settings: AuditSettings, note: Callable[[str], None]
) -> _Attacked:
    shared, folders = STRATEGIES[run.config.strategy].shared, settings.truth
    if folders is None:
        return _Attacked(not_tried="Without --truth there is nothing to score attacks by.")
    if shared is None:
        return _Attacked(not_tried="Nothing is shared in this run, so there are no rows to attack.")
    if run.config.queries is not None:
        return _Attacked(not_tried="The attacks on rows know embeddings of triples, and this run trained on queries.")
    if run.config.network is not None:
        return _Attacked(not_tried="The attacks on rows know embeddings, and this run trained a graph network on them.")
    if shared == "entity and relation":
        return _Attacked(not_tried="The attacks on rows know one table of a model, and this run shared both.")

    def truth_of(client: int) -> Truth:
        graph = load_graph(run.config, run.clients, client)
        return Truth.read(run.path, client, graph, shared, folders)

    there = [number for number in range(1, run.clients + 1) if (folders / str(number) / MODEL).is_file()]
    if settings.colluder not in there:  # so it is with one that has dropped out
        raise UserError(f"{folders / str(settings.colluder) / MODEL}: the colluding client's model is not there")
    truth = {number: truth_of(number) for number in there}
    results = attack_run(run, truth, settings.colluder, settings.leaks, sums, note)
    if settings.membership:
        results += _members(run, truth, settings.colluder)
    pictured = truth.get(flow.upload_of[0])
    clear = clear_upload(run, pictured, len(flow.upload)) if pictured is not None and flow.upload is not None else None
    return _Attacked(tuple(results), "" if results else "No client but the colluding one has left a model.", clear)


def _members(run: AuditedRun, truth: Mapping[int, Truth], colluder: int) -> list[AttackResult]:
    from secure_kg.attacks.membership.recorded import MOST_TARGETS, attack_recorded, audit_results

    return audit_results(attack_recorded(run, truth, colluder, None, MOST_TARGETS))


def _upload(flow: Flow) -> Upload | None:
    """For the picture of what the server sees."""
    return Upload(flow.upload, *flow.upload_of) if flow.upload is not None else None
