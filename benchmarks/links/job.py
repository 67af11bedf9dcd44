"""A training job between organisations on this machine: a server and its members, every link through a fault proxy.

The parties are processes of `secure-kg serve` and `secure-kg join` with folders of their own, as between organisations.
All of them connect through one proxy, which delays or limits each link by itself. Nothing is protected from whoever
runs all of it here.

    python -m benchmarks.links.job fede --clients 5 --link delay=25ms --out runs/slow -- --dataset umls --rounds 20
"""

import argparse
import contextlib
import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.links.faults import Faults, parse_link
from benchmarks.links.proxy import FaultProxy
from launch.command_line import OneLineParser, run_command
from launch.federation_settings import TRAINERS, settings_of
from launch.hosts import supervisor
from secure_kg.data.folders import client_folder, write_client_folder
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.provisioning.coordinator import Coordinator
from secure_kg.provisioning.record import note_roster
from secure_kg.provisioning.request import parse_request, request_text
from secure_kg.provisioning.site_folder import SiteFolder

LOOPBACK: Final = "127.0.0.1"
_SECONDS: Final = 6 * 3600.0
_SECONDS_BETWEEN_LOOKS: Final = 0.1


@dataclasses.dataclass(frozen=True, slots=True)
class Sites:
    """The folders of a federation on this machine: the coordinator, who serves, and its members."""

    path: Path
    members: int

    @property
    def coordinator(self) -> Path:
        return self.path / "coordinator"

    def site(self, number: int) -> Path:
        return self.path / f"site-{number}"

    def data(self, number: int) -> Path:
        return client_folder(self.path / "data", number)


def found(path: Path, settings: RunConfig, members: int, address: str) -> Sites:
    """A federation whose server is reached at `address`; the data set is divided among its members as under mpirun."""
    sites = Sites(path, members)
    coordinator = Coordinator.new(sites.coordinator, "Benchmark", address, settings, days=2, server=None)
    folders = [SiteFolder.new(sites.site(number), f"Site {number}") for number in range(1, members + 1)]
    requests = [parse_request(request_text(one.name, one.identity_pem, datetime.now(UTC))) for one in folders]
    coordinator = coordinator.publish(coordinator.approve(requests))
    for folder in (sites.coordinator, *(one.path for one in folders)):
        note_roster(folder, coordinator.roster, compared=True)
    graphs = partition(load_source(settings.dataset), members, settings.by, settings.seed)
    for number, graph in enumerate(graphs, start=1):
        write_client_folder(sites.data(number), graph)
    return sites


def commands(sites: Sites, out: Path, port: int) -> dict[str, list[str]]:
    """The command of each party. Members keep their files where those of clients under mpirun are."""
    federation, python = str(sites.coordinator / "federation.toml"), [sys.executable, "-m"]
    listen = ["--listen", f"{LOOPBACK}:{port}", "--out", str(out), "--no-status"]
    made = {"the server": [*python, "launch.serve", federation, "--site", str(sites.coordinator), *listen]}
    for number in range(1, sites.members + 1):
        own = ["--site", str(sites.site(number)), "--data", str(sites.data(number)), "--out", str(out.parent)]
        made[f"client {number}"] = [*python, "launch.join", federation, *own, "--no-status"]
    return made


def run_job(settings: RunConfig, members: int, link: Faults, out: Path) -> None:
    """The whole job; `UserError` with the words of the first party that fails."""
    with tempfile.TemporaryDirectory(prefix="linked-") as scratch:
        folder, port = Path(scratch), _free_port()
        with FaultProxy((LOOPBACK, port), link, _SECONDS) as proxy:
            sites = found(folder, settings, members, f"{LOOPBACK}:{proxy.port}")
            with _started(commands(sites, out.absolute(), port), folder) as parties:
                _wait(parties, folder)


@contextlib.contextmanager
def _started(each: Mapping[str, Sequence[str]], folder: Path) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    """All parties; none is left behind."""
    parties: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, command in each.items():
            with (folder / f"{name}.log").open("wb") as log:
                parties[name] = subprocess.Popen(
                    command,
                    env={**os.environ, "NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    preexec_fn=supervisor.die_with_parent,
                )
        yield parties
    finally:
        for party in parties.values():
            if party.poll() is None:
                party.kill()
            party.wait()


def _wait(parties: Mapping[str, "subprocess.Popen[bytes]"], folder: Path) -> None:
    """Until all have ended well, or the first one has not."""
    while any(party.poll() is None for party in parties.values()):
        _require_well(parties, folder)
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    _require_well(parties, folder)


def _require_well(parties: Mapping[str, "subprocess.Popen[bytes]"], folder: Path) -> None:
    for name, party in parties.items():
        if party.poll():
            lines = (folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise UserError(f"{name}: {lines[-1].removeprefix('error: ') if lines else f'exit code {party.poll()}'}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        return int(listener.getsockname()[1])


def main(argv: Sequence[str] | None = None) -> int:
    """0: the job is done. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(list(sys.argv[1:] if argv is None else argv)))


def _run(argv: list[str]) -> int:
    cut = argv.index("--") if "--" in argv else len(argv)
    parser = OneLineParser(
        prog="python -m benchmarks.links.job", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trainer", choices=TRAINERS, help="the command that trains")
    parser.add_argument("--clients", type=int, default=5, metavar="C", help="number of members [5]")
    parser.add_argument("--link", default="", metavar="delay=25ms,rate=100Mbit", help="of each direction of each link")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run's folder, new")
    options = parser.parse_args(argv[:cut])
    if options.clients < 2:
        raise UserError("--clients must be at least 2")
    if options.out.exists():
        raise UserError(f"--out {options.out}: exists already")
    settings = settings_of(options.trainer, argv[cut + 1 :])
    try:
        run_job(settings, options.clients, parse_link(options.link), options.out)
    except BaseException:
        shutil.rmtree(options.out, ignore_errors=True)
        raise
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    sys.exit(main())
