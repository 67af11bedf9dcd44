"""The host between organisations, at a site of questions: it answers others by its own rules, or asks.

What a site does in a session follows from its own records: the statement of the asker is checked against its roster,
its model and its rules before it makes any key. A session that ends, however it ends, leaves the site waiting for the
next one.

    answer_sessions     answers until it is stopped
    ask_session         asks for one session; answers others while it waits, if its site does so
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import (
    Aborted,
    DeadlineExpired,
    EncodingOverflow,
    LinkRefused,
    OutOfReach,
    PeerLost,
    PeerMisbehaved,
    ProtocolError,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import NO_SESSION, SERVER, SETUP, PartyId, SessionId
from protocols.session.conversation import Conversation
from protocols.transport.base import Transport
from secure_kg.foundation.errors import InternalError, UserError
from secure_kg.queries.language.reading import Question
from secure_kg.queries.retrieval.over_run import AskSettings, RunAsked
from secure_kg.queries.retrieval.telling import telling
from secure_kg.queries.sessions.checks import SiteChecks
from secure_kg.queries.sessions.messages import AskSession, Attend, BeginSession
from secure_kg.queries.sessions.statement import Statement, greeting, read_statement

if TYPE_CHECKING:
    from secure_kg.queries.retrieval.members import AskersView
    from secure_kg.queries.retrieval.parts import Member, Outcome, Session

_LOOK_SECONDS: Final = 0.5
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 15.0
_REFUSED_PAUSE: Final = 1.0
"""After a session that came to nothing, so that a server that begins them without end keeps no site busy."""
_TURN_SECONDS: Final = 3600.0
"""That an asker waits for its turn."""
_FLUSH_SECONDS: Final = 10.0
_AWAY_SECONDS: Final = 30.0
"""That a session, or an asker, waits for a server that is out of reach."""
_SILENT_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSite:
    """A site as it takes part in sessions."""

    me: PartyId
    link: Callable[[], Transport]
    """Makes a transport: one incarnation of this site."""
    run: Callable[[AskSettings], RunAsked]
    member: Callable[[RunAsked], "Member"]
    """This site's model and budgets."""
    report: Callable[[str], None]
    pause: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """What a site needs to answer. `checks`: by the newest roster, so it is asked anew for each session."""

    site: OwnSite
    checks: Callable[[], SiteChecks]
    aside: Callable[[], bool] = lambda: False
    """Whether this process lets another one of its site have the link."""
    stopped: Callable[[], bool] = lambda: False
    named: Callable[[int], str] = lambda number: f"client {number}"


def answer_sessions(answering: Answering) -> None:
    """Until it is stopped, or another process of this site wants the link. `LinkRefused` if the server refuses it."""
    site, seconds, told = answering.site, _FIRST_PAUSE, ""
    while not (answering.stopped() or answering.aside()):
        try:
            with site.link() as transport:
                begin = _awaited(answering, transport)
                if begin is None:
                    return
                seconds = _FIRST_PAUSE if answer_one(answering, transport, begin) else _REFUSED_PAUSE
            if seconds == _FIRST_PAUSE:
                continue
        except LinkRefused:
            raise
        except PeerLost as problem:  # every session ends so for those that are not in it
            if SERVER not in problem.parties:
                site.report(str(problem))
        except ProtocolError as problem:
            if str(problem) != told:  # the same again and again fills no log
                told = str(problem)
                site.report(f"{told}; trying again")
            seconds = min(2 * seconds, _LONGEST_PAUSE)
        site.pause(seconds)


def _awaited(answering: Answering, transport: Transport) -> BeginSession | None:
    """The beginning of a session; None if this process is to leave."""
    talk = Conversation(transport, NO_SESSION)
    talk.send(SERVER, Attend(), SETUP)
    while not (answering.stopped() or answering.aside()):
        if (begin := _next(talk)) is not None:
            return begin
    return None


def _next(talk: Conversation) -> BeginSession | None:
    """None: nothing has come yet."""
    try:
        _, message = talk.receive_any(SERVER, SETUP, Deadline.after(_LOOK_SECONDS))
    except DeadlineExpired:
        return None
    if not isinstance(message, BeginSession):
        raise UnexpectedMessage("the server has sent something else than the beginning of a session")
    return message


def answer_one(answering: Answering, transport: Transport, begin: BeginSession) -> bool:
    """One session of somebody else; whether it came to its end. Whatever goes wrong is told to the others as far as
    `telling` does, and here."""
    from secure_kg.queries.retrieval import parts
    from secure_kg.queries.retrieval.members import terms_of

    site, member, who = answering.site, None, "a session"
    conversation = Conversation(transport, SessionId(begin.session), greeting(begin.statement))
    transport.lose_absent(_AWAY_SECONDS)
    try:
        with telling(conversation):
            checks = answering.checks()
            statement = checks.admitted(begin)
            who = f"the session of {answering.named(statement.asker)}"
            run = site.run(statement.settings(checks.rules.settings()))
            member = site.member(run)
        parts.answer(terms_of(run, member), member, conversation, parts.Session())
        site.report(f"{who} is over")
    except (UserError, ProtocolError, EncodingOverflow, InternalError) as problem:
        site.report(f"{who}: {problem}")
        return False
    finally:
        if member is not None:
            member.release()
        transport.flush(Deadline.after(_FLUSH_SECONDS))
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingSite:
    """One site that asks."""

    site: OwnSite
    settings: AskSettings
    sign: Callable[[Statement], tuple[bytes, bytes]]
    """A statement with a number and a time of its own, and the signature of this site."""
    federation: bytes
    questions: Sequence[Question]
    each: "Callable[[AskersView, Question, Outcome], None]"
    show: "Callable[[AskersView, Session, Sequence[Question]], int]"
    """Shows the rest at the end; the exit code."""
    meanwhile: Answering | None = None
    """How this site answers others until it has its turn; None: it does not."""


def ask_session(asking: AskingSite) -> int:
    """The exit code. `UserError` or `ProtocolError` in one line for a session that never came to be."""
    site = asking.site
    run = site.run(asking.settings)
    member = site.member(run)
    knowledge = member.knowledge
    statement = Statement.of(asking.settings, run.least, asking.federation, knowledge.positions.digest, knowledge.table)
    limit, told = Deadline.after(_TURN_SECONDS), False
    while True:
        with site.link() as transport:
            transport.lose_absent(_AWAY_SECONDS)
            content, signature = asking.sign(statement)
            try:
                begin = _turn(asking, transport, AskSession(asking.meanwhile is not None, content, signature), limit)
            except OutOfReach:
                raise
            except PeerLost as problem:
                if SERVER not in problem.parties:
                    raise
                begin = None
            except Aborted as problem:
                raise UserError(f"the server begins no session: {problem}") from None
            if begin is not None and begin.statement == content:
                return _asked(asking, run, member, Conversation(transport, SessionId(begin.session), greeting(content)))
            if begin is not None and read_statement(begin.statement).asker == site.me:
                raise PeerMisbehaved("the server begins a session of this site's that it has not asked for")
            if begin is not None and asking.meanwhile is not None:
                answer_one(asking.meanwhile, transport, begin)
        if not told:
            site.report("another session was under way; asking again")
            told = True
        if limit.expired:
            raise UserError("this site has not had its turn for an hour: others ask without end")
        site.pause(_FIRST_PAUSE)


def _turn(asking: AskingSite, transport: Transport, ask: AskSession, limit: Deadline) -> BeginSession | None:
    """The beginning of a session; None if it has not come in time."""
    talk = Conversation(transport, NO_SESSION)
    talk.send(SERVER, ask, SETUP)
    silent, told = Deadline.after(_SILENT_SECONDS), False
    while not limit.expired:
        if (begin := _next(talk)) is not None:
            return begin
        if silent.expired and not told:
            asking.site.report("waiting until the server begins a session: for members that were here, or a turn")
            told = True
    return None


def _asked(asking: AskingSite, run: RunAsked, member: "Member", conversation: Conversation) -> int:
    """The session of this site's own questions; as under mpirun (`launch.hosts.questions`)."""
    from secure_kg.queries.retrieval import parts
    from secure_kg.queries.retrieval.members import AskersView, terms_of

    me, questions = asking.site.me, asking.questions
    view = AskersView.of(run, {me: member})
    session = parts.Session(on_outcome=lambda one: asking.each(view, questions[len(session.outcomes) - 1], one))
    try:
        parts.ask(terms_of(run, member), member, conversation, [one.query for one in questions], session)
    except (UserError, ProtocolError) as problem:
        if not session.setup_seconds:
            raise  # there was no session to show anything of
        session.problems[me] = problem
    finally:
        conversation.transport.flush(Deadline.after(_FLUSH_SECONDS))
    return asking.show(view, session, questions)
