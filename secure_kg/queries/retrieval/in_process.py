"""All parties of a session of questions as threads of one process, each with its own end of the wire."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from protocols.foundation.identifiers import SERVER, PartyId, SessionId, new_session
from protocols.session.conversation import Conversation
from protocols.transport.base import Transport
from protocols.transport.in_threads import Ended, run_in_process
from secure_kg.queries.form import NamedQuery
from secure_kg.queries.retrieval import parts
from secure_kg.queries.retrieval.parts import Member, Outcome, Session
from secure_kg.queries.retrieval.serving import Serving, serve

Converse: TypeAlias = Callable[[Transport, SessionId], Conversation]


def hold_session(
    serving: Serving,
    members: Mapping[PartyId, Member],
    questions: Sequence[NamedQuery],
    seconds: float,
    converse: Converse = Conversation,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> Session:
    """Ask all questions, one after the other. `seconds`: for the whole of it; nobody is waited for any longer.

    `converse`: makes each party's end of the conversation.
    """
    session, number, public = Session(on_outcome=on_outcome), new_session(), serving.public

    def part(member: Member) -> Callable[[Transport], None]:
        def run(transport: Transport) -> None:
            conversation = converse(transport, number)
            if transport.party == public.asker:
                parts.ask(public, member, conversation, questions, session)
            else:
                parts.answer(public, member, conversation, session)

        return run

    of_clients = {party: part(member) for party, member in members.items()}
    ended = run_in_process(lambda wire: serve(serving, converse(wire, number)), of_clients, seconds=seconds)
    ends: dict[PartyId, Ended[Any]] = {SERVER: ended.server, **ended.clients}
    for party, one in ends.items():
        if one.error is not None:
            session.problems[party] = one.error
        elif one.hangs:
            session.problems[party] = TimeoutError("did not end in time")
    return session
