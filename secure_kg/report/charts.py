"""Small charts: lines and columns over rounds as inline SVG, bars over names. Colours follow the page's style sheet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from secure_kg.report.html import Html, join, quiet, tag

_WIDTH, _HEIGHT = 480, 230
CHART_SIZE: Final = (_WIDTH, _HEIGHT)
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 14, 46
SERIES_COLOURS: Final = 9
"""How many series the style sheet can tell apart."""


Series = tuple[str, Sequence[tuple[float, float]]]
"""A name, and its points in ascending x."""


def line_chart(points: Sequence[tuple[float, float]], x_label: str, y_label: str, mark: float | None = None) -> Html:
    """`points` in ascending x; `mark` draws a dashed line at one x."""
    if not points:
        return quiet("no evaluations")
    frame = _Frame.around([points])
    parts = [*frame.grid(), *([frame.mark(mark)] if mark is not None else [])]
    placed = [frame.place(*point) for point in points]
    parts.append(tag("polyline", class_="line", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)))
    parts += [tag("circle", class_="dot", cx=f"{x:.1f}", cy=f"{y:.1f}", r="2.5") for x, y in placed]
    return svg(_WIDTH, _HEIGHT, f"{y_label} by {x_label}", [*parts, _x_title(x_label)])


def series_chart(
    series: Sequence[Series], x_label: str, y_label: str, x_names: Sequence[tuple[float, str]] = ()
) -> Html:
    """Several lines in one chart, in the colours of the style sheet. `x_names`: ticks, in place of round numbers."""
    frame = _Frame.around([points for _, points in series], [at for at, _ in x_names])
    parts = frame.grid(x_names)
    for number, (name, points) in enumerate(series):
        placed = [frame.place(*point) for point in points]
        colour = f"fill:none;stroke:var(--s{number % SERIES_COLOURS});stroke-width:2"
        line = tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in placed), style=colour)
        style = f"s{number % SERIES_COLOURS}"
        dots = [tag("circle", class_=style, cx=f"{x:.1f}", cy=f"{y:.1f}", r="3.5") for x, y in placed]
        parts.append(tag("g", tag("title", name), line, *dots))
    return svg(_WIDTH, _HEIGHT, f"{y_label} by {x_label}", [*parts, _x_title(x_label)])


def lines_chart(series: Sequence[Series], x_label: str, y_label: str) -> Html:
    """The same with a legend; a series without points has no line."""
    drawn = [(name, points) for name, points in series if points]
    if not drawn:
        return quiet("no evaluations")
    names = [(name, f"s{number % SERIES_COLOURS}") for number, (name, _) in enumerate(drawn)]
    return tag("div", series_chart(drawn, x_label, y_label), legend(names))


@dataclass(frozen=True, slots=True)
class _Frame:
    """The plane of a line chart."""

    x_ticks: list[float]
    y_ticks: list[float]
    high_x: float

    @classmethod
    def around(cls, lines: Sequence[Sequence[tuple[float, float]]], x_ticks: Sequence[float] = ()) -> "_Frame":
        """The plane with room for all points. `x_ticks`: given ones; else round numbers from 0 on."""
        xs, ys = ([point[axis] for points in lines for point in points] for axis in (0, 1))
        ticks = sorted(x_ticks) or _ticks(min(0.0, *xs), max(xs))
        return cls(ticks, _ticks(min(ys), max(ys)), max(ticks[-1], max(xs)))

    def place(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x_ticks[0]) / ((self.high_x - self.x_ticks[0]) or 1)
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _height_of(y, self.y_ticks[0], self.y_ticks[-1])

    def grid(self, x_names: Sequence[tuple[float, str]] = ()) -> list[Html]:
        parts = _grid(self.y_ticks)
        for tick, name in x_names or [(tick, f"{tick:g}") for tick in self.x_ticks]:
            x, _ = self.place(tick, self.y_ticks[0])
            if x <= _WIDTH - _RIGHT + 1:
                parts.append(_text(name, x, _HEIGHT - 26, "middle"))
        return parts

    def mark(self, at: float) -> Html:
        x, _ = self.place(at, self.y_ticks[0])
        return _line("mark", x, x, _TOP, _HEIGHT - _BOTTOM)


def column_chart(
    columns: Sequence[tuple[str, Sequence[float]]], series: Sequence[str], unit: str, x_label: str
) -> Html:
    """One column per name, the values of the series on top of each other in their order; below it their names."""
    if not columns:
        return quiet("nothing to show")
    names = legend([(name, f"s{number}") for number, name in enumerate(series)])
    return tag("div", bare_columns(columns, series, unit, x_label), names)


def bare_columns(
    columns: Sequence[tuple[str, Sequence[float]]], series: Sequence[str], unit: str, x_label: str
) -> Html:
    """The same without the names of the series. At least one column."""
    y_ticks = _ticks(0.0, max(sum(values) for _, values in columns))
    step = (_WIDTH - _LEFT - _RIGHT) / len(columns)
    longest = max(len(name) for name, _ in columns)
    wide = min(step * 0.8, 48.0)
    every = max(1, math.ceil(longest * 11 / step))
    parts = _grid(y_ticks)
    for index, (name, values) in enumerate(columns):
        left, base = _LEFT + index * step, 0.0
        shapes = []
        for number, value in enumerate(values):
            low, high = _height_of(base, 0, y_ticks[-1]), _height_of(base + value, 0, y_ticks[-1])
            shapes.append(
                tag(
                    "rect",
                    class_=f"s{number % SERIES_COLOURS}",
                    x=f"{left + (step - wide) / 2:.1f}",
                    y=f"{high:.1f}",
                    width=f"{wide:.1f}",
                    height=f"{low - high:.1f}",
                )
            )
            base += value
        told = ", ".join(f"{value:,.3g} {unit} {what}" for what, value in zip(series, values, strict=True))
        parts.append(tag("g", tag("title", f"{x_label} {name}: {told}"), *shapes))
        if index % every == 0:
            parts.append(_text(name, left + step / 2, _HEIGHT - 26, "middle"))
    return svg(_WIDTH, _HEIGHT, f"{unit} by {x_label}: {', '.join(series)}", [*parts, _x_title(x_label)])


def bar_chart(bars: Sequence[tuple[str, float]], unit: str) -> Html:
    """Horizontal bars, one per name, with their values written beside them."""
    return stacked_bars([(name, [("s0", value)]) for name, value in bars], unit)


def stacked_bars(bars: Sequence[tuple[str, Sequence[tuple[str, float]]]], unit: str) -> Html:
    """One bar per name, of parts with the colour of a style; the sum is written beside it."""
    totals = [sum(value for _, value in parts) for _, parts in bars]
    longest = max(totals, default=0.0) or 1.0
    lines = [
        line
        for (name, parts), total in zip(bars, totals, strict=True)
        for line in _bar(name, parts, total, longest, unit)
    ]
    return tag("div", tag("dl", *lines), class_="bars")


def share_bar(parts: Sequence[tuple[str, float]]) -> Html:
    """One bar over the whole width, divided as the parts are; styles and values."""
    total = sum(value for _, value in parts) or 1.0
    return tag(
        "div", *(_segment(style, value / total) for style, value in parts if value), class_="bar", aria_hidden="true"
    )


def legend(entries: Sequence[tuple[str, str]]) -> Html:
    """Names with the styles that colour them."""
    return tag("ul", *(tag("li", tag("i", class_=style), name) for name, style in entries), class_="legend")


def histogram(counts: Sequence[int], label: str, low: str, high: str) -> Html:
    """How often each of many values occurs, from `low` to `high`."""
    width, height = 384, 80
    step, most = width / max(len(counts), 1), max(counts, default=0) or 1
    shapes = [
        tag("rect", class_="s0", x=f"{step * index:.1f}", y=f"{height - height * count / most:.1f}",
            width=f"{step:.1f}", height=f"{height * count / most:.1f}")
        for index, count in enumerate(counts)
    ]  # fmt: skip
    axis = _line("grid", 0, width, height, height)
    return svg(
        width,
        height + 24,
        label,
        [*shapes, axis, _text(low, 0, height + 16, "start"), _text(high, width, height + 16, "end")],
    )


def _bar(name: str, parts: Sequence[tuple[str, float]], total: float, longest: float, unit: str) -> list[Html]:
    whole = total or 1.0
    inside = [_segment(style, value / whole) for style, value in parts if value]
    bar = tag("div", *inside, class_="bar", style=f"width:{100 * total / longest:.2f}%", aria_hidden="true")
    return [tag("dt", name), tag("dd", bar), tag("dd", f"{total:,.2f} {unit}")]


def _segment(style: str, share: float) -> Html:
    return tag("i", class_=style, style=f"width:{100 * share:.2f}%")


def _height_of(y: float, low: float, high: float) -> float:
    return _HEIGHT - _BOTTOM - (y - low) / ((high - low) or 1) * (_HEIGHT - _TOP - _BOTTOM)


def _grid(ticks: Sequence[float]) -> list[Html]:
    parts = []
    for tick in ticks:
        y = _height_of(tick, ticks[0], ticks[-1])
        parts += [_line("grid", _LEFT, _WIDTH - _RIGHT, y, y), _text(f"{tick:g}", _LEFT - 6, y + 4, "end")]
    return parts


def _line(style: str, x1: float, x2: float, y1: float, y2: float) -> Html:
    return tag("line", class_=style, x1=f"{x1:.1f}", x2=f"{x2:.1f}", y1=f"{y1:.1f}", y2=f"{y2:.1f}")


def _text(content: str, x: float, y: float, anchor: str) -> Html:
    return tag("text", content, class_="tick", x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def _x_title(label: str) -> Html:
    return _text(label, _LEFT + (_WIDTH - _LEFT - _RIGHT) / 2, _HEIGHT - 6, "middle")


def svg(width: float, height: float, title: str, parts: Sequence[Html]) -> Html:
    """A picture as wide as there is room. `title` is read out in its place."""
    return tag("svg", join(parts), viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=title)


def _ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers that cover low to high."""
    span = (high - low) or abs(high) or 1.0
    raw = span / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if raw <= power * factor * 1.000001)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]
