"""What is printed: words of peers steer no terminal and stop no program."""

import contextlib
import io

import pytest

from secure_kg.foundation import console

HOSTILE = ["\x1b[2J", "\x9b31m", "\u202eevil", "two\nlines", "a\rb", "\u2028", "\x85", "\ud800", "\x00", "\x07"]
UNSEEN = "\u200b\u00ad\ufeff\ufff9\ufffb\U000e0001\U000e0041\U000e0000\ue000\u0378\u3164\ufe0f"


def printed(name: str, encoding: str = "utf-8") -> str:
    """A table with that name and a line with it, as bytes reach the terminal."""
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    with contextlib.redirect_stdout(out):
        console.table("", ("rank", "answer"), [[1, name]])
    out.flush()
    raw = out.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_name_in_a_table_is_shown_and_does_nothing(name: str) -> None:
    plain, hostile = printed("e01"), printed(name)
    assert hostile.count("\n") == plain.count("\n")
    assert not {*hostile} & {*"".join(HOSTILE)} - {*"\n0123456789[JmBabcdefghijklmnopqrstuvwxyz "}
    assert "\\" in hostile


def test_lines_of_this_program_stay_and_controls_in_them_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("one\ntwo\tthree \x1b[2J\ud800 é 漢")
    console.fail("first\nsecond \x1b[2J \u202e")
    said = capsys.readouterr()
    assert said.out == "one\ntwo\tthree \\x1b[2J\\ud800 é 漢\n"
    assert said.err == "error: first second \\x1b[2J \\u202e\n"


@pytest.mark.parametrize("letter", UNSEEN, ids=ascii)
def test_names_that_differ_look_different(letter: str) -> None:
    assert f"e{ascii(letter)[1:-1]}01" in printed(f"e{letter}01")
    assert "é 漢\u00a0x\u0301" in printed("é 漢\u00a0x\u0301")


def test_a_terminal_without_the_letters_of_a_name_is_no_error() -> None:
    assert "\\xe9" in printed("é", "ascii")


def test_titles_and_headers_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Names of folders and of other people's columns stand in them."""
    console.table("ti\x1b[2Jtle", ("a", "b\x1b[2J"), [["c\x1b[2J", "d"]])
    shown = capsys.readouterr().out + console.table_text("ti\x1b[2Jtle", ("b\x1b[2J",), [["c\x1b[2J"]])
    assert "\x1b" not in shown
    assert shown.count("[2J") == 6
