"""The server's program over all sessions of a run, in a folder of its own that is removed afterwards."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from protocols.alignment.interface import Union
from protocols.foundation.errors import DecodeError, PeerMisbehaved, ProtocolError, UnexpectedMessage
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.session.server_session import ServerSession
from protocols.transport.base import Transport
from secure_kg.audit.replay.kept import Content, Kept
from secure_kg.audit.replay.record import Record
from secure_kg.audit.replay.wire import NotExplained, RecordedWire, RecordEnded, kind_name
from secure_kg.audit.view.read import AuditedRun, Recording
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.messages import Welcome
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer
from secure_kg.federation.server.session_record import SessionRecord
from secure_kg.foundation.errors import UserError
from secure_kg.runs.recording import settings_path
from secure_kg.runs.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class SessionAgain:
    """What became of one session."""

    explained: int
    """How many messages of the record the program has sent or taken, from the first on."""
    difference: str = ""
    """What the record has where the program does something else; empty if there is no such place."""
    passed: frozenset[int] = field(default=frozenset(), repr=False)
    """Numbers of messages that the program has received and did not go by."""
    refused: int | None = None
    """The number of the message for which the program ended the session, if that was a client's."""
    absent: frozenset[int] = frozenset()
    """Dropouts that had not come back when the program ended."""


class _KnownSession(SessionRecord):
    """The names of a session that has been, and no record of this one."""

    def __init__(self, session: SessionId, record: Record) -> None:
        self._session, self._events = session, record

    @property
    def run_name(self) -> str:
        """As in the greeting that is next. The folder of the run may be called otherwise by now."""
        welcome = self._events.said(Welcome)
        return welcome.run_name if welcome is not None else ""

    def begin(self, transport: Transport) -> SessionId:
        return self._session

    def seal(self) -> None:
        return None


class _ServerAgain(FederationServer):
    """The program. Its free choices are those of the record."""

    def __init__(self, config: RunConfig, wire: RecordedWire, record: Record, folder: RunFolder, session: SessionId):
        super().__init__(config, wire, folder, lambda line: None)
        self._events, self._record = record, _KnownSession(session, record)

    def _unite(self, session: ServerSession) -> Union:
        return twins.align_as_server_again(self._config, session, self._keys, self._clients, self._events.said)

    @property
    def absent(self) -> frozenset[int]:
        return frozenset(int(party) for party in set(self._clients) - self._people.present)


def run_again(run: AuditedRun, progress: Callable[[int], None] = lambda _: None) -> list[SessionAgain]:
    """One result for each recording, until the first difference: how a server would go on after it nobody can say.

    `progress` is told how many messages have been gone through.
    """
    results = list[SessionAgain]()
    with tempfile.TemporaryDirectory(prefix="secure-kg-audit-") as scratch:
        folder = RunFolder.make(Path(scratch) / "run")
        kept = Kept(folder.path)
        starts: list[Content] = kept.possible(0)
        for recording in run.recordings:
            done = sum(one.explained for one in results)
            for start in starts:
                kept.restore(start)
                one, following = _session(run, recording, folder, kept, lambda count: progress(done + count))  # noqa: B023
                if not one.difference:
                    break
            results.append(one)
            starts = following
            if one.difference:
                break
    return results


def _session(
    run: AuditedRun, recording: Recording, folder: RunFolder, kept: Kept, progress: Callable[[int], None]
) -> tuple[SessionAgain, list[Content]]:
    """The session, and what its server may have kept for the next one."""
    session = recording.session
    if session is None:  # it ended while clients were greeted
        return SessionAgain(0), kept.possible(0)
    config, record = _settings(run, session), Record(recording.path)

    def watch(position: int) -> None:
        kept.watch(position)
        progress(position)

    wire = RecordedWire([PartyId(number) for number in range(1, run.clients + 1)], record, watch)
    server = _ServerAgain(config, wire, record, RunFolder.reopen(folder.path, config), session)
    refused: int | None = None
    try:
        server.run()
    except (PeerMisbehaved, UnexpectedMessage, DecodeError):
        refused = wire.last
    except (ProtocolError, UserError, RecordEnded, NotExplained):
        pass
    position = record.position
    difference = _difference(record, wire.wanted or "has come to its end")
    if difference and refused is not None:  # a server that went on has not refused it: it differs from there on
        position, refused = refused, None
    passed = wire.passed if refused is None else wire.passed | {refused}
    again = SessionAgain(position, difference, frozenset(passed), refused, server.absent)
    return again, kept.possible(record.position)


def _difference(record: Record, wanted: str) -> str:
    event = record.next
    if event is None:
        return ""
    kind, way = kind_name(event.frame), "to" if event.direction == "sent" else "from"
    return (
        f"message {record.position + 1:,} (round {event.round}): {kind} {event.direction}, {way} client {event.peer}, "
        f"where the program {wanted}"
    )


def _settings(run: AuditedRun, session: SessionId) -> RunConfig:
    """Those that the server had in a session. Its greeting has their fingerprint, which the program repeats."""
    path = settings_path(run.path, session)
    try:
        return RunConfig.from_toml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError):
        return run.config
