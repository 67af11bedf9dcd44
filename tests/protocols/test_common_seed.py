"""The seed of all clients: one client's offer, the same for everybody, and not the server's to read or to choose."""

from pathlib import Path

import pytest
from group_keys import a_key
from in_threads import SESSION, SHORT, Part, converse, soon
from sum_conversations import Foreseen, Silences, bent, everyone, stopping_at

from protocols import common_seed, wire
from protocols.common_seed import AskForSeed, CommonSeed
from protocols.conversation import Conversation
from protocols.errors import PeerMisbehaved, ProtocolError, UnexpectedMessage
from protocols.group_key import GroupKey
from protocols.identifiers import SERVER, SETUP, PartyId, RoundId, SessionId
from protocols.plain.union import ClearNames
from protocols.primitives.aead import seal
from protocols.transport.deadline import Deadline
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.tap import Tap, read_transcript

CLIENTS = everyone(3)
ONE, TWO, THREE = CLIENTS
STEP = "common seed"
KEY = a_key(1)
with_and_without = pytest.mark.parametrize("key", [KEY, None], ids=["secret", "plain"])


def offer_of(party: PartyId) -> bytes:
    return bytes([200 + party]) * 32


def joining(key: GroupKey | None) -> Part:
    return lambda talk: common_seed.join(talk, offer_of(talk.transport.party), key, soon())


def serving(patience: Foreseen | None = None, silent: Silences | None = None) -> Part:
    return lambda talk: common_seed.serve(talk, CLIENTS, patience or Foreseen(), silent or Silences())


def told(message: wire.Message, key: GroupKey | None, round_id: RoundId = SETUP) -> bytes:
    """What client 2 makes of a message that is already there."""
    network = InProcessNetwork(len(CLIENTS))
    Conversation(network.endpoint(SERVER), SESSION).send(TWO, message, round_id)
    return common_seed.join(Conversation(network.endpoint(TWO), SESSION), offer_of(TWO), key, Deadline.after(SHORT))


@with_and_without
def test_all_clients_have_the_seed_that_the_first_one_offers(key: GroupKey | None) -> None:
    silent = Silences()
    seeds = converse({SERVER: serving(silent=silent)} | dict.fromkeys(CLIENTS, joining(key)))
    assert [seeds[party] for party in CLIENTS] == [offer_of(ONE)] * 3
    assert silent.seen == []


@with_and_without
def test_the_next_client_is_asked_if_one_falls_silent(key: GroupKey | None) -> None:
    silent = Silences()
    parts = {SERVER: serving(Foreseen((STEP, ONE)), silent)} | dict.fromkeys(CLIENTS, joining(key))
    seeds = converse(parts | {ONE: bent(joining(key), stopping_at(CommonSeed))})
    assert [seeds[party] for party in (TWO, THREE)] == [offer_of(TWO)] * 2
    assert silent.seen == [({ONE}, STEP)]


def test_without_anybody_to_offer_a_seed_there_is_none() -> None:
    def serve(conversation: Conversation) -> None:
        with pytest.raises(ProtocolError, match="no client is left for the step 'common seed'"):
            serving(Foreseen(*((STEP, party) for party in CLIENTS)))(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, bent(joining(KEY), stopping_at(CommonSeed))))


@with_and_without
def test_the_server_sees_the_seed_only_if_clients_have_no_key(key: GroupKey | None, tmp_path: Path) -> None:
    def serve(conversation: Conversation) -> None:
        with conversation.transport as transport:
            transport.attach(Tap(tmp_path / "server"))
            serving()(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, joining(key)))
    seen = [offer_of(ONE) in record.frame for record in read_transcript(tmp_path / "server")]
    # It is asked for, arrives, and goes to two others.
    assert seen == ([False] * 4 if key else [False, True, True, True])


def test_a_seed_is_encrypted_afresh_each_time() -> None:
    """The same offer in two sessions, or sent twice, is not to be recognised."""
    sealed = set[bytes]()
    for _ in range(2):
        network = InProcessNetwork(len(CLIENTS))
        server, client = (Conversation(network.endpoint(party), SESSION) for party in (SERVER, ONE))
        server.send(ONE, AskForSeed(), SETUP)
        assert common_seed.join(client, offer_of(ONE), KEY, soon()) == offer_of(ONE)
        sealed.add(server.receive(ONE, CommonSeed, SETUP, soon()).content)
    assert len(sealed) == 2


SEALED = seal(KEY.derive(STEP, SETUP), offer_of(ONE), STEP.encode())


def test_a_seed_that_was_tampered_with_or_is_of_another_key_is_refused() -> None:
    assert told(CommonSeed(SEALED), KEY) == offer_of(ONE)
    changed = [SEALED[:at] + bytes([SEALED[at] ^ 1]) + SEALED[at + 1 :] for at in (0, 12, 43, 44, 59)]
    for content in changed:
        with pytest.raises(PeerMisbehaved, match="the common seed cannot be opened"):
            told(CommonSeed(content), KEY)
    for other in (a_key(2), a_key(1, SessionId(bytes(16))), GroupKey(bytes([1]) * 32, SESSION, bytes(32))):
        with pytest.raises(PeerMisbehaved, match="the common seed cannot be opened"):
            told(CommonSeed(SEALED), other)


def test_a_server_cannot_put_a_seed_of_its_own_in_clear() -> None:
    with pytest.raises(PeerMisbehaved, match="in clear where it must be encrypted"):
        told(CommonSeed(bytes(32)), KEY)
    with pytest.raises(PeerMisbehaved, match="or the other way round"):
        told(CommonSeed(SEALED), None)


@with_and_without
def test_another_message_than_is_due_ends_it(key: GroupKey | None) -> None:
    with pytest.raises(UnexpectedMessage, match="the server sent ClearNames where a common seed was due"):
        told(ClearNames(["x"]), key)


@pytest.mark.parametrize("message", [AskForSeed(), CommonSeed(SEALED)], ids=["asked", "told"])
def test_a_message_of_a_later_round_ends_it(message: wire.Message) -> None:
    """It would be accepted if it were of the set-up."""
    assert told(message, KEY) in (offer_of(ONE), offer_of(TWO))
    kind = type(message).__name__
    with pytest.raises(UnexpectedMessage, match=f"the server sent {kind} of round 1 where Message of round 0 was due"):
        told(message, KEY, RoundId(1))


@with_and_without
def test_a_server_can_deal_out_different_seeds_of_clients(key: GroupKey | None) -> None:
    """Stated as not covered: clients then start from different rows."""

    def serve(conversation: Conversation) -> None:
        seeds = []
        for party in (ONE, TWO):
            conversation.send(party, AskForSeed(), SETUP)
            seeds.append(conversation.receive(party, CommonSeed, SETUP, soon()))
        conversation.send(THREE, seeds[1], SETUP)

    seeds = converse({SERVER: serve} | dict.fromkeys(CLIENTS, joining(key)))
    assert [seeds[party] for party in CLIENTS] == [offer_of(ONE), offer_of(TWO), offer_of(TWO)]


@pytest.mark.parametrize("length", [0, 31, 33, 60])
def test_an_offer_of_another_length_is_refused_before_anything_is_said(length: int) -> None:
    network = InProcessNetwork(len(CLIENTS))
    with pytest.raises(ValueError, match="32 bytes"):
        common_seed.join(Conversation(network.endpoint(ONE), SESSION), bytes(length), KEY, Deadline(0.0))
