"""FedR's figures: communication (Figure 3, section 4.3), hit rates (Figure 2), training loss (Figure 4)."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.campaigns.rows import Point, Row
from benchmarks.campaigns.study import Look, Study, curve, groups, lines_panel, mean_text, of_strategy, title_of
from benchmarks.reproduction.paper_figures import FEDR_SAVED
from secure_kg.report.charts import Series
from secure_kg.report.picture import Panel

_TARGETS: Final = tuple(FEDR_SAVED)
_NEARLY: Final = 0.95
_MB: Final = 1e6
_SHARING: Final = ("fede", "fedr")
_HITS: Final = ("hits@1", "hits@3", "hits@10")


@dataclass(frozen=True, slots=True)
class _Reached:
    """What one run has spent when it first had a validation MRR."""

    rounds: int
    rows: float
    """Of a client, mean: what the paper calls the data size."""
    bytes: int
    """Up and down, of all clients, with everything before the first round."""

    @property
    def cost(self) -> float:
        """As the paper counts it: rows times rounds."""
        return self.rows * self.rounds


def reached(row: Row, target: float) -> _Reached | None:
    """None for a run that never had that MRR."""
    for point in row.curve:
        if point.mrr is not None and point.mrr >= target:
            shared = [part.entities if row.strategy == "fede" else part.relations for part in row.parts]
            rows = statistics.fmean([number or 0 for number in shared]) if shared else 0.0
            return _Reached(point.round, rows, (point.bytes_up or 0) + (point.bytes_down or 0))
    return None


def _communication(rows: Sequence[Row]) -> Look:
    lines: list[dict[str, str]] = []
    look = Look([], [])
    for (dataset, clients, model), of in groups(rows).items():
        local, fede, fedr = (of_strategy(of, strategy) for strategy in ("local", *_SHARING))
        if not fede or not fedr:
            continue
        where = {"data/clients": f"{dataset}/{clients}", "model": model}
        for target, name in _targets([*fede, *fedr]):
            alone = {"rounds Local": _rounds_alone(local, target)}
            lines.append(where | {"validation MRR": name} | alone | _spent(fede, fedr, target))
        caption = f"{dataset}, {clients} clients, {model}, seed {fede[0].seed}"
        panel = lines_panel(
            caption, _by_bytes([*local[:1], fede[0], fedr[0]]), "MB sent", "validation MRR", powers=True
        )
        look.panels.extend([panel] if panel else [])
    look.columns.extend(lines[0] if lines else ())
    look.rows.extend([*line.values()] for line in lines)
    look.said.append(
        "The paper multiplies rows by rounds: that saves where relations are fewer than entities, whatever is sent. "
        "Bytes are those that travelled up and down until then, of all clients: private union, keys, shares, counts "
        "of holders, masked rows of fixed point, metrics. Local sends no row at all: a target that it reaches in about "
        "as many rounds as FedR shows what not sharing saves, and nothing of what sharing relations is worth."
    )
    return look


def _rounds_alone(local: Sequence[Row], target: float) -> str:
    if not local:
        return "not run"
    found = [one.rounds for row in local if (one := reached(row, target))]
    return mean_text(found, 0) if len(found) == len(local) else f"never on {len(local) - len(found)} of {len(local)}"


def _targets(rows: Sequence[Row]) -> Iterator[tuple[float, str]]:
    """The paper's, and one that both strategies reach whatever the split."""
    for target in _TARGETS:
        yield target, f"{target:g}"
    best = min(max((point.mrr or 0.0 for point in row.curve), default=0.0) for row in rows)
    yield _NEARLY * best, f"{_NEARLY * best:.4f} (95 % of what both reach)"


def _spent(fede: Sequence[Row], fedr: Sequence[Row], target: float) -> dict[str, str]:
    """Over the seeds for which both strategies reach the target."""
    first, second = ({row.seed: found for row in rows if (found := reached(row, target))} for rows in (fede, fedr))
    seeds = sorted(first.keys() & second.keys())
    both = len({row.seed for row in fede} & {row.seed for row in fedr})
    theirs, ours = ([found[seed] for seed in seeds] for found in (first, second))
    pairs = [*zip(theirs, ours, strict=True)]
    saved = mean_text([100 * (1 - mine.cost / other.cost) for other, mine in pairs], 2)
    saved_bytes = mean_text([100 * (1 - mine.bytes / other.bytes) for other, mine in pairs], 2)
    printed = FEDR_SAVED.get(target)
    return {
        "rounds FedE": mean_text([one.rounds for one in theirs], 0) if first else "never",
        "rounds FedR": mean_text([one.rounds for one in ours], 0) if second else "never",
        "seeds": f"{len(seeds)} of {both}",
        "saved %, rows × rounds, paper": "–" if printed is None else f"{100 * printed[0]:.2f}",
        "saved %, rows × rounds, here": saved,
        "MB FedE": mean_text([one.bytes / _MB for one in theirs], 1),
        "MB FedR": mean_text([one.bytes / _MB for one in ours], 1),
        "saved %, bytes": saved_bytes,
    }


def _by_bytes(rows: Sequence[Row]) -> list[Series]:
    """Validation MRR by the logarithm of what was sent, which differs by orders of magnitude. Local sends metrics."""
    return [
        (
            title_of(row.strategy),
            [
                (math.log10((point.bytes_up + point.bytes_down) / _MB), point.mrr)
                for point in row.curve
                if point.mrr is not None and point.bytes_up and point.bytes_down
            ],
        )
        for row in rows
    ]


def _convergence(rows: Sequence[Row]) -> Look:
    look = Look(["data/clients", "model", "strategy", "loss at round", "last loss", "best round", "rounds"], [])
    for (dataset, clients, model), of in groups(rows).items():
        lines = []
        for strategy in _SHARING:
            for row in of_strategy(of, strategy)[:1]:
                points = curve(row, _loss)
                lines.append((title_of(strategy), points))
                last = f"{points[-1][1]:.4f}" if points else "–"
                early = ", ".join(f"{at:.0f}: {value:.4f}" for at, value in points[:3])
                where = [f"{dataset}/{clients}", model, title_of(strategy)]
                look.rows.append([*where, early or "–", last, str(row.best_round), str(row.rounds)])
        panel = lines_panel(f"{dataset}, {clients} clients, {model}", lines, "round", "training loss")
        look.panels.extend([panel] if panel else [])
    look.said.append(
        "The loss is that of the clients' own epochs before the sum, seed by seed; the first seed is drawn."
    )
    return look


def _loss(point: Point) -> float | None:
    return point.loss


def _hit_rates(rows: Sequence[Row]) -> Look:
    look = Look(["data/clients", "model", "strategy", "seeds", *(name.capitalize() for name in _HITS)], [])
    for (dataset, clients, model), of in groups(rows).items():
        for strategy in ("local", *_SHARING):
            if found := of_strategy(of, strategy):
                figures = [mean_text([row.all.tail[name] for row in found]) for name in _HITS]
                where = [f"{dataset}/{clients}", model, title_of(strategy), str(len(found))]
                look.rows.append([*where, *figures])
    for dataset, model in dict.fromkeys((row.dataset, row.model) for row in rows):
        of = [row for row in rows if (row.dataset, row.model) == (dataset, model)]
        panel = lines_panel(f"{dataset}, {model}", [*_by_clients(of)], "clients", "Hits@10")
        look.panels.extend([panel] if isinstance(panel, Panel) else [])
    return look


def _by_clients(rows: Sequence[Row]) -> Iterator[Series]:
    for strategy in ("local", *_SHARING):
        found: dict[int, list[float]] = {}
        for row in of_strategy(rows, strategy):
            found.setdefault(row.clients, []).append(row.all.tail["hits@10"])
        yield title_of(strategy), [(float(clients), statistics.fmean(found[clients])) for clients in sorted(found)]


_DDB14: Final = ("fedr-ddb14-transe", "fedr-ddb14-rotate", "fedr-published")
STUDIES: Final = {
    "communication": Study(
        "Rounds, rows and bytes until a validation MRR", "FedR, Figure 3 and section 4.3", _DDB14, _communication
    ),
    "convergence": Study("Training loss by round", "FedR, Figure 4", (*_DDB14, "fedr-fb", "fedr-wn"), _convergence),
    "hit-rates": Study(
        "Hit rates by clients", "FedR, Figure 2", (*_DDB14, "fedr-ddb14-more", "fedr-fb", "fedr-wn"), _hit_rates
    ),
}
