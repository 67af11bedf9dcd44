"""All parties of a session of questions as threads of one process, each with its own end of the wire."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from protocols.foundation.errors import ProtocolError, SumAbandoned
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, SessionId, new_session
from protocols.session.conversation import MAX_REASON, Conversation, Failed
from protocols.transport.base import Transport
from secure_kg.federation.in_process import run_in_process
from secure_kg.foundation.errors import UserError
from secure_kg.queries.form import NamedQuery
from secure_kg.queries.retrieval.answering import Answering
from secure_kg.queries.retrieval.asking import AskedStep, Asking, Retrieved
from secure_kg.queries.retrieval.knowledge import Knowledge
from secure_kg.queries.retrieval.serving import Serving, serve
from secure_kg.queries.retrieval.session import Guards, Tools

Converse: TypeAlias = Callable[[Transport, SessionId], Conversation]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question: what came of it, or why nothing did, and how long it took after the set-up."""

    retrieved: Retrieved | None
    problem: str = ""
    seconds: float = 0.0
    steps: tuple[AskedStep, ...] = ()
    """What everybody saw announced, also of a question that came to nothing."""


@dataclass(slots=True)
class Session:
    """What came of a session. Bytes are those that a party has sent and received."""

    outcomes: list[Outcome] = field(default_factory=list)
    setup_seconds: float = 0.0
    traffic: dict[PartyId, int] = field(default_factory=dict)
    problems: dict[PartyId, BaseException] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Member:
    """A client as this process loads it."""

    knowledge: Knowledge
    guards: Guards


def hold_session(
    serving: Serving,
    members: Mapping[PartyId, Member],
    questions: Sequence[NamedQuery],
    seconds: float,
    converse: Converse = Conversation,
) -> Session:
    """Ask all questions, one after the other. `seconds`: for the whole of it; nobody is waited for any longer.

    `converse`: makes each party's end of the conversation.
    """
    session, number, asker = Session(), new_session(), serving.public.asker

    def part(member: Member) -> Callable[[Transport], None]:
        def run(transport: Transport) -> None:
            conversation, started = converse(transport, number), time.perf_counter()
            try:
                tools = Tools(serving.public, member.knowledge, conversation, member.guards)
                if transport.party == asker:
                    session.setup_seconds = time.perf_counter() - started
                    _ask(Asking(tools), questions, session)
                else:
                    Answering(tools).run()
            except Exception as problem:
                told = str(problem) if isinstance(problem, ProtocolError | UserError) else "an error in its program"
                conversation.send(SERVER, Failed(told[:MAX_REASON]), SETUP)  # nobody waits for it any longer
                raise
            finally:
                traffic = transport.traffic
                session.traffic[transport.party] = traffic.total("sent").bytes + traffic.total("received").bytes

        return run

    parts = {party: part(member) for party, member in members.items()}
    ended = run_in_process(lambda wire: serve(serving, converse(wire, number)), parts, seconds=seconds)
    for party, one in {SERVER: ended.server, **ended.clients}.items():
        if one.error is not None:
            session.problems[party] = one.error
        elif one.hangs:
            session.problems[party] = TimeoutError("did not end in time")
    return session


def _ask(asking: Asking, questions: Sequence[NamedQuery], session: Session) -> None:
    """A question that came to nothing does not end the session; a broken protocol does."""
    for question in questions:
        started, before, retrieved, problem = time.perf_counter(), len(asking.steps), None, ""
        try:
            retrieved = asking.ask(question)
        except (UserError, SumAbandoned) as error:
            problem = str(error)
        seconds = time.perf_counter() - started
        session.outcomes.append(Outcome(retrieved, problem, seconds, asking.steps[before:]))
    asking.end()
