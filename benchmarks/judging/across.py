"""A run judged by queries across its clients' graphs."""

from pathlib import Path
from typing import Any

from benchmarks.judging.joined_run import JoinedRun
from benchmarks.judging.judged_by import JudgedBy
from secure_kg.evaluation.query_metrics import QueryMetrics
from secure_kg.evaluation.query_ranking import rank_queries
from secure_kg.foundation.errors import DataError

_MEGABYTES = 256


def judge(folder: Path, by: JudgedBy) -> dict[str, Any]:
    """The figures of one run, in-graph and cross-graph. Without cross-graph ones if its clients have nothing alike."""
    run = JoinedRun(folder)
    try:
        model = run.model()
    except DataError:
        crossing = None
    else:
        crossing = rank_queries(model, run.cross_graph_queries(by), _MEGABYTES).figures()
    known, summary = {name: run.summary.figures.get(name) for name in QueryMetrics.figure_names}, run.summary
    return {
        "run": folder.name,
        "strategy": run.config.strategy,
        "seed": run.config.seed,
        "in-graph": known | {"valid_mrr": summary.valid_mrr},
        "cross": crossing,
    }
