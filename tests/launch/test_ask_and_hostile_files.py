"""The command `ask` over a run whose files somebody has changed, and its own files where something else lies."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from launch import ask, fedcqa
from secure_kg.runs.checkpoint import load_arrays, save_arrays
from tests.support.jobs_in_threads import run_in_threads

TINY = [
    *("--dataset", "nations", "--dim", "8", "--batch-size", "8", "--local-steps", "1", "--eval-queries", "2"),
    *("--test-types", "1p", "--eval-every", "1", "--checkpoint-every", "1", "--rounds", "1"),
]
QUESTION = '?x : embassy("usa", ?x)'
DEEP = "[" * 100_000
Bend = Callable[[Path], object]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    ended = run_in_threads(4, *TINY, "--out", "run", cwd=folder, launcher=fedcqa.main)
    assert ended.code == 0, ended.errors
    return folder / "run"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def written(name: str, content: str | bytes) -> Bend:
    return lambda run: (run / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def many_clients(run: Path) -> None:
    path = run / "config.toml"
    path.write_text(path.read_text().replace("clients = 3\n", "clients = 1000000000\n"))


def deep_record(run: Path) -> None:
    """The JSON inside of a safetensors file."""
    header = json.dumps({"__metadata__": {"record": DEEP}}).encode()
    (run / "clients/2/alignment.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


def piped(run: Path) -> None:
    (run / "clients/2/model.safetensors").unlink()
    os.mkfifo(run / "clients/2/model.safetensors")


def other_numbers(run: Path) -> None:
    path = run / "clients/2/model.safetensors"
    arrays, record = load_arrays(path)
    save_arrays(path, arrays | {"operators": arrays["operators"].astype(np.float64)}, record)


def long_rows(run: Path) -> None:
    path = run / "clients/1/model.safetensors"
    arrays, record = load_arrays(path)
    save_arrays(path, arrays | {"rows": np.full_like(arrays["rows"], 3e38)}, record)


@pytest.mark.parametrize(
    ("bend", "words"),
    [
        (written("config.toml", b"\xff\xfe\x00"), "config.toml: not a TOML file"),
        (written("config.toml", f"a = {DEEP}"), "config.toml: not a TOML file"),
        (many_clients, "questions are for 12 at most"),
        (written("summary.json", DEEP), "summary.json: cannot be read as JSON"),
        (written("server/alignment.json", DEEP), "alignment.json: cannot be read as JSON"),
        (written("server/alignment.json", '{"size": 1e400}'), "alignment.json: cannot be read as JSON"),
        (written("server/alignment.json", '{"size": 2.5, "digest": "", "clients": [1]}'), "not a record of an"),
        (deep_record, "alignment.safetensors: not a readable checkpoint"),
        (piped, "model.safetensors: cannot be read (it is no regular file)"),
        (other_numbers, "not a model of this client's graph"),
        (written("clients/2/atoms.jsonl", '{"table": "00", "over": [Infinity]}\n'), "not a record of opened means"),
        (written("clients/2/atoms.jsonl", '{"table": "00", "over": [1.5]}\n'), "not a record of opened means"),
        (long_rows, "this question cannot be asked: rows of length"),
    ],
)
def test_a_file_that_cannot_be_is_named_in_one_line(
    run: Path, bend: Bend, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bend(run)
    assert ask.main([str(run), "--query", QUESTION, "--hide-query"]) == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_a_checkpoint_with_a_name_of_its_own_is_passed_over(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("x", "²²", "0000009"):
        (run / f"clients/2/checkpoint-{name}.safetensors").touch()
    assert ask.main([str(run), "--query", QUESTION]) == 0, capsys.readouterr().err


def test_files_are_written_in_nobodys_place(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe, link, mine = tmp_path / "pipe", tmp_path / "link", tmp_path / "mine"
    os.mkfifo(pipe)
    mine.write_text("kept")
    link.symlink_to(mine)
    (tmp_path / "link.draft").symlink_to(mine)
    for option in ("--json", "--report"):
        assert ask.main([str(run), "--query", QUESTION, option, str(pipe)]) == 2
        assert "it is no regular file" in capsys.readouterr().err
    assert pipe.is_fifo()
    assert ask.main([str(run), "--query", QUESTION, "--json", str(link)]) == 0
    assert (mine.read_text(), link.is_symlink(), link.stat().st_mode & 0o777) == ("kept", False, 0o600)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "pipe", "link", "mine", "link.draft"}
