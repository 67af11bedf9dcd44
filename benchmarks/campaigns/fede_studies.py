"""FedE's figures: clients of a round (5, 6), local epochs and batches (7, 8), each client's Hits@10 (3, 4)."""

import statistics
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.campaigns.rows import Point, Row
from benchmarks.campaigns.study import Look, Study, curve, groups, lines_panel, mean_text, of_strategy, title_of
from benchmarks.reproduction.paper_figures import FEDE_GAINS, FEDE_METRICS
from secure_kg.report.charts import bare_columns
from secure_kg.report.picture import Panel

_COMPARED: Final = ("local", "fede", "fused")


def _by_setting(name: str, symbol: str, claim: str) -> Callable[[Sequence[Row]], Look]:
    """A look at runs that differ in one setting."""

    def look_at(rows: Sequence[Row]) -> Look:
        found = sorted(rows, key=lambda row: (row.settings[name], row.seed))
        values = list(dict.fromkeys(row.settings[name] for row in found))
        look = Look([symbol, "seeds", "rounds (best)", "valid Hits@10", *FEDE_METRICS], [])
        for value in values:
            of = [row for row in found if row.settings[name] == value]
            best = [max((point.hits_10 or 0.0 for point in row.curve), default=0.0) for row in of]
            reached = (
                f"{mean_text([row.rounds or 0 for row in of], 0)} ({mean_text([row.best_round or 0 for row in of], 0)})"
            )
            figures = [mean_text([row.all.tail[metric] for row in of]) for metric in FEDE_METRICS]
            look.rows.append([f"{value:g}", str(len(of)), reached, mean_text(best), *figures])
        firsts = [next(row for row in found if row.settings[name] == value) for value in values]
        lines = [(f"{symbol} = {row.settings[name]:g}", curve(row, _hits)) for row in firsts]
        if panel := lines_panel(_where(rows), lines, "round", "validation Hits@10"):
            look.panels.append(panel)
        tested = [
            (metric, [(float(row.settings[name]), row.all.tail[metric]) for row in firsts]) for metric in FEDE_METRICS
        ]
        if panel := lines_panel(_where(rows), tested, symbol, "test figures"):
            look.panels.append(panel)
        look.said.append(f"The paper: {claim}. {_order(firsts, name, symbol)}")
        return look

    return look_at


def _order(rows: Sequence[Row], name: str, symbol: str) -> str:
    """Which setting is ahead at the first common round and at the end, by validation Hits@10."""
    curves = {row.settings[name]: dict(curve(row, _hits)) for row in rows}
    common = sorted(set.intersection(*(set(points) for points in curves.values()))) if curves else []
    if len(curves) < 2 or not common:
        return "Not enough of it was run to say anything."
    early = sorted(curves, key=lambda value: -curves[value][common[0]])
    end = sorted(curves, key=lambda value: -max(curves[value].values()))
    texts = [" > ".join(f"{value:g}" for value in order) for order in (early, end)]
    return f"Here, by {symbol}: after round {common[0]:.0f} {texts[0]}; at the best round {texts[1]} (one seed each)."


def _hits(point: Point) -> float | None:
    return point.hits_10


def _where(rows: Sequence[Row]) -> str:
    first = rows[0]
    return f"{first.dataset}, {first.clients} clients, {first.model}, dim {first.settings.get('dim')}"


def _each_client(rows: Sequence[Row]) -> Look:
    look = Look(["data/clients", "model", "client", *(f"Hits@10 {title_of(name)}" for name in _COMPARED)], [])
    for (dataset, clients, model), of in groups(rows).items():
        means: dict[str, list[float]] = {}
        for strategy in _COMPARED:
            found = of_strategy(of, strategy)
            per_client = zip(*([part.tail["hits@10"] for part in row.parts] for row in found), strict=False)
            means[strategy] = [statistics.fmean(values) for values in per_client]
        for number in range(clients):
            cells = [f"{means[name][number]:.4f}" if means[name] else "–" for name in _COMPARED]
            look.rows.append([f"{dataset}/{clients}", model, str(number + 1), *cells])
        shown = [name for name in _COMPARED if means[name]]
        columns = [
            (
                str(number + 1) if name == shown[0] else "",
                [means[name][number] if one == name else 0.0 for one in shown],
            )
            for number in range(clients)
            for name in shown
        ]
        if columns:
            titles = tuple(title_of(name) for name in shown)
            content = bare_columns(columns, titles, "Hits@10", "client")
            caption = f"{dataset}, {clients} clients, {model}: Hits@10 of each client"
            look.panels.append(Panel(caption, content, names=titles))
        look.said.extend(_gains(of, clients))
    return look


def _gains(rows: Sequence[Row], clients: int) -> list[str]:
    """What fusion adds to Local, relative, mean over clients."""
    local, fused = ({row.seed: row for row in of_strategy(rows, name)} for name in ("local", "fused"))
    seeds, printed = sorted(local.keys() & fused.keys()), FEDE_GAINS.get(clients)
    if not seeds:
        return []
    texts = []
    for place, metric in enumerate(FEDE_METRICS):
        gains = [
            statistics.fmean(
                one.tail[metric] / other.tail[metric] - 1
                for one, other in zip(fused[seed].parts, local[seed].parts, strict=True)
            )
            for seed in seeds
        ]
        paper = "" if printed is None else f" (paper {100 * printed[place]:+.1f} %)"
        texts.append(f"{metric} {mean_text([100 * gain for gain in gains], 1)} %{paper}")
    return [f"{clients} clients: with fusion above Local, mean over clients: {', '.join(texts)}; {len(seeds)} seeds."]


_FRACTIONS: Final = tuple(f"fede-fraction-{share}" for share in ("01", "03", "05", "08", "10"))
STUDIES: Final = {
    "client-fraction": Study(
        "Clients that take part in a round",
        "FedE, Figures 5 and 6",
        _FRACTIONS,
        _by_setting("client_fraction", "F", "a larger F converges faster and ends better"),
    ),
    "local-epochs": Study(
        "Local epochs",
        "FedE, Figure 7",
        ("fede-epochs-1", "fede-fraction-05", "fede-epochs-5"),
        _by_setting("local_epochs", "E", "a smaller E ends better and converges more slowly"),
    ),
    "batch-size": Study(
        "Batch size",
        "FedE, Figure 8",
        ("fede-batches-64", "fede-batches-256", "fede-fraction-05"),
        _by_setting("batch_size", "B", "a larger B ends better and converges more slowly"),
    ),
    "more-clients": Study("Hits@10 of each client", "FedE, Figures 3 and 4", ("fede-more-clients",), _each_client),
}
