"""The console script: one sub-command for each launcher, under its own name."""

import importlib
from pathlib import Path

import pytest

import launch
import secure_kg
from launch import cli
from launch.commands import COMMANDS

Capture = pytest.CaptureFixture[str]


def test_every_launcher_is_a_command() -> None:
    folder = Path(launch.__file__).parent
    launchers = {f"launch.{path.stem}" for path in folder.glob("*.py") if "\ndef main(" in path.read_text()}
    assert {command.module for command in COMMANDS.values()} == launchers - {"launch.cli"}


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_alone_it_lists_the_commands(arguments: list[str], capsys: Capture) -> None:
    assert cli.main(arguments) == 0
    text = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert [line.split() for line in text.splitlines() if line.startswith(f"  {name} ")] == [
            [name, *command.text.split()]
        ]


def test_the_version_is_that_of_the_package(capsys: Capture) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"secure-kg {secure_kg.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_explains_itself_under_its_own_name(name: str, capsys: Capture) -> None:
    assert cli.main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: secure-kg {name} ")
    assert "python -m launch" not in text
    assert f"secure-kg {name}" in text.partition("example")[2]
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("name", COMMANDS)
def test_columns_of_examples_stay_where_they_are(name: str, capsys: Capture) -> None:
    assert importlib.import_module(COMMANDS[name].module).main(["--help"]) == 0
    by_module = capsys.readouterr().out
    assert cli.main([name, "--help"]) == 0
    by_name = capsys.readouterr().out

    def columns(text: str) -> set[int]:
        examples = text.partition("example")[2].splitlines()
        return {line.rindex("    ") + 4 for line in examples if "    " in line.strip()}

    assert columns(by_name) == columns(by_module)


def test_a_mistake_is_one_line(capsys: Capture) -> None:
    assert cli.main(["fed"]) == 2
    assert capsys.readouterr().err == "error: unknown command fed; did you mean fedr?\n"
    assert cli.main(["xyzzy"]) == 2
    assert capsys.readouterr().err == "error: unknown command xyzzy; secure-kg alone lists them\n"
    assert cli.main(["partition", "--xyzzy"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_one_rank_speaks_for_all(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("PMI_RANK", "2")
    assert cli.main([]) == 0
    assert cli.main(["xyzzy"]) == 0
    assert capsys.readouterr() == ("", "")
