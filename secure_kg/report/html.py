"""Markup that cannot be injected: text is escaped where it meets markup, and every element that is opened is closed."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from secure_kg.foundation.visible import visible
from secure_kg.report.style import STYLE

_VOID: Final = frozenset({"img", "meta", "wbr"})
_CARDS_IN_LINE: Final = 6


class Html(str):
    """Markup already. Any other string is text."""

    __slots__ = ()


def markup(content: str) -> Html:
    """Text as markup; markup as it is."""
    return content if isinstance(content, Html) else Html(escape(visible(content), quote=True))


def join(parts: Iterable[str], between: str = "") -> Html:
    return Html(str(markup(between)).join(str(markup(part)) for part in parts))


def tag(name: str, /, *content: str, **attributes: str | None) -> Html:
    """One element. `class_` is the attribute `class`, and `aria_label` is `aria-label`; None leaves one out."""
    pairs = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    # Inside an attribute markup is text as well.
    head = name + "".join(f" {key}='{escape(visible(str(value)), quote=True)}'" for key, value in pairs)
    return Html(f"<{head}>" if name in _VOID else f"<{head}>{join(content)}</{name}>")


def document(title: str, *content: str, more: Sequence[Html] = (), style: Html | None = None) -> str:
    """A whole page. `more`: what else its head has; `style`: an element in place of the usual style sheet."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        style if style is not None else tag("style", Html(STYLE)),
        *more,
    )
    return "<!doctype html>" + tag("html", head, tag("body", tag("main", *content)), lang="en") + "\n"


def section(anchor: str, title: str, *content: str) -> Html:
    return tag("section", tag("h2", title), *content, id=anchor)


def quiet(text: str) -> Html:
    return tag("p", text, class_="quiet")


def prose(text: str) -> Html:
    """Text in which options of commands (--out) stand as code and do not break."""
    parts = re.split(r"(?<![\w-])(--[a-z][a-z-]*)", text)
    return join(tag("code", part, class_="option") if number % 2 else part for number, part in enumerate(parts))


def cards(entries: Sequence[tuple[str, str]]) -> Html:
    """Figures with what they are, each in a frame. On a wide screen more than six stand in two lines of like length."""
    in_line = len(entries) if len(entries) <= _CARDS_IN_LINE else -(-len(entries) // 2)
    return tag(
        "div",
        *(tag("div", tag("b", value), tag("span", label), class_="card") for value, label in entries),
        class_="cards",
        style=f"--in-line:{in_line}",
    )


def figure(content: str, caption: str, style: str | None = None) -> Html:
    return tag("figure", content, tag("figcaption", prose(caption)), class_=style)


def details(title: str, *content: str, opened: bool = False) -> Html:
    return tag("details", tag("summary", title), *content, open="" if opened else None)


def bullets(lines: Iterable[str]) -> Html:
    return tag("ul", *(tag("li", line) for line in lines))


def chip(text: str, style: str) -> Html:
    """A word on a ground of its own colour."""
    return tag("span", text, class_=f"chip {style}")


def table(head: Sequence[str], body: Iterable[Sequence[str]], style: str = "", caption: str = "") -> Html:
    """Figures by default; `text` for words. It scrolls by itself where the page is narrower."""
    columns = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))
    lines = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in body))
    named = [tag("caption", caption)] if caption else []
    return tag("div", tag("table", *named, columns, lines, class_=style or None), class_="scroll")


def stacked_table(head: Sequence[str], body: Iterable[Sequence[str]], caption: str = "") -> Html:
    """A table that becomes one block per line on a narrow screen, each cell with its column's name before it."""
    # The roles say what the elements are anyway; with `display: block` some readers forget it.
    columns = tag("tr", *(tag("th", cell, scope="col", role="columnheader") for cell in head), role="row")
    lines = (
        tag(
            "tr",
            *(tag("td", cell, role="cell", data_label=name) for name, cell in zip(head, row, strict=True)),
            role="row",
        )
        for row in body
    )
    return tag(
        "table",
        *([tag("caption", caption)] if caption else []),
        tag("thead", columns, role="rowgroup"),
        tag("tbody", *lines, role="rowgroup"),
        class_="text stack",
        role="table",
    )


def megabytes(number: float) -> str:
    """With as many digits as it needs to be told from zero."""
    size = number / 1e6
    return f"{size:,.1f} MB" if size >= 10 else f"{size:.2f} MB" if size >= 0.1 else _kilobytes(number)


def _kilobytes(number: float) -> str:
    return f"{number / 1e3:.1f} kB" if number >= 1e3 else f"{number:.0f} B"
