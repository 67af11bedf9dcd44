"""Completion scripts, as the shells themselves run them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from launch import cli
from launch.commands import COMMANDS
from launch.completion import all_words
from launch.completions import bash, fish, zsh
from launch.completions.words import Words


@pytest.fixture(scope="module")
def commands() -> list[Words]:
    return list(all_words())


@pytest.fixture(scope="module")
def scripts(commands: list[Words]) -> dict[str, str]:
    return {"bash": bash.script(commands), "zsh": zsh.script(commands), "fish": fish.script(commands)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runs" / "my run").mkdir(parents=True)
    (tmp_path / "graph.tsv").write_text("a\tb\tc\n")
    return tmp_path


def by_bash(script: str, folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    typed = " ".join(f"'{word}'" for word in ("secure-kg", *words))
    ask = f"COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _secure_kg; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    program = f"{script}\n{ask}"
    done = subprocess.run(["bash", "--norc", "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return sorted(line for line in done.stdout.splitlines() if line)


OFFERED = (
    (("fed",), ["fedcqa", "fede", "federation", "fedr"]),
    (("help", "dem"), ["demo"]),
    (("fedr", "--aggr"), ["--aggregation"]),
    (("fedr", "--aggregation", "sec"), ["secagg", "secret"]),
    (("fedr", "--aggregation", "=", "pl"), ["plain"]),
    (("fede", "--model", "transm"), ["transm"]),
    (("fedcqa", "--strategy", "fedcqa-l"), ["fedcqa-local"]),
    (("fedr", "--dataset", "um"), ["umls"]),
    (("fedr", "--dataset", "gr"), ["graph.tsv"]),
    (("fedr", "--rounds", ""), []),
    (("audit", "ru"), ["runs"]),
    (("audit", "runs/"), ["runs/my run"]),
    (("audit", "gr"), []),
    (("predict", "runs/my run", "--known", ""), ["keep", "leave-out", "mark"]),
    (("completion", "z"), ["zsh"]),
    (("site", "ro"), ["rotate"]),
    (("site", "check", "gr"), ["graph.tsv"]),
    (("site", "check", "--members"), ["--members-compared"]),
    (("federation", "ap"), ["approve"]),
    (("federation", "approve", "--in"), ["--in-place-of"]),
    (("federation", "new", "fedc"), ["fedcqa"]),
)


@pytest.mark.parametrize(("words", "offered"), OFFERED, ids=lambda one: " ".join(one))
def test_bash_offers_what_may_follow(
    words: tuple[str, ...], offered: list[str], scripts: dict[str, str], folder: Path
) -> None:
    assert by_bash(scripts["bash"], folder, *words) == offered


def test_bash_knows_every_command_and_option(commands: list[Words], scripts: dict[str, str], folder: Path) -> None:
    assert by_bash(scripts["bash"], folder, "") == sorted([*COMMANDS, "help", "--help", "--version"])
    for name in ("fedr", "ask", "doctor"):
        (one,) = (one for one in commands if one.command == name)
        assert by_bash(scripts["bash"], folder, name, "-") == sorted(name for o in one.options for name in o.names)


def test_options_are_those_of_the_parsers(commands: list[Words]) -> None:
    by_name = {one.command: {name: option for option in one.options for name in option.names} for one in commands}
    assert set(by_name) == set(COMMANDS)
    assert by_name["fedr"]["--rounds"].value is not None
    assert by_name["fedr"]["--transcript"].value is None
    assert {"--encoder", "--resume"} <= set(by_name["fedcqa"])
    assert by_name["export"]["--to"].value is not None
    assert by_name["export"]["--to"].value.words == ("pykeen", "safetensors", "word2vec", "neo4j")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_their_scripts(shell: str, scripts: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(scripts[shell] + "\n")
    assert "--aggregation" in scripts[shell] or "-l aggregation" in scripts[shell]
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    subprocess.run([shell, "-n", str(path)], check=True, capture_output=True)


def test_fish_offers_what_may_follow(scripts: dict[str, str], folder: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("no fish here")

    def offered(typed: str) -> list[str]:
        program = f"{scripts['fish']}\ncomplete -C {typed!r}"
        done = subprocess.run(["fish", "-N", "-c", program], cwd=folder, capture_output=True, text=True, check=True)
        return sorted(line.partition("\t")[0] for line in done.stdout.splitlines())

    assert offered("secure-kg fed") == ["fedcqa", "fede", "fedr"]
    assert offered("secure-kg fedr --aggregation sec") == ["secagg", "secret"]
    assert offered("secure-kg fedr --dataset um") == ["umls"]


@pytest.mark.slow  # zsh looks through all of its own functions first
def test_zsh_takes_its_script(scripts: dict[str, str], tmp_path: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    (tmp_path / "_secure-kg").write_text(scripts["zsh"] + "\n")
    start = f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -d {tmp_path}/dump"
    program = f"{start}; print $_comps[secure-kg]"
    done = subprocess.run(["zsh", "-f", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "_secure-kg\n"


def test_the_command_prints_it(scripts: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == scripts["bash"] + "\n"
    assert cli.main(["completion", "tcsh"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
