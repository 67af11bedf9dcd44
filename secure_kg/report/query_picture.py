"""A query as an inline SVG: entities on the left, the target on the right, arrows in the direction of the relations.

A relation with an arrow to the left leads from the variable that is looked for to one that is nearer to the entities.
Names may be anything that somebody wrote: long ones are cut, and stand in full in the title of their element.
"""

import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from secure_kg.queries.form import NamedQuery, relations
from secure_kg.report.charts import svg
from secure_kg.report.html import Html, quiet, tag
from secure_kg.report.query_graph import Link, Spot, query_graph

MOST_DRAWN: Final = 40
"""Atoms of a query that is drawn. A larger one would be a picture that nobody reads."""
LONGEST_NAME: Final = 26
"""Characters that a name has in the picture."""
_CHARACTER: Final = 7.9
"""Width of one in the style sheet's font for pictures, in which all are alike."""
_ROW: Final = 52.0
_HALF: Final = 15.0
"""Half of the height of a spot."""
_MARGIN: Final = 6.0
_BEND: Final = 46.0
"""Width in which a link comes from its own row to that of its end."""
_PLAIN: Final = 18.0
"""Width of a link without a name before it bends."""
_HEAD: Final = (11.0, 4.5)
"""Length of an arrow's head, and half of its width."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A spot with its middle, and half of its width."""

    spot: Spot
    x: float
    y: float
    half: float
    links: tuple[tuple[Link, "_Placed"], ...]


def query_picture(query: NamedQuery) -> Html:
    """It keeps its size where there is room, becomes a little smaller where there is less, and then scrolls."""
    atoms = len(relations(query))
    if atoms > MOST_DRAWN:
        return quiet(f"A question of {atoms:,} atoms is too large to be drawn.")
    picture, (width, _) = bare_query_picture(query)
    sized = tag("div", picture, style=f"max-width:{width:.0f}px;min-width:{0.7 * width:.0f}px")
    return tag("div", sized, class_="scroll query")


def bare_query_picture(query: NamedQuery) -> tuple[Html, tuple[float, float]]:
    """The SVG by itself, whatever its size, and its width and height."""
    atoms = len(relations(query))
    root = query_graph(query)
    columns = _columns(root)
    width, height = columns[0] + _half_width(root) + _MARGIN, _rows(root) * _ROW + 2 * _MARGIN
    placed = _place(root, columns, 0, _MARGIN)
    label = f"the question as a graph of {atoms} atom{'s' if atoms != 1 else ''}"
    return svg(width, height, label, [*_links(placed), *_spots(placed)]), (width, height)


def _shown(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _width(text: str) -> float:
    return _CHARACTER * sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def _label(spot: Spot) -> str:
    return spot.kind if spot.kind in ("and", "or", "not") else _shown(spot.name)


def _half_width(spot: Spot) -> float:
    return max(_HALF, _width(_label(spot)) / 2 + 9)


def _length(link: Link) -> float:
    """Of the part with the name."""
    return _width(_shown(link.relation)) + 2 * _HEAD[0] if link.relation else _PLAIN


def _rows(spot: Spot) -> int:
    return max(1, sum(_rows(link.source) for link in spot.links))


def _columns(root: Spot) -> list[float]:
    """The middles of all columns, the target's first."""
    levels = [[root]]
    while below := [link.source for spot in levels[-1] for link in spot.links]:
        levels.append(below)
    halves = [max(map(_half_width, level)) for level in levels]
    lengths = [max(_length(link) for spot in level for link in spot.links) + _BEND for level in levels[:-1]]
    middles = [_MARGIN + halves[-1]]
    for half, right, length in zip(reversed(halves[1:]), reversed(halves[:-1]), reversed(lengths), strict=True):
        middles.append(middles[-1] + half + length + right)
    return middles[::-1]


def _place(spot: Spot, columns: list[float], depth: int, top: float) -> _Placed:
    """Every spot stands in the middle of those that lead to it."""
    links, below = [], top
    for link in spot.links:
        links.append((link, _place(link.source, columns, depth + 1, below)))
        below += _rows(link.source) * _ROW
    y = (links[0][1].y + links[-1][1].y) / 2 if links else top + _ROW / 2
    return _Placed(spot, columns[depth], y, _half_width(spot), tuple(links))


def _spots(placed: _Placed) -> Iterator[Html]:
    spot, half = placed.spot, placed.half
    radius = 4.0 if spot.kind == "entity" else _HALF
    yield tag(
        "g",
        tag("title", _title(spot)),
        _box(placed, half, _HALF, radius),
        *([_box(placed, half - 3, _HALF - 3, radius - 3)] if spot.kind == "target" else []),
        _text(_label(spot), placed.x, placed.y + 4.5),
        class_=f"spot {spot.kind}",
    )
    for _, source in placed.links:
        yield from _spots(source)


def _title(spot: Spot) -> str:
    match spot.kind:
        case "target":
            return f"{spot.name}: the answers"
        case "and":
            return f"{spot.name}: all of these hold"
        case "or":
            return f"{spot.name}: at least one of these holds"
        case "not":
            return f"{spot.name}: this does not hold"
        case _:
            return spot.name


def _box(placed: _Placed, half: float, high: float, radius: float) -> Html:
    return tag("rect", x=f"{placed.x - half:.1f}", y=f"{placed.y - high:.1f}", width=f"{2 * half:.1f}",
               height=f"{2 * high:.1f}", rx=f"{radius:g}")  # fmt: skip


def _links(placed: _Placed) -> Iterator[Html]:
    for link, source in placed.links:
        yield _drawn(link, source, placed)
        yield from _links(source)


def _drawn(link: Link, source: _Placed, end: _Placed) -> Html:
    """Straight from the source in its own row, under its name, and then to the middle of the end's round left side."""
    start = source.x + source.half
    bend = end.x - end.half - _BEND
    centre = end.x - end.half + _HALF
    angle = math.atan2(end.y - source.y, centre - bend)
    tip = centre - _HALF * math.cos(angle), end.y - _HALF * math.sin(angle)
    path = f"M{start:.1f},{source.y:.1f} H{bend:.1f} L{tip[0]:.1f},{tip[1]:.1f}"
    parts = [tag("path", d=path)]
    if link.relation:
        head = _head(start, source.y, math.pi) if link.inverse else _head(*tip, angle)
        parts = [tag("title", link.atom), *parts, head]
    named = _shown(link.relation) if link.relation else "=" if source.spot.kind == "entity" else ""
    if named:
        straight = end.y == source.y
        parts.append(_text(named, (start + (tip[0] if straight else bend)) / 2, source.y - 7))
    style = "atom" if link.relation else "join"
    return tag("g", *parts, class_=f"{style} negated" if link.negated else style)


def _head(x: float, y: float, angle: float) -> Html:
    """An arrow's head whose tip is at x, y."""
    length, half = _HEAD
    across, down = math.cos(angle), math.sin(angle)
    left, low = x - length * across, y - length * down
    corners = (x, y), (left - half * down, low + half * across), (left + half * down, low - half * across)
    return tag("polygon", points=" ".join(f"{at[0]:.1f},{at[1]:.1f}" for at in corners))


def _text(content: str, x: float, y: float) -> Html:
    return tag("text", content, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor="middle")
