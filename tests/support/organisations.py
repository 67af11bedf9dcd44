"""A federation between organisations on this machine: folders of a coordinator and its sites, and their processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from secure_kg.data.folders import client_folder, write_client_folder
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.provisioning.coordinator import Coordinator
from secure_kg.provisioning.record import note_roster
from secure_kg.provisioning.request import parse_request, request_text
from secure_kg.provisioning.site_folder import SiteFolder

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Command:
    """A process of one party, with its output in a file."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def text(self) -> str:
        return self.log.read_text()

    def code(self, seconds: float = PATIENCE) -> int:
        return self.process.wait(seconds)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def wait_to_say(self, words: str, seconds: float = PATIENCE) -> None:
        until = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < until, f"not said: {words}\n{self.text}"
            assert self.process.poll() is None or words in self.text, f"ended without saying: {words}\n{self.text}"
            time.sleep(0.02)


@dataclass
class Organisations:
    """A coordinator that serves, and as many sites, each with its own folder and data."""

    path: Path
    coordinator: Coordinator
    port: int
    members: int
    commands: list[Command] = field(default_factory=list)
    run: Path = field(init=False)
    """The server's folder of the run."""

    def __post_init__(self) -> None:
        self.run = self.path / "run"

    @classmethod
    def found(cls, path: Path, settings: RunConfig, members: int = 3) -> "Organisations":
        port = free_port()
        path.mkdir(parents=True, exist_ok=True)
        coordinator = Coordinator.new(
            path / "coordinator", "Centre", f"127.0.0.1:{port}", settings, days=30, server=None
        )
        sites = [SiteFolder.new(path / f"site{number}", f"Site {number}") for number in range(1, members + 1)]
        requests = [parse_request(request_text(site.name, site.identity_pem, datetime.now(UTC))) for site in sites]
        coordinator = coordinator.publish(coordinator.approve(requests))
        for folder in (path / "coordinator", *(site.path for site in sites)):
            note_roster(folder, coordinator.roster, compared=True)
        graphs = partition(load_source(settings.dataset), members, settings.by, settings.seed)
        for number, graph in enumerate(graphs, start=1):
            write_client_folder(client_folder(path / "parts", number), graph)
        return cls(path, coordinator, port, members)

    @property
    def data(self) -> Path:
        """A folder with one folder for each member, as `--client-data` names it."""
        return self.path / "parts"

    def serve(self, *options: str) -> Command:
        page = () if "--status-port" in options else ("--no-status",)
        return self._start("serve", "server", str(self.coordinator.path), "--site", str(self.path / "coordinator"),
                           "--listen", f"127.0.0.1:{self.port}", "--out", str(self.run), *page, *options)  # fmt: skip

    def join(self, number: int, *options: str, data: Path | None = None) -> Command:
        own = data if data is not None else client_folder(self.data, number)
        page = () if "--status-port" in options else ("--no-status",)
        return self._start("join", f"member{number}", str(self.coordinator.path), "--data", str(own), "--site",
                           str(self.path / f"site{number}"), "--out", str(self.path / f"runs{number}"),
                           *page, *options)  # fmt: skip

    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.run / "summary.json").read_text())
        return found

    def _start(self, command: str, name: str, *arguments: str) -> Command:
        log = self.path / f"{name}-{len(self.commands)}.log"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", "PYTHONUNBUFFERED": "1"}
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", f"launch.{command}", *arguments],
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment,
                cwd=self.path,
            )
        self.commands.append(Command(process, log))
        return self.commands[-1]

    def end(self) -> None:
        for command in self.commands:
            if command.process.poll() is None:
                command.kill()

    def logs(self) -> str:
        return "\n".join(f"--- {one.log.name}\n{one.text}" for one in self.commands)


@contextmanager
def organisations(path: Path, settings: RunConfig, members: int = 3) -> Iterator[Organisations]:
    found = Organisations.found(path, settings, members)
    try:
        yield found
    finally:
        found.end()


def ended_well(commands: Sequence[Command]) -> None:
    for command in commands:
        assert command.code() == 0, command.text
