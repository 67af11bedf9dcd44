"""Markup for notebooks, which have a style sheet of their own: tables with their few styles inside them."""

from collections.abc import Sequence

from secure_kg.report.html import Html, tag

_LEFT, _RIGHT = "text-align:left;vertical-align:top", "text-align:right;vertical-align:top"


def plain_table(head: Sequence[str], body: Sequence[Sequence[str | int]], caption: str = "") -> Html:
    """Words to the left, whole numbers to the right with their thousands separated."""
    named = [tag("caption", caption, style="text-align:left;font-weight:600;color:inherit")] if caption else []
    columns = tag("thead", tag("tr", *(tag("th", cell, style=_LEFT) for cell in head)))
    lines = tag("tbody", *(tag("tr", *map(_cell, row)) for row in body))
    return tag("table", *named, columns, lines)


def _cell(value: str | int) -> Html:
    if isinstance(value, int):
        return tag("td", f"{value:,}", style=_RIGHT)
    return tag("td", value, style=_LEFT)
