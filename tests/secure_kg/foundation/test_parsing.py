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


def test_so_is_what_is_no_toml() -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        toml_of(f"a = {DEEP}")


def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="no regular file"):
        text_of(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such file"):
        text_of(tmp_path / "nowhere")
