"""The harness itself: a party that fails must not go unnoticed."""

import pytest

from protocols.foundation.errors import Aborted
from protocols.foundation.identifiers import SERVER, SETUP, PartyId
from protocols.session.conversation import Abort, Conversation
from tests.support.in_threads import converse, soon


def _waits(conversation: Conversation) -> None:
    conversation.receive(SERVER, Abort, SETUP, soon())


def _ends(conversation: Conversation) -> None:
    conversation.broadcast([PartyId(1), PartyId(2)], Abort("over"), SETUP)


def test_what_any_party_raises_is_raised() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        converse({SERVER: _ends, PartyId(1): _waits, PartyId(2): _waits})
    assert [type(problem) for problem in caught.value.exceptions] == [Aborted, Aborted]


def test_results_come_back_by_party() -> None:
    parts = {PartyId(index): lambda conversation: conversation.transport.party for index in range(3)}
    assert converse(parts) == {index: index for index in range(3)}
