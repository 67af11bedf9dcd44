"""Federation results as a client reads them where only clients can read sums, kept in its own folder.

federation.jsonl    one line per evaluation
federation.json     the result
"""

from pathlib import Path
from typing import Final

from secure_kg.evaluation.metrics import Metrics
from secure_kg.runs.records.client_result import Evaluation, FederationResult
from secure_kg.runs.run_folder import append_line, read_lines, read_record, write_json, write_lines

_LINES: Final = "federation.jsonl"
_RESULT: Final = "federation.json"


def append_evaluation(folder: Path, round_id: int, metrics: Metrics) -> None:
    append_line(folder / _LINES, Evaluation(round=round_id, figures=metrics.evaluation()))


def read_evaluations(folder: Path) -> dict[int, Evaluation]:
    """By round; the last line of a round counts."""
    return {line.round: line for line in read_lines(folder / _LINES, Evaluation)}


def forget_evaluations_after(folder: Path, round_id: int) -> None:
    """Drop the lines of rounds that a resumed run will do again."""
    kept = {number: line for number, line in read_evaluations(folder).items() if number <= round_id}
    if kept or (folder / _LINES).exists():
        write_lines(folder / _LINES, [kept[number] for number in sorted(kept)])


def write_result(
    folder: Path, test: Metrics, test_clients: int, valid_mrr: float, averaged: int, evaluations: int
) -> None:
    """`evaluations`: how many this client has seen; one that was away may have missed the best."""
    result = FederationResult(
        figures=test.figures(),
        test_triples=None if test.over_queries else test.examples,
        test_queries=test.examples if test.over_queries else None,
        test_clients=test_clients,
        valid_mrr=valid_mrr,
        rows_averaged=averaged,
        evaluations=evaluations,
    )
    write_json(folder / _RESULT, result.to_json())


def read_result(folder: Path) -> FederationResult | None:
    path = folder / _RESULT
    return read_record(path, FederationResult) if path.exists() else None
