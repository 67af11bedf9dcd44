"""The masked sum as a conversation: set-up, hostile servers, other terms, and what the wire carries."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import (
    Aborted,
    DeadlineExpired,
    LeftOut,
    PeerLost,
    PeerMisbehaved,
    ProtocolError,
    SumAbandoned,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.primitives.identity import IdentityKey
from protocols.primitives.keys import AgreementKey
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Abandon, Abort, Conversation, LeaveOut
from protocols.session.credentials import Credentials
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.interface import Collected, Contribution, SumLayout
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.params import ParametersRefused, ThreatModel
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms
from protocols.transport.base import Transport
from protocols.transport.tap import Tap, read_transcript
from tests.support.in_threads import SESSION, SHORT, Part, at_once, at_server, converse, soon
from tests.support.sum_conversations import (
    ACTIVE,
    PURPOSE,
    SECAGG,
    SECOND,
    SEMI_HONEST,
    SIGNED,
    Bend,
    Foreseen,
    Silences,
    Twin,
    bent,
    credentials,
    everyone,
    is_sum_of,
    layout_for,
    random_inputs,
    serving,
    step_of,
    stopping_at,
    taking_part,
    task_of,
)
from tests.support.uniformity import ENTRIES, looks_uniform

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
STRANGER = PartyId(5)
LAYOUT = layout_for(4)
TASK = task_of(LAYOUT, CLIENTS)
INPUTS = random_inputs(LAYOUT, CLIENTS)
PAST = Deadline(0.0)
SECURE = {"secagg": SECAGG, "signed": SIGNED}
both = pytest.mark.parametrize("twin", SECURE.values(), ids=SECURE)

Lie: TypeAlias = Callable[[PartyId, wire.Message], wire.Message]


class Lying(Conversation):
    """A server's conversation in which everything it sends is what `lie` makes of it."""

    def __init__(self, straight: Conversation, lie: Lie) -> None:
        super().__init__(straight.transport, straight.session)
        self._lie = lie

    def send(self, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        super().send(to, self._lie(to, message), round_id)


# --- set-up ---------------------------------------------------------------------------------------------------------


@both
def test_a_client_that_misses_the_setup_is_named_and_the_sums_go_on_without_it(twin: Twin) -> None:
    """The others cannot tell it from one that falls silent later: their tasks name it."""
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
    """Nobody sends an input: with shares that do not open, or adverts that are signed on other terms, all abort."""
    other, silent = OTHER_TERMS[difference], Silences()
    # What a client has applied is in the keys of its shares only, all else also in what it signs.
    by_signature = twin is SIGNED and "model" not in difference
    at = "share keys" if by_signature else "masked input"
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
        assert said == [AdvertiseChannel, AdvertiseKeys, ShareKeys][: 2 if by_signature else 3]

    def serve(conversation: Conversation) -> None:
        patience = Foreseen(*((step_of(at), party) for party in CLIENTS))
        with pytest.raises(SumAbandoned, match="0 clients have"):
            serving(twin, CLIENTS, [AGREED], patience, silent)(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    assert silent.seen == [(set(CLIENTS), step_of(at))]


@both
def test_the_same_model_adds_up(twin: Twin) -> None:
    """Without this the test above would not notice that a model makes every sum fail."""
    parts = {SERVER: serving(twin, CLIENTS, [AGREED])}
    (collected,) = converse(parts | dict.fromkeys(CLIENTS, taking_part(twin, CLIENTS, [(AGREED, INPUTS)])))[SERVER]
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)


# --- hostile servers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Untruth:
    """What the server says to everybody instead of `kind`, and how every client takes it."""

    kind: type[wire.Message]
    problem: type[ProtocolError]
    match: str
    lie: Lie


def changed(message: wire.Message, **fields: object) -> wire.Message:
    return msgspec.structs.replace(message, **fields)


def mask_keys(make: Callable[[PartyId, dict[int, bytes]], dict[int, bytes]]) -> Lie:
    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        assert isinstance(message, KeyDirectory)
        keys = make(to, message.mask_keys)
        return changed(message, mask_keys=keys, states=dict.fromkeys(keys, b""))

    return lie


def sealed(make: Callable[[PartyId, dict[int, bytes]], dict[int, bytes]]) -> Lie:
    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        assert isinstance(message, EncryptedShares)
        return changed(message, sealed=make(to, message.sealed))

    return lie


def signatures(make: Callable[[PartyId, dict[int, bytes]], dict[int, bytes]]) -> Lie:
    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        assert isinstance(message, SignedSurvivors)
        return changed(message, signatures=make(to, message.signatures))

    return lie


def one_of(entries: dict[int, bytes]) -> dict[int, bytes]:
    party = min(entries)
    return {party: entries[party]}


def swapped(entries: dict[int, bytes]) -> dict[int, bytes]:
    return dict(zip(entries, reversed(entries.values()), strict=True))


def flipped(entries: dict[int, bytes]) -> dict[int, bytes]:
    return {party: entry[:-1] + bytes([entry[-1] ^ 1]) for party, entry in entries.items()}


def peer_of(party: PartyId) -> int:
    return party % 4 + 1


UNTRUTHS: dict[str, Untruth] = {}
for _kind, _waits in ((KeyDirectory, "keys"), (EncryptedShares, "shares"), (Survivors, "survivors")):
    UNTRUTHS |= {
        f"{_waits}: abandoned": Untruth(
            _kind, SumAbandoned, "^too few$", lambda to, message: Abandon(PURPOSE, "too few")
        ),
        f"{_waits}: left out": Untruth(_kind, LeftOut, "gone on without this client", lambda to, message: LeaveOut()),
        f"{_waits}: session over": Untruth(_kind, Aborted, "^over$", lambda to, message: Abort("over")),
        f"{_waits}: of another sum": Untruth(
            _kind, PeerMisbehaved, "a message for another sum", lambda to, message: changed(message, purpose="other")
        ),
        f"{_waits}: another kind": Untruth(
            _kind,
            UnexpectedMessage,
            "the server sent AdvertiseChannel",
            lambda to, message: AdvertiseChannel(bytes(32), b""),
        ),
    }
UNTRUTHS |= {
    "keys: of a stranger": Untruth(
        KeyDirectory, PeerMisbehaved, "no neighbour", mask_keys(lambda to, keys: {**keys, 5: AgreementKey().public})
    ),
    "keys: of the receiver": Untruth(
        KeyDirectory, PeerMisbehaved, "no neighbour", mask_keys(lambda to, keys: {**keys, to: AgreementKey().public})
    ),
    "keys: two alike": Untruth(
        KeyDirectory, PeerMisbehaved, "same key", mask_keys(lambda to, keys: dict.fromkeys(keys, bytes([9]) * 32))
    ),
    "keys: too few": Untruth(
        KeyDirectory,
        PeerMisbehaved,
        "2 clients are said to have advertised keys, fewer than 3",
        mask_keys(lambda to, keys: one_of(keys)),
    ),
    "shares: damaged": Untruth(
        EncryptedShares, PeerMisbehaved, "cannot be opened", sealed(lambda to, entries: flipped(entries))
    ),
    "shares: exchanged": Untruth(
        EncryptedShares, PeerMisbehaved, "cannot be opened", sealed(lambda to, entries: swapped(entries))
    ),
    "shares: of the receiver": Untruth(
        EncryptedShares,
        PeerMisbehaved,
        "advertised no key",
        sealed(lambda to, entries: {**entries, to: min(entries.values())}),
    ),
    "shares: of a stranger": Untruth(
        EncryptedShares,
        PeerMisbehaved,
        "advertised no key",
        sealed(lambda to, entries: {**entries, 5: min(entries.values())}),
    ),
    "shares: too few": Untruth(
        EncryptedShares,
        PeerMisbehaved,
        "2 clients are said to have shared keys, fewer than 3",
        sealed(lambda to, entries: one_of(entries)),
    ),
    "survivors: without the receiver": Untruth(
        Survivors, PeerMisbehaved, "names this client", lambda to, message: Survivors(PURPOSE, [to])
    ),
    "survivors: one dropped twice": Untruth(
        Survivors, PeerMisbehaved, "names one twice", lambda to, message: Survivors(PURPOSE, [peer_of(to)] * 2)
    ),
    "survivors: a stranger dropped": Untruth(
        Survivors, PeerMisbehaved, "names one that has sent no shares", lambda to, message: Survivors(PURPOSE, [5])
    ),
    "survivors: too few": Untruth(
        Survivors,
        PeerMisbehaved,
        "2 clients are said to have sent their input, fewer than 3",
        lambda to, message: Survivors(PURPOSE, [int(party) for party in CLIENTS if party != to][:2]),
    ),
}
UNTRUTHS_IF_SIGNED: dict[str, Untruth] = {
    "keys: of the server": Untruth(
        KeyDirectory,
        PeerMisbehaved,
        "not signed by its pinned identity",
        mask_keys(lambda to, keys: {**keys, peer_of(to): AgreementKey().public}),
    ),
    "signatures: none": Untruth(
        SignedSurvivors,
        PeerMisbehaved,
        "1 clients have signed the survivors, fewer than 3",
        signatures(lambda to, signed: {}),
    ),
    "signatures: too few": Untruth(
        SignedSurvivors,
        PeerMisbehaved,
        "2 clients have signed the survivors, fewer than 3",
        signatures(lambda to, signed: {peer_of(to): signed[peer_of(to)]}),
    ),
    "signatures: damaged": Untruth(
        SignedSurvivors, PeerMisbehaved, "not signed by its pinned", signatures(lambda to, signed: flipped(signed))
    ),
    "signatures: exchanged": Untruth(
        SignedSurvivors, PeerMisbehaved, "not signed by its pinned", signatures(lambda to, signed: swapped(signed))
    ),
    "signatures: of a stranger": Untruth(
        SignedSurvivors,
        PeerMisbehaved,
        "by a client that is none",
        signatures(lambda to, signed: {**signed, 5: min(signed.values())}),
    ),
    "signatures: abandoned": Untruth(
        SignedSurvivors, SumAbandoned, "^too few$", lambda to, message: Abandon(PURPOSE, "too few")
    ),
    "signatures: left out": Untruth(SignedSurvivors, LeftOut, "gone on", lambda to, message: LeaveOut()),
}
SAID: dict[type[wire.Message], list[type[wire.Message]]] = {
    KeyDirectory: [AdvertiseChannel, AdvertiseKeys],
    EncryptedShares: [AdvertiseChannel, AdvertiseKeys, ShareKeys],
    Survivors: [AdvertiseChannel, AdvertiseKeys, ShareKeys, MaskedInput],
    SignedSurvivors: [AdvertiseChannel, AdvertiseKeys, ShareKeys, MaskedInput, SurvivorSignature],
}
"""What a client has said before the server's answer of each kind."""


def next_step(twin: Twin, kind: type[wire.Message]) -> str:
    after = {KeyDirectory: "share keys", EncryptedShares: "masked input", SignedSurvivors: "unmasking"}
    return after.get(kind, "consistency check" if twin is SIGNED else "unmasking")


@pytest.mark.parametrize(
    ("name", "told"),
    [("secagg", told) for told in UNTRUTHS] + [("signed", told) for told in UNTRUTHS | UNTRUTHS_IF_SIGNED],
)
def test_a_client_says_nothing_more_in_a_sum_once_the_server_ends_or_bends_it(name: str, told: str) -> None:
    twin, untruth = SECURE[name], (UNTRUTHS | UNTRUTHS_IF_SIGNED)[told]
    step = next_step(twin, untruth.kind)

    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        return untruth.lie(to, message) if isinstance(message, untruth.kind) else message

    def serve(conversation: Conversation) -> None:
        patience = Foreseen(*((step_of(step), party) for party in CLIENTS))
        with pytest.raises(SumAbandoned):
            serving(twin, CLIENTS, [TASK], patience)(Lying(conversation, lie))

    def take_part(conversation: Conversation) -> None:
        me, said = conversation.transport.party, list[type[wire.Message]]()
        client = twin.client(CLIENTS, me)

        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            said.append(type(message))
            return message

        def sum_once(noted: Conversation) -> None:
            client.setup(at_once(noted))
            client.prepare(at_once(noted), TASK)
            client.contribute(at_once(noted), TASK, INPUTS[me])

        with pytest.raises(untruth.problem, match=untruth.match):
            bent(sum_once, note)(conversation)
        assert said == SAID[untruth.kind]
        # The sum is over for this client, whatever it is asked for.
        sent = conversation.transport.traffic.total("sent")
        with pytest.raises(RuntimeError, match=r"^prepare\(\) comes first$"):
            client.contribute(ClientSession(conversation, PAST), TASK, INPUTS[me])
        with pytest.raises(PeerMisbehaved, match="a second sum"):
            client.prepare(ClientSession(conversation, PAST), TASK)
        assert conversation.transport.traffic.total("sent") == sent

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


def test_a_server_that_tells_clients_different_survivors_opens_nothing_against_signatures() -> None:
    """Client 1 hears that client 2 has dropped out, the others that nobody has."""

    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        return Survivors(PURPOSE, [TWO]) if isinstance(message, Survivors) and to == ONE else message

    def serve(conversation: Conversation) -> None:
        patience = Foreseen(*((step_of("unmasking"), party) for party in CLIENTS))
        with pytest.raises(SumAbandoned, match="0 clients gave a share"):
            serving(SIGNED, CLIENTS, [TASK], patience)(Lying(conversation, lie))

    def take_part(conversation: Conversation) -> None:
        with pytest.raises(PeerMisbehaved, match=r"signed by its pinned identity|a client that is none"):
            taking_part(SIGNED, CLIENTS, [(TASK, INPUTS)])(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


@both
@pytest.mark.parametrize("robbed", [ONE, THREE], ids=int)
@pytest.mark.parametrize("silent_then", [False, True], ids=["honest", "silent"])
def test_shares_that_are_lost_on_the_way_never_give_a_wrong_sum(twin: Twin, robbed: PartyId, silent_then: bool) -> None:
    """The others could open everything without it; nobody else knows that their common mask is in one input only."""
    sender = TWO
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])
    said: list[type[wire.Message]] = []

    def lose(to: PartyId, message: wire.Message) -> wire.Message:
        if to != robbed or not isinstance(message, EncryptedShares):
            return message
        kept = {party: entry for party, entry in message.sealed.items() if party != sender}
        assert len(kept) == 2
        return changed(message, sealed=kept)

    def serve(conversation: Conversation) -> None:
        # Without the check it would wait for no answer of that client any more, and have its sum.
        patience = Foreseen(*((step_of(step), robbed) for step in ("consistency check", "unmasking") if silent_then))
        try:
            with pytest.raises(PeerMisbehaved, match=f"client {robbed} has masked with others than its neighbours"):
                serving(twin, CLIENTS, [TASK], patience)(Lying(conversation, lose))
        finally:
            conversation.abort(CLIENTS, "a client misbehaves", TASK.round)

    def take_part(conversation: Conversation) -> None:
        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            said.append(type(message))
            return message

        with pytest.raises(Aborted, match="a client misbehaves"):
            bent(honest, note)(conversation)

    def fall_silent(conversation: Conversation) -> None:
        with pytest.raises(Aborted, match="a client misbehaves"):
            bent(honest, stopping_at(twin.says["consistency check" if twin is SIGNED else "unmasking"]))(conversation)

    parts = {SERVER: serve} | dict.fromkeys(CLIENTS, take_part)
    converse(parts | {robbed: fall_silent} if silent_then else parts)
    # Nobody was asked to open anything.
    assert not {SurvivorSignature, UnmaskShares} & set(said)


def zeros(entries: dict[int, bytes]) -> dict[int, bytes]:
    return {party: bytes(len(entry)) for party, entry in entries.items()}


def damaged(message: wire.Message, round_id: RoundId) -> wire.Message:
    if not isinstance(message, UnmaskShares):
        return message
    return UnmaskShares(PURPOSE, zeros(message.mask_key_shares), zeros(message.seed_shares))


def uncommitted(message: wire.Message, round_id: RoundId) -> wire.Message:
    return changed(message, seed_commitment=bytes(32)) if isinstance(message, ShareKeys) else message


def advertised_otherwise(message: wire.Message, round_id: RoundId) -> wire.Message:
    return changed(message, mask_key=AgreementKey().public) if isinstance(message, AdvertiseKeys) else message


@pytest.mark.parametrize(
    ("name", "step", "bends", "match"),
    [
        ("secagg", "unmasking", {THREE: damaged}, "the shares of the self mask of client 1 are false"),
        ("signed", "unmasking", {THREE: damaged}, "the shares of the self mask of client 1 are false"),
        ("secagg", "masked input", {THREE: damaged}, "the shares of the mask key of client 4 are false"),
        ("signed", "masked input", {THREE: damaged}, "the shares of the mask key of client 4 are false"),
        ("secagg", "unmasking", {TWO: uncommitted}, "the shares of the self mask of client 2 are false"),
        ("signed", "unmasking", {TWO: uncommitted}, "the shares of the self mask of client 2 are false"),
    ],
)
def test_false_shares_end_the_sum_instead_of_spoiling_it(
    name: str, step: str, bends: dict[PartyId, Bend], match: str
) -> None:
    """Client 4 falls silent in `step`, so that the shares of all the others are needed."""
    twin = SECURE[name]
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])

    def serve(conversation: Conversation) -> None:
        with pytest.raises(SumAbandoned, match=match):
            serving(twin, CLIENTS, [TASK], Foreseen((step_of(step), FOUR)))(conversation)

    parts: dict[PartyId, Part] = {SERVER: serve} | dict.fromkeys(CLIENTS, honest)
    parts[FOUR] = bent(honest, stopping_at(twin.says[step]))
    for party, bend in bends.items():
        parts[party] = bent(parts[party], bend)
    converse(parts)


def test_a_client_that_advertises_another_key_than_it_has_gets_no_input_out_of_anybody() -> None:
    """Its shares do not open. Against signatures nobody even shares keys with it."""
    silent = Silences()
    honest = taking_part(SECAGG, CLIENTS, [(TASK, INPUTS)])

    def take_part(conversation: Conversation) -> None:
        me, said = conversation.transport.party, list[type[wire.Message]]()

        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            said.append(type(message))
            return advertised_otherwise(message, round_id) if me == FOUR else message

        liar = "client 1" if me == FOUR else "client 4"
        with pytest.raises(PeerMisbehaved, match=f"{liar} cannot be opened: forged, or it was told other keys"):
            bent(honest, note)(conversation)
        assert said == [AdvertiseChannel, AdvertiseKeys, ShareKeys]

    def serve(conversation: Conversation) -> None:
        patience = Foreseen(*((step_of("masked input"), party) for party in CLIENTS))
        with pytest.raises(SumAbandoned, match="0 clients have sent their input"):
            serving(SECAGG, CLIENTS, [TASK], patience, silent)(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    assert silent.seen == [(set(CLIENTS), step_of("masked input"))]


# --- sums that end early --------------------------------------------------------------------------------------------


@both
def test_a_preparation_that_fails_is_forgotten_and_the_next_sum_is_exact(twin: Twin) -> None:
    following = replace(TASK, round=SECOND)

    def abandon(to: PartyId, message: wire.Message) -> wire.Message:
        return Abandon(PURPOSE, "too few") if isinstance(message, KeyDirectory) else message

    def serve(conversation: Conversation) -> Collected:
        server, silent = twin.server(CLIENTS), Silences()
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent))
        patience = Foreseen(*((step_of("share keys"), party) for party in CLIENTS))
        with pytest.raises(SumAbandoned):
            server.prepare(at_server(Lying(conversation, abandon), CLIENTS, patience, silent), TASK)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), following)
        return server.collect(at_server(conversation, None, Foreseen(), silent), following)

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = twin.client(CLIENTS, me)
        client.setup(at_once(conversation))
        with pytest.raises(SumAbandoned, match=r"^too few$"):
            client.prepare(at_once(conversation), TASK)
        before = conversation.transport.traffic.total("sent"), conversation.transport.traffic.wait_seconds
        with pytest.raises(RuntimeError, match=r"^prepare\(\) comes first$"):
            client.contribute(at_once(conversation), TASK, INPUTS[me])
        # At once: it has neither sent nor waited.
        assert (conversation.transport.traffic.total("sent"), conversation.transport.traffic.wait_seconds) == before
        client.prepare(at_once(conversation), following)
        client.contribute(at_once(conversation), following, INPUTS[me])

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))[SERVER]
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)


class Losing(Transport):
    """A server's end that loses client 4 when it is to be sent a message of one kind. The client is told so."""

    def __init__(self, inner: Transport, kind: type[wire.Message]) -> None:
        super().__init__(inner.party, inner.peers)
        self._inner, self._kind = inner, kind

    def flush(self, deadline: Deadline) -> None:
        self._inner.flush(deadline)

    def _post(self, to: PartyId, frame: wire.Frame) -> None:
        envelope = wire.decode(frame, session=SESSION)
        if to == FOUR and isinstance(envelope.message, self._kind):
            self._inner.send(to, wire.encode(LeaveOut(), SESSION, envelope.round))
            raise PeerLost("client 4 can no longer be reached", to)
        self._inner.send(to, frame)

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, wire.Frame] | None:
        try:
            return self._inner.receive(senders, deadline)
        except DeadlineExpired:
            return None


@pytest.mark.parametrize(
    ("name", "kind", "step", "following", "summed"),
    [
        ("secagg", KeyDirectory, "advertise keys", "share keys", [ONE, TWO, THREE]),
        ("signed", KeyDirectory, "advertise keys", "share keys", [ONE, TWO, THREE]),
        ("secagg", EncryptedShares, "share keys", "masked input", [ONE, TWO, THREE]),
        ("signed", EncryptedShares, "share keys", "masked input", [ONE, TWO, THREE]),
        # Its input has arrived by then.
        ("secagg", Survivors, "masked input", "unmasking", CLIENTS),
        ("signed", Survivors, "masked input", "consistency check", CLIENTS),
        ("signed", SignedSurvivors, "consistency check", "unmasking", CLIENTS),
    ],
)
def test_a_client_that_cannot_be_reached_is_called_silent_once_and_not_waited_for(
    name: str, kind: type[wire.Message], step: str, following: str, summed: list[PartyId]
) -> None:
    twin, silent = SECURE[name], Silences()
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])
    patience = Asked((step_of(following), FOUR))

    def serve(conversation: Conversation) -> Collected:
        losing = Conversation(Losing(conversation.transport, kind), conversation.session)
        (collected,) = serving(twin, CLIENTS, [TASK], patience, silent)(losing)
        assert isinstance(collected, Collected)
        return collected

    def lost(conversation: Conversation) -> None:
        with pytest.raises(LeftOut):
            honest(conversation)

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, honest) | {FOUR: lost})[SERVER]
    assert silent.seen == [({FOUR}, step_of(step))]
    assert (step_of(step), FOUR) in patience.asked
    assert {party for asked, party in patience.asked if asked == step_of(following)} == {ONE, TWO, THREE}
    assert is_sum_of(collected, LAYOUT, INPUTS, summed)


class Asked(Foreseen):
    """Remembers for whom there was waiting in which step."""

    def __init__(self, *silent: tuple[str, PartyId]) -> None:
        super().__init__(*silent)
        self.asked: set[tuple[str, PartyId]] = set()

    def limit(self, step: str, party: PartyId, answered: Sequence[float], asked: int) -> float:
        self.asked.add((step, party))
        return super().limit(step, party, answered, asked)


# --- the wire -------------------------------------------------------------------------------------------------------


@both
def test_the_server_sees_noise_and_keys_and_nothing_else(twin: Twin, tmp_path: Path) -> None:
    """The transcript of the server's own end: no frame that arrives there shows a client's small numbers."""
    layout = SumLayout(ENTRIES, 0, bound=4.0, max_count=0, parties=2, ring_bits=64)
    clients = [ONE, TWO]
    task, clear = task_of(layout, clients), np.full(ENTRIES, 0.5)

    def serve(conversation: Conversation) -> Collected:
        with conversation.transport as transport:
            transport.attach(Tap(tmp_path / "server"))
            (collected,) = serving(twin, clients, [task])(conversation)
            assert isinstance(collected, Collected)
            return collected

    inputs = dict.fromkeys(clients, Contribution(clear, np.zeros(0, dtype=np.int64)))
    results = converse({SERVER: serve} | dict.fromkeys(clients, taking_part(twin, clients, [(task, inputs)])))
    assert np.array_equal(results[SERVER].total.real, 2 * clear)
    records = list(read_transcript(tmp_path / "server"))
    messages = [wire.decode(record.frame, session=SESSION).message for record in records]
    check: list[tuple[str, str, type[wire.Message]]] = [
        ("received", step_of("consistency check"), SurvivorSignature),
        ("sent", step_of("consistency check"), SignedSurvivors),
    ]
    expected: list[tuple[str, str, type[wire.Message]]] = [
        ("received", "advertise channel", AdvertiseChannel),
        ("sent", "advertise channel", ChannelDirectory),
        ("received", step_of("advertise keys"), AdvertiseKeys),
        ("sent", step_of("advertise keys"), KeyDirectory),
        ("received", step_of("share keys"), ShareKeys),
        ("sent", step_of("share keys"), EncryptedShares),
        ("received", step_of("masked input"), MaskedInput),
        ("sent", step_of("masked input"), Survivors),
        *(check if twin is SIGNED else []),
        ("received", step_of("unmasking"), UnmaskShares),
    ]
    seen = [(record.direction, record.phase, type(message)) for record, message in zip(records, messages, strict=True)]
    assert seen == [entry for entry in expected for _ in clients]
    masked = [message.vector for message in messages if isinstance(message, MaskedInput)]
    for vector in (*masked, masked[0] - masked[1]):
        assert looks_uniform(vector)
    # The pairwise masks cancel in the sum of the two, and the self masks still hide it.
    assert looks_uniform(masked[0] + masked[1])
    assert not looks_uniform(layout.codec.encode(clear).vector)


@both
def test_no_client_gives_both_shares_of_anyone_or_its_own_mask_key(twin: Twin) -> None:
    """Client 4 falls silent before its input: its mask key is opened, everybody else's self mask."""
    given: dict[PartyId, UnmaskShares] = {}
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])

    def take_part(conversation: Conversation) -> None:
        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            if isinstance(message, UnmaskShares):
                given[conversation.transport.party] = message
            return message

        bent(honest, note)(conversation)

    parts = {SERVER: serving(twin, CLIENTS, [TASK], Foreseen((step_of("masked input"), FOUR)))}
    converse(parts | dict.fromkeys(CLIENTS, take_part) | {FOUR: bent(honest, stopping_at(MaskedInput))})
    assert given.keys() == {ONE, TWO, THREE}
    for answer in given.values():
        assert answer.mask_key_shares.keys() == {FOUR}
        assert answer.seed_shares.keys() == {ONE, TWO, THREE}
