"""From a table to runs: which there are, what each is called, and the command that starts it."""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.reproduction.settings import TableSettings
from benchmarks.reproduction.table import TITLES, Dataset, Table
from launch.hosts.environment import mpirun_command
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.typed_fields import flag
from secure_kg.foundation.errors import UserError

_FUSED_FROM: Final = ("fede", "local")
_ALONE: Final = ("local", "fedr")  # clients with no entities in common
_SMALL_SUM_DROPOUT: Final = 0.2  # the usual declaration leaves sums of five among ten clients no honest pair
_USUAL_CORRUPT: Final = RunConfig().max_corrupt
_HONEST: Final = 2  # a sum over fewer hides nothing
_HOLDERS: Final = 2  # of a row that is added up: the papers add up every row, and of one holder no sum hides anything

# Many clients on few cores are slow, and none of them is dead: nobody is to be left out of a figure for that.
_PATIENT: Final = {"deadline": 7200, "grace": 600}


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: a setting of the table, and a seed."""

    dataset: str
    clients: int
    model: str
    strategy: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, {self.clients} clients, {self.model}, {TITLES[self.strategy]}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for."""

    table: Table
    datasets: tuple[str, ...]
    clients: tuple[int, ...]
    models: tuple[str, ...]
    strategies: tuple[str, ...]
    seeds: tuple[int, ...]
    settings: TableSettings
    tuned: dict[str, TableSettings]
    """By strategy, where it has settings of its own."""
    aggregation: str
    data_root: Path
    runs: Path

    def groups(self) -> Iterator[tuple[str, int, str]]:
        """The lines of the table: data set, clients, model."""
        for dataset in self.datasets:
            for clients in self.clients:
                for model in self.models:
                    yield dataset, clients, model

    def told(self, cell: Cell) -> dict[str, Any]:
        """The settings of a run by their names in config.toml."""
        return self.tuned.get(cell.strategy, self.settings).told(cell.model)

    def dataset(self, cell: Cell) -> Dataset:
        return self.table.datasets[cell.dataset]

    def cells(self) -> list[Cell]:
        """Every run, seed by seed: when time runs out, what is there are whole comparisons, each of fewer seeds.

        Fusion joins two other runs, so these are part of the plan even if they were not asked for.
        """
        needed = [
            *(name for name in _FUSED_FROM if "fused" in self.strategies and name not in self.strategies),
            *(name for name in self.strategies if name != "fused"),
            *(name for name in self.strategies if name == "fused"),
        ]
        return [Cell(*group, strategy, seed) for seed in self.seeds for group in self.groups() for strategy in needed]


@dataclass(frozen=True, slots=True)
class Job:
    """A cell's run: where it lies, and how it is started or gone on with."""

    cell: Cell
    folder: Path
    start: tuple[str, ...]
    resume: tuple[str, ...]
    settings: dict[str, Any]
    """What the run's config.toml must say for the run to be this one."""
    needs: tuple[Cell, ...] = ()
    """Runs that must be finished before."""
    cross_graph: bool = False
    """Whether it is judged by queries across graphs as well."""

    @property
    def result(self) -> Path:
        """The file whose presence means that the run is finished."""
        return self.folder / ("fusion.json" if self.cell.strategy == "fused" else "summary.json")

    @property
    def log(self) -> Path:
        return self.folder.with_name(self.folder.name + ".log")

    @property
    def crossing(self) -> Path:
        """Figures of queries across graphs, beside the folder."""
        return self.folder.with_name(self.folder.name + ".cross.json")

    @property
    def record(self) -> Path:
        """What was spent on the run, beside its folder: the folder itself belongs to the run."""
        return self.folder.with_name(self.folder.name + ".job.json")


def folder_name(cell: Cell, aggregation: str) -> str:
    return f"{cell.dataset}-c{cell.clients}-{cell.model.lower()}-{cell.strategy}-{aggregation}-seed{cell.seed}"


def job_for(request: Request, cell: Cell) -> Job:
    """Runs write a checkpoint at every evaluation: an interruption costs no more than the rounds since the last one."""
    folder = request.runs / folder_name(cell, request.aggregation)
    if cell.strategy == "fused":
        needs = tuple(dataclasses.replace(cell, strategy=strategy) for strategy in _FUSED_FROM)
        inputs = [str(request.runs / folder_name(need, request.aggregation)) for need in needs]
        fusing = (sys.executable, "-m", "launch.fuse", *inputs, "--out", str(folder))
        return Job(cell, folder, fusing, fusing, {}, needs)
    queries = request.table.of_queries
    settings = _query_settings(request, cell) if queries else _settings(request, cell)
    local = {"checkpoint_every": settings["eval_every"], **_PATIENT}
    command = _query_command if queries else _command
    preset = ["--preset", "usual" if queries else "paper"]
    return Job(
        cell,
        folder,
        start=command(cell, [*preset, *_options(settings | local), "--out", str(folder)]),
        resume=command(cell, ["--resume", str(folder)]),
        settings=settings | {"clients": cell.clients},
        cross_graph=queries and cell.strategy not in _ALONE,
    )


def _settings(request: Request, cell: Cell) -> dict[str, Any]:
    """The run's settings by their names in config.toml, all that matter for the result said aloud."""
    dataset = request.dataset(cell)
    settings: dict[str, Any] = {"dataset": str(request.data_root / dataset.where(cell.clients))}
    if not dataset.published:
        settings["by"] = dataset.by
    if dataset.leaky:
        settings["allow_leaky_split"] = True
    if cell.strategy != "entire":  # where all triples lie together nothing is shared, aligned or summed in secret
        settings |= {"strategy": cell.strategy, "aggregation": request.aggregation, "alignment": "psu"}
        settings["min_holders"] = _HOLDERS
        fraction = request.table.client_fraction(cell.strategy, cell.clients)
        if fraction < 1:
            settings |= {"client_fraction": fraction, "max_dropout": _SMALL_SUM_DROPOUT}
    settings |= request.told(cell)
    if settings.get("client_fraction", 1.0) < 1:
        settings |= _small_sums(settings["client_fraction"], cell.clients)
    return settings | {"seed": cell.seed}


def _small_sums(fraction: float, clients: int) -> dict[str, float]:
    """Declarations under which a sum of so few clients still hides two honest ones."""
    drawn = max(_HONEST, round(fraction * clients))
    declared = {"max_dropout": _SMALL_SUM_DROPOUT}
    return (
        declared
        if drawn - _HONEST >= _USUAL_CORRUPT * clients
        else declared | {"max_corrupt": (drawn - _HONEST) / clients}
    )


def _query_settings(request: Request, cell: Cell) -> dict[str, Any]:
    """The same for runs that train on queries."""
    dataset, told = request.dataset(cell), request.told(cell)
    settings: dict[str, Any] = {"dataset": str(request.data_root / dataset.where(cell.clients))}
    if not dataset.published:
        settings["by"] = dataset.by
    settings["strategy"] = "fedcqa" if cell.strategy == "fedcqa" else f"fedcqa-{cell.strategy}"
    if cell.strategy == "central":
        told.pop("client_fraction")
    else:
        settings |= {"aggregation": request.aggregation, "alignment": "psu", "min_holders": _HOLDERS}
        if told["client_fraction"] < 1:
            settings["max_dropout"] = _SMALL_SUM_DROPOUT
    return settings | told | {"seed": cell.seed}


def _options(settings: dict[str, Any]) -> list[str]:
    options: list[str] = []
    for name, value in settings.items():
        options += [flag(name)] if value is True else [flag(name), str(value)]
    return options


def _command(cell: Cell, arguments: Sequence[str]) -> tuple[str, ...]:
    ranks = cell.clients + 1
    if cell.strategy == "entire":
        return (sys.executable, "-m", "launch.entire", "-n", str(ranks), *arguments)
    return tuple(mpirun_command(ranks, ["launch.fedr_secagg", *arguments]))


def _query_command(cell: Cell, arguments: Sequence[str]) -> tuple[str, ...]:
    ranks = cell.clients + 1
    if cell.strategy == "central":
        return (sys.executable, "-m", "launch.fedcqa", "-n", str(ranks), *arguments)
    return tuple(mpirun_command(ranks, ["launch.fedcqa", *arguments]))


def tuned_settings(
    given: Sequence[Sequence[str]], strategies: Sequence[str], settings: TableSettings
) -> dict[str, TableSettings]:
    """Settings of single strategies: the word of each, and NAME=VALUE."""
    found: dict[str, TableSettings] = {}
    for strategy, *words in given:
        trained = [name for name in strategies if name != "fused"]
        if strategy not in trained:
            raise UserError(f"--tuned {strategy}: there are {', '.join(trained)}")
        pairs = [word.partition("=") for word in words]
        if not pairs or not all(equals for _, equals, _ in pairs):
            raise UserError(f"--tuned {strategy} must be followed by NAME=VALUE ...")
        names = {name.lstrip("-").replace("-", "_"): value for name, _, value in pairs}
        found[strategy] = found.get(strategy, settings).changed(names)
        found[strategy].check()
    return found


def chosen(
    option: str, given: Sequence[str] | None, allowed: Sequence[str] | dict[str, Any], usual: tuple[str, ...]
) -> tuple[str, ...]:
    """What was asked for, in the table's order and spelling."""
    known = {name.lower(): name for name in allowed}
    for word in given or ():
        if word.lower() not in known:
            raise UserError(f"{option} {word}: this table has {', '.join(known)}")
    wanted = {word.lower() for word in given or usual}
    return tuple(name for name in allowed if name.lower() in wanted)
