"""From results to the report: means beside the paper's figures, paired differences, and which claims hold.

The report is plain data, as written to JSON; the text and the Markdown are drawn from it and from nothing else.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.reproduction.cells import Request
from benchmarks.reproduction.estimates import Estimate, estimate, paired
from benchmarks.reproduction.results import Result
from benchmarks.reproduction.table import ALL, Claim

Record = dict[str, Any]


def build(
    name: str, request: Request, results: Sequence[Result], *, command: str, commit: str | None, date: str
) -> Record:
    """`name` is the table's; `command` the whole command line."""
    table = request.table
    differences = [*_differences(request, results)]
    sessions = [session for result in results for session in result.spent.sessions]
    return {
        "table": name,
        "title": table.title,
        "command": command,
        "commit": commit,
        "commits_of_runs": sorted({session.commit for session in sessions if session.commit}),
        "date": date,
        "seconds_spent": sum(result.spent.seconds or 0.0 for result in results),
        "settings": dataclasses.asdict(request.settings) | {"aggregation": request.aggregation, "alignment": "psu"},
        "tuned": {
            strategy: {one["setting"]: one["here"] for one in request.settings.deviations(own)}
            for strategy, own in request.tuned.items()
        },
        "deviations": table.settings.deviations(request.settings),
        "notes": [*table.notes, *_seed_notes(request)],
        "seeds": list(request.seeds),
        "metrics": list(table.metrics),
        "shown": table.shown,
        "per_client": table.per_client,
        "cells": [*_cells(request, results)],
        "differences": differences,
        "claims": [_claim(claim, differences, table.per_client) for claim in _claims(request)],
        "runs": [result.to_json() for result in results],
    }


def _seed_notes(request: Request) -> Iterator[str]:
    drawn = [dataset for dataset in request.datasets if not request.table.datasets[dataset].published]
    given = [dataset for dataset in request.datasets if dataset not in drawn]
    if drawn:
        yield f"{', '.join(drawn)}: the seed draws the split as well as first rows, batches and negatives."
    if given:
        yield f"{', '.join(given)}: the split is given; the seed draws first rows, batches and negatives only."


def _cells(request: Request, results: Sequence[Result]) -> Iterator[Record]:
    table = request.table
    for dataset, clients, model in request.groups():
        for part in table.parts(clients):
            for strategy in request.strategies:
                group = (dataset, clients, model, strategy)
                runs = _runs(results, *group)
                done = [run for run in runs if part in run.metrics]
                ours = {
                    metric: found.to_json()
                    for metric in table.metrics
                    if (found := estimate([run.metrics[part][metric] for run in done if metric in run.metrics[part]]))
                }
                printed = {metric: table.paper(*group, part, metric) for metric in table.metrics}
                yield {
                    **_where(dataset, clients, model, part),
                    "strategy": strategy,
                    "paper": {metric: figure for metric, figure in printed.items() if figure is not None},
                    "ours": ours,
                    "rounds": _mean([run.about.rounds for run in done if run.about.rounds is not None]),
                    "best_round": _mean([run.about.best_round for run in done if run.about.best_round is not None]),
                    "seconds_per_run": _mean([run.spent.seconds for run in done if run.spent.seconds is not None]),
                    "states": {str(run.cell.seed): run.outcome.state for run in runs},
                }


def _differences(request: Request, results: Sequence[Result]) -> Iterator[Record]:
    table = request.table
    for dataset, clients, model in request.groups():
        for part in table.parts(clients):
            for claim in _claims(request):
                metric = claim.metric or table.metrics[0]
                values, printed = [], []
                for strategy in (claim.first, claim.second):
                    runs = _runs(results, dataset, clients, model, strategy)
                    known = [run for run in runs if metric in run.metrics.get(part, {})]
                    values.append({run.cell.seed: run.metrics[part][metric] for run in known})
                    printed.append(table.paper(dataset, clients, model, strategy, part, metric))
                paper = printed[0] - printed[1] if printed[0] is not None and printed[1] is not None else None
                ours = paired(*values)
                yield {
                    **_where(dataset, clients, model, part),
                    "claim": str(claim),
                    "metric": metric,
                    "paper": paper,
                    "ours": None if ours is None else ours.to_json(),
                    "holds_in_paper": None if paper is None else paper >= 0,
                    "holds": None if ours is None else ours.mean >= 0,
                    "verdict": _verdict(ours),
                }


def _claim(claim: Claim, differences: Sequence[Record], per_client: bool) -> Record:
    """How often a claim holds, over the cells of the table; a mean over clients is no cell of a table of clients."""
    about = [one for one in differences if one["claim"] == str(claim) and (one["part"] != ALL or not per_client)]
    printed = [one for one in about if one["holds_in_paper"] is not None]
    measured = [one for one in about if one["holds"] is not None]
    both = [one for one in measured if one["holds_in_paper"] is not None]
    return {
        "claim": str(claim),
        "paper": {"cells": len(printed), "holds": sum(one["holds_in_paper"] for one in printed)},
        "ours": {
            "cells": len(measured),
            "holds": sum(one["holds"] for one in measured),
            "with_interval": sum(one["ours"]["interval_95"] is not None for one in measured),
            "clearly": sum(one["verdict"] == "yes, clearly" for one in measured),
            "clearly_not": sum(one["verdict"] == "no, clearly" for one in measured),
        },
        "same_as_paper": {"cells": len(both), "same": sum(one["holds"] == one["holds_in_paper"] for one in both)},
    }


def _verdict(difference: Estimate | None) -> str:
    if difference is None:
        return "not measured"
    answer = "yes" if difference.mean >= 0 else "no"
    if difference.half_width is None:
        return f"{answer}, on one seed"
    return f"{answer}, clearly" if difference.sign else f"{answer}, within chance"


def _claims(request: Request) -> list[Claim]:
    return [claim for claim in request.table.claims if {claim.first, claim.second} <= set(request.strategies)]


def _runs(results: Sequence[Result], dataset: str, clients: int, model: str, strategy: str) -> list[Result]:
    wanted = (dataset, clients, model, strategy)
    return [
        result
        for result in results
        if (result.cell.dataset, result.cell.clients, result.cell.model, result.cell.strategy) == wanted
    ]


def _where(dataset: str, clients: int, model: str, part: str) -> Record:
    return {"dataset": dataset, "clients": clients, "model": model, "part": part}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
