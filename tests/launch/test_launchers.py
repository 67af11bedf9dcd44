"""The launchers: one for each strategy, with the same options; each refuses what another one is for."""

from pathlib import Path
from types import ModuleType

import pytest

from launch import entire, fedcqa, fede, fedr_secagg, fuse, local
from launch.hosts.job import Plan
from launch.main import Launcher
from launch.options import parse
from secure_kg.data.client_data import load_graphs
from secure_kg.data.folders import client_folder, write_client_folder
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.pooled import PooledTrainer
from secure_kg.runs.run_folder import RunFolder

JOBS = {"fedr": fedr_secagg.LAUNCHER, "fede": fede.LAUNCHER, "local": local.LAUNCHER, "entire": entire.LAUNCHER}
COMMANDS = [fedr_secagg, fede, fedcqa, local, entire, fuse]


@pytest.fixture(autouse=True)
def signals_are_those_of_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entire, "end_on_signals", lambda: None)


def plan(launcher: Launcher, *arguments: str) -> Plan:
    return parse(arguments, launcher.prog, launcher.description, launcher.epilog, launcher.defaults)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_every_command_explains_itself(command: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert f"python -m {command.__name__}" in text
    assert "example" in text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_a_mistake_is_one_line(command: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--xyzzy"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")


@pytest.mark.parametrize("strategy", JOBS)
def test_a_launcher_decides_the_strategy_and_nothing_else(strategy: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = plan(JOBS[strategy]).config
    assert config.strategy == strategy
    assert config.training == plan(JOBS["fedr"]).config.training
    with pytest.raises(SystemExit):
        plan(JOBS[strategy], "--help")
    shown = capsys.readouterr().out.split("--strategy")[1].split("--aggregation")[0]
    assert f"[{strategy}]" in shown


def test_what_is_said_wins_over_the_launcher() -> None:
    assert plan(JOBS["fedr"], "--strategy", "local").config.strategy == "local"
    assert plan(JOBS["fedr"], "--strategy", "fede").config.strategy == "fede"
    assert plan(JOBS["fede"], "--strategy", "fedr").config.strategy == "fedr"


def test_the_settings_of_fede_are_a_preset() -> None:
    training = plan(JOBS["fede"], "--preset", "fede").config.training
    assert (training.dim, training.margin, training.lr, training.batch_size) == (256, 10.0, 1e-3, 512)
    assert (training.local_epochs, training.negatives, training.temperature) == (3, 256, 1.0)
    assert plan(JOBS["fede"]).config.training == plan(JOBS["fede"], "--preset", "small").config.training


def test_pooling_has_a_launcher_of_its_own(tmp_path: Path) -> None:
    for strategy in ("fedr", "fede", "local"):
        with pytest.raises(UserError, match=r"python -m launch\.entire"):
            plan(JOBS[strategy], "--strategy", "entire")
    with pytest.raises(UserError, match=r"python -m launch\.fedr_secagg"):
        plan(JOBS["entire"], "--strategy", "fedr")
    with pytest.raises(UserError, match=r"python -m launch\.local"):
        plan(JOBS["entire"], "--strategy", "local")
    RunFolder.create(tmp_path / "pooled", plan(JOBS["entire"]).config)
    RunFolder.create(tmp_path / "other", plan(JOBS["fede"]).config)
    with pytest.raises(UserError, match=r"python -m launch\.entire"):
        plan(JOBS["fedr"], "--resume", str(tmp_path / "pooled"))
    with pytest.raises(UserError, match=r"python -m launch\.fede"):
        plan(JOBS["entire"], "--resume", str(tmp_path / "other"))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--aggregation", "secagg"], "no sum can hide them"),
        (["--aggregation", "secret"], "no sum can hide them"),
        (["--client-fraction", "0.5"], "no clients are drawn"),
        (["--reveal-names"], "no names are aligned"),
        (["-n", "1"], "-n 1: at least 2"),
        (["--dataset", "umlz"], "unknown data set umlz"),
        (["--client-data", "nowhere"], "nowhere"),
        (["--device", "cuda", "--dataset", "nations"], "no GPU"),
    ],
)
def test_pooling_refuses_in_one_line(
    arguments: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert entire.main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(60)
def test_a_pool_that_fails_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["-n", "3", "--dataset", "nations", "--rounds", "2", "--out", "run"]
    assert entire.main([*options, "--model", "distmult", "--lr", "1e30"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "not finite in round 1" in line
    monkeypatch.setattr(PooledTrainer, "evaluate", lambda *_: 1 / 0)
    assert entire.main(options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "internal error (ZeroDivisionError)" in line
    assert "ZeroDivisionError" in (tmp_path / "run/pool/error.log").read_text()


def test_other_ranks_leave_at_once_and_the_count_of_ranks_is_that_of_mpirun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setenv("PMI_RANK", "2")
    assert entire.main(["--xyzzy"]) == 0
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("PMI_RANK", "0")
    assert entire.main(["-n", "3"]) == 2
    assert "-n 3: mpirun started 4 ranks" in capsys.readouterr().err


def test_one_participant_is_enough_for_pooling_only() -> None:
    assert RunConfig(strategy="entire", aggregation="plain", min_participants=1).min_participants == 1
    with pytest.raises(UserError, match="--min-participants"):
        RunConfig(strategy="local", aggregation="plain", min_participants=1)


def test_how_many_clients_are_pooled(tmp_path: Path) -> None:
    nations = load_source("nations")
    assert len(load_graphs(RunConfig(dataset="nations"), None, 5)) == 5
    assert len(load_graphs(RunConfig(dataset="nations"), 2, 5)) == 2
    for number, graph in enumerate(partition(nations, 3, "triples", 0), start=1):
        write_client_folder(client_folder(tmp_path, number), graph)
    folders = RunConfig(client_data=str(tmp_path))
    assert [graph.train.tolist() for graph in load_graphs(folders, None, 5)] == [
        graph.train.tolist() for graph in load_graphs(RunConfig(dataset="nations"), 3, 5)
    ]
    with pytest.raises(UserError, match="client-4"):
        load_graphs(folders, 4, 5)
    with pytest.raises(UserError, match="the data of one client, not of 2"):
        load_graphs(RunConfig(client_data=str(client_folder(tmp_path, 1))), 2, 5)


def test_one_graph_is_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["-n", "2", "--dataset", "nations", "--rounds", "1", "--dim", "4", "--out", "run"]
    assert entire.main(options) == 0
    shown = capsys.readouterr().out
    assert "Entire: one graph, nothing to pool" in shown
    assert "not private" not in shown
    assert "to compare" not in shown
