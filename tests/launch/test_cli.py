"""The console script: one sub-command for each launcher, under its own name."""

import importlib
from pathlib import Path

import pytest

import launch
import secure_kg
from launch import cli
from launch.commands import COMMANDS, grouped, restarted, script_names
from secure_kg.foundation.invocation import called_by_script
from secure_kg.foundation.invocation import command as called

Capture = pytest.CaptureFixture[str]


def test_every_launcher_is_a_command() -> None:
    folder = Path(launch.__file__).parent
    launchers = {f"launch.{path.stem}" for path in folder.glob("*.py") if "\ndef main(" in path.read_text()}
    assert {command.module for command in COMMANDS.values()} == launchers - {"launch.cli"}


def test_alone_it_says_on_one_screen_what_to_do_first(capsys: Capture) -> None:
    assert cli.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    first = lines[lines.index("first:") + 1 :][:3]
    assert [line.split()[:2] for line in first] == [["secure-kg", name] for name in ("demo", "doctor", "fedr")]
    width = max(len(title) for title, _ in grouped())
    assert {f"  {title:<{width}}  {', '.join(names)}" for title, names in grouped()} < set(lines)


def test_every_command_is_in_one_group() -> None:
    listed = [name for _, names in grouped() for name in names]
    assert sorted(listed) == sorted(COMMANDS)


def test_help_of_a_command(capsys: Capture) -> None:
    assert cli.main(["help", "partition"]) == 0
    assert capsys.readouterr().out.startswith("usage: secure-kg partition ")
    assert cli.main(["help", "partitoin"]) == 2
    assert capsys.readouterr().err == "error: unknown command partitoin; did you mean partition?\n"
    assert cli.main(["help", "fedr", "fede"]) == 2
    assert capsys.readouterr().err == "error: help explains one command: secure-kg help fedr\n"
    assert cli.main(["--rounds", "5"]) == 2
    assert "options come after a command" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["help"], ["--help"], ["-h"]])
def test_help_lists_the_commands(arguments: list[str], capsys: Capture) -> None:
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
    assert "launch." not in text
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


NEXT_STEPS = (
    ("fedr", ["--adversary", "active"], "error: --adversary active needs --keys DIR: identities made with {keygen}\n"),
    ("fedr", ["--by", "whole"], "error: --by whole is one client alone, not a federation: use {entire}\n"),
    ("fedr", ["--strategy", "entire"], "error: --strategy entire pools all triples in one process: {entire}\n"),
    ("entire", ["--strategy", "fede"], "error: --strategy fede is a job of several processes: {fede}\n"),
    ("entire", ["--strategy=fedr"], "error: --strategy fedr is a job of several processes: {fedr} --strategy fedr\n"),
)


@pytest.mark.parametrize(("name", "arguments", "line"), NEXT_STEPS)
def test_an_error_names_the_next_command_as_the_user_calls_commands(
    name: str, arguments: list[str], line: str, capsys: Capture
) -> None:
    module = COMMANDS[name].module
    for main, names in (
        (lambda: cli.main([name, *arguments]), {one: f"secure-kg {one}" for one in COMMANDS}),
        (
            lambda: importlib.import_module(module).main(arguments),
            {one: f"python -m {entry.module}" for one, entry in COMMANDS.items()},
        ),
    ):
        assert main() == 2
        assert capsys.readouterr().err == line.format(**names)


def test_a_job_is_started_again_under_the_name_by_which_it_was_called() -> None:
    assert restarted("launch.fedr_secagg", ["--seed", "1"]) == ("launch.fedr_secagg", "--seed", "1")
    with called_by_script(script_names()):
        assert restarted("launch.fedr_secagg", ["--seed", "1"]) == ("launch.cli", "fedr", "--seed", "1")
    assert called("launch.fede") == "python -m launch.fede"
