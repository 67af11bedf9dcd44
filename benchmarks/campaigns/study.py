"""A study: rows of a campaign looked at together, as a table, pictures and sentences."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.campaigns.rows import Point, Row
from benchmarks.reproduction.estimates import estimate
from benchmarks.reproduction.table import TITLES
from secure_kg.report.charts import Series, series_chart
from secure_kg.report.picture import Panel


@dataclass(frozen=True, slots=True)
class Look:
    """What a study shows."""

    columns: list[str]
    rows: list[list[str]]
    panels: list[Panel] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Study:
    """One figure of a paper, or some that belong together."""

    title: str
    place: str
    """Where the paper has it."""
    entries: tuple[str, ...]
    """Of the queue."""
    look: Callable[[Sequence[Row]], Look]


def lines_panel(
    caption: str, lines: Sequence[Series], x_label: str, y_label: str, *, powers: bool = False
) -> Panel | None:
    """None where no line has two points. `powers`: x is a logarithm to base 10, and the axis says of what."""
    drawn = [(name, points) for name, points in lines if len(points) > 1]
    if not drawn:
        return None
    names = tuple(name for name, _ in drawn)
    chart = series_chart(drawn, x_label, y_label, _powers_of_ten(drawn) if powers else ())
    return Panel(f"{caption}: {y_label} by {x_label}", chart, names=names)


def _powers_of_ten(lines: Sequence[Series]) -> list[tuple[float, str]]:
    """Ticks around all points."""
    logarithms = [at for _, points in lines for at, _ in points]
    whole = range(math.floor(min(logarithms)), math.ceil(max(logarithms)) + 1)
    return [(float(power), f"{10.0**power:g}" if power < 3 else f"{10.0 ** (power - 3):g}k") for power in whole]


def curve(row: Row, value: Callable[[Point], float | None]) -> list[tuple[float, float]]:
    """One figure of a row by round. FedR and FedE train nothing in round 1, so nothing can be seen there."""
    found = [(float(point.round), value(point)) for point in row.curve if point.round > 1]
    return [(at, figure) for at, figure in found if figure is not None]


def groups(rows: Sequence[Row]) -> dict[tuple[str, int, str], list[Row]]:
    """By data set, clients and model, in the order in which they come."""
    found: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.dataset, row.clients, row.model), []).append(row)
    return found


def of_strategy(rows: Sequence[Row], strategy: str) -> list[Row]:
    """In the order of their seeds."""
    return sorted((row for row in rows if row.strategy == strategy), key=lambda row: row.seed)


def mean_text(values: Sequence[float], digits: int = 4) -> str:
    """The mean over seeds with its 95 % interval."""
    found = estimate(values)
    if found is None:
        return "–"
    text = f"{found.mean:,.{digits}f}"
    return text if found.half_width is None else f"{text} ± {found.half_width:,.{digits}f}"


def title_of(strategy: str) -> str:
    return TITLES[strategy]
