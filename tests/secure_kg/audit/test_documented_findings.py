"""docs/audit.md names every finding that there is, and no other, under the check that has it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from secure_kg.audit.audit import checks_for
from secure_kg.audit.checks.integrity import Integrity
from secure_kg.audit.ledger import _CLEAR_TEXTS
from secure_kg.audit.scores.askings import Askings
from secure_kg.audit.scores.selections import DealtRandomness, SelectionRelays
from secure_kg.audit.scores.totals import ScoreTotals
from secure_kg.audit.sums_seen import SumsSeen
from secure_kg.audit.view.read import AuditedRun
from tests.support.audited_runs import audited_config

ROOT = Path(__file__).parents[3]
ROWS = re.findall(
    r"^\| (`[a-z-]+`|\(ledger\)|\(any\)) \| [^|]+ \| (`[^|]+) \|$",
    (ROOT / "docs/audit.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
COMPUTED = {
    "ledger.py": {name for name, _, _ in _CLEAR_TEXTS.values()},
    "participation.py": {"differences-isolate-rows", "differences-isolate-results"},
}
"""Findings whose names are put together, by the file that does it."""


OF_SCORES = {
    *("whole-score-session", "batches-announced"),
    *(Askings.id, ScoreTotals.id, SelectionRelays.id, DealtRandomness.id),
}
"""Checks of recorded score queries only."""


def findings_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
            name = node.args[0]
            if isinstance(name, ast.Constant):
                yield str(name.value)
            else:
                yield from COMPUTED[path.name]


def test_every_finding_is_in_the_table_of_checks() -> None:
    used = {name for path in (ROOT / "secure_kg/audit").rglob("*.py") for name in findings_in(path)}
    told = {name for _, cell in ROWS for name in re.findall(r"`([a-z-]+)`", cell)}
    assert len(used) > 50
    assert told == used


def test_every_check_has_one_row(tmp_path: Path) -> None:
    config = audited_config(4)
    run = AuditedRun(tmp_path, config, (), None)
    checks = {check.id for check in checks_for(run, None, [])} | {SumsSeen.id, Integrity.id} | OF_SCORES
    named = [check.strip("`") for check, _ in ROWS]
    assert sorted(named) == sorted({*checks, "(ledger)", "(any)"})
