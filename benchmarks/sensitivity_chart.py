"""A chart of how small a leak the test of real against simulated views still sees, as an SVG file of its own."""

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from benchmarks.graded_controls import Curve, least_advantage_seen
from secure_kg.report.html import Html, join, tag

_Across: TypeAlias = Callable[[float], float]

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 40, 130
_LEAST, _MOST = 0.2, 1.0
_COLOURS: Final = ("#1f6feb", "#b35900", "#1a7f37", "#8250df", "#cf222e", "#57606a")
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#24292f}.grid{stroke:#d0d7de}.guess{stroke:#57606a}"
    ".best{stroke:#57606a;stroke-dasharray:2 3;fill:none}.needed{stroke:#cf222e;stroke-dasharray:6 4}"
)


def sensitivity_chart(curves: Sequence[Curve], samples: int) -> str:
    """Strength across, by halves; accuracy up, with the interval of each point."""
    smallest = min(point.strength for curve in curves for point in curve.points)
    judged = curves[0].points[0].found.judged
    needed = (1 + least_advantage_seen(judged)) / 2

    def x(strength: float) -> float:
        steps = math.log2(1 / smallest) or 1.0
        return _LEFT + 8 + math.log2(strength / smallest) / steps * (_WIDTH - _LEFT - _RIGHT - 24)

    parts = [tag("rect", width=str(_WIDTH), height=str(_HEIGHT), fill="#ffffff"), *_axes(smallest, x)]
    parts.append(_line("guess", _LEFT, _WIDTH - _RIGHT, _y(0.5), _y(0.5)))
    parts.append(_line("needed", _LEFT, _WIDTH - _RIGHT, _y(needed), _y(needed)))
    strengths = [smallest * 2 ** (step / 8) for step in range(round(8 * math.log2(1 / smallest)) + 1)]
    best = " ".join(f"{x(strength):.1f},{_y((1 + strength) / 2):.1f}" for strength in strengths)
    parts.append(tag("polyline", class_="best", points=best))
    for number, curve in enumerate(curves):
        parts.append(_drawn(curve, _COLOURS[number % len(_COLOURS)], 3 * (number - len(curves) / 2), x))
    title = f"Accuracy on leaks of known strength, {samples} samples of each kind"
    parts += [_text(title, _LEFT, 22), *_legend(curves, needed)]
    described = tag("title", title)
    return (
        tag(
            "svg",
            described,
            tag("style", Html(_STYLE)),
            join(parts),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
            role="img",
        )
        + "\n"
    )


def _axes(smallest: float, x: _Across) -> list[Html]:
    parts = []
    for tick in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        parts += [_line("grid", _LEFT, _WIDTH - _RIGHT, _y(tick), _y(tick)), _text(f"{tick:.1f}", 28, _y(tick) + 4)]
    for step in range(round(math.log2(1 / smallest)) + 1):
        strength = 2.0**-step
        parts.append(_text("1" if step == 0 else f"1/{2**step}", x(strength), _HEIGHT - _BOTTOM + 18, "middle"))
    return [*parts, _text("strength of the leak", (_LEFT + _WIDTH) / 2, _HEIGHT - _BOTTOM + 36, "middle")]


def _drawn(curve: Curve, colour: str, aside: float, x: _Across) -> Html:
    """Intervals stand a little beside each other, so that they can be told apart."""
    parts, placed = [], []
    for point in curve.points:
        at, found = x(point.strength) + aside, point.found
        placed.append(f"{at:.1f},{_y(found.accuracy):.1f}")
        ends = {"y1": f"{_y(found.lower):.1f}", "y2": f"{_y(found.upper):.1f}"}
        parts.append(tag("line", x1=f"{at:.1f}", x2=f"{at:.1f}", stroke=colour, stroke_opacity="0.5", **ends))
        told = tag("title", f"{curve.graded.name}, strength {point.strength:g}: {found.accuracy:.3f}, {found.verdict}")
        filled = colour if point.caught else "#ffffff"
        dot = {"cx": f"{at:.1f}", "cy": f"{_y(found.accuracy):.1f}", "r": "4", "fill": filled, "stroke": colour}
        parts.append(tag("circle", told, **dot))
    return tag("g", tag("polyline", points=" ".join(placed), fill="none", stroke=colour), *parts)


def _legend(curves: Sequence[Curve], needed: float) -> list[Html]:
    top, parts = _HEIGHT - _BOTTOM + 58, []
    for number, curve in enumerate(curves):
        at = top + 18 * (number // 2), _LEFT + 290 * (number % 2)
        parts.append(tag("rect", x=f"{at[1]}", y=f"{at[0] - 9}", width="10", height="10", fill=_COLOURS[number % 6]))
        parts.append(_text(curve.graded.name, at[1] + 16, at[0]))
    below = top + 18 * math.ceil(len(curves) / 2)
    said = (
        f"filled: told apart; red dashes: accuracy needed for that, {needed:.3f}; solid line at 0.5: guessing",
        "dots: what the best classifier there is reaches on leaks by sessions",
    )
    return [*parts, *(_text(line, _LEFT, below + 18 * number) for number, line in enumerate(said))]


def _y(accuracy: float) -> float:
    inside = min(max(accuracy, _LEAST), _MOST)
    return _HEIGHT - _BOTTOM - (inside - _LEAST) / (_MOST - _LEAST) * (_HEIGHT - _TOP - _BOTTOM)


def _line(style: str, x1: float, x2: float, y1: float, y2: float) -> Html:
    return tag("line", class_=style, x1=f"{x1:.1f}", x2=f"{x2:.1f}", y1=f"{y1:.1f}", y2=f"{y2:.1f}")


def _text(content: str, x: float, y: float, anchor: str = "start") -> Html:
    return tag("text", content, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)
