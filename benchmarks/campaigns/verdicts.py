"""Verdicts: what rows say about a claim, in words that hold what the figures hold and no more."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.campaigns.rows import Row
from benchmarks.reproduction.estimates import T_975, t_975
from benchmarks.reproduction.table import ALL
from secure_kg.foundation.words import counted

Record = dict[str, Any]
_FEW_SEEDS: Final = 3


def verdicts(report: Record, rows: Sequence[Row]) -> Iterator[str]:
    """A sentence or two for each difference over all clients of a report (`benchmarks.reproduction.report.build`)."""
    for difference in report["differences"]:
        if difference["part"] == ALL:
            where = f"{difference['dataset']}/{difference['clients']}, {difference['model']}, {difference['claim']}"
            yield f"{where}: {_Difference.of(difference).verdict()}"
    if cut := [row for row in rows if row.stopped_early is False]:
        yield (
            f"{counted(len(cut), 'run')} of {len(rows)} came to the largest number of rounds before validation stopped "
            "getting better: longer ones may end elsewhere. "
            + "; ".join(f"{row.cell} (best round {row.best_round} of {row.rounds})" for row in cut)
        )


@dataclass(frozen=True, slots=True)
class _Difference:
    """Paired differences of one claim."""

    values: tuple[float, ...]
    mean: float
    half_width: float | None
    deviation: float | None
    paper: float | None

    @classmethod
    def of(cls, difference: Record) -> "_Difference":
        ours = difference["ours"]
        if ours is None:
            return cls((), 0.0, None, None, difference["paper"])
        interval = ours["interval_95"]
        half = None if interval is None else (interval[1] - interval[0]) / 2
        return cls(tuple(ours["values"]), ours["mean"], half, ours["standard_deviation"], difference["paper"])

    def verdict(self) -> str:
        if not self.values:
            return "not measured."
        if self.half_width is None:
            return f"{self.mean:+.4f} on one seed, which shows nothing but that it runs.{self._printed()}"
        seeds = f"{len(self.values)} paired seeds"
        told = f"{self.mean:+.4f} ± {self.half_width:.4f} (95 %, {seeds})"
        if abs(self.mean) > self.half_width:
            ahead = "ahead" if self.mean > 0 else "behind"
            text = f"{told}: {ahead}, and the interval does not hold 0; {self._agreement()}."
        else:
            low, high = self.mean - self.half_width, self.mean + self.half_width
            text = f"{told}: no difference is shown; one below {low:+.4f} or above {high:+.4f} is ruled out at 95 %. "
            text += f"{self._seeds_needed()}."
        return text + self._printed()

    def _agreement(self) -> str:
        same = sum((value > 0) == (self.mean > 0) for value in self.values)
        return f"{same} of {counted(len(self.values), 'seed')} have this sign"

    def _seeds_needed(self) -> str:
        """So many seeds of the same spread would tell this mean from 0."""
        if not self.mean or not self.deviation:
            return "The mean is 0"
        stayed = "If mean and spread stayed as they are"
        for seeds in range(len(self.values) + 1, len(T_975) + 2):
            if t_975(seeds - 1) * self.deviation / math.sqrt(seeds) < abs(self.mean):
                return f"{stayed}, {seeds} seeds would tell it from 0"
        return f"{stayed}, {len(T_975) + 1} seeds would not tell it from 0"

    def _printed(self) -> str:
        if self.paper is None:
            return ""
        if self.half_width is None:
            return f" The paper has {self.paper:+.4f}."
        inside = abs(self.paper - self.mean) <= self.half_width
        return f" The paper's {self.paper:+.4f} lies {'inside' if inside else 'outside'} the interval."
