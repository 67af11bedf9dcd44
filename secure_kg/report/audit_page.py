"""`audit.html`: what the server observed, for people who answer for data."""

from secure_kg.audit.records.parts import AuditedScores, AuditedSettings
from secure_kg.audit.records.report import Reported
from secure_kg.report.audit_attacks import attack_section
from secure_kg.report.audit_findings import checks, declared, findings, notes
from secure_kg.report.audit_ledger import ledger_section, traffic_section
from secure_kg.report.audit_sums import sums_section
from secure_kg.report.audit_verdict import verdict_box, verdict_cards
from secure_kg.report.audit_view import Upload, Words, view_section
from secure_kg.report.html import Html, document, quiet, section, table, tag


def audit_page(report: Reported, upload: Upload | None = None, clear_side: Words | None = None) -> str:
    """The page for `audit.json`.

    `upload`: rows of one client as the server received them. `clear_side`: the same before masks were added, encoded in
    the same layout, where the auditor was given it.
    """
    sections = [
        ("findings", "Findings", findings(report.findings)),
        ("declared", "What the server may learn by declaration", declared(report.may_learn)),
        ("checks", "Checks", checks(report.checks)),
        ("attacks", "Attacks", attack_section(report.attacks, report.attacks_not_tried)),
        ("view", "The server's view", view_section(upload, clear_side)),
        ("ledger", "Ledger: everything the server observed", ledger_section(report.ledger)),
        ("traffic", "Bytes by round", traffic_section(report.traffic)),
        ("sums", "Who took part in which sum", sums_section(report.sums, report.settings.clients)),
        ("notes", "What no audit can give", notes(report.notes)),
        ("settings", "Appendix: settings of the run", [_settings(report)]),
    ]
    title = f"Audit of {report.run}"
    return document(
        title,
        tag("h1", title),
        quiet(_subtitle(report.settings)),
        verdict_box(report),
        verdict_cards(report),
        _contents([(anchor, name) for anchor, name, _ in sections]),
        *(section(anchor, name, *content) for anchor, name, content in sections),
    )


def _subtitle(settings: AuditedSettings | AuditedScores) -> str:
    if isinstance(settings, AuditedScores):
        backends = ", ".join(settings.backends)
        return f"What the server observed: score queries by {backends}, {settings.adversary} adversary"
    return (
        f"What the server observed: {settings.strategy}, {settings.aggregation} sums, {settings.alignment} "
        f"alignment, {settings.adversary} adversary"
    )


def _contents(entries: list[tuple[str, str]]) -> Html:
    links = (tag("li", tag("a", name, href=f"#{anchor}")) for anchor, name in entries)
    return tag("nav", tag("ol", *links), aria_label="Contents")


def _settings(report: Reported) -> Html:
    written = {name: getattr(report.settings, name) for name in report.settings.__struct_fields__}
    body = [[name.replace("_", " "), _told(value)] for name, value in written.items()]
    return table(("setting", "value"), [*body, ["version of audit.json", str(report.version)]], "text")


def _told(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
