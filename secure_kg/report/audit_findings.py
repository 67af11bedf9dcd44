"""Findings, what the server may learn, checks and standing notes of an audit."""

from collections.abc import Sequence
from typing import Final

from secure_kg.audit.records.parts import CheckRecord, Finding, Note
from secure_kg.foundation.words import counted
from secure_kg.report.html import Html, bullets, chip, details, join, prose, quiet, stacked_table, tag

_ORDER: Final = ("high", "medium", "low", "info")
_STATUS: Final = {
    "passed": ("✓ passed", "yes"),
    "failed": ("✗ failed", "no"),
    "nothing to check": ("– nothing to check", ""),
}


def findings(found: Sequence[Finding]) -> list[Html]:
    """Worst first."""
    if not found:
        return [tag("p", "Nothing was found.")]
    ordered = sorted(found, key=lambda one: _ORDER.index(one.severity))
    firsts = {one.id: number for number, one in reversed(list(enumerate(ordered)))}
    return [_finding(one, first=firsts[one.id] == number) for number, one in enumerate(ordered)]


def _finding(one: Finding, first: bool) -> Html:
    """Checks point at the first finding of a kind."""
    evidence = details(f"Evidence ({counted(len(one.evidence), 'observation')})", bullets(one.evidence))
    return tag(
        "article",
        chip(one.severity, one.severity),
        tag("h3", one.title),
        tag("p", prose(one.explanation)),
        *([evidence] if one.evidence else []),
        class_=f"finding {one.severity}",
        id=_anchor(one.id) if first else None,
    )


def declared(may_learn: Sequence[str]) -> list[Html]:
    if not may_learn:
        return [quiet("Nothing at all.")]
    return [tag("p", "By the settings of this run, the protocols mean the server to learn:"), bullets(may_learn)]


def checks(done: Sequence[CheckRecord]) -> list[Html]:
    if not done:
        return [quiet("No check was made.")]
    body = [
        [
            one.question,
            chip(*_STATUS.get(one.status, (one.status, ""))),
            one.looked_at,
            _links(one.findings),
        ]
        for one in done
    ]
    head = ("question", "result", "looked at", "findings")
    return [stacked_table(head, body, "A check has passed if it had something to look at and its answer is no.")]


def _links(ids: Sequence[str]) -> Html:
    return join((tag("a", name, href=f"#{_anchor(name)}") for name in dict.fromkeys(ids)), ", ")


def _anchor(finding: str) -> str:
    return f"finding-{finding}"


def notes(standing: Sequence[Note]) -> list[Html]:
    return [part for note in standing for part in (tag("h3", note.title), tag("p", prose(note.text)))]
