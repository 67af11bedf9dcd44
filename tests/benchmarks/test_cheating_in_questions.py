"""Judges of cheats in questions can tell: without the defence each of them wins."""

from pathlib import Path

import pytest

from benchmarks.cheating import questions
from benchmarks.cheating.question_stage import EVERYTHING
from protocols.lookups import names
from protocols.scores import asking, budget
from protocols.scores.covering import Covering
from protocols.scores.layout import ScoreLayout
from protocols.sums.secagg.openings import Openings


def test_without_terms_in_what_is_sealed_the_victim_would_answer_another_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = asking.Asked(asking.BatchSecrets(bytes(32), bytes(32)), bytes(1024))
    honest = asking.asked

    def gullible(session: object, channels: object, terms: object, attached: int = 0) -> asking.Asked:
        try:
            return honest(session, channels, terms, attached)  # type: ignore[arg-type]
        except asking.PeerMisbehaved:
            return nothing

    monkeypatch.setattr(asking, "asked", gullible)
    (tmp_path / "request").mkdir()
    assert questions.announced_otherwise(tmp_path, "entities", [2]).got
    assert questions.other_request(tmp_path / "request", replays=True).got


def test_without_the_check_the_asker_would_go_on_from_another_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScoreLayout, "read_checked", lambda self, total, key: self.read(total))
    assert questions.believed(tmp_path, questions.ChangedVectors()).got


def test_without_the_hash_the_asker_would_take_any_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "read", lambda vector, count: ["a name"] * count)
    assert questions.believed(tmp_path, questions.ChangedNames()).got


def test_without_their_records_clients_would_give_the_same_vector_over_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("open", "may_come"):
        monkeypatch.setattr(Openings, name, lambda self, *given: None)
    monkeypatch.setattr(Covering, "guard", lambda self, terms, may_open: may_open)
    assert questions.without_victim(tmp_path, questions.LookupWithoutVictim()).got


def test_without_a_budget_the_asker_would_read_all_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget.Budget, "may_come", lambda self, terms, queries: None)
    monkeypatch.setattr(budget.Budget, "charge", lambda self, terms, queries: None)
    assert questions.beyond_atoms(tmp_path).got


def test_without_the_rule_the_relation_would_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "Rules", lambda *rules: EVERYTHING)
    assert questions.silent_relation(tmp_path).got
