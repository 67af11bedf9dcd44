"""Files that somebody else may have put there: whatever is wrong with them is one kind of error, and nothing hangs."""

import os
from pathlib import Path

import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.foundation.parsing import json_of, text_of, toml_of

DEEP = "[" * 100_000


@pytest.mark.parametrize("text", ["{", DEEP, "1e400", "NaN", "[-Infinity]", "9" * 5000], ids=lambda text: text[:9])
def test_what_is_no_json_is_one_kind_of_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  whatever the words
        json_of(text)
    assert json_of('{"size": 1.5e3}') == {"size": 1500}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"a = {DEEP[:16_000]}", "nested too deep"),
        (".".join(["a"] * 80_000) + " = 1", "longer than any settings"),
        ("a = 0x" + "f" * 5000, "more than 64 bits"),
        ("[b]\nc = [1, -9223372036854775809]", "more than 64 bits"),
    ],
    ids=lambda text: text[:9],
)
def test_so_is_what_is_no_toml_of_a_run(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        toml_of(text)
    assert toml_of("[b]\nc = [1, 2]") == {"b": {"c": [1, 2]}}


def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="no regular file"):
        text_of(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such file"):
        text_of(tmp_path / "nowhere")
