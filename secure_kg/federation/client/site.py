"""The site of a client: where it keeps its files, and what it brings to a run.

`OwnSite` is that of a client with its own process and files; a simulation hands its clients a `PreparedSite`.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from protocols.session.credentials import Credentials
from secure_kg.data.client_data import load_graph
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client.members import NUMBERS_ALONE, Members
from secure_kg.federation.client.moved import moved
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.console import say
from secure_kg.foundation.errors import UserError
from secure_kg.learning.device import computed_on, pick_device
from secure_kg.learning.learner import Learner
from secure_kg.runs.client_folder import open_folder, read_openings, run_id
from secure_kg.runs.key_files import load_credentials, record_folder
from secure_kg.runs.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a client trains and signs with."""

    learner: Learner
    credentials: Credentials | None = None
    """Its signing key and the others' pinned identities, against an active server."""
    record: Path | None = None
    """Where it keeps which sums it has helped to open, if that is to hold for more than one run."""
    follow: Callable[["Followed"], None] = lambda client: None
    """Called with the client when its work begins."""
    members: Members = NUMBERS_ALONE
    """Who all clients are, if it knows that of more than those in its credentials."""
    computed: str = ""
    """On what it computes (`secure_kg.learning.device.computed_on`); empty where nothing is resumed."""


class Followed(Protocol):
    """A client's work, for whoever shows it."""

    @property
    def rounds_done(self) -> int: ...

    @property
    def seconds(self) -> Mapping[str, float]: ...


class Site(Protocol):
    """What the role of a client asks of the place it runs in."""

    def folder(self, run_name: str | None) -> Path:
        """The client's own folder of the run; None: the server has not named the run yet."""
        ...

    def equip(self, folder: Path) -> Equipment:
        """Make `folder` ready and load what the client brings."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedSite:
    """A folder and equipment that are made by whoever runs the client."""

    path: Path
    make: Callable[[], Equipment]

    def folder(self, run_name: str | None) -> Path:
        return self.path

    def equip(self, folder: Path) -> Equipment:
        return self.make()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSite:
    """Files and device of a client that is a process of its own."""

    config: RunConfig
    number: int
    clients: int
    runs: Path
    """Where runs are kept that have no other place."""
    out: Path | None
    """The run's folder; None: the server names one under `runs`."""
    resume: bool
    local_rank: int = 0
    """The number of this process among those of its machine."""
    report: Callable[[str], None] = say

    def folder(self, run_name: str | None) -> Path:
        if run_name is None:
            return self.runs / f"client-{self.number}"
        return RunFolder(self.out if self.out is not None else self.runs / run_name).client(self.number)

    def equip(self, folder: Path) -> Equipment:
        credentials = self._credentials()
        graph = self.graph()
        device = pick_device(self.local_rank, self.config.device)
        learner = RunPlan(self.config, self.clients).learner.make(self.config, graph, self.number, device)
        open_folder(folder, os.getpid(), resume=self.resume)  # the last step: a mistake leaves no folder behind
        record, computed = self.record(), computed_on(device)
        if line := moved(read_openings(record if record is not None else folder), run_id(folder), computed):
            self.report(f"client {self.number}: {line}")
        return Equipment(learner, credentials, record, computed=computed)

    def graph(self) -> ClientGraph:
        """The client's own data."""
        return load_graph(self.config, self.clients, self.number)

    def _keys(self) -> Path | None:
        """Of use against an active server only."""
        config = self.config
        return Path(config.keys) if config.adversary == "active" and config.keys is not None else None

    def _credentials(self) -> Credentials | None:
        if (keys := self._keys()) is None:
            return None
        loaded = load_credentials(keys, self.number)
        unknown = [client for client in range(1, self.clients + 1) if client not in loaded.directory]
        if unknown:
            raise UserError(f"--keys {self.config.keys}: the key directory has no client {unknown[0]}")
        return loaded

    def record(self) -> Path | None:
        """Where it keeps which sums it has helped to open, if that is to hold for more than one run."""
        keys = self._keys()
        return record_folder(keys, self.number) if keys is not None else None
