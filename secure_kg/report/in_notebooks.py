"""Markup for notebooks, which have a style sheet of their own: tables with their few styles inside them."""

from collections.abc import Sequence

from secure_kg.report.html import Html, tag

_CELL = "padding:.2em .7em;vertical-align:top;text-align:"


def plain_table(head: Sequence[str], body: Sequence[Sequence[str | int]], caption: str = "") -> Html:
    """Words to the left; columns of numbers to the right, whole ones with their thousands separated."""
    sides = ["right" if body and all(_is_number(row[place]) for row in body) else "left" for place in range(len(head))]
    named = [tag("caption", caption, style="text-align:left;font-weight:600;color:inherit")] if caption else []
    columns = tag("thead", tag("tr", *(_cell("th", cell, side) for cell, side in zip(head, sides, strict=True))))
    lines = (tag("tr", *(_cell("td", cell, side) for cell, side in zip(row, sides, strict=True))) for row in body)
    return tag("table", *named, columns, tag("tbody", *lines))


def _cell(kind: str, value: str | int, side: str) -> Html:
    return tag(kind, f"{value:,}" if isinstance(value, int) else value, style=_CELL + side)


def _is_number(value: str | int) -> bool:
    return isinstance(value, int) or value.replace(".", "", 1).isdigit()
