"""Steps of a session whose batches become known as they come: the asker says which is next, the server passes it on.

A question decides how many lookups it takes, so nobody else can derive them from its configuration. The asker announces
each step in clear: its kind, its sizes, and a digest of the table that is answered from. Every other client makes the
terms of the step from these sizes and its own configuration, refuses what lies outside of it, and then answers nothing
but what the asker has sealed under the very same terms (`protocols.scores.asking`). So a server that alters an
announcement makes others wait or refuse, and gets nothing answered. After the last announcement nothing is sealed: it
has a word of its own, made from the key that clients have and the server has not (`protocols.session.group_key`). A
server alone cannot send a client home as if all were over; one with a client on its side can.

A step begins in a round that all parties know: each takes `ROUNDS`, used or not.
"""

from typing import Final

from protocols.foundation.errors import DeadlineExpired, PeerMisbehaved
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.lookups.messages import NextStep
from protocols.scores.batches import ATTEMPTS
from protocols.session.client_session import ClientSession
from protocols.session.group_key import GroupKey
from protocols.session.server_session import ServerSession

ROUNDS: Final = ATTEMPTS + 1
"""Of one step: its attempts, and one for what comes before them."""
END: Final = "end"
"""The kind of the last announcement: there is no further step."""
_END_WORD: Final = "end of steps"
STEP: Final = "next step"
"""Under which the transport counts announcements."""


def round_of(step: int) -> RoundId:
    """In which the step of this number (0, 1, ...) begins."""
    return RoundId(1 + ROUNDS * step)


def last(key: GroupKey, round_id: RoundId) -> NextStep:
    """There is no step in this round, and none after it."""
    return NextStep(END, [], key.derive(_END_WORD, round_id))


def is_last(step: NextStep, key: GroupKey, round_id: RoundId) -> bool:
    """Another client's side. `PeerMisbehaved` for an end that no client has announced for this round."""
    if step.kind != END:
        return False
    if step != last(key, round_id):
        raise PeerMisbehaved("the end of the session was announced by somebody who is no client of it")
    return True


def announce(session: ClientSession, round_id: RoundId, step: NextStep) -> None:
    """The asker's side."""
    with session.phase(round_id, STEP):
        session.send(step, round_id)


def awaited(session: ClientSession, round_id: RoundId) -> NextStep:
    """Another client's side: what was announced for this round."""
    with session.phase(round_id, STEP):
        return session.receive(NextStep, round_id)


def relay(session: ServerSession, round_id: RoundId, asker: PartyId) -> NextStep:
    """The server's side: to everybody else who is present. `DeadlineExpired` if the asker is silent."""
    with session.phase(round_id, STEP):
        answers = session.among([asker]).gather(NextStep, round_id, STEP)
        if asker not in answers:
            raise DeadlineExpired("the asker has dropped out")
        step = answers[asker]
        session.broadcast(session.present - {asker}, step, round_id, STEP)
    return step
