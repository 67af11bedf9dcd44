"""The figure of docs/scale.md: seconds of a client and of the server against clients, both axes by powers of ten."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from secure_kg.report.html import Html, join, tag

_WIDTH, _HEIGHT = 640, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 40, 120
_COLOURS: Final = ("#2563a8", "#2a9d8f", "#d98a1f", "#8e5bbf", "#c0453b")
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1d2433}.grid{stroke:#d8dde6}polyline{fill:none;stroke-width:2}"
    ".dashed{stroke-dasharray:6 4}"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of (clients, seconds); `dots` are measured points beside it."""

    name: str
    points: Sequence[tuple[float, float]]
    dots: Sequence[tuple[float, float]] = ()
    dashed: bool = False


def chart(title: str, lines: Sequence[Line]) -> str:
    """A picture that needs nothing else."""
    places = [point for line in lines for point in (*line.points, *line.dots)]
    low_x, high_x = (math.log10(pick(x for x, _ in places)) for pick in (min, max))
    low_y, high_y = math.floor(_least(places)), math.ceil(_most(places))

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low_x) / ((high_x - low_x) or 1)
        up = (math.log10(y) - low_y) / ((high_y - low_y) or 1)
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)

    parts = [tag("rect", width=str(_WIDTH), height=str(_HEIGHT), fill="#ffffff")]
    for power in range(low_y, high_y + 1):
        _, y = at(10.0**low_x, 10.0**power)
        grid = {"x1": f"{_LEFT}", "x2": f"{_WIDTH - _RIGHT}", "y1": f"{y:.1f}", "y2": f"{y:.1f}"}
        parts += [tag("line", class_="grid", **grid), _text(f"{10.0**power:g} s", _LEFT - 8, y + 4, "end")]
    for clients in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000):
        if low_x - 1e-9 <= math.log10(clients) <= high_x + 1e-9:
            parts.append(_text(f"{clients:,}", at(clients, 10.0**low_y)[0], _HEIGHT - _BOTTOM + 18, "middle"))
    parts.append(_text("clients", (_LEFT + _WIDTH) / 2, _HEIGHT - _BOTTOM + 36, "middle"))
    for number, line in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        placed = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line.points))
        parts.append(tag("polyline", points=placed, stroke=colour, class_="dashed" if line.dashed else None))
        for x, y in (at(*point) for point in line.dots):
            parts.append(tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="4", fill=colour))
        left, top = _LEFT + 280 * (number % 2), _HEIGHT - _BOTTOM + 62 + 18 * (number // 2)
        parts += [tag("rect", x=f"{left}", y=f"{top - 9}", width="10", height="10", fill=colour),
                  _text(line.name, left + 16, top)]  # fmt: skip
    parts.append(_text(title, _LEFT, 22))
    described = [tag("title", title), tag("style", Html(_STYLE)), join(parts)]
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    return tag("svg", *described, xmlns="http://www.w3.org/2000/svg", viewBox=box, role="img") + "\n"


def _least(places: Sequence[tuple[float, float]]) -> float:
    return math.log10(min(y for _, y in places))


def _most(places: Sequence[tuple[float, float]]) -> float:
    return math.log10(max(y for _, y in places))


def _text(content: str, x: float, y: float, anchor: str = "start") -> Html:
    return tag("text", content, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)
