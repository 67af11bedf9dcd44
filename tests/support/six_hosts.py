"""A federation over hosts of its own: a server and five sites.

Every party is a host (`tests.support.namespaces`) with a folder that no other one sees. What would go by mail is copied
by the test. Sites reach the server and not each other.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from typing import Any

from launch.federation_settings import settings_of
from secure_kg.data.folders import client_folder, write_client_folder
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.provisioning.coordinator import Coordinator
from secure_kg.provisioning.record import note_roster
from secure_kg.provisioning.request import parse_request, request_text
from secure_kg.provisioning.site_folder import SiteFolder
from tests.support.namespaces import Host, Network

SERVER = "server"
SITES = tuple(f"site{number}" for number in range(1, 6))
ADDRESS = f"{SERVER}:443"
_PATIENCE = 240.0
_FIND = """
import sys
from pathlib import Path
for path in Path("/proc").glob("[0-9]*/cmdline"):
    try:
        words = path.read_bytes().split(b"\\0")
    except OSError:
        continue
    if words[1:4] == [b"-m", b"launch.cli", sys.argv[1].encode()]:
        print(path.parent.name)
"""


def secure_kg(*arguments: str) -> list[str]:
    """A command of the console script."""
    return [sys.executable, "-m", "launch.cli", *arguments]


@dataclass
class SixHosts:
    """The hosts, once they are members of one federation."""

    network: Network
    parts: Path
    """The data of all sites, for a twin under mpirun."""
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    def found(self, trainer: str, *settings: str, dataset: str = "nations") -> None:
        """The folders that commands make (`found_by_commands`), made in this process, which is quicker."""
        self._divide(dataset)
        server = self.network[SERVER].folder
        coordinator = Coordinator.new(
            server / "coordinator", "Agency", ADDRESS, settings_of(trainer, settings), days=30, server=None
        )
        folders = [SiteFolder.new(self.network[name].folder / "site", f"Hospital {name[-1]}") for name in SITES]
        requests = [parse_request(request_text(one.name, one.identity_pem, datetime.now(UTC))) for one in folders]
        roster = coordinator.publish(coordinator.approve(requests)).roster
        for folder in (server / "coordinator", *(one.path for one in folders)):
            note_roster(folder, roster, compared=True)
        self.pass_on()

    def found_by_commands(self, trainer: str, *settings: str, dataset: str = "nations") -> None:
        """Identities at every site, a signed federation, and everything compared and checked as people do."""
        self._divide(dataset)
        server = self.network[SERVER]
        self.do(server, "federation", "new", trainer, "--name", "Agency", "--address", ADDRESS, *settings)
        fingerprints: list[str] = []
        for name in SITES:
            self.do(self.network[name], "site", "new", "--name", f"Hospital {name[-1]}")
            fingerprints += ["--fingerprint", self.fingerprint(name, "site")]
            mail(self.network[name].folder / "site/request.toml", server.folder / f"{name}.toml")
        self.do(server, "federation", "approve", *(f"{name}.toml" for name in SITES), *fingerprints)
        self.pass_on()
        centre = self.fingerprint(SERVER, "coordinator")
        check = ["site", "check", "federation.toml", "--fingerprint", centre, "--members-compared", "--data", "data"]
        for name in SITES:
            assert f"Hospital {name[-1]}" in self.do(self.network[name], *check)

    def _divide(self, dataset: str) -> None:
        """Each site's own data into its own folder."""
        graphs = partition(load_source(dataset), len(SITES), "triples", 0)
        for number, graph in enumerate(graphs, start=1):
            write_client_folder(client_folder(self.parts, number), graph)
            copytree(client_folder(self.parts, number), self.network[SITES[number - 1]].folder / "data")

    def pass_on(self, *names: str) -> None:
        """The newest federation.toml by mail."""
        for name in names or SITES:
            mail(
                self.network[SERVER].folder / "coordinator/federation.toml",
                self.network[name].folder / "federation.toml",
            )

    def fingerprint(self, name: str, folder: str) -> str:
        """As the site reads it out."""
        told = self.do(self.network[name], "site", "show", "--folder", folder)
        (found,) = re.findall(r"fingerprint +((?:[0-9a-f]{4} ?){8})", told)
        return str(found).strip()

    def serve(self, *options: str) -> "subprocess.Popen[str]":
        return self._start(SERVER, "serve", "coordinator/federation.toml", "--out", "run", *options)

    def join(self, name: str, *options: str) -> "subprocess.Popen[str]":
        return self._start(name, "join", "federation.toml", "--data", "data", *options)

    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.network[SERVER].folder / "run/summary.json").read_text())
        return found

    @staticmethod
    def do(host: Host, *arguments: str) -> str:
        done = host.run(secure_kg(*arguments))
        assert done.returncode in (0, 1), done.stderr  # 1: the server does not run yet
        return done.stdout

    def _start(self, name: str, *arguments: str) -> "subprocess.Popen[str]":
        log = (self.network[name].folder / f"{arguments[0]}-{len(self.started)}.log").open("w")
        with log:
            self.started.append(self.network[name].start(secure_kg(*arguments), output=log))
        return self.started[-1]

    def logs(self) -> str:
        paths = sorted(path for host in self.network.hosts.values() for path in host.folder.glob("*.log"))
        return "\n".join(f"--- {path.parent.name}/{path.name}\n{path.read_text()}" for path in paths)

    def end(self) -> None:
        for one in self.started:
            if one.poll() is None:
                one.kill()
            one.wait()

    def ended_well(self, commands: Sequence["subprocess.Popen[str]"]) -> None:
        for one in commands:
            assert one.wait(_PATIENCE) == 0, self.logs()


def mail(letter: Path, to: Path) -> None:
    to.write_bytes(letter.read_bytes())


def kill(host: Host, command: str) -> None:
    """End the process of one of our commands by SIGKILL, and nothing else."""
    (number,) = host.run([sys.executable, "-c", _FIND, command]).stdout.split()
    host.kill(int(number))
