"""`simulate`: a whole federated run in one process, by the code that runs under mpirun, and with the same result.

>>> import secure_kg
>>> result = secure_kg.simulate("nations", clients=3, rounds=4, eval_every=2, dim=8)
>>> sorted(result.metrics)[:3]
['both_sides', 'hits@1', 'hits@10']
>>> [round for round, mrr in result.curve]
[2, 4]
>>> result.disclosures[0].server
'their sums only, over the survivors'
>>> result.client(1).predict_tails("china", "militaryalliance", top=3).kind
'tail'
"""

import dataclasses
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from secure_kg.data.client_data import load_graphs, number_of_clients
from secure_kg.data.folders import require_new_or_empty
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES, learner_of
from secure_kg.foundation.console import progress_line
from secure_kg.foundation.errors import UserError
from secure_kg.report.page import run_report
from secure_kg.runs.client_folder import LOCK as SESSION_LOCK
from secure_kg.runs.client_folder import STATE_KEY
from secure_kg.runs.run_folder import LOCK, RunFolder, read_config, write_whole
from secure_kg.simulation.keywords import in_keywords, settings_of
from secure_kg.simulation.own_data import Data, place_of, write_data
from secure_kg.trained.auditing import AuditOutcome
from secure_kg.trained.result import RunResult
from secure_kg.trained.run import TrainedRun, load_run

USUAL_CLIENTS: Final = 5
"""As a job has that is started without a number."""
_RUN, _DATA = "run", "data"
_NOT_COPIED: Final = (LOCK, SESSION_LOCK, STATE_KEY, "pid")


class SimulatedRun(RunResult):
    """The result of a simulation. Its folder is temporary: it goes with this object, unless `save` has copied it."""

    def __init__(self, run: TrainedRun, scratch: Path) -> None:
        super().__init__(run)
        self._scratch = scratch
        self._end = weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        self._audited: SimulatedRun | None = None

    def audit(self, *, attacks: bool = True) -> AuditOutcome:
        """What the server observed. Without `transcript=True` the same run is made once more, and recorded."""
        if STRATEGIES[self.summary.settings.strategy].pools:
            raise UserError("all triples were in one place: there was no server to audit")
        if not self.run.settings.transcript and self._audited is None:
            self._audited = _run(dataclasses.replace(self.run.settings, transcript=True), self._scratch / _DATA)
        return (self._audited or self).run.audit(attacks=attacks)

    def save(self, folder: str | Path) -> Path:
        """Copy the run, with data that were given as triples, to a new folder, for `load_run` and commands.

        Only its owner can read the data there. The clients' keys (`state.key`) are not copied: whoever has one can take
        the noise of a private run off again. So a copy is read, asked and compared, and a private one trains no
        further: its budget belongs to the run that it was copied from.
        """
        place = Path(folder)
        require_new_or_empty(place)
        try:
            shutil.copytree(self.path, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_NOT_COPIED))
            if (self._scratch / _DATA).is_dir():
                _copy_for_owner(self._scratch / _DATA, place / _DATA)
        except OSError as problem:
            raise UserError(f"{place}: cannot be written ({problem.strerror or problem})") from None
        if (place / _DATA).is_dir():
            _move_data(place, str((place / _DATA).resolve()))
        return place


def simulate(data: Data = "umls", *, clients: int | None = None, **settings: Any) -> SimulatedRun:
    """Train together in one process: a server and its clients as threads, with the real protocols between them.

    `data`: a data set's name, which is divided among the clients; a path; a folder with `client-1`, `client-2`, ...; or
    one list of (head, relation, tail) for each client, of which a tenth each is held out for validation and test.
    `clients`: how many; by default as many as the data have, else 5. `settings`: those of the commands under the same
    names, such as strategy, aggregation, rounds, model, dim, seed, or dp, epsilon and delta; `preset` as well. An
    unknown one is a `UserError` with the nearest name.

    With the same settings the result is, to the last bit, that of a job under mpirun. On a terminal a line shows the
    progress. Ctrl-C ends all threads and leaves no files.
    """
    scratch = Path(tempfile.mkdtemp(prefix="secure-kg-"))
    try:
        place = place_of(data)
        config = settings_of(settings, place or {"client_data": str(scratch / _DATA)})
        if place is None and not isinstance(data, str | Path):
            if clients not in (None, len(data)):
                raise UserError(f"clients: {clients}, but data has the triples of {len(data)}")
            write_data(data, scratch / _DATA, config.seed)
        number = clients if clients is not None else number_of_clients(config, USUAL_CLIENTS)
        return _run_in(scratch, _for_clients(config, number))
    except BaseException as problem:
        shutil.rmtree(scratch, ignore_errors=True)
        if isinstance(problem, UserError):
            raise type(problem)(in_keywords(str(problem))) from problem.__cause__
        raise


def _copy_for_owner(source: Path, target: Path) -> None:
    """A folder of files and folders that nobody else can read, not even while it is copied."""
    target.mkdir(mode=0o700)
    for path in source.iterdir():
        if path.is_dir():
            _copy_for_owner(path, target / path.name)
        else:
            with os.fdopen(os.open(target / path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(path.read_bytes())


def _move_data(run: Path, data: str) -> None:
    """Name the folder of the clients' data in the files of a run that name it."""
    moved = dataclasses.replace(read_config(run), client_data=data)
    write_whole(run / "config.toml", moved.to_toml().encode())
    folder = RunFolder(run)
    if (summary := folder.summary()) is not None:
        told = msgspec.structs.replace(summary, config=summary.config | {"client_data": data})
        folder.write_report(run_report(told, folder.all_metrics(), folder.settings()))
        folder.write_summary(told)


def _for_clients(config: RunConfig, clients: int) -> RunConfig:
    if not isinstance(clients, int) or clients < 1:
        raise UserError("clients must be a whole number from 1 on")
    if clients < 2 and not STRATEGIES[config.strategy].pools:
        raise UserError(f"{clients} client: a federation has at least 2")
    return dataclasses.replace(config, clients=clients)


def _run(config: RunConfig, data: Path) -> SimulatedRun:
    """A run of settings that are complete. `data`: triples that were given, if it is there."""
    scratch = Path(tempfile.mkdtemp(prefix="secure-kg-"))
    try:
        if data.is_dir():
            shutil.copytree(data, scratch / _DATA)
            config = dataclasses.replace(config, client_data=str(scratch / _DATA))
        return _run_in(scratch, config)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _run_in(scratch: Path, config: RunConfig) -> SimulatedRun:
    graphs = load_graphs(config, config.clients, USUAL_CLIENTS)
    with progress_line() as report:
        if STRATEGIES[config.strategy].pools:
            _pooled(config, graphs, scratch / _RUN, report)
        else:
            # Torch takes its time: mistakes above are told at once.
            from secure_kg.simulation.parties import run_parties

            run_parties(config, graphs, scratch / _RUN, report)
    return SimulatedRun(load_run(scratch / _RUN), scratch)


def _pooled(config: RunConfig, graphs: list[Any], path: Path, report: Callable[[str], None]) -> None:
    from secure_kg.data.pooling import pool
    from secure_kg.federation.pooled import run_pooled
    from secure_kg.federation.server.serve import run_in_folder
    from secure_kg.learning.device import pick_device
    from secure_kg.runs.outcome import ServerOutcome

    device = pick_device(0, config.device)
    trainer = learner_of(config).make_pooled(config, pool(graphs), device)

    def work(folder: RunFolder) -> ServerOutcome:
        return run_pooled(config, trainer, folder, report)

    run_in_folder(config, path, resume=False, work=work)
