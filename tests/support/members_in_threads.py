"""A run between organisations in this process: real links on loopback, every party a thread that can be ended."""

import dataclasses
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from launch.hosts.network import Serving, serve_run
from launch.hosts.network_member import Joining, join_run
from launch.status.board import StatusBoard
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId
from protocols.foundation.wire import Frame
from protocols.transport.base import Transport
from protocols.transport.https.client import HttpsClientTransport
from protocols.transport.https.server import HttpsServer
from secure_kg.federation.client.member_site import MemberSite
from secure_kg.federation.server.serve import Served
from secure_kg.provisioning.membership import member_of
from secure_kg.provisioning.signing import keys_folder
from secure_kg.provisioning.tls import client_tls, server_tls
from tests.support.organisations import Organisations

SECONDS: Final = 120.0


class Killed(BaseException):
    """In the place of the death of a process: whatever the party was at, it is at nothing any more."""


@dataclass
class Party:
    """The thread of one party; `said` are its lines."""

    said: list[str] = field(default_factory=list)
    value: Any = None
    error: BaseException | None = None
    killed_by: str | None = None
    """Words after which it is killed where it says them."""
    thread: threading.Thread = field(init=False)

    def begin(self, work: Callable[[], Any]) -> "Party":
        def run() -> None:
            torch.set_num_threads(1)
            try:
                self.value = work()
            except BaseException as problem:
                self.error = problem

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        return self

    def report(self, line: str) -> None:
        self.said.append(line)
        if self.killed_by is not None and self.killed_by in line:
            raise Killed

    def result(self) -> Any:
        self.thread.join(SECONDS)
        assert not self.thread.is_alive(), f"a party hangs: {self.said}"
        if self.error is not None:
            raise self.error
        return self.value

    def is_killed(self) -> bool:
        self.thread.join(SECONDS)
        return isinstance(self.error, Killed)


class Mortal(Transport):
    """A member's link that ends with its process before it sends the frame of that number.

    `in_order`: the process was told to stop, and closed its link. Otherwise the server hears nothing more.
    """

    def __init__(self, link: HttpsClientTransport, at: int, *, in_order: bool) -> None:
        super().__init__(link.party, link.peers)
        self._link, self._left, self._in_order = link, at, in_order

    def busy(self, to: PartyId) -> bool:
        return self._link.busy(to)

    def flush(self, deadline: Deadline) -> None:
        self._link.flush(deadline)

    def close(self) -> None:
        if self._in_order or self._left >= 0:
            self._link.close()

    def _post(self, to: PartyId, frame: Frame) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed
        self._link.send(to, frame)

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        self._link._limit = self._limit
        return self._link._take(senders, deadline)


@dataclass
class MembersInThreads:
    """The parties of `place`; each may be begun several times, one after the other."""

    place: Organisations
    wait: float = SECONDS
    shown: list[Path] = field(default_factory=list)

    def serve(self, killed_by: str | None = None, **changes: Any) -> Party:
        party, roster = Party(killed_by=killed_by), self.place.coordinator.roster
        config = dataclasses.replace(roster.settings, client_data="their own")
        serving = Serving(
            config=config,
            path=self.place.run,
            report=party.report,
            show=lambda summary, path: self.shown.append(path),
            board=StatusBoard(0, config),
            revoked=frozenset(member.number for member in roster.members if member.revoked),
            **{"wait": self.wait, **changes},
        )
        folder = self.place.path / "coordinator"

        def work() -> Served:
            members = [member.number for member in roster.members]
            tls = server_tls(roster, folder)
            with HttpsServer(("127.0.0.1", self.place.port), tls, member_of(roster), members, roster.digest) as server:
                return serve_run(serving, server)

        return party.begin(work)

    def join(
        self, number: int, dies_at: int | None = None, *, in_order: bool = False, data: Path | None = None
    ) -> Party:
        party, roster, folder = Party(), self.place.coordinator.roster, self.place.path / f"site{number}"
        keys = str(keys_folder(roster, folder)) if roster.settings.adversary == "active" else None
        own = str(self.place.data) if data is None else str(data)
        config = dataclasses.replace(roster.settings, client_data=own, keys=keys)
        folders = list[Path]()
        site = MemberSite(
            config=config,
            number=number,
            clients=len(roster.members),
            runs=self.place.path / f"runs{number}",
            out=None,
            resume=True,
            keys=folder / "keys",
            report=party.report,
            named=folders.append,
        )

        def link() -> Transport:
            made = HttpsClientTransport(
                roster.server_url, client_tls(roster, folder), PartyId(number), roster.digest, proxy=None
            )
            return made if dies_at is None else Mortal(made, dies_at, in_order=in_order)

        joining = Joining(
            config=config,
            site=site,
            link=link,
            report=party.report,
            board=StatusBoard(number, config),
            has_results=lambda: bool(folders) and (folders[-1] / "result.json").exists(),
        )
        return party.begin(lambda: join_run(joining))
