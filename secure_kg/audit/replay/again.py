"""The server's program over all sessions of a run, in a folder of its own that is removed afterwards."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Final

from protocols.alignment.interface import Union
from protocols.foundation.errors import DecodeError, PeerMisbehaved, ProtocolError, UnexpectedMessage
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.session.server_session import ServerSession
from protocols.transport.base import Transport
from secure_kg.audit.replay.kept import Content, Kept
from secure_kg.audit.replay.record import Record
from secure_kg.audit.replay.wire import NotExplained, RecordedWire, RecordEnded, kind_name
from secure_kg.audit.view.read import AuditedRun, Recording, session_settings
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.messages import SaveCheckpoint, Welcome
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.regrouping import Step
from secure_kg.federation.server.server import FederationServer
from secure_kg.federation.server.session_record import SessionRecord
from secure_kg.foundation.errors import UserError
from secure_kg.runs.recording import session_name
from secure_kg.runs.run_folder import RunFolder

_MOST_LOOKS: Final = 8
"""How many looks a `Back` may come later than at the first one, without a message in between."""
_MOST_TRIES: Final = 64
"""How often a session is gone through again because of looks that were too early."""


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

    def _next_step(self, done: int) -> Step:
        """Who waited for the next session is on no record; what the server did about it is."""
        if self._plan.checkpoint_due(done, over=self._over(done)) or self._events.said(SaveCheckpoint) is None:
            return Step.GO_ON
        return Step.CHECKPOINT_FIRST

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
        program = _Program(run, RunFolder.make(Path(scratch) / "run"))
        starts = program.kept.possible(0)
        for recording in run.recordings:
            done = sum(one.explained for one in results)
            tried = [program.session(recording, start, lambda count: progress(done + count)) for start in starts]  # noqa: B023
            explaining = [one for one in tried if not one.result.difference]
            results.append((explaining or tried)[0].result)
            if not explaining:
                break
            # The server has begun as one of these did, and ended as one of these may have.
            starts = list(dict.fromkeys(state for one in explaining for state in one.following))
    return results


@dataclass(frozen=True, slots=True)
class _Tried:
    result: SessionAgain
    following: list[Content]
    """What the server may have kept for the next session."""
    looked_for: tuple[int, ...] = ()
    """What it had looked for, shortly before it got no further."""


class _Program:
    """The server's program in a folder of its own."""

    def __init__(self, run: AuditedRun, folder: RunFolder) -> None:
        self._run, self._folder = run, folder
        self.kept = Kept(folder.path)

    def session(self, recording: Recording, start: Content, progress: Callable[[int], None]) -> _Tried:
        """A session that begins with `start`.

        A dropout's `Back` may have come between two looks of the server without any message between them. If the
        program does not get far with a `Back` that it was given at the first look, it is given it at the next one.
        """
        if recording.session is None:  # it ended while clients were greeted
            return _Tried(SessionAgain(0), [start])
        tried, left = self._try(recording, recording.session, start, progress, {}), _MOST_TRIES
        looks_in_vain, found = dict[int, int](), True
        while tried.result.difference and found:
            found = False
            for look, count in product(tried.looked_for, range(1, _MOST_LOOKS + 1)):
                if not left:
                    break
                left -= 1
                later = {**looks_in_vain, look: count}
                again = self._try(recording, recording.session, start, progress, later)
                if not again.result.difference or again.result.explained > tried.result.explained:
                    tried, looks_in_vain, found = again, later, True
                    break
        return tried

    def _try(
        self,
        recording: Recording,
        session: SessionId,
        start: Content,
        progress: Callable[[int], None],
        looks_in_vain: dict[int, int],
    ) -> _Tried:
        run, kept, record = self._run, self.kept, Record(recording.path)
        kept.restore(start)
        config = session_settings(run.path, session)
        if config is None:
            return _Tried(SessionAgain(0, f"the settings of session {session_name(session)} are not there"), [start])

        def watch(position: int) -> None:
            kept.watch(position)
            progress(position)

        clients = [PartyId(number) for number in range(1, run.clients + 1)]
        wire = RecordedWire(clients, record, watch, looks_in_vain)
        server = _ServerAgain(config, wire, record, RunFolder.reopen(self._folder.path, config), session)
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
        return _Tried(again, kept.possible(wire.settled), tuple(wire.looked_for))


def _difference(record: Record, wanted: str) -> str:
    event = record.next
    if event is None:
        return ""
    kind, way = kind_name(event.frame), "to" if event.direction == "sent" else "from"
    return (
        f"message {record.position + 1:,} (round {event.round}): {kind} {event.direction}, {way} client {event.peer}, "
        f"where the program {wanted}"
    )

