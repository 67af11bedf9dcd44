"""The list of batches in the record of a session of questions is the server's own word: it is held to announcements.

And an asker that announces what its server does not know gets nobody accused.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import launch.audit
from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.lookups.messages import NamesTotal, NextStep
from protocols.scores.messages import PURPOSE
from protocols.session.conversation import Abandon
from secure_kg.audit.scores.audit import audit_scores
from secure_kg.audit.scores.session import open_session
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import read_json, write_json
from secure_kg.runs.score_recording import RECORDS
from tests.support.bent_scores import about, bending, lying
from tests.support.retrieval import World, answers, ask

QUESTION = '?x : cures(?x, "e01")'
Edit = Callable[[dict[str, Any]], object]


def findings(path: Path) -> dict[str, str]:
    session = open_session(path)
    assert session is not None
    return {found.id: found.severity for found in audit_scores(session).findings if found.severity != "info"}


def edited(path: Path, edit: Edit) -> None:
    (record,) = path.glob(RECORDS)
    content = read_json(record)
    edit(content)
    write_json(record, content)


def of_crypten(record: dict[str, Any], round_id: int) -> dict[str, Any]:
    return {**record["batches"][2], "backend": "crypten", "round": round_id}


def later(batch: dict[str, Any]) -> list[dict[str, Any]]:
    """Two more of them, in place of the end and after it."""
    return [{**batch, "round": round_id} for round_id in (17, 21)]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A recorded session, and its list as it was."""
    path = tmp_path_factory.mktemp("honest") / "record"
    answers(ask(World(), QUESTION, record=path, backend="masked"))
    (record,) = path.glob(RECORDS)
    return path, record.read_text()


@pytest.fixture
def record(honest: tuple[Path, str]) -> Path:
    path, content = honest
    next(path.glob(RECORDS)).write_text(content)
    return path


def test_an_honest_list_is_that_of_the_announcements(record: Path) -> None:
    session = open_session(record)
    assert session is not None
    told = audit_scores(session)
    assert [found for found in told.findings if found.severity != "info"] == []
    (check,) = [one for one in told.checks if one.id == "batches-announced"]
    assert (check.status, check.looked_at) == ("passed", "5 announcements, 4 recorded batches")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda one: one["batches"].insert(0, of_crypten(one, 1)), "two batches of round 1"),
        (lambda one: one["batches"].insert(0, of_crypten(one, 90)), "no question is asked under crypten"),
        (lambda one: one["batches"][0].update(backend="crypten"), "no question is asked under crypten"),
        (lambda one: one.update(batches=one["batches"] * 3), "two batches of round 1"),
        (lambda one: one["batches"][1].update(round=3), "two batches of round 3"),
        (lambda one: one.update(parties=list(range(1, 1001))), "other parties than its batches have"),
        (lambda one: one.update(parties=[1, 2, 3, 3]), "listed twice"),
        (lambda one: one.update(parties=list(range(1, 2001)), batches=[]), "too many"),
    ],
)
def test_lists_that_no_session_has_are_refused(record: Path, edit: Edit, words: str) -> None:
    edited(record, edit)
    with pytest.raises(UserError, match=words):
        open_session(record)


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (lambda one: one["batches"][0].update(bound=32.0), "batches-not-as-announced"),
        (lambda one: one["batches"][2].update(queries=2), "batches-not-as-announced"),
        (lambda one: one["batches"][3].update(positions=4), "batches-not-as-announced"),
        (lambda one: one["batches"][0].update(backend="names"), "batches-not-as-announced"),
        (lambda one: one["batches"].append({**one["batches"][0], "round": 17}), "batches-not-as-announced"),
        (lambda one: one["batches"].extend(later(one["batches"][0])), "batches-not-announced"),
        (lambda one: one["batches"].pop(), "announced-without-a-batch"),
    ],
)
def test_a_list_of_other_batches_is_found(record: Path, edit: Edit, found: str) -> None:
    edited(record, edit)
    assert findings(record)[found] == "high"


def test_a_program_that_is_not_run_to_the_end_of_the_record_is_said(record: Path) -> None:
    edited(record, lambda one: one["batches"][0].update(positions=1 << 20, queries=1024))
    assert findings(record)["program-not-followed"] == "medium"


def test_a_server_cannot_blind_the_audit_by_its_list(tmp_path: Path) -> None:
    """It opens names, and tells the asker that they came to nothing: its program alone does otherwise."""

    def withheld(party: PartyId, message: NamesTotal) -> wire.Message:
        return Abandon(PURPOSE, "a scorer has dropped out")

    record, out = tmp_path / "record", str(tmp_path / "audit")
    ask(World(), QUESTION, bends={SERVER: lying(about(NamesTotal, withheld))}, record=record, patience=0.5)
    assert findings(record)["not-as-programmed"] == "high"
    edited(record, lambda one: one["batches"].insert(0, of_crypten(one, 1)))
    assert launch.audit.main([str(record), "--out", out]) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda step: NextStep("triples", step.sizes, step.table),
        lambda step: NextStep("exact", [1], step.table),
        lambda step: NextStep("names", [11], step.table),
        lambda step: NextStep(step.kind, step.sizes, b""),
    ],
    ids=["unknown kind", "exact in a session without", "too many names", "no table"],
)
@pytest.mark.parametrize("kind", ["entities", "names"])
def test_a_server_that_refuses_a_step_is_not_accused(
    change: Callable[[NextStep], NextStep], kind: str, tmp_path: Path
) -> None:
    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        return change(message) if isinstance(message, NextStep) and message.kind == kind else message

    session = ask(World(), QUESTION, bends={1: bending(bend)}, record=tmp_path / "record", patience=1.0)
    assert "settings do not know" in str(session.problems[PartyId(1)])
    assert launch.audit.main([str(tmp_path / "record"), "--out", str(tmp_path / "audit")]) == 0
    told = json.loads((tmp_path / "audit" / "audit.json").read_text())["findings"]
    worst = {found["id"]: found["severity"] for found in told if found["severity"] != "info"}
    assert worst == {"announced-without-a-batch": "medium"}
