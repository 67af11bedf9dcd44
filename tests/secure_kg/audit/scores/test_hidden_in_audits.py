"""Audits of recorded sessions with hidden queries: honest ones stay clean, and a dealer's lies are named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scoring import hidden as measured_hidden
from benchmarks.scoring.carriers import in_threads
from benchmarks.scoring.party import Measured
from benchmarks.scoring.workload import Workload
from protocols.foundation import wire
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import SERVER, RoundId
from protocols.registry import SCORES
from protocols.scores.topk.hidden_parties import HiddenServer
from protocols.scores.topk.messages import DealtProduct, MaskedTable
from protocols.session.conversation import Conversation
from secure_kg.audit.scores.audit import ScoreAudit, audit_scores
from secure_kg.audit.scores.session import open_session
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import read_json, write_json
from secure_kg.runs.score_recording import RECORDS

WORK = Workload(entities=30, clients=3, queries=2, top=4, share=0.7, seed=3, dimensions=4)
Change = Callable[[wire.Message], wire.Message]


def measured(path: Path, similarity: str = "inner", least: int | None = None) -> Measured:
    work = replace(WORK, least=least)
    bundles = {"topk": SCORES["topk"], measured_hidden.NAME: measured_hidden.bundle()}
    return Measured(work, bundles, 1, record=path, similarity=similarity)


def audited(path: Path) -> ScoreAudit:
    session = open_session(path)
    assert session is not None
    return audit_scores(session)


def high(told: ScoreAudit) -> set[str]:
    return {finding.id for finding in told.findings if finding.severity == "high"}


@pytest.fixture
def changing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """A server that sends something else than it should, and records what it sends."""
    send = Conversation.broadcast

    def install(change: Change) -> None:
        def changed(self: Conversation, to: Any, message: wire.Message, round_id: RoundId) -> Any:
            return send(self, to, change(message) if self.transport.party == SERVER else message, round_id)

        monkeypatch.setattr(Conversation, "broadcast", changed)

    return install


@pytest.mark.parametrize(("similarity", "least"), [("inner", None), ("squared", 2)])
def test_an_honest_session_is_run_again_and_stays_clean(tmp_path: Path, similarity: str, least: int | None) -> None:
    costs = in_threads(measured(tmp_path, similarity, least))
    assert all(cost.same_ranking is not False for cost in costs)
    told = audited(tmp_path)
    assert high(told) == set()
    looked = {check.id: check.looked_at for check in told.checks}
    assert "0 share" not in looked["dealt-randomness"]
    assert "nothing" not in looked["as-programmed"]
    assert any("hidden queries" in one for one in told.record().may_learn)


def test_a_false_product_of_masks_is_named(
    tmp_path: Path, changing: Callable[[Change], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(message: wire.Message) -> wire.Message:
        if isinstance(message, DealtProduct):
            return DealtProduct(message.purpose, bytes(len(message.product)))
        return message

    changing(change)
    in_threads(measured(tmp_path))
    monkeypatch.undo()
    assert {"false-randomness", "not-as-programmed"} <= high(audited(tmp_path))


def test_a_table_that_its_owner_has_not_sent_is_refused_and_named(
    tmp_path: Path, changing: Callable[[Change], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(message: wire.Message) -> wire.Message:
        if isinstance(message, MaskedTable):
            return MaskedTable(message.purpose, message.owner, bytes(len(message.sealed)))
        return message

    changing(change)
    with pytest.raises(ProtocolError, match=r"masked table of client . was forged or replayed"):
        in_threads(measured(tmp_path))
    monkeypatch.undo()
    assert "selection-relayed-otherwise" in high(audited(tmp_path))


def test_one_seed_for_all_tables_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(HiddenServer, "_draw", lambda self, terms, party: bytes(32))
        in_threads(measured(tmp_path))
    assert "dealt-seed-reused" in high(audited(tmp_path))


@pytest.mark.parametrize(("field", "value"), [("similarity", "l1"), ("dimensions", 0), ("branches", [])])
def test_a_record_of_impossible_queries_is_refused_in_one_line(tmp_path: Path, field: str, value: object) -> None:
    in_threads(measured(tmp_path))
    (path,) = tmp_path.glob(RECORDS)
    record = read_json(path)
    record["batches"][1]["hidden"][field] = value
    write_json(path, record)
    with pytest.raises(UserError, match="not a record of score queries"):
        open_session(tmp_path)
