"""One client in a sum with a hostile server or hostile peers: what it answers, and that nothing gets out."""

import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, ProtocolError
from tests.support.secagg_sessions import (
    EVERYONE,
    ME,
    Script,
    Watched,
    assert_over,
    everyone,
)

ONE, _, THREE, FOUR = EVERYONE


def assert_refused(
    me: Watched, message: wire.Message, problem: str, error: type[ProtocolError] = PeerMisbehaved
) -> None:
    """The message ends the sum for this client, which has shown no secret before and shows none now."""
    sent = list(me.sent)
    with pytest.raises(error, match=problem):
        me.receive(message)
    assert me.sent == sent
    assert me.shown() == set()
    assert_over(me)


def due(script: Script) -> wire.Message:
    return script.sum.inbox[ME]


FIVE = everyone(5)
