"""The host between organisations, at the server of questions: members wait until one asks, then a session begins.

Before a session nothing of a question is said: members say that they answer, or hand in the statement of a session that
they ask for (`secure_kg.queries.sessions`). Each session is an epoch of the links of its own, at whose end everybody
comes again. Those who ask at the same time have their turns: first whoever has had none for the longest.

A member speaks by its own certificate, so nobody asks in another one's name here; that sites see so for themselves is
their own work (`secure_kg.queries.sessions.checks`).
"""

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import (
    DeadlineExpired,
    DecodeError,
    PeerFailed,
    PeerLost,
    PeerMisbehaved,
    ProtocolError,
)
from protocols.foundation.identifiers import NO_SESSION, SETUP, PartyId, new_session
from protocols.scores.terms import FEWEST_CLIENTS
from protocols.session.conversation import Conversation
from protocols.transport.base import Transport
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import InternalError, UserError
from secure_kg.queries.retrieval.over_run import AskSettings, RunAsked
from secure_kg.queries.retrieval.rules import Exact
from secure_kg.queries.retrieval.serving import Serving, serve
from secure_kg.queries.retrieval.terms import PublicTerms
from secure_kg.queries.sessions.messages import AskSession, Attend, BeginSession
from secure_kg.queries.sessions.statement import (
    Statement,
    StatementRefused,
    greeting,
    read_statement,
    require_signature,
)
from secure_kg.runs.alignment_files import load_aligned
from secure_kg.runs.run_folder import RunFolder

OTHER_USE: Final = "this server serves questions about a run that is complete, and no training"
_LOOK_SECONDS: Final = 0.25
_LARGEST: Final = 1 << 14
"""Bytes of a message before a session."""
_ASKERS_SECONDS: Final = 5.0
"""That an asker who has waited for its turn has to come again."""
_AGAIN_SECONDS: Final = 1.5
_SEEN_SECONDS: Final = 60.0
"""A member that was here so lately is waited for."""
_ABSENT_SECONDS: Final = 15.0
"""In a session: so long without a connection, a member has dropped out."""
_FLUSH_SECONDS: Final = 10.0


class Members(Protocol):
    """The server's end of all links (`protocols.transport.https.server.HttpsServer`)."""

    def linked(self) -> frozenset[PartyId]: ...

    def transport(self) -> Transport: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """A run that questions are served over."""

    run: Path
    config: RunConfig
    federation: bytes
    identity: Callable[[PartyId], bytes | None]
    """Of a member by the newest roster; None for one that has none, or was revoked."""
    report: Callable[[str], None]
    names: Mapping[int, str] = field(default_factory=dict)
    record: Path | None = None
    """Where sessions are recorded, each in a folder of its own."""
    wait: float = 20.0
    """Seconds to wait, when somebody asks, for members that were here lately."""
    session_seconds: float = 1800.0
    """After which no further step of a session begins."""
    stopped: Callable[[], bool] = lambda: False

    def named(self, party: int) -> str:
        return f"{self.names.get(party, 'client')} ({party})"


@dataclass(slots=True)
class _History:
    """What outlives an epoch."""

    began: float
    seen: dict[PartyId, float] = field(default_factory=dict)
    """When each member was linked last."""
    served: dict[PartyId, float] = field(default_factory=dict)
    """When each member's last session began."""
    waiting: frozenset[PartyId] = frozenset()
    """Members that had asked when the last epoch ended."""
    sessions: int = 0


@dataclass(frozen=True, slots=True)
class _Turn:
    statement: Statement
    content: bytes
    signature: bytes
    here: frozenset[PartyId]


def serve_questions(questions: Questions, members: Members) -> int:
    """Until it is stopped; how many sessions there were."""
    history = _History(time.monotonic())
    while True:
        with members.transport() as transport:
            lobby = _Waiting(questions, members, transport, history)
            turn = lobby.next_turn()
            if turn is None:
                return history.sessions
            history.served[PartyId(turn.statement.asker)] = time.monotonic()
            history.sessions += 1
            _held(questions, transport, turn, history.sessions)
            history.waiting = lobby.askers - {PartyId(turn.statement.asker)}
            transport.flush(Deadline.after(_FLUSH_SECONDS))


def terms_at_server(questions: Questions, statement: Statement) -> tuple[RunAsked, PublicTerms]:
    """What a statement comes to; `UserError` or `StatementRefused` says why there is no such session."""
    aligned = load_aligned(RunFolder(questions.run).server)
    if aligned is None:
        raise UserError("the clients' names of this run were not aligned")
    if statement.federation != questions.federation.hex():
        raise StatementRefused("a session of another federation, or of one with other settings")
    if statement.union != aligned.union.digest.hex():
        raise StatementRefused("the server serves questions over another run than the one of this site")
    run = RunAsked(questions.run, statement.settings(AskSettings()), questions.config)
    return run, run.public_terms(aligned.union.size)


def _hold(questions: Questions, transport: Transport, turn: _Turn, number: int) -> None:
    """One session. Whatever becomes of it, its parties come again."""
    asker = PartyId(turn.statement.asker)
    session = new_session()
    begin = BeginSession(session, turn.content, turn.signature)
    lost = Conversation(transport, NO_SESSION).broadcast(turn.here, begin, SETUP)
    transport.lose_absent(_ABSENT_SECONDS)
    conversation = Conversation(transport, session, greeting(turn.content))
    run, public = terms_at_server(questions, turn.statement)
    record = None if questions.record is None else _record_folder(questions.record, asker)
    others = ", ".join(questions.named(party) for party in sorted(turn.here - {asker}))
    questions.report(f"session {number}: {questions.named(asker)} asks ({public.backend}); {others} answer")
    serving: Serving = replace(
        run.serving(questions.report),
        record=record,
        here=turn.here - lost,
        until=Deadline.after(questions.session_seconds),
    )
    if not public.needs_all:
        conversation.outlives = _outliving(questions, public, turn.here)
    served = serve(serving, conversation)
    questions.report(f"session {number}: {served.problem or 'has come to its end'}")


def _outliving(questions: Questions, public: PublicTerms, here: frozenset[PartyId]) -> Callable[[str], None]:
    """A client that cannot go on is a dropout, as long as there are enough to score without it."""
    failed: list[str] = []

    def heard(words: str) -> None:
        failed.append(words)
        questions.report(words)
        if len(here - {public.asker}) - len(failed) < FEWEST_CLIENTS:
            raise PeerFailed("; ".join(failed))

    return heard


def _held(questions: Questions, transport: Transport, turn: _Turn, number: int) -> None:
    """The next session can be held, whatever becomes of this one: a record that cannot be written, for instance."""
    try:
        _hold(questions, transport, turn, number)
    except (UserError, ProtocolError, OSError) as problem:
        questions.report(f"session {number}: {problem}")
    except Exception as problem:
        fault = InternalError.recorded(problem, RunFolder(questions.run).server / "error.log")
        questions.report(f"session {number}: {fault}")


def _record_folder(record: Path, asker: PartyId) -> Path:
    """A new folder: an audit is of one session."""
    number = 1 + sum(1 for _ in record.glob("session-*"))
    while (folder := record / f"session-{number:04d}-client-{asker}").exists():
        number += 1
    return folder


class _Waiting:
    """The time before a session, in one epoch."""

    def __init__(self, questions: Questions, members: Members, transport: Transport, history: _History) -> None:
        self._questions, self._members, self._transport, self._history = questions, members, transport, history
        self._began = time.monotonic()
        self._talk = Conversation(transport, NO_SESSION)
        self._answers: dict[PartyId, bool] = {}
        self._asked: dict[PartyId, tuple[Statement, AskSession]] = {}
        self._gone = set[PartyId]()
        self._turned_away = set[PartyId]()
        self._chosen: tuple[PartyId, float] | None = None

    @property
    def askers(self) -> frozenset[PartyId]:
        return frozenset(self._asked)

    def next_turn(self) -> _Turn | None:
        """The next session; None if the server is stopped before."""
        while not self._questions.stopped():
            for party in self._transport.readmit():
                self._forget(party)
                self._gone.discard(party)
                self._turned_away.discard(party)
            self._hear()
            now, linked = time.monotonic(), self._members.linked()
            self._history.seen |= dict.fromkeys(linked, now)
            turn = self._turn(now, linked)
            if turn is not None:
                return turn
        return None

    def _hear(self) -> None:
        """Whatever members say until the next look."""
        until = Deadline.after(_LOOK_SECONDS)
        for _ in range(4 * len(self._transport.peers)):  # or one that sends without end would be all that is heard
            senders = [party for party in self._transport.peers if party not in self._gone | self._turned_away]
            try:
                sender, frame = self._transport.receive(senders, until, _LARGEST)
            except DeadlineExpired:
                return
            except PeerLost as problem:
                self._gone.update(PartyId(party) for party in problem.parties)
                for party in problem.parties:
                    self._forget(PartyId(party))
                continue
            except PeerMisbehaved as problem:  # nothing of it was taken
                for party in problem.parties:
                    self._turn_away(PartyId(party), str(problem))
                break
            self._take(sender, frame)
        while self._transport.pause(until):  # whoever floods does not keep the processor
            pass

    def _take(self, sender: PartyId, frame: wire.Frame) -> None:
        try:
            message = wire.decode(frame, session=NO_SESSION).message
            if not isinstance(message, Attend | AskSession) or sender in self._answers:
                raise StatementRefused(OTHER_USE)
            if isinstance(message, AskSession):
                self._asked[sender] = self._statement(sender, message), message
            self._answers[sender] = not isinstance(message, AskSession) or message.answers
        except DecodeError:
            self._turn_away(sender, OTHER_USE)
        except (UserError, ProtocolError) as problem:
            self._turn_away(sender, str(problem))

    def _statement(self, sender: PartyId, message: AskSession) -> Statement:
        statement = read_statement(message.statement)
        if statement.asker != sender:
            raise StatementRefused("a session in the name of another member")
        require_signature(message.statement, message.signature, self._questions.identity(sender))
        terms_at_server(self._questions, statement)
        return statement

    def _turn_away(self, party: PartyId, reason: str) -> None:
        """Until its next process: others are not kept from anything."""
        self._questions.report(f"{self._questions.named(party)}: {reason}")
        self._forget(party)
        self._turned_away.add(party)
        self._talk.abort([party], reason, SETUP)

    def _forget(self, party: PartyId) -> None:
        self._answers.pop(party, None)
        self._asked.pop(party, None)
        if self._chosen is not None and self._chosen[0] == party:
            self._chosen = None

    def _turn(self, now: float, linked: frozenset[PartyId]) -> _Turn | None:
        here_asked = self._asked.keys() & linked  # a link that is mended goes on with what was asked over it
        if self._chosen is not None and self._chosen[0] not in here_asked:
            self._chosen = None
        if self._chosen is None and here_asked:
            longest = min(sorted(here_asked), key=lambda party: self._history.served.get(party, -math.inf))
            if not self._waits_for_askers(now, longest):
                self._chosen = longest, now
        if self._chosen is None:
            return None
        asker, since = self._chosen
        here = frozenset({asker} | {party for party, answers in self._answers.items() if answers and party in linked})
        if self._expected(now) - here - self._silent() and now - since < self._questions.wait:
            return None
        statement, message = self._asked[asker]
        if (problem := self._missing(statement, here)) is not None:
            self._turn_away(asker, problem)
            return None
        return _Turn(statement, message.statement, message.signature, here)

    def _waits_for_askers(self, now: float, longest: PartyId) -> bool:
        """Those that have waited already come first, if they come at all; whoever has just had a session lets others
        come before it asks again."""
        if not self._history.waiting <= self._asked.keys():
            return now - self._began < _ASKERS_SECONDS
        again = now - self._history.served.get(longest, -math.inf) < _SEEN_SECONDS
        return again and now - self._began < _AGAIN_SECONDS

    def _expected(self, now: float) -> frozenset[PartyId]:
        """Members that were here lately; at first all, since they may not know yet that the server is back."""
        if now - self._history.began < self._questions.wait:
            return frozenset(self._transport.peers)
        return frozenset(party for party, when in self._history.seen.items() if now - when < _SEEN_SECONDS)

    def _silent(self) -> frozenset[PartyId]:
        """Those that are here and do not answer."""
        said_no = {party for party, answers in self._answers.items() if not answers}
        revoked = {party for party in self._transport.peers if self._questions.identity(party) is None}
        return frozenset(said_no | revoked | self._turned_away)

    def _missing(self, statement: Statement, here: Collection[PartyId]) -> str | None:
        """Why nothing could come of a session with those that are here; None if something may."""
        _, public = terms_at_server(self._questions, statement)
        missing = [self._questions.named(party) for party in public.clients if party not in here]
        too_few = len(frozenset(here) - {public.asker}) < FEWEST_CLIENTS
        if not missing or not (public.needs_all or too_few):
            return None
        are = "does" if len(missing) == 1 else "do"
        need = f"{FEWEST_CLIENTS} others" if too_few else "everybody"
        ways = "" if too_few or public.exact is not Exact.NO else " (--scores masked may do without)"
        return f"{', '.join(missing)} {are} not answer now, and these questions need {need}{ways}"
