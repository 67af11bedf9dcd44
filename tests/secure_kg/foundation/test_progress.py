"""Progress: lines where there is no terminal, a bar where there is one, and nothing unless it is asked for."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from secure_kg.foundation import progress
from secure_kg.foundation.progress import Lines, Progress, Remaining, reading, shown, silence, tracked

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[3]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def speaking() -> Iterator[None]:
    with shown():
        yield


def work(clock: Clock, total: int | None, seconds_each: float, steps: int) -> None:
    with Progress("work", total, "parts", clock) as told:
        for _ in range(steps):
            clock.now += seconds_each
            told.advance()


@pytest.mark.usefixtures("speaking")
def test_a_log_gets_a_line_at_steps_of_ten_percent(capsys: Capture) -> None:
    work(Clock(), 200, 1.0, 200)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"work: {share} %, about {left} left"
        for share, left in (
            (10, "3 min 0 s"), (20, "2 min 40 s"), (30, "2 min 20 s"), (40, "2 min 0 s"), (50, "1 min 40 s"),
            (60, "1 min 20 s"), (70, "1 min 0 s"), (80, "40 s"), (90, "20 s"),
        )
    ]  # fmt: skip


@pytest.mark.usefixtures("speaking")
def test_what_is_slow_gets_a_line_every_half_minute_and_what_is_quick_none(capsys: Capture) -> None:
    work(Clock(), 10_000, 10.0, 9)
    assert len(capsys.readouterr().out.splitlines()) == 3
    work(Clock(), 100, 0.01, 100)
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("speaking")
def test_without_a_total_it_counts(capsys: Capture) -> None:
    work(Clock(), None, 31.0, 2)
    assert capsys.readouterr().out == "work: 1 parts\nwork: 2 parts\n"


def test_it_is_silent_unless_it_is_asked_for(capsys: Capture) -> None:
    work(Clock(), 10, 60.0, 10)
    with shown():
        silence()
        work(Clock(), 10, 60.0, 10)
    assert capsys.readouterr().out == ""
    with shown():
        work(Clock(), 10, 60.0, 1)
    assert capsys.readouterr().out == "work: 10 %, about 9 min 0 s left\n"


@pytest.mark.usefixtures("speaking")
def test_one_inside_of_another_is_silent(capsys: Capture) -> None:
    with Progress("outer", 10):
        work(Clock(), 10, 60.0, 10)
    assert capsys.readouterr().out == ""
    work(Clock(), 10, 60.0, 1)
    assert capsys.readouterr().out != ""


def test_a_slow_start_is_forgotten() -> None:
    clock = Clock()
    remaining = Remaining(100, clock=clock)
    clock.now = 100.0
    assert remaining.seconds(10) == 900.0
    for done in range(11, 51):
        clock.now += 1.0
        remaining.seconds(done)
    assert remaining.seconds(50) == pytest.approx(50.0, abs=5.0)


def test_items_and_files_are_passed_on(tmp_path: Path) -> None:
    assert list(tracked([1, 2, 3], "items")) == [1, 2, 3]
    assert list(tracked(iter("ab"), "letters")) == ["a", "b"]
    (tmp_path / "train.tsv").write_bytes(b"a\tb\tc\n")
    with reading(tmp_path / "train.tsv") as told:
        told(6)
    with reading(tmp_path / "nothing.tsv") as told:
        told(6)
    assert told.done == 6


PROGRAM = """
import time
from secure_kg.foundation.console import say
from secure_kg.foundation.progress import Progress, shown
with shown(), Progress("reading train.tsv", 8) as told:
    for number in range(8):
        time.sleep(0.15)
        told(number + 1)
        if number == 4:
            say("a line in between")
say("end")
"""


def on_terminal(**more: str) -> bytes:
    """What a terminal of its own gets from the program."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100", **more}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        out = b""
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # the terminal is closed
                break
            if not chunk:
                break
            out += chunk
    os.close(ours)
    assert process.returncode == 0
    return out


def test_a_terminal_gets_a_bar_that_goes_away_and_no_colour_where_none_is_wanted() -> None:
    out = on_terminal(NO_COLOR="1")
    assert b"reading train.tsv" in out
    assert b"left" in out
    assert b"\x1b[2K" in out  # it is wiped away
    assert b"a line in between\r\n" in out
    assert out.endswith(b"end\r\n")
    assert b"\x1b[3" not in out
    assert b"\x1b[38" not in out


def test_no_escape_codes_without_a_terminal() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "FORCE_COLOR": ""}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, env=environment, check=True)
    assert b"\x1b" not in done.stdout + done.stderr
    dumb = on_terminal(TERM="dumb")
    assert b"\x1b" not in dumb


@pytest.mark.usefixtures("speaking")
def test_lines_on_many_parts_come_now_and_then(capsys: Capture) -> None:
    clock = Clock()
    lines = Lines(clock=clock)
    for done in range(1, 31):
        clock.now += 1.0
        lines("masking", done, 60)
    lines("adding")
    assert capsys.readouterr().out == (
        "masking: 10 of 60, about 50 s left\nmasking: 20 of 60, about 40 s left\nmasking: 30 of 60, about 30 s left\n"
    )
    clock.now += 10.0
    lines("adding")
    Lines(quiet=True, clock=clock)("nothing")
    assert capsys.readouterr().out == "adding\n"


def test_an_error_ends_what_was_going_on() -> None:
    def failing() -> None:
        for _ in tracked([1, 2], "items"):
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"), shown():
        failing()
    assert progress._current is None


def test_nothing_is_left_speaking() -> None:
    assert progress._current is None
