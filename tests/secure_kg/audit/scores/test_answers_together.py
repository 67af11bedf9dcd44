"""The note of an audit on what the answers of a session tell together."""

from pathlib import Path

from msgspec import structs

from secure_kg.audit.records.parts import Note
from secure_kg.audit.scores.audit import audit_scores
from secure_kg.audit.scores.session import open_session
from secure_kg.audit.scores.together import TITLE, answers_together, read_by_askers
from secure_kg.report.audit_findings import notes
from tests.support.retrieval import World, ask

CHAIN = '?x : cures(?y, ?x) & has("e01", ?y)'


def noted(path: Path, backend: str) -> tuple[Note, Path]:
    session = ask(World(), CHAIN, record=path, backend=backend, top=4)
    assert not session.problems
    opened = open_session(path)
    assert opened is not None
    found = [note for note in audit_scores(opened).record().notes if note.title == TITLE]
    assert len(found) == 1
    return found[0], path


def test_a_session_of_questions_is_counted_by_asker(tmp_path: Path) -> None:
    note, path = noted(tmp_path / "means", "masked")
    assert "Asker 1: 3 vectors looked up, 1 query with opened means, 4 positions asked for their names." in note.text
    assert "in 1 of the 6 dimensions of a row: the rest stays open" in note.text
    assert "estimate" not in note.text
    assert any("3 vectors looked up" in str(part) for part in notes([note]))
    opened = open_session(path)
    assert opened is not None
    batches = [*opened.record.batches, *(structs.replace(batch, asker=2) for batch in opened.record.batches[:1])]
    assert {asker: read.vectors for asker, read in read_by_askers(batches, 6).items()} == {1: 3, 2: 1}


def test_positions_are_said_to_be_an_estimate(tmp_path: Path) -> None:
    note, _ = noted(tmp_path / "positions", "topk")
    assert "1 query with opened positions" in note.text
    assert "dimensions of a row" not in note.text
    assert "an estimate" in note.text


def test_enough_means_are_said_to_give_rows(tmp_path: Path) -> None:
    _, path = noted(tmp_path / "means", "masked")
    opened = open_session(path)
    assert opened is not None
    record = structs.replace(opened.record, batches=opened.record.batches * 6)
    (note,) = answers_together(record)
    assert "all rows that enough clients hold can be computed" in note.text
    assert answers_together(structs.replace(record, batches=[])) == []
