"""Several curves in one chart: ROC curves, and figures over rounds."""

from collections.abc import Sequence
from typing import Final

from secure_kg.report.charts import SERIES_COLOURS, legend, svg
from secure_kg.report.html import Html, quiet, tag

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 480, 300, 52, 46, 12
_STEPS: Final = 5

Curve = tuple[str, Sequence[tuple[float, float]]]
"""A name, and its points in ascending x."""


def curves(lines: Sequence[Curve], x_label: str, y_label: str, *, x_range: tuple[float, float], chance: Html) -> Html:
    """Curves whose y lies between 0 and 1. `chance`: where guessing stands, drawn by `diagonal` or `level`."""
    if not lines:
        return quiet("nothing to show")
    parts = [chance]
    for step in range(_STEPS + 1):
        y = step / _STEPS
        x = x_range[0] + y * (x_range[1] - x_range[0])
        left, down = _place(x, y, x_range)
        parts.append(_line("grid", (_LEFT, down), (_WIDTH - _EDGE, down)))
        parts.append(tag("text", f"{y:.1f}", class_="tick", x=str(_LEFT - 6), y=f"{down + 4:.1f}", text_anchor="end"))
        words = f"{x:.3g}"
        parts.append(
            tag("text", words, class_="tick", x=f"{left:.1f}", y=str(_HEIGHT - 26), text_anchor="middle")
        )
    for number, (_, points) in enumerate(lines):
        placed = [_place(x, y, x_range) for x, y in points]
        colour = f"fill:none;stroke:var(--s{number % SERIES_COLOURS});stroke-width:2"
        parts.append(tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in placed), style=colour))
        if len(placed) <= 2 * _STEPS:
            parts += [
                tag("circle", class_=f"s{number % SERIES_COLOURS}", cx=f"{x:.1f}", cy=f"{y:.1f}", r="3")
                for x, y in placed
            ]
    middle = (_LEFT + _WIDTH - _EDGE) / 2
    parts.append(tag("text", x_label, class_="tick", x=f"{middle:.0f}", y=str(_HEIGHT - 6), text_anchor="middle"))
    names = legend([(name, f"s{number % SERIES_COLOURS}") for number, (name, _) in enumerate(lines)])
    return tag("div", svg(_WIDTH, _HEIGHT, f"{y_label} by {x_label}", parts), names)


def diagonal() -> Html:
    """The ROC curve of guessing."""
    return _line("mark", _place(0, 0, (0, 1)), _place(1, 1, (0, 1)))


def level(y: float) -> Html:
    """The same figure in every round."""
    return _line("mark", _place(0, y, (0, 1)), _place(1, y, (0, 1)))


def _place(x: float, y: float, x_range: tuple[float, float]) -> tuple[float, float]:
    low, high = x_range
    across = (x - low) / ((high - low) or 1)
    down = _HEIGHT - _BOTTOM - y * (_HEIGHT - _BOTTOM - _EDGE)
    return _LEFT + across * (_WIDTH - _LEFT - _EDGE), down


def _line(style: str, start: tuple[float, float], end: tuple[float, float]) -> Html:
    (x1, y1), (x2, y2) = start, end
    return tag("line", class_=style, x1=f"{x1:.1f}", x2=f"{x2:.1f}", y1=f"{y1:.1f}", y2=f"{y2:.1f}")
