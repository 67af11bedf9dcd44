"""Judges of cheats in score queries can tell: without the defence each of them wins."""

from pathlib import Path

import pytest

from benchmarks.cheating import exact_answers, in_scores, scores
from benchmarks.cheating_servers import main
from protocols.foundation.identifiers import PartyId
from protocols.scores import asking, budget
from protocols.scores.covering import Covering
from protocols.scores.layout import ScoreLayout
from protocols.scores.topk.exchange import Exchange, Open
from protocols.sums.secagg.openings import Openings

ENTRIES = {entry.name: entry for entry in in_scores.of_scores()}


def test_without_the_check_the_asker_would_take_a_changed_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScoreLayout, "read_checked", lambda self, total, key: self.read(total))
    assert scores.changed_total(tmp_path).got


def test_without_their_record_of_openings_scorers_would_open_the_same_queries_over_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("open", "may_come"):
        monkeypatch.setattr(Openings, name, lambda self, *given: None)
    (tmp_path / "by the table").mkdir()
    assert not scores.without_scorer(tmp_path / "by the table").got
    monkeypatch.setattr(Covering, "guard", lambda self, terms, may_open: may_open)
    assert scores.without_scorer(tmp_path).got


def test_if_clients_went_on_without_each_other_the_asker_would_read_the_facts_of_all_but_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(self: Exchange, sealed: dict[int, bytes], size: int, open_: Open) -> list[bytes]:
        return [open_(PartyId(party), one) for party, one in sorted(sealed.items())]

    monkeypatch.setattr(Exchange, "_opened", opened)
    assert exact_answers.without_client(tmp_path).got


def test_without_sealed_askings_scorers_would_answer_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = asking.Asked(asking.BatchSecrets(bytes(32), bytes(32)), b"queries")
    honest = asking.asked

    def gullible(session: object, channels: object, terms: object, attached: int = 0) -> asking.Asked:
        try:
            return honest(session, channels, terms, attached)  # type: ignore[arg-type]
        except asking.PeerMisbehaved:
            return nothing

    monkeypatch.setattr(asking, "asked", gullible)
    assert scores.other_askings(tmp_path, replays=False).got


def test_without_a_budget_the_asker_would_read_all_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget.Budget, "may_come", lambda self, terms, queries: None)
    monkeypatch.setattr(budget.Budget, "charge", lambda self, terms, queries: None)
    assert scores.beyond_budget(tmp_path).got


def test_a_cheat_whose_package_is_missing_is_left_out_aloud(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.cheating.entry.find_spec", lambda name: None)
    monkeypatch.setattr(
        "benchmarks.cheating_servers.ZOO",
        {name: ENTRIES[name] for name in ("changed-encrypted-total", "replayed-asking")},
    )
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "left out: changed-encrypted-total needs tenseal" in shown
    assert "replayed-asking: stopped" in shown
    assert main(["--only", "changed-encrypted-total"]) == 2
    assert "not installed here" in capsys.readouterr().err
