"""The command line: every setting is an option with help, presets fill in, a resumed run keeps its settings."""

import dataclasses
import re
from pathlib import Path

import pytest

from launch import fedcqa, fedr_secagg
from launch.hosts.job import Plan
from launch.options import GROUPS, QUERY_GROUPS, parse
from secure_kg.federation.plan.presets import PRESETS, QUERY_PRESETS
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.query_config import QueryConfig
from secure_kg.models.networks.kbgat_config import KbgatConfig
from secure_kg.models.networks.kinds import NETWORKS
from secure_kg.models.networks.noge_config import NogeConfig
from secure_kg.privacy.run_config import PrivacyConfig
from secure_kg.runs.run_folder import RunFolder

UNSAID = {"training", "queries", "network", "privacy", "clients", "format"}


def plan(*arguments: str) -> Plan:
    return parse(arguments, "job", "what it does", "examples")


def query_plan(*arguments: str) -> Plan:
    return parse(arguments, "job", "what it does", "examples", fedcqa.LAUNCHER.defaults)


def test_every_setting_is_an_option_with_help() -> None:
    owners = [RunConfig, TrainingConfig, PrivacyConfig, *(kind.settings for kind in NETWORKS.values())]
    fields = {entry.name for owner in owners for entry in dataclasses.fields(owner)}
    assert {name for names in GROUPS.values() for name in names} == fields - UNSAID


def test_settings_of_queries_are_options_of_their_launcher() -> None:
    fields = {entry.name for owner in (RunConfig, QueryConfig) for entry in dataclasses.fields(owner)}
    assert {name for names in QUERY_GROUPS.values() for name in names} == fields - UNSAID
    small = query_plan().config
    assert small.queries is not None
    for name, value in QUERY_PRESETS["small"].items():
        assert getattr(small.queries, name, getattr(small, name, None)) == value
    said = query_plan("--dataset", "fb15k237", "--step", "2", "--encoder", "q2p", "--rounds", "7").config
    assert said.queries == QueryConfig(step=2.0, encoder="q2p")
    assert (said.strategy, said.aggregation, said.by, said.rounds) == ("fedcqa", "secret", "relations", 7)


def test_a_graph_network_has_options_and_defaults_of_its_own() -> None:
    usual = plan("--model", "noge", "--dataset", "fb15k237").config
    assert usual.network == NogeConfig()
    assert (usual.model, usual.rounds, usual.aggregation) == ("NoGE", 300, "secagg")
    small = plan("--model", "NOGE").config
    assert small.network == NogeConfig(dim=64, batch_size=256)
    assert plan("--model", "noge", "--ring-bits", "16").config.clip == 16.0  # how far its rows grow was not measured
    said = plan("--model", "noge", "--dim", "12", "--dropout", "0.2", "--means-loaded", "for-evaluation").config
    assert said.network == NogeConfig(dim=12, batch_size=256, dropout=0.2, means_loaded="for-evaluation")


def test_help_names_what_a_graph_network_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        plan("--help")
    said = " ".join(capsys.readouterr().out.split())
    for words in ("|noge", "graph networks (--model noge", "--means-loaded", "noge takes --batch- size 1024"):
        assert words in said


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--model", "noge", "--margin", "3"], "--margin: --model noge has no such setting"),
        (["--model", "noge", "--negatives", "3"], "--negatives: --model noge has no such setting"),
        (["--dropout", "0.3"], "--dropout: --model transe has no such setting; it is for noge"),
        (["--model", "noge", "--preset", "fede"], "--preset fede is for embedding models"),
        (["--model", "noge", "--dp", "sgd", "--epsilon", "2", "--delta", "1e-5"], "--dp: private gradients"),
        (["--model", "noge", "--dim", "30"], "--dim must be a multiple of 4"),
        (["--model", "noge", "--dropout", "1"], "--dropout must be at least 0 and below 1"),
        (["--model", "noge", "--lr", "0"], "--lr must be a positive number"),
    ],
)
def test_mistakes_about_a_graph_network_name_the_option(arguments: list[str], problem: str) -> None:
    with pytest.raises(UserError, match=problem) as found:
        plan(*arguments)
    assert "\n" not in str(found.value)


def test_a_run_of_a_graph_network_keeps_its_settings(tmp_path: Path) -> None:
    saved = plan("--model", "noge", "--dim", "8").config
    RunFolder.create(tmp_path / "run", saved)
    assert plan("--resume", str(tmp_path / "run")).config == saved
    assert plan("--resume", str(tmp_path / "run"), "--rounds", "99").config.rounds == 99
    with pytest.raises(UserError, match=r"--dropout 0.2: the run in .* was started with 0.5"):
        plan("--resume", str(tmp_path / "run"), "--dropout", "0.2")
    with pytest.raises(UserError, match="--margin: --model noge has no such setting"):
        plan("--resume", str(tmp_path / "run"), "--margin", "2")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--strategy", "fedr"], "--strategy"),
        (["--margin", "3"], "unknown option --margin"),
        (["--encoder", "box"], "--encoder"),
        (["--test-types", "2in"], "no definition of a negation"),
        (["--strategy", "fedcqa-central"], "launch.fedcqa"),
    ],
)
def test_mistakes_in_queries_name_the_option(arguments: list[str], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        query_plan(*arguments)


def test_a_run_on_queries_is_resumed_by_its_own_launcher(tmp_path: Path) -> None:
    saved = query_plan("--dim", "8", "--step", "1.5").config
    RunFolder.create(tmp_path / "run", saved)
    assert query_plan("--resume", str(tmp_path / "run")).config == saved
    with pytest.raises(UserError, match=r"--step 2.0: the run in .* was started with 1.5"):
        query_plan("--resume", str(tmp_path / "run"), "--step", "2")
    with pytest.raises(UserError, match=r"python -m launch\.fedcqa"):
        plan("--resume", str(tmp_path / "run"))


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


def test_kbgat_has_options_and_defaults_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    usual = plan("--model", "kbgat", "--dataset", "fb15k237").config
    assert usual.network == KbgatConfig()
    said = plan("--model", "kbgat", "--preset", "paper", "--two-hop", "0", "--final-rows", "last-batch").config
    assert said.network == KbgatConfig(two_hop=0, final_rows="last-batch")
    with pytest.raises(SystemExit):
        plan("--help")
    said_of_it = " ".join(capsys.readouterr().out.split())
    for words in ("noge|kbgat", "--decoder-epochs INT", "the paper takes 150 and 500", "kbgat takes --batch-size 512"):
        assert words.replace("- ", "-") in said_of_it.replace("- ", "-")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--model", "kbgat", "--temperature", "2"], "--temperature: --model kbgat has no such setting"),
        (["--model", "kbgat", "--dropout", "0.2"], "--dropout: --model kbgat has no such setting; it is for noge"),
        (["--model", "noge", "--filters", "3"], "--filters: --model noge has no such setting; it is for kbgat"),
        (["--model", "kbgat", "--heads", "0"], "--heads must be at least 1"),
        (["--model", "kbgat", "--negatives", "3"], "--negatives must be even"),
        (["--model", "kbgat", "--final-rows", "none"], "--final-rows none: choose one of whole, last-batch"),
    ],
)
def test_mistakes_about_kbgat_name_the_option(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((UserError, SystemExit)) as found:
        plan(*arguments)
    said = str(found.value) + capsys.readouterr().err
    assert re.search(problem, said)
