"""The queue of a campaign: entries in order of priority, each a part of a table with its settings.

A TOML file with one `[[entry]]` for each; `benchmarks/campaign.toml` is the project's own:

    name        a word for it, in lower case
    asks        the question that it decides, in one line
    table       a table of `benchmarks.reproduce`
    datasets, clients, models, strategies, seeds     which of its cells
    settings    those that are not the table's own
    tuned       those of one strategy alone, by its name
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.reproduction.cells import Cell, Job, Request, chosen, job_for, tuned_settings
from benchmarks.reproduction.provenance import RESULTS_VERSION
from benchmarks.reproduction.tables import TABLES
from secure_kg.foundation.errors import UserError

OWN_QUEUE: Final = Path(__file__).parents[1] / "campaign.toml"

_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_KEYS: Final = {
    "name": str,
    "asks": str,
    "table": str,
    "datasets": list,
    "clients": list,
    "models": list,
    "strategies": list,
    "seeds": list,
    "settings": dict,
    "tuned": dict,
}
_NEEDED: Final = ("name", "asks", "table", "seeds")


@dataclass(frozen=True, slots=True)
class Entry:
    """Some cells of one table under the same settings."""

    name: str
    asks: str
    table: str
    request: Request

    @property
    def jobs(self) -> list[Job]:
        return [job_for(self.request, cell) for cell in self.request.cells()]

    def identity(self, cell: Cell) -> dict[str, Any]:
        """What tells the cell's run from every other one, whatever table it is for. No place of this machine."""
        identity: dict[str, Any] = {"dataset": cell.dataset, "clients": cell.clients, "model": cell.model}
        identity |= {"strategy": cell.strategy, "seed": cell.seed}
        job = job_for(self.request, cell)
        of = [job_for(self.request, need) for need in job.needs] or [job]
        settings = {one.cell.strategy: _without_places(one.settings) for one in of}
        return identity | {"settings": settings if job.needs else settings[cell.strategy]}


def read_queue(path: Path, data_root: Path, runs: Path, changes: dict[str, Any] | None = None) -> list[Entry]:
    """The entries in order; `UserError` in one line for what is no queue.

    `changes`: keys that every entry has instead of its own; settings are added to its own.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UserError(f"{path}: not a TOML file ({problem})") from None
    entries = content.get("entry")
    if set(content) != {"entry"} or not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise UserError(f"{path}: a queue has [[entry]] tables and nothing else")
    changed = [_changed(one, changes or {}) for one in entries]
    found = [_entry(one, f"{path}, entry {place}", data_root, runs) for place, one in enumerate(changed, start=1)]
    names = [entry.name for entry in found]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{path}: two entries are called {name}")
    return found


def only(entries: list[Entry], names: list[str] | None) -> list[Entry]:
    """Those of these names, in the queue's order; all of them for None."""
    known = [entry.name for entry in entries]
    for name in names or ():
        if name not in known:
            raise UserError(f"--only {name}: the queue has {', '.join(known)}")
    return entries if names is None else [entry for entry in entries if entry.name in names]


def _changed(given: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    settings = given.get("settings", {}) | changes.get("settings", {})
    return given | changes | ({"settings": settings} if settings else {})


def _entry(given: dict[str, Any], where: str, data_root: Path, runs: Path) -> Entry:
    for problem in _problems(given):
        raise UserError(f"{where}: {problem}")
    table = TABLES[given["table"]]
    try:
        settings = table.settings.changed({name: str(value) for name, value in given.get("settings", {}).items()})
        settings.check()
        strategies = chosen("strategies", given.get("strategies"), table.strategies, table.strategies)
        words = [
            [name, *(f"{key}={value}" for key, value in own.items())] for name, own in given.get("tuned", {}).items()
        ]
        request = Request(
            table=table,
            datasets=chosen("datasets", given.get("datasets"), table.datasets, table.usual_datasets),
            clients=tuple(dict.fromkeys(given.get("clients", table.clients))),
            models=chosen("models", given.get("models"), table.models, table.usual_models),
            strategies=strategies,
            seeds=tuple(dict.fromkeys(given["seeds"])),
            settings=settings,
            tuned=tuned_settings(words, strategies, settings),
            aggregation=table.aggregation,
            data_root=data_root,
            # Runs of other settings or of another version lie elsewhere: a run is found again by its name alone.
            runs=runs / f"v{RESULTS_VERSION}" / given["name"],
        )
    except UserError as problem:
        raise UserError(f"{where}: {problem}") from None
    return Entry(given["name"], given["asks"], given["table"], request)


def _problems(given: dict[str, Any]) -> Iterator[str]:
    for name in given:
        if name not in _KEYS:
            yield f"{name} is none of {', '.join(_KEYS)}"
    for name in _NEEDED:
        if name not in given:
            yield f"has no {name}"
    for name, value in given.items():
        if not isinstance(value, _KEYS[name]) or value in ([], ""):
            yield f"{name} must be a {_KEYS[name].__name__}, and not empty"
    for name, least in (("clients", 2), ("seeds", 0)):
        if not all(type(value) is int and value >= least for value in given.get(name, ())):
            yield f"{name} must be whole numbers of at least {least}"
    for name in ("datasets", "models", "strategies"):
        if not all(isinstance(value, str) for value in given.get(name, ())):
            yield f"{name} must be words"
    if not _NAME.fullmatch(given["name"]):
        yield "name must be of small letters and digits, with single hyphens between them"
    if given["table"] not in TABLES:
        yield f"table {given['table']}: there are {', '.join(TABLES)}"


def _without_places(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in ("dataset", "seed", "clients")}
