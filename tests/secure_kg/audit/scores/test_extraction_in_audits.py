"""Extraction of the table in the audit of a recorded session: succeeds on `plain`, has nothing to run on elsewhere."""

from pathlib import Path

import pytest

from secure_kg.attacks.asked_scores import Asking
from secure_kg.attacks.extraction import MORE_QUERIES, Similarity, chosen_queries
from secure_kg.attacks.extraction_attempts import POSITIONS, WIDTH, made_up_table
from secure_kg.audit.scores.audit import ScoreAudit, audit_scores
from secure_kg.audit.scores.session import open_session
from secure_kg.foundation.seeds import generator


def audited(path: Path, backend: str, queries: int, similarity: Similarity = "inner product") -> ScoreAudit:
    asked = chosen_queries(WIDTH, queries, generator(0, "chosen queries"))
    Asking(backend, made_up_table(0), asked, similarity, POSITIONS).answered(path)
    session = open_session(path)
    assert session is not None
    return audit_scores(session)


@pytest.mark.parametrize("similarity", ["inner product", "squared distance"])
def test_it_succeeds_on_scores_in_clear(similarity: Similarity, tmp_path: Path) -> None:
    told = audited(tmp_path, "plain", WIDTH + MORE_QUERIES, similarity)
    assert [one.against for one in told.attacks] == ["client 2", "client 3"]
    assert all(one.succeeded and one.scores["rows"] == 1.0 for one in told.attacks)
    assert {"clear-scores", "clear-queries"} <= {one.id for one in told.findings}


def test_it_fails_on_too_few_queries(tmp_path: Path) -> None:
    told = audited(tmp_path, "plain", WIDTH // 2)
    assert told.attacks
    assert not any(one.succeeded for one in told.attacks)


def test_it_has_nothing_to_run_on_under_masks(tmp_path: Path) -> None:
    told = audited(tmp_path, "masked", WIDTH + MORE_QUERIES)
    assert told.attacks == ()
    assert "neither queries nor scores" in told.not_attacked
    assert told.exit_code == 0
