"""A finished run whose folders were distributed among organisations: a server of questions and sites, as threads."""

import contextlib
import dataclasses
import io
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from launch.between.questions import QuestionSite, answer_until_stopped, identities
from launch.between.run_records import KnownRun, note_run
from launch.hosts.network_questions import Questions, serve_questions
from protocols.foundation.errors import TransportError
from protocols.foundation.identifiers import PartyId
from protocols.transport.https.impatient import ImpatientClientTransport
from protocols.transport.https.server import HttpsServer
from secure_kg.data.folders import client_folder, write_client_folder
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.provisioning.coordinator import Coordinator
from secure_kg.provisioning.membership import member_of
from secure_kg.provisioning.record import note_roster
from secure_kg.provisioning.request import parse_request, request_text
from secure_kg.provisioning.roster import Roster, portable
from secure_kg.provisioning.site_folder import SiteFolder
from secure_kg.provisioning.tls import client_tls, server_tls
from secure_kg.queries.sessions.site_rules import SiteRules
from secure_kg.runs.run_folder import read_config
from tests.support.links import QUICK
from tests.support.provisioned import free_port


class Distributed:
    """`run` has all of it; each party here has its own part."""

    def __init__(self, path: Path, run: Path, members: int = 3) -> None:
        self.path, self.port, config = path, free_port(), read_config(run)
        settings = portable(config)
        self.coordinator = Coordinator.new(
            path / "coordinator", "Centre", f"127.0.0.1:{self.port}", settings, days=30, server=None
        )
        self.sites = {
            PartyId(number): SiteFolder.new(path / f"site{number}", f"Site {number}")
            for number in range(1, members + 1)
        }
        requests = [
            parse_request(request_text(one.name, one.identity_pem, datetime.now(UTC))) for one in self.sites.values()
        ]
        self.coordinator = self.coordinator.publish(self.coordinator.approve(requests))
        for folder in (path / "coordinator", *(one.path for one in self.sites.values())):
            note_roster(folder, self.coordinator.roster, compared=True)
        self.run = path / "server-run"
        shutil.copytree(run / "server", self.run / "server")
        for name in ("config.toml", "summary.json"):
            shutil.copy(run / name, self.run)
        graphs = partition(load_source(config.dataset), members, config.by, config.seed)
        for number, graph in enumerate(graphs, start=1):
            own, data = path / f"runs{number}" / "run", client_folder(path / "parts", number)
            write_client_folder(data, graph)
            shutil.copytree(run / "clients" / str(number), own / "clients" / str(number))
            here = dataclasses.replace(config, client_data=str(data))
            (own / "config.toml").write_text(here.to_toml())
            note_run(
                self.sites[PartyId(number)].path, self.roster.digest, KnownRun(own / "clients" / str(number), True)
            )

    @property
    def roster(self) -> Roster:
        return self.coordinator.roster

    @property
    def file(self) -> Path:
        return self.coordinator.path

    def site(self, number: int, report: Callable[[str], None] = lambda line: None) -> QuestionSite:
        return QuestionSite.open(self.file, self.sites[PartyId(number)].path, report)

    def link(self, number: int, **options: Any) -> ImpatientClientTransport:
        tls = client_tls(self.roster, self.sites[PartyId(number)].path)
        return ImpatientClientTransport(
            f"https://127.0.0.1:{self.port}", tls, PartyId(number), self.roster.digest,
            **{"proxy": None, "limits": QUICK} | options
        )  # fmt: skip


class Live:
    """A server and the sites that answer; all of them end with the block."""

    def __init__(self, parties: Distributed, record: Path | None = None, wait: float = 20.0) -> None:
        self.parties, self.lines, self.over = parties, list[str](), threading.Event()
        self.said: dict[int, list[str]] = {}
        self._record, self._wait, self._open, self._threads = record, wait, ExitStack(), list[threading.Thread]()

    def serve(self) -> None:
        roster, folder = self.parties.roster, self.parties.path / "coordinator"
        tls = server_tls(roster, folder)
        server = HttpsServer(
            ("127.0.0.1", self.parties.port), tls, member_of(roster, self.parties.file, tls=tls),
            list(self.parties.sites), roster.digest, QUICK,
        )  # fmt: skip
        questions = Questions(
            run=self.parties.run, config=read_config(self.parties.run), federation=roster.digest,
            identity=identities(roster), report=self.lines.append, record=self._record, wait=self._wait,
            stopped=self.over.is_set,
        )  # fmt: skip
        server.start()
        self.server = server
        self._open.callback(server.close)
        self._serving = self._thread(lambda: _until_closed(questions, server))

    def serve_again(self) -> None:
        """After the server was closed."""
        self._serving.join(60)
        self.serve()

    def answer(self, number: int, rules: SiteRules = SiteRules(), stopped: threading.Event | None = None) -> None:  # noqa: B008
        lines = self.said.setdefault(number, [])
        site = self.parties.site(number, lines.append)
        answering = dataclasses.replace(
            site.answering(rules), stopped=lambda: self.over.is_set() or (stopped is not None and stopped.is_set())
        )
        self._thread(lambda: answer_until_stopped(site, rules, answering))

    def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, (self.lines, self.said)
            time.sleep(0.02)

    def _thread(self, work: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=work)
        thread.start()
        self._threads.append(thread)
        return thread

    def end(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), (self.lines, self.said)
        self._open.close()


def _until_closed(questions: Questions, server: HttpsServer) -> None:
    with contextlib.suppress(TransportError):  # it was closed in a session
        serve_questions(questions, server)


@contextmanager
def live(parties: Distributed, *answering: int, record: Path | None = None, wait: float = 20.0) -> Iterator[Live]:
    made = Live(parties, record, wait)
    try:
        made.serve()
        for number in answering:
            made.answer(number)
        yield made
    finally:
        made.end()


def asked(*arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command."""
    from launch import ask

    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = ask.main(arguments)
    return code, out.getvalue(), errors.getvalue()


def answers_in(path: Path) -> list[Any]:
    found = json.loads(path.read_text())
    return [one["answers"] for one in found["questions"]]
