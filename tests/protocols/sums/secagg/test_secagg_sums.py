"""The masked sum as a conversation: set-up, hostile servers, other terms, and what the wire carries."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import (
    Aborted,
    DeadlineExpired,
    PeerMisbehaved,
    SumAbandoned,
    SumRefused,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.primitives.identity import IdentityKey
from protocols.primitives.keys import AgreementKey
from protocols.session.client_session import ClientSession
from protocols.session.control import RefuseShares
from protocols.session.conversation import Abort, Conversation
from protocols.session.credentials import Credentials
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.interface import SumLayout
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    ShareKeys,
)
from protocols.sums.secagg.params import ParametersRefused, ThreatModel
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms
from tests.support.bent_servers import CLIENTS, FOUR, INPUTS, LAYOUT, ONE, PAST, SECURE, TASK, THREE, TWO, Lying, both
from tests.support.in_threads import SHORT, at_once, at_server, converse, soon
from tests.support.sum_conversations import (
    ACTIVE,
    SECOND,
    SEMI_HONEST,
    SIGNED,
    Foreseen,
    Silences,
    Twin,
    bent,
    credentials,
    is_sum_of,
    layout_for,
    random_inputs,
    serving,
    step_of,
    taking_part,
    task_of,
)

STRANGER = PartyId(5)


# --- set-up ---------------------------------------------------------------------------------------------------------


@both
def test_a_client_that_misses_the_setup_is_named_and_the_sums_go_on_without_it(twin: Twin) -> None:
    """The others cannot tell it from one that drops out later: their tasks name it."""
    silent = Silences()
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])
    parts = {SERVER: serving(twin, CLIENTS, [TASK], Foreseen(("advertise channel", TWO)), silent)}
    parts |= dict.fromkeys(CLIENTS, honest) | {TWO: lambda conversation: None}
    (collected,) = converse(parts)[SERVER]
    assert silent.seen == [({TWO}, "advertise channel")]
    assert is_sum_of(collected, LAYOUT, INPUTS, [ONE, THREE, FOUR])


@both
def test_the_session_can_end_during_the_setup(twin: Twin) -> None:
    def serve(conversation: Conversation) -> None:
        adverts = conversation.gather_all(CLIENTS, AdvertiseChannel, SETUP, soon())
        assert len({advert.channel_key for advert in adverts.values()}) == len(CLIENTS)
        conversation.broadcast(CLIENTS, Abort("client 2 is lost"), SETUP)

    def take_part(conversation: Conversation) -> None:
        with pytest.raises(Aborted, match="client 2 is lost"):
            twin.client(CLIENTS, conversation.transport.party).setup(at_once(conversation))

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


@both
def test_a_silent_server_is_named(twin: Twin) -> None:
    def take_part(conversation: Conversation) -> None:
        with pytest.raises(DeadlineExpired, match="the server"):
            twin.client(CLIENTS, conversation.transport.party).setup(ClientSession(conversation, Deadline.after(SHORT)))

    converse({SERVER: lambda conversation: None} | dict.fromkeys(CLIENTS, take_part))


def with_keys(directory: ChannelDirectory, **keys: bytes) -> ChannelDirectory:
    changed = directory.channel_keys | {int(name.strip("_")): key for name, key in keys.items()}
    return ChannelDirectory(changed, directory.signatures)


def without(directory: ChannelDirectory, party: PartyId) -> ChannelDirectory:
    keys = {peer: key for peer, key in directory.channel_keys.items() if peer != party}
    return ChannelDirectory(keys, directory.signatures)


WRONG: dict[str, Callable[[PartyId, ChannelDirectory], wire.Message]] = {
    "without the receiver": lambda to, directory: without(directory, to),
    "with a client 5": lambda to, directory: with_keys(directory, _5=AgreementKey().public),
    "another key for the receiver": lambda to, directory: with_keys(directory, **{f"_{to}": AgreementKey().public}),
    "one key for all": lambda to, directory: ChannelDirectory(
        dict.fromkeys(directory.channel_keys, directory.channel_keys[to]), directory.signatures
    ),
    "no directory": lambda to, directory: AdvertiseChannel(bytes([9]) * 32, b""),
}
WRONG_IF_SIGNED: dict[str, Callable[[PartyId, ChannelDirectory], wire.Message]] = {
    "a key of the server's own": lambda to, directory: with_keys(directory, **{f"_{to % 4 + 1}": bytes([9]) * 32}),
    "no signatures": lambda to, directory: ChannelDirectory(directory.channel_keys, {}),
    "a signature of another": lambda to, directory: ChannelDirectory(
        directory.channel_keys, directory.signatures | {to % 4 + 1: directory.signatures[to]}
    ),
}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("secagg", wrong) for wrong in WRONG] + [("signed", wrong) for wrong in WRONG | WRONG_IF_SIGNED],
)
def test_clients_do_not_sum_after_a_wrong_directory(name: str, wrong: str) -> None:
    twin, make = SECURE[name], (WRONG | WRONG_IF_SIGNED)[wrong]

    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        assert isinstance(message, ChannelDirectory)
        return make(to, message)

    def serve(conversation: Conversation) -> None:
        twin.server(CLIENTS).setup(at_server(Lying(conversation, lie), CLIENTS, Foreseen(), Silences()))

    def take_part(conversation: Conversation) -> None:
        client = twin.client(CLIENTS, conversation.transport.party)
        with pytest.raises((PeerMisbehaved, UnexpectedMessage)):
            client.setup(at_once(conversation))
        sent = conversation.transport.traffic.total("sent")
        assert sent.messages == 1
        with pytest.raises(RuntimeError, match="setup"):
            client.prepare(ClientSession(conversation, PAST), TASK)
        with pytest.raises(RuntimeError, match="prepare"):
            client.contribute(ClientSession(conversation, PAST), TASK, INPUTS[ONE])
        assert conversation.transport.traffic.total("sent") == sent

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


@pytest.mark.parametrize(("model", "own"), [(SEMI_HONEST, credentials(ONE)), (ACTIVE, None)])
def test_identities_are_needed_against_an_active_server_and_only_then(
    model: ThreatModel, own: Credentials | None
) -> None:
    with pytest.raises(ValueError, match="identity keys are needed against an active server, and only then"):
        SecAggSumClient(VectorClient(CLIENTS, model, credentials=own))


def test_a_client_with_another_identity_than_the_pinned_one_takes_nobody_in() -> None:
    """Client 4 has pinned a key of its own making; nobody else has."""
    identity = IdentityKey.generate()
    own = Credentials(identity, {**credentials(FOUR).directory, FOUR: identity.public})

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = SecAggSumClient(VectorClient(CLIENTS, ACTIVE, credentials=own if me == FOUR else credentials(me)))
        if me == FOUR:
            client.setup(at_once(conversation))
            return
        with pytest.raises(PeerMisbehaved, match="client 4's message is not signed by its pinned identity"):
            client.setup(at_once(conversation))

    def serve(conversation: Conversation) -> None:
        SecAggSumServer(VectorServer(len(CLIENTS), ACTIVE)).setup(
            at_server(conversation, CLIENTS, Foreseen(), Silences())
        )

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


# --- sums that a client does not begin ------------------------------------------------------------------------------


REFUSED: dict[str, SumTerms[SumLayout]] = {
    "a second time": TASK,
    "an earlier round": replace(TASK, round=RoundId(0), purpose="other"),
    "other participants, same round": replace(TASK, participants=(ONE, TWO, THREE)),
    "without itself": replace(TASK, round=SECOND, participants=(TWO, THREE, FOUR)),
    "alone": replace(TASK, round=SECOND, participants=(ONE,)),
    "itself twice": replace(TASK, round=SECOND, participants=(ONE, ONE)),
    "with a stranger": replace(TASK, round=SECOND, participants=(ONE, TWO, STRANGER)),
    "with nobody": replace(TASK, round=SECOND, participants=()),
}


@both
def test_a_client_sends_nothing_for_a_sum_it_refuses_and_the_session_goes_on(twin: Twin) -> None:
    last = task_of(LAYOUT, CLIENTS, 9)

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = twin.client(CLIENTS, me)
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), TASK)
        client.contribute(at_once(conversation), TASK, INPUTS[me])
        for task in REFUSED.values() if me == ONE else []:
            sent = conversation.transport.traffic.total("sent")
            with pytest.raises((PeerMisbehaved, ParametersRefused)):
                client.prepare(at_once(conversation), task)
            with pytest.raises(RuntimeError, match="prepare"):
                client.contribute(ClientSession(conversation, PAST), task, INPUTS[me])
            assert conversation.transport.traffic.total("sent") == sent
        client.prepare(at_once(conversation), last)
        client.contribute(at_once(conversation), last, INPUTS[me])

    parts = {SERVER: serving(twin, CLIENTS, [TASK, last])} | dict.fromkeys(CLIENTS, take_part)
    for collected in converse(parts)[SERVER]:
        assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)


def test_a_contribution_belongs_to_one_preparation() -> None:
    def take_part(conversation: Conversation) -> None:
        client = SecAggSumClient(VectorClient(CLIENTS, SEMI_HONEST))
        with pytest.raises(RuntimeError, match="setup"):
            client.prepare(ClientSession(conversation, PAST), TASK)
        client.setup(at_once(conversation))
        with pytest.raises(RuntimeError, match="prepare"):
            client.contribute(ClientSession(conversation, PAST), TASK, INPUTS[ONE])
        client.prepare(at_once(conversation), TASK)
        client.contribute(at_once(conversation), TASK, INPUTS[conversation.transport.party])
        with pytest.raises(RuntimeError, match="prepare"):
            client.contribute(ClientSession(conversation, PAST), TASK, INPUTS[ONE])

    def serve(conversation: Conversation) -> None:
        server, silent = SecAggSumServer(VectorServer(len(CLIENTS), SEMI_HONEST)), Silences()
        with pytest.raises(RuntimeError, match="setup"):
            server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), TASK)
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent))
        with pytest.raises(RuntimeError, match="prepare"):
            server.collect(at_server(conversation, None, Foreseen(), silent), TASK)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), TASK)
        server.collect(at_server(conversation, None, Foreseen(), silent), TASK)
        with pytest.raises(RuntimeError, match="prepare"):
            server.collect(at_server(conversation, None, Foreseen(), silent), TASK)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


def test_the_fewest_survivors_come_from_the_clients_configuration() -> None:
    """Four may lose one by the declaration; a client that wants all four does not begin."""

    def take_part(conversation: Conversation) -> None:
        client = SecAggSumClient(VectorClient(CLIENTS, SEMI_HONEST, min_survivors=4))
        client.setup(at_once(conversation))
        with pytest.raises(ParametersRefused, match="may leave 3 survivors, fewer than min_survivors = 4"):
            client.prepare(at_once(conversation), TASK)
        assert conversation.transport.traffic.total("sent").messages == 1

    def serve(conversation: Conversation) -> None:
        SecAggSumServer(VectorServer(len(CLIENTS), SEMI_HONEST)).setup(
            at_server(conversation, CLIENTS, Foreseen(), Silences())
        )

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


def test_a_server_cannot_lower_what_the_clients_declare() -> None:
    """The clients bear no dropout, the server would: with one away, they share no keys."""
    strict = ThreatModel(0.25, 0.0)

    def take_part(conversation: Conversation) -> None:
        client = SecAggSumClient(VectorClient(CLIENTS, strict))
        client.setup(at_once(conversation))
        if conversation.transport.party == TWO:
            return
        with pytest.raises(PeerMisbehaved, match="3 clients are said to have advertised keys, fewer than 4"):
            client.prepare(at_once(conversation), TASK)

    def serve(conversation: Conversation) -> None:
        server, silent = SecAggSumServer(VectorServer(len(CLIENTS), SEMI_HONEST)), Silences()
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent))
        others = {ONE, THREE, FOUR}
        patience = Foreseen(*((step_of("share keys"), party) for party in others))
        with pytest.raises(SumAbandoned, match="0 clients have shared keys, 3 are needed"):
            server.prepare(at_server(conversation, others, patience, silent), TASK)
        assert silent.seen == [(others, step_of("share keys"))]

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


# --- other terms ----------------------------------------------------------------------------------------------------


AGREED = replace(TASK, model=bytes(32))
OTHER_TERMS: dict[str, SumTerms[SumLayout]] = {
    "model": replace(AGREED, model=b"\x01" * 32),
    "no model": replace(AGREED, model=b""),
    "length": replace(AGREED, layout=layout_for(4, real=21)),
    "ring": replace(AGREED, layout=layout_for(4, 32)),
}


@both
@pytest.mark.parametrize("difference", OTHER_TERMS)
def test_clients_that_were_told_different_things_cannot_add_up(twin: Twin, difference: str) -> None:
    """Nobody sends an input: with shares that do not open, or adverts that are signed on other terms, all refuse."""
    other, silent = OTHER_TERMS[difference], Silences()
    # What a client has applied is in the keys of its shares only, all else also in what it signs.
    by_signature = twin is SIGNED and "model" not in difference
    match = "not signed by its pinned identity" if by_signature else "it was told other keys, terms or rows"

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        own = other if me == FOUR else AGREED
        contribution = random_inputs(own.layout, CLIENTS)[me]
        said: list[type[wire.Message]] = []

        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            said.append(type(message))
            return message

        with pytest.raises(PeerMisbehaved, match=match):
            bent(taking_part(twin, CLIENTS, [(own, {me: contribution})]), note)(conversation)
        assert said == [*[AdvertiseChannel, AdvertiseKeys, ShareKeys][: 2 if by_signature else 3], RefuseShares]

    def serve(conversation: Conversation) -> None:
        with pytest.raises(SumRefused, match=match) as told:
            serving(twin, CLIENTS, [AGREED], Foreseen(), silent)(conversation)
        assert told.value.by == FOUR or FOUR in told.value.of

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    assert not silent.seen


@both
def test_the_same_model_adds_up(twin: Twin) -> None:
    """Without this the test above would not notice that a model makes every sum fail."""
    parts = {SERVER: serving(twin, CLIENTS, [AGREED])}
    (collected,) = converse(parts | dict.fromkeys(CLIENTS, taking_part(twin, CLIENTS, [(AGREED, INPUTS)])))[SERVER]
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)
