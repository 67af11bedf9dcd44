"""The masked sum as a conversation: set-up, hostile servers, and what the wire carries."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from in_threads import SESSION, SHORT, converse, soon
from sum_conversations import PURPOSE, everyone, layout_for, random_inputs
from uniformity import ENTRIES, looks_uniform

from protocols import wire
from protocols.conversation import Abort, Conversation
from protocols.errors import Aborted, DeadlineExpired, PeerMisbehaved, UnexpectedMessage
from protocols.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.primitives.keys import AgreementKey
from protocols.secagg.messages import AdvertiseKeys, KeyDirectory, MaskedInput
from protocols.secagg.server import directory_of
from protocols.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums import Contribution, SumLayout
from protocols.transport.deadline import Deadline
from protocols.transport.tap import Tap, read_transcript

CLIENTS = everyone(3)
ONE, TWO, THREE = CLIENTS
LAYOUT = layout_for(3)
FIRST = RoundId(1)


def test_a_client_that_does_not_advertise_is_named() -> None:
    def serving(conversation: Conversation) -> None:
        # Those that do advertise have done so once their first message can be read.
        adverts = conversation.gather_all([ONE, THREE], AdvertiseKeys, SETUP, soon())
        assert len({advert.mask_key for advert in adverts.values()}) == 2
        with pytest.raises(DeadlineExpired, match=r"^client 2 did not answer in time \(AdvertiseKeys\)"):
            SecAggSumServer([TWO]).setup(conversation, Deadline.after(SHORT))
        conversation.broadcast(CLIENTS, Abort("client 2 is lost"), SETUP)

    def advertising(conversation: Conversation) -> None:
        with pytest.raises(Aborted, match="client 2 is lost"):
            SecAggSumClient(CLIENTS).setup(conversation, soon())

    converse({SERVER: serving, ONE: advertising, TWO: lambda conversation: None, THREE: advertising})


def test_a_silent_server_is_named() -> None:
    def advertising(conversation: Conversation) -> None:
        with pytest.raises(DeadlineExpired, match="the server"):
            SecAggSumClient([ONE, TWO]).setup(conversation, Deadline.after(SHORT))

    converse({SERVER: lambda conversation: None, ONE: advertising, TWO: advertising})


def replaced(directory: KeyDirectory, **keys: bytes) -> KeyDirectory:
    return KeyDirectory(directory.mask_keys | {int(name.strip("_")): key for name, key in keys.items()})


WRONG: dict[str, Callable[[KeyDirectory], wire.Message]] = {
    "without client 3": lambda directory: KeyDirectory({1: directory.mask_keys[1], 2: directory.mask_keys[2]}),
    "with client 4": lambda directory: replaced(directory, _4=AgreementKey().public),
    "other keys": lambda directory: replaced(directory, _1=bytes([9]) * 32, _2=bytes([8]) * 32, _3=bytes([7]) * 32),
    "one key for all": lambda directory: KeyDirectory(dict.fromkeys(directory.mask_keys, bytes([9]) * 32)),
    "no directory": lambda directory: AdvertiseKeys(bytes([9]) * 32),
}


@pytest.mark.parametrize("name", WRONG)
def test_clients_do_not_sum_after_a_wrong_directory(name: str) -> None:
    def serving(conversation: Conversation) -> None:
        adverts = conversation.gather_all(CLIENTS, AdvertiseKeys, SETUP, soon())
        conversation.broadcast(CLIENTS, WRONG[name](directory_of(adverts)), SETUP)

    def advertising(conversation: Conversation) -> None:
        client = SecAggSumClient(CLIENTS)
        with pytest.raises((PeerMisbehaved, UnexpectedMessage)):
            client.setup(conversation, soon())
        sent = conversation.transport.traffic.total("sent")
        given = random_inputs(LAYOUT, [ONE])[ONE]
        with pytest.raises(RuntimeError, match="setup"):
            client.contribute(conversation, FIRST, PURPOSE, CLIENTS, LAYOUT, given)
        assert conversation.transport.traffic.total("sent") == sent

    converse({SERVER: serving} | dict.fromkeys(CLIENTS, advertising))


Asked = tuple[int, str, list[PartyId]]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, PURPOSE, CLIENTS), (1, PURPOSE, CLIENTS)),
        ((2, PURPOSE, CLIENTS), (1, PURPOSE, CLIENTS)),
        ((1, PURPOSE, CLIENTS), (1, PURPOSE, [ONE, TWO])),
        ((1, PURPOSE, CLIENTS), (2, PURPOSE, [TWO, THREE])),
        ((1, PURPOSE, CLIENTS), (2, PURPOSE, [ONE])),
        ((1, PURPOSE, CLIENTS), (2, PURPOSE, [ONE, ONE])),
        ((1, PURPOSE, CLIENTS), (2, PURPOSE, [ONE, PartyId(4)])),
    ],
)
def test_a_client_sends_nothing_more_once_it_was_asked_for_too_much(first: Asked, second: Asked) -> None:
    given = random_inputs(LAYOUT, [ONE])[ONE]

    def taking_part(conversation: Conversation) -> None:
        client = SecAggSumClient(CLIENTS)
        client.setup(conversation, soon())
        if conversation.transport.party != ONE:
            return

        def contribute(round_id: int, purpose: str, participants: list[PartyId]) -> None:
            client.contribute(conversation, RoundId(round_id), purpose, participants, LAYOUT, given)

        contribute(*first)
        sent = conversation.transport.traffic.total("sent")
        with pytest.raises(PeerMisbehaved):
            contribute(*second)
        with pytest.raises(UnexpectedMessage, match="aborted"):
            contribute(9, "another", CLIENTS)
        assert conversation.transport.traffic.total("sent") == sent

    def serving(conversation: Conversation) -> None:
        SecAggSumServer(CLIENTS).setup(conversation, soon())

    converse({SERVER: serving} | dict.fromkeys(CLIENTS, taking_part))


def test_the_fewest_participants_come_from_the_clients_configuration() -> None:
    def taking_part(conversation: Conversation) -> None:
        client = SecAggSumClient(CLIENTS, min_participants=3)
        client.setup(conversation, soon())
        given = random_inputs(LAYOUT, [ONE])[ONE]
        two = [ONE, TWO] if conversation.transport.party == ONE else [conversation.transport.party, ONE]
        with pytest.raises(PeerMisbehaved, match="2 participants, fewer than 3"):
            client.contribute(conversation, FIRST, PURPOSE, two, LAYOUT, given)

    def serving(conversation: Conversation) -> None:
        SecAggSumServer(CLIENTS).setup(conversation, soon())

    converse({SERVER: serving} | dict.fromkeys(CLIENTS, taking_part))


def test_the_server_sees_noise_and_keys_and_nothing_else(tmp_path: Path) -> None:
    """The transcript of the server's own end: no frame that arrives there shows a client's small numbers."""
    layout = SumLayout(ENTRIES, 0, bound=4.0, max_count=0, parties=2, ring_bits=64)
    clients = [ONE, TWO]
    clear = np.full(ENTRIES, 0.5)

    def serving(conversation: Conversation) -> None:
        with conversation.transport as transport:
            transport.attach(Tap(tmp_path / "server"))
            server = SecAggSumServer(clients)
            server.setup(conversation, soon())
            total = server.collect(conversation, FIRST, PURPOSE, clients, layout, soon())
            assert np.array_equal(total.real, 2 * clear)

    def taking_part(conversation: Conversation) -> None:
        client = SecAggSumClient(clients)
        client.setup(conversation, soon())
        given = Contribution(clear, np.zeros(0, dtype=np.int64))
        client.contribute(conversation, FIRST, PURPOSE, clients, layout, given)

    converse({SERVER: serving} | dict.fromkeys(clients, taking_part))
    records = list(read_transcript(tmp_path / "server"))
    kinds = [
        (record.direction, record.phase, type(wire.decode(record.frame, session=SESSION).message)) for record in records
    ]
    assert kinds == [
        *[("received", "advertise keys", AdvertiseKeys)] * 2,
        *[("sent", "advertise keys", KeyDirectory)] * 2,
        *[("received", f"input/{PURPOSE}", MaskedInput)] * 2,
    ]
    for record in records[-2:]:
        message = wire.decode(record.frame, session=SESSION).message
        assert isinstance(message, MaskedInput)
        assert looks_uniform(message.vector)
    assert not looks_uniform(layout.codec.encode(clear).vector)
