"""The command line: every setting is an option with help, presets fill in, a resumed run keeps its settings."""

import dataclasses
from pathlib import Path

import pytest

from launch import fedr_secagg
from launch.hosts.job import Plan
from launch.options import GROUPS, parse
from secure_kg.federation.plan.presets import PRESETS
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.runs.run_folder import RunFolder


def plan(*arguments: str) -> Plan:
    return parse(arguments, "job", "what it does", "examples")


def test_every_setting_is_an_option_with_help() -> None:
    fields = {entry.name for owner in (RunConfig, TrainingConfig) for entry in dataclasses.fields(owner)}
    assert {name for names in GROUPS.values() for name in names} == fields - {"training", "clients", "format"}


def test_defaults_are_the_papers_and_presets_fill_in() -> None:
    assert plan("--preset", "paper").config == RunConfig()
    small = plan().config
    for name, value in PRESETS["small"].items():
        assert getattr(small, name, None) == value or getattr(small.training, name, None) == value
    assert plan("--dataset", "fb15k237").config.training == TrainingConfig()
    assert plan("--dataset", "NATIONS").config.training == small.training


def test_what_is_said_wins_over_the_preset() -> None:
    config = plan("--lr", "0.5", "--rounds", "7", "--transcript", "--ring-bits", "64", "--model", "ROTATE").config
    assert config.training.lr == 0.5
    assert config.training.model == "RotatE"
    assert (config.rounds, config.transcript, config.ring_bits) == (7, True, 64)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--rnds", "3"], "did you mean --rounds"),
        (["--xyzzy"], "unknown option --xyzzy"),
        (["--rounds", "3.5"], "--rounds"),
        (["--round", "3"], "unknown option"),
        (["--strategy", "fedx"], "--strategy"),
        (["--model", "conve"], "not one of"),
        (["--lr", "nan"], "--lr"),
        (["--lr"], "--lr"),
        (["stray"], "stray"),
    ],
)
def test_mistakes_name_the_option(arguments: list[str], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        plan(*arguments)


def test_resuming_keeps_the_settings(tmp_path: Path) -> None:
    saved = plan("--dataset", "nations", "--rounds", "9", "--seed", "3").config
    RunFolder.create(tmp_path / "run", saved)
    resumed = plan("--resume", str(tmp_path / "run"))
    assert (resumed.config, resumed.out, resumed.resume) == (saved, tmp_path / "run", True)
    assert plan("--resume", str(tmp_path / "run"), "--rounds", "12", "--seed", "3").config.rounds == 12
    with pytest.raises(UserError, match="was started with 3"):
        plan("--resume", str(tmp_path / "run"), "--seed", "4")
    with pytest.raises(UserError, match="leave out --out"):
        plan("--resume", str(tmp_path / "run"), "--out", "other")


def test_help_teaches_without_mpirun(capsys: pytest.CaptureFixture[str]) -> None:
    assert fedr_secagg.main(["--help"]) == 0
    text = capsys.readouterr().out
    for expected in ("--client-data", "--aggregation", "examples:", "mpirun -n 6 python -m launch.fedr_secagg"):
        assert expected in text
