"""`attack.html`: who can tell which triples a client trains on, for people who answer for data."""

import math
from typing import Final

from secure_kg.audit.records.membership import MembershipOutcome, MembershipReport, MembershipSweep
from secure_kg.report.curves import curves, diagonal, level
from secure_kg.report.html import Html, bullets, cards, document, figure, quiet, section, table, tag

TITLES: Final = {
    "canaries": "Canaries: random triples, planted by a coin",
    "real": "Real members against held-out triples of the same degrees",
    "corrupted": "Members against the same with another tail",
    "attribution": "Attribution: whose is a canary?",
    "attribution, few holders": "Attribution where rows have few holders",
}
_TEXTS: Final = {
    "canaries": "The primary measure: nothing but training on a canary tells a planted one from one that was not.",
    "real": "Held-out triples are plausible, too. What is found here is what the client's model has learned by heart.",
    "corrupted": "Whoever predicts links well tells these apart without any access to the victim: read every figure "
    "beside that of the attacker alone.",
    "attribution": "Canaries of the victim against canaries of another client. An AUC of 0.5: the attacker may know "
    "that somebody trains on a triple, and does not know who. All names are held by all of them.",
    "attribution, few holders": "The same for canaries of the victim with an entity that the other client does not "
    "hold. A mean over few holders is close to the rows of one: no sum can hide that.",
}


def membership_page(report: MembershipReport) -> str:
    """The page for `attack.json`."""
    title = "Membership attacks"
    kinds = [kind for kind in TITLES if any(one.targets == kind for one in report.outcomes)]
    return document(
        title,
        tag("h1", title),
        quiet(report.about),
        cards(_cards(report)),
        *(section(kind, TITLES[kind], *_kind(report, kind)) for kind in kinds),
        section("notes", "How to read this", bullets(report.notes)),
        section("settings", "Settings", table(("setting", "value"), list(report.settings.items()), "text")),
    )


def _cards(report: MembershipReport) -> list[tuple[str, str]]:
    primary = "canaries" if any(one.targets == "canaries" for one in report.outcomes) else "real"
    best = [one for one in report.last if one.targets == primary and one.variant != "as printed"]
    figures = [(f"{one.auc:.3f}", f"AUC, {primary}: {one.name}") for one in best]
    if report.bound is not None:
        figures.append((f"{report.bound.auc:.3f}", f"the largest AUC at epsilon {report.bound.epsilon:g}"))
    return figures


def _kind(report: MembershipReport, kind: str) -> list[Html]:
    last = [one for one in report.last if one.targets == kind]
    head = ["attack", "victim", "AUC", "95 %", "TPR at 1 % FPR", "F1", "best F1", "always yes", "round", "targets"]
    rows = [_row(one) for one in last]
    if any(report.bound_of(one) is not None for one in last):
        head.insert(4, "bound")
        for row, one in zip(rows, last, strict=True):
            row.insert(4, "" if (most := report.bound_of(one)) is None else f"{most:.3f}")
    victims, words = sorted({one.victim for one in last}), _TEXTS[kind]
    if len(victims) == 1:
        words += f" The victim is client {victims[0]}."
        head.remove("victim")
        for row in rows:
            row.pop(1)
    content = [quiet(words), table(head, rows, "wide")]
    for victim in victims:
        of = f", client {victim}" if len(victims) > 1 else ""
        roc = [(one.name, one.roc) for one in last if one.victim == victim]
        drawn = curves(roc, "rate of false positives", "rate of true ones", x_range=(0, 1), chance=diagonal())
        charts = [figure(drawn, f"ROC curves after the last round{of}; dashed: guessing")]
        over = _over_rounds([one for one in report.outcomes if one.targets == kind and one.victim == victim])
        if over is not None:
            charts.append(figure(over, f"AUC by round{of}; dashed: guessing"))
        content.append(tag("div", *charts, class_="charts"))
    return content


def _over_rounds(outcomes: list[MembershipOutcome]) -> Html | None:
    lines: dict[str, list[tuple[float, float]]] = {}
    for one in outcomes:
        lines.setdefault(one.name, []).append((float(one.round), one.auc))
    lines = {name: sorted(points) for name, points in lines.items() if len(points) > 1}
    if not lines:
        return None
    last = max(x for points in lines.values() for x, _ in points)
    return curves(list(lines.items()), "round", "AUC", x_range=(0, last), chance=level(0.5))


def _row(one: MembershipOutcome) -> list[str]:
    return [
        one.name,
        str(one.victim),
        f"{one.auc:.3f}",
        f"{one.auc_low:.3f} - {one.auc_high:.3f}",
        f"{one.tpr_at_1_percent:.3f}",
        "" if one.f1 is None else f"{one.f1:.3f}",
        f"{one.best_f1:.3f}",
        f"{one.always_yes_f1:.3f}",
        str(one.round),
        f"{one.members} + {one.others}",
    ]


def sweep_page(sweep: MembershipSweep) -> str:
    """The page for `sweep.json`: canaries, the AUC of every attack by epsilon beside the largest that there can be."""
    title, reports = "Membership attacks by epsilon", sweep.reports
    names = list(dict.fromkeys(one.name for report in reports for one in _canaries(report)))
    head = ["attack", *(f"epsilon {_epsilon(report)}" for report in reports)]
    rows = [["bound", *("" if report.bound is None else f"{report.bound.auc:.3f}" for report in reports)]]
    rows += [
        [name, *(next((f"{one.auc:.3f}" for one in _canaries(report) if one.name == name), "") for report in reports)]
        for name in names
    ]
    private = [(math.log2(report.bound.epsilon), report) for report in reports if report.bound is not None]
    lines = [("bound", [(x, report.bound.auc) for x, report in private if report.bound is not None])]
    for name in names:
        points = [(x, one.auc) for x, report in private for one in _canaries(report) if one.name == name]
        lines.append((name, points))
    ends = (min(x for x, _ in private), max(x for x, _ in private)) if private else (0.0, 1.0)
    drawn = curves(lines, "logarithm of epsilon to base 2", "AUC", x_range=ends, chance=level(0.5))
    return document(
        title,
        tag("h1", title),
        quiet(sweep.about),
        section(
            "canaries",
            TITLES["canaries"],
            table(head, rows, "wide"),
            figure(drawn, "AUC by epsilon; dashed: guessing", "narrow"),
        ),
        section("notes", "How to read this", bullets(sweep.notes)),
    )


def _canaries(report: MembershipReport) -> list[MembershipOutcome]:
    return [one for one in report.last if one.targets == "canaries" and one.variant != "as printed"]


def _epsilon(report: MembershipReport) -> str:
    return "none" if report.bound is None else f"{report.bound.epsilon:g}"
