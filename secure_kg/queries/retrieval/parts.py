"""The parts of the clients of a session of questions: the asker's, and everybody else's. Whatever carries them.

A part gets its end of the conversation and knows nothing of threads, processes or machines (`serving.serve` is the
server's part). Whoever carries it decides what an error means for the process.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.session.conversation import Conversation
from secure_kg.foundation.errors import UserError
from secure_kg.queries.form import NamedQuery
from secure_kg.queries.retrieval.answering import Answering
from secure_kg.queries.retrieval.asking import AskedStep, Asking, Retrieved
from secure_kg.queries.retrieval.knowledge import Knowledge
from secure_kg.queries.retrieval.session import Guards, Tools
from secure_kg.queries.retrieval.telling import telling
from secure_kg.queries.retrieval.terms import Kind, PublicTerms


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
    """What came of a session, as far as it is known where this is. Bytes are those that a party sent and received."""

    outcomes: list[Outcome] = field(default_factory=list)
    setup_seconds: float = 0.0
    traffic: dict[PartyId, int] = field(default_factory=dict)
    problems: dict[PartyId, BaseException] = field(default_factory=dict)
    stopped: bool = False
    """Whether the asker has left out the rest of its questions."""
    on_outcome: Callable[[Outcome], None] = field(default=lambda outcome: None, repr=False)
    """Told of every question as soon as something has come of it."""

    @property
    def asked(self) -> frozenset[Kind]:
        """The kinds of all steps that were announced."""
        return frozenset(Kind(step.kind) for outcome in self.outcomes for step in outcome.steps)


@dataclass(frozen=True, slots=True)
class Member:
    """A client: what it knows, and what it minds."""

    knowledge: Knowledge
    guards: Guards

    def release(self) -> None:
        """Let other sessions of this client go on: what it announced in a step that is over will not be opened."""
        for budget in (self.guards.budgets.atoms, self.guards.budgets.means):
            if budget is not None:
                budget.record.release()


def ask(
    public: PublicTerms,
    member: Member,
    conversation: Conversation,
    questions: Sequence[NamedQuery],
    session: Session,
) -> None:
    """The asker's part: all questions, one after the other. What has come of them so far is in `session`.

    A question that came to nothing does not end the session; a broken protocol does, and is raised. After two in a row
    whose steps were abandoned for the same reason, e.g. because a client is gone that all sums need, the rest is not
    asked: it would end alike.
    """
    with _counted(conversation, session), telling(conversation):
        started = time.perf_counter()
        asking = Asking(Tools(public, member.knowledge, conversation, member.guards))
        session.setup_seconds = time.perf_counter() - started
        last = ""
        for question in questions:
            started, before, retrieved, problem = time.perf_counter(), len(asking.steps), None, ""
            try:
                retrieved = asking.ask(question)
            except (UserError, SumAbandoned) as error:
                problem = str(error)
                reason = _reason(problem) if isinstance(error, SumAbandoned) else ""
                session.stopped, last = bool(reason) and reason == last, reason or last
            else:
                last = ""
            seconds = time.perf_counter() - started
            outcome = Outcome(retrieved, problem, seconds, asking.steps[before:])
            session.outcomes.append(outcome)
            session.on_outcome(outcome)
            if session.stopped:
                break
        asking.end()


def answer(public: PublicTerms, member: Member, conversation: Conversation, session: Session) -> None:
    """Every other client's part, until the asker says that there is no more to come."""
    with _counted(conversation, session), telling(conversation):
        Answering(Tools(public, member.knowledge, conversation, member.guards), member.release).run()


def _reason(problem: str) -> str:
    """Without the client that was the first to say so."""
    return re.sub(r"^client \d+: ", "", problem)


@contextmanager
def _counted(conversation: Conversation, session: Session) -> Iterator[None]:
    try:
        yield
    finally:
        traffic = conversation.transport.traffic
        size = traffic.total("sent").bytes + traffic.total("received").bytes
        session.traffic[conversation.transport.party] = size
