"""A line of progress: on terminals only, and gone at the end."""

import io
import sys

import pytest

from secure_kg.foundation.console import progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_one_line_that_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with progress_line() as report:
        report("round 1")
        report("round\n2 \x1b[31m" + "x" * 500)
    lines = shown.getvalue().split("\r\x1b[2K")
    assert lines[:2] == ["", "round 1"]
    assert lines[2].startswith(r"round\n2 \x1b[31mxxx")
    assert len(lines[2]) < 500
    assert lines[3:] == [""]
    assert "\n" not in shown.getvalue()


def test_elsewhere_nothing_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_line() as report:
        report("round 1")
    assert capfd.readouterr() == ("", "")
