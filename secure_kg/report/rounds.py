"""Bytes over rounds, as columns of a chart: what was received and sent, in megabytes."""

from collections.abc import Mapping, Sequence
from typing import Final

from secure_kg.runs.records.client_result import Evaluation
from secure_kg.runs.records.events import SetupCosts

Column = tuple[str, tuple[float, float]]
"""Which rounds, and their megabytes up and down."""
MOST_COLUMNS: Final = 120


def by_round(traffic: Mapping[str, Mapping[str, int]]) -> tuple[list[Column], int]:
    """Of `bytes_by_round`, and how many rounds are in one column: a run of thousands has too many for a screen."""
    rounds = sorted((int(number), sizes["up"] / 1e6, sizes["down"] / 1e6) for number, sizes in traffic.items())
    width = -(-len(rounds) // MOST_COLUMNS) or 1
    columns = []
    for start in range(0, len(rounds), width):
        part = rounds[start : start + width]
        name = str(part[0][0]) if len(part) == 1 else f"{part[0][0]}–{part[-1][0]}"
        columns.append((name, (sum(up for _, up, _ in part), sum(down for _, _, down in part))))
    return columns, width


def between_evaluations(evaluations: Sequence[Evaluation], setup: SetupCosts) -> list[Column]:
    """Of lines of `metrics.jsonl`, which count from the start: the mean per round since the evaluation before.

    `setup`: bytes before the first round, which belong to none.
    """
    columns: list[Column] = []
    last, up, down = 0, setup.bytes_up, setup.bytes_down
    for line in evaluations:
        if line.bytes_up is None or line.bytes_down is None or line.round <= last:
            continue
        rounds = line.round - last
        both = (line.bytes_up, up), (line.bytes_down, down)
        sizes = [max(size - before, 0) / rounds / 1e6 for size, before in both]
        columns.append((str(line.round), (sizes[0], sizes[1])))
        last, up, down = line.round, line.bytes_up, line.bytes_down
    return columns if len(columns) <= MOST_COLUMNS else _thinned(columns)


def _thinned(columns: Sequence[Column]) -> list[Column]:
    """Every so many of them as their mean, under the last one's name."""
    width = -(-len(columns) // MOST_COLUMNS)
    parts = [columns[start : start + width] for start in range(0, len(columns), width)]
    return [
        (
            part[-1][0],
            (sum(sizes[0] for _, sizes in part) / len(part), sum(sizes[1] for _, sizes in part) / len(part)),
        )
        for part in parts
    ]
