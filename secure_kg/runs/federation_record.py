"""Federation results as a client reads them where only clients can read sums, kept in its own folder.

federation.jsonl    one line per evaluation
federation.json     the result
"""

import json
from pathlib import Path
from typing import Any, Final

from secure_kg.evaluation.metrics import Metrics
from secure_kg.runs.run_folder import read_json, write_json, write_whole

_LINES: Final = "federation.jsonl"
_RESULT: Final = "federation.json"


def append_evaluation(folder: Path, round_id: int, metrics: Metrics) -> None:
    with (folder / _LINES).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"round": round_id, **metrics.evaluation()}) + "\n")


def read_evaluations(folder: Path) -> dict[int, dict[str, Any]]:
    """By round; the last line of a round counts."""
    path = folder / _LINES
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines if line.endswith("}")]
    return {int(record.pop("round")): record for record in records}


def forget_evaluations_after(folder: Path, round_id: int) -> None:
    """Drop the lines of rounds that a resumed run will do again."""
    kept = {number: record for number, record in read_evaluations(folder).items() if number <= round_id}
    lines = (json.dumps({"round": number, **record}) + "\n" for number, record in sorted(kept.items()))
    if kept or (folder / _LINES).exists():
        write_whole(folder / _LINES, "".join(lines).encode())


def write_result(
    folder: Path, test: Metrics, test_clients: int, valid_mrr: float, averaged: int, evaluations: int
) -> None:
    """`evaluations`: how many this client has seen; one that was away may have missed the best."""
    write_json(
        folder / _RESULT,
        {
            **test.figures(),
            "test_triples": test.examples,
            "test_clients": test_clients,
            "valid_mrr": valid_mrr,
            "rows_averaged": averaged,
            "evaluations": evaluations,
        },
    )


def read_result(folder: Path) -> dict[str, Any] | None:
    path = folder / _RESULT
    return read_json(path) if path.exists() else None
