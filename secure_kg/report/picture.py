"""Pictures that need no page: charts and images side by side in one SVG, with the style sheet's colours inside it.

A notebook shows them, a file holds them, and a page may link to them. They have a light ground of their own.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from secure_kg.foundation.errors import UserError
from secure_kg.report.charts import CHART_SIZE, SERIES_COLOURS
from secure_kg.report.html import Html, tag
from secure_kg.report.png import Grey, data_address
from secure_kg.report.style import CHARTS, PALETTE, QUERIES
from secure_kg.runs.run_folder import write_whole

_EDGE: Final = 20.0
_LINE: Final = 18.0
_IN_A_ROW: Final = 2
_LETTER: Final = 7.3
"""Width of an average letter of 13 points, by which lines are broken."""
_OWN: Final = """\
.ground { fill: var(--paper); stroke: var(--edge); } .note { fill: var(--quiet); font-size: 13px; }
.title { fill: var(--ink); font-size: 17px; font-weight: 600; } .caption { fill: var(--ink); font-size: 14px; }
.picture { image-rendering: pixelated; }
"""
_CLASS: Final = "secure-kg"


def _scoped(rules: str) -> str:
    """The same rules for what is inside of a picture: a notebook puts pictures into its own page."""

    def inside(found: re.Match[str]) -> str:
        return ", ".join(f".{_CLASS} {selector.strip()}" for selector in found[1].split(",")) + " {"

    return re.sub(r"([^{}]+)\{", inside, " ".join(rules.split())).replace("} ", "}\n")


_STYLE: Final = f".{_CLASS} {{ {' '.join(PALETTE.split())} font-family: system-ui, sans-serif; }}\n" + _scoped(
    CHARTS + QUERIES + _OWN
)


@dataclass(frozen=True, slots=True)
class Panel:
    """One part of a picture."""

    caption: str
    content: Html
    width: float = CHART_SIZE[0]
    height: float = CHART_SIZE[1]
    names: tuple[str, ...] = ()
    """Of the series, in the order of their colours."""


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """An SVG by itself."""

    title: str
    width: float
    height: float
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file whose name ends in `.svg`; returns its path."""
        file = Path(path)
        if file.suffix.lower() != ".svg":
            raise UserError(f"{file}: a picture is an SVG, so its name must end in .svg")
        write_whole(file, self.svg.encode())
        return file

    def __repr__(self) -> str:
        return f"Picture({self.title}; {self.width:.0f} × {self.height:.0f}; .save('NAME.svg') writes it)"


def picture(title: str, panels: Sequence[Panel], note: str = "") -> Picture:
    """Panels below a title, two in a row; `note` stands at the foot, each of its lines broken as need be."""
    rows = [panels[start : start + _IN_A_ROW] for start in range(0, len(panels), _IN_A_ROW)]
    width = max(sum(panel.width + _EDGE for panel in row) for row in rows) + _EDGE
    parts, top = [_text("title", title, _EDGE, _EDGE + 12)], _EDGE + 22
    for row in rows:
        placed, top = _row(row, top)
        parts += placed
    foot = [line for one in note.splitlines() for line in textwrap.wrap(one, int((width - 2 * _EDGE) / _LETTER))]
    parts += [_text("note", line, _EDGE, top + _EDGE + _LINE * number) for number, line in enumerate(foot)]
    height = top + _EDGE + _LINE * len(foot)
    ground = tag("rect", class_="ground", x="0.5", y="0.5", width=f"{width - 1:g}", height=f"{height - 1:g}", rx="6")
    size = {"width": f"{width:g}", "height": f"{height:g}", "viewBox": f"0 0 {width:g} {height:g}"}
    style, space = tag("style", Html(_STYLE)), "http://www.w3.org/2000/svg"
    whole = tag("svg", style, ground, *parts, xmlns=space, class_=_CLASS, role="img", aria_label=title, **size)
    return Picture(title, width, height, whole + "\n")


def _row(panels: Sequence[Panel], top: float) -> tuple[list[Html], float]:
    """Panels from left to right, below `top`; and where they end."""
    captions = [textwrap.wrap(panel.caption, int(panel.width / _LETTER)) for panel in panels]
    parts, left, below = list[Html](), _EDGE, top + _LINE * max(map(len, captions)) + 8
    for panel, lines in zip(panels, captions, strict=True):
        parts += [_text("caption", line, left, top + 16 + _LINE * number) for number, line in enumerate(lines)]
        inside = {"x": f"{left:g}", "y": f"{below:g}", "width": f"{panel.width:g}", "height": f"{panel.height:g}"}
        parts.append(tag("svg", panel.content, **inside))
        parts += _names(panel.names, left, below + panel.height + 12)
        left += panel.width + _EDGE
    return parts, below + max(panel.height + _LINE * bool(panel.names) for panel in panels) + 4


def grey_panel(caption: str, grey: Grey, side: float = 300.0) -> Panel:
    """A grey picture as a panel, each point a square."""
    image = tag("image", class_="picture", href=data_address(grey), width=f"{side:g}", height=f"{side:g}")
    return Panel(caption, image, side, side)


def _names(names: Sequence[str], left: float, y: float) -> list[Html]:
    parts, x = list[Html](), left
    for number, name in enumerate(names):
        style = f"s{number % SERIES_COLOURS}"
        parts.append(tag("rect", class_=style, x=f"{x:g}", y=f"{y - 10:g}", width="11", height="11", rx="2"))
        parts.append(_text("note", name, x + 16, y))
        x += 16 + _LETTER * len(name) + 18
    return parts


def _text(style: str, words: str, x: float, y: float) -> Html:
    return tag("text", words, class_=style, x=f"{x:g}", y=f"{y:g}")
