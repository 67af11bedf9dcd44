"""A client's record of opened sums serves one session at a time."""

import threading
from pathlib import Path

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.runs import client_folder
from secure_kg.runs.client_folder import alone


def test_a_second_session_is_refused_in_one_line_and_comes_after_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_folder, "_ENDING_SECONDS", 0.1)
    with alone(tmp_path / "client-1.record"):
        with pytest.raises(UserError, match="takes part in another session"), alone(tmp_path / "client-1.record"):
            pass
        with alone(tmp_path / "client-2.record"):
            pass
    with alone(tmp_path / "client-1.record"):
        pass


def test_one_that_is_just_ending_is_waited_for(tmp_path: Path) -> None:
    taken, leave = threading.Event(), threading.Event()

    def first() -> None:
        with alone(tmp_path):
            taken.set()
            leave.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    taken.wait(10)
    threading.Timer(0.2, leave.set).start()
    with alone(tmp_path):
        assert leave.is_set()
    thread.join()
