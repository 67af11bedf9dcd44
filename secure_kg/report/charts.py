"""Small charts as inline SVG: a line over rounds, bars over names. Text and colours follow the page's style sheet."""

import math
from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 14, 34


def line_chart(points: Sequence[tuple[float, float]], x_label: str, y_label: str, mark: float | None = None) -> str:
    """`points` in ascending x; `mark` draws a dashed line at one x."""
    if not points:
        return "<p class='quiet'>no evaluations</p>"
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x_ticks, y_ticks = _ticks(min(0.0, *xs), max(xs)), _ticks(min(ys), max(ys))
    low_x, high_x, low_y, high_y = x_ticks[0], max(x_ticks[-1], max(xs)), y_ticks[0], y_ticks[-1]

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - low_x) / ((high_x - low_x) or 1)
        up = (y - low_y) / ((high_y - low_y) or 1)
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)

    parts = []
    for tick in y_ticks:
        _, y = place(low_x, tick)
        parts.append(f"<line class='grid' x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{y:.1f}' y2='{y:.1f}'/>")
        parts.append(f"<text class='tick' x='{_LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{tick:g}</text>")
    for tick in x_ticks:
        x, _ = place(tick, low_y)
        if x <= _WIDTH - _RIGHT + 1:
            parts.append(f"<text class='tick' x='{x:.1f}' y='{_HEIGHT - 16}' text-anchor='middle'>{tick:g}</text>")
    if mark is not None:
        x, _ = place(mark, low_y)
        parts.append(f"<line class='mark' x1='{x:.1f}' x2='{x:.1f}' y1='{_TOP}' y2='{_HEIGHT - _BOTTOM}'/>")
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
    parts.append(f"<polyline class='line' points='{path}'/>")
    parts += [f"<circle class='dot' cx='{x:.1f}' cy='{y:.1f}' r='2.5'/>" for x, y in (place(*p) for p in points)]
    middle = _LEFT + (_WIDTH - _LEFT - _RIGHT) / 2
    parts.append(f"<text class='tick' x='{middle}' y='{_HEIGHT - 2}' text-anchor='middle'>{escape(x_label)}</text>")
    return _svg(_WIDTH, _HEIGHT, f"{y_label} by {x_label}", parts)


def bar_chart(bars: Sequence[tuple[str, float]], unit: str) -> str:
    """Horizontal bars, one per name, with their values written beside them."""
    height = 26 * len(bars) + 6
    longest = max((value for _, value in bars), default=0.0) or 1.0
    parts = []
    for index, (name, value) in enumerate(bars):
        y = 26 * index + 4
        width = max(1.0, value / longest * (_WIDTH - 220))
        parts.append(f"<text class='tick' x='84' y='{y + 14}' text-anchor='end'>{escape(name)}</text>")
        parts.append(f"<rect class='bar' x='92' y='{y}' width='{width:.1f}' height='18' rx='2'/>")
        parts.append(f"<text class='tick' x='{98 + width:.1f}' y='{y + 14}'>{value:,.2f} {escape(unit)}</text>")
    return _svg(_WIDTH, height, "bars: " + ", ".join(name for name, _ in bars), parts)


def _svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    head = f"<svg viewBox='0 0 {width} {height}' role='img' aria-label='{escape(title, quote=True)}'>"
    return head + "".join(parts) + "</svg>"


def _ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers that cover low to high."""
    span = (high - low) or abs(high) or 1.0
    raw = span / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if raw <= power * factor * 1.000001)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]
