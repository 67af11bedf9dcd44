"""Whose turn it is at one site."""

import threading
import time
from pathlib import Path

import pytest

from launch.between import turns
from launch.between.turns import SiteTurns
from secure_kg.foundation.errors import UserError


def test_who_answers_sees_that_somebody_asks_and_the_asker_waits_for_the_link(tmp_path: Path) -> None:
    site, has_asked = SiteTurns(tmp_path), threading.Event()

    def asks() -> None:
        with SiteTurns(tmp_path).asking(lambda line: None):
            has_asked.set()

    with site.answering():
        with site.linked():
            assert not site.somebody_asks()
            thread = threading.Thread(target=asks)
            thread.start()
            while not site.somebody_asks():
                time.sleep(0.01)
            assert not has_asked.is_set()
        assert has_asked.wait(30)
        thread.join(30)
        assert not site.somebody_asks()
        assert site.somebody_answers()
    assert not site.somebody_answers()


def test_two_processes_of_one_site_do_not_answer_nor_ask_beside_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = SiteTurns(tmp_path)
    with site.answering(), pytest.raises(UserError, match="answers already"):
        SiteTurns(tmp_path).answering().__enter__()
    monkeypatch.setattr(turns, "_PATIENCE", 0.0)
    with site.linked(), pytest.raises(UserError, match="ask after it"):
        SiteTurns(tmp_path).asking(lambda line: None).__enter__()


def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "answering.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="cannot be used"):
        SiteTurns(tmp_path).somebody_answers()
    assert not (tmp_path / "elsewhere").exists()
