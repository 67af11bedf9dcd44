"""What a client says of its own data before a question is asked: one sentence, without the names of files."""

import pytest

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerFailed
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, SessionId
from protocols.session.conversation import Conversation, Failed
from protocols.transport.in_process import InProcessNetwork
from secure_kg.foundation.errors import DataError
from secure_kg.queries.retrieval.telling import OWN_WORK, telling


def test_before_a_question_the_name_of_a_data_file_is_not_told() -> None:
    network = InProcessNetwork(1)
    client, server = (Conversation(network.endpoint(party), SessionId(bytes(16))) for party in (PartyId(1), SERVER))
    with pytest.raises(DataError, match="ward3"), telling(client, before=True):
        raise DataError("data/client-1/ward3.nt, line 2")
    with pytest.raises(PeerFailed) as told:
        server.receive(PartyId(1), Failed, SETUP, Deadline.after(5.0))
    assert str(told.value) == f"client 1: {OWN_WORK}"
