"""The key of all clients: the same for everybody, never on the wire, and refused if the server tampers with it."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.alignment.plain import ClearNames
from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import (
    Aborted,
    DeadlineExpired,
    LeftOut,
    PeerLost,
    PeerMisbehaved,
    ProtocolError,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId, SessionId
from protocols.session import group_key
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Abort, Conversation, LeaveOut
from protocols.session.group_key import DrawGroupKey, GroupKey, SealedGroupKey, SealedGroupKeys
from protocols.session.messages import ChannelDirectory
from protocols.sums.secagg.session import SecAggSession
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.tap import Tap, read_transcript
from tests.support.group_keys import KINDS, Kind, a_key, joining, serving_key
from tests.support.in_threads import SESSION, SHORT, at_server, converse, soon
from tests.support.sum_conversations import Foreseen, Silences, bent, everyone, instead_of, stopping_at

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
STRANGER = PartyId(5)
STEP = "group key"
both = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def secret_of(key: GroupKey) -> bytes:
    return key._secret


# --- agreeing -------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("count", [2, 4])
def test_all_clients_have_the_same_key_and_the_server_its_commitment(kind: Kind, count: int) -> None:
    clients, silent = everyone(count), Silences()
    keys = converse(
        {SERVER: serving_key(kind, clients, silent=silent)} | dict.fromkeys(clients, joining(kind, clients))
    )
    assert keys.pop(SERVER) == keys[ONE].commitment
    assert len({(secret_of(key), key.commitment, key.derive("use", SETUP)) for key in keys.values()}) == 1
    assert silent.seen == []


@both
def test_every_session_has_a_key_of_its_own(kind: Kind) -> None:
    parts = {SERVER: serving_key(kind, CLIENTS)} | dict.fromkeys(CLIENTS, joining(kind, CLIENTS))
    first, second = converse(parts)[ONE], converse(parts)[ONE]
    assert secret_of(first) != secret_of(second)
    assert first.commitment != second.commitment


@both
def test_nothing_that_the_server_sees_contains_the_key_or_one_derived_from_it(kind: Kind, tmp_path: Path) -> None:
    def serve(conversation: Conversation) -> None:
        with conversation.transport as transport:
            transport.attach(Tap(tmp_path / "server"))
            serving_key(kind, CLIENTS)(conversation)

    key = converse({SERVER: serve} | dict.fromkeys(CLIENTS, joining(kind, CLIENTS)))[TWO]
    seen = [record.frame for record in read_transcript(tmp_path / "server")]
    kinds = [type(wire.decode(frame, session=SESSION).message) for frame in seen[-5:]]
    assert kinds == [DrawGroupKey, SealedGroupKeys, *[SealedGroupKey] * 3]
    # Whatever is on the wire would be found: the commitment is, in what was drawn and in what was dealt out.
    assert sum(key.commitment in frame for frame in seen) == 4
    for hidden in (secret_of(key), key.derive("use", SETUP), key.derive("use", RoundId(1), ONE)):
        for part in (hidden, hidden[:8], hidden[::-1]):
            assert not any(part in frame for frame in seen)


@both
def test_a_client_that_falls_silent_when_it_is_to_draw_is_named_and_the_next_one_draws(kind: Kind) -> None:
    silent, honest = Silences(), joining(kind, CLIENTS)
    parts = {SERVER: serving_key(kind, CLIENTS, Foreseen((STEP, ONE), (STEP, TWO)), silent)}
    gone = bent(honest, stopping_at(SealedGroupKeys))
    keys = converse(parts | dict.fromkeys(CLIENTS, honest) | {ONE: gone, TWO: gone})
    assert silent.seen == [({ONE}, STEP), ({TWO}, STEP)]
    assert secret_of(keys[THREE]) == secret_of(keys[FOUR])
    assert keys[SERVER] == keys[THREE].commitment


@both
def test_without_anybody_left_to_draw_there_is_no_key(kind: Kind) -> None:
    clients, silent = [ONE, TWO], Silences()
    gone = bent(joining(kind, clients), stopping_at(SealedGroupKeys))

    def serve(conversation: Conversation) -> None:
        with pytest.raises(ProtocolError, match="no client is left"):
            serving_key(kind, clients, Foreseen((STEP, ONE), (STEP, TWO)), silent)(conversation)

    converse({SERVER: serve, ONE: gone, TWO: gone})
    assert silent.seen == [({ONE}, STEP), ({TWO}, STEP)]


class Losing(Conversation):
    """A server's conversation that has lost one client for messages of one kind, and tells it so."""

    def __init__(self, straight: Conversation, party: PartyId, kind: type[wire.Message]) -> None:
        super().__init__(straight.transport, straight.session)
        self._party, self._kind = party, kind

    def send(self, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        if to == self._party and isinstance(message, self._kind):
            super().send(to, LeaveOut(), round_id)
            raise PeerLost(f"client {to} can no longer be reached", to)
        super().send(to, message, round_id)


@pytest.mark.parametrize(("gone", "message"), [(ONE, DrawGroupKey), (THREE, SealedGroupKey)])
def test_a_client_that_cannot_be_reached_is_named_and_the_others_have_their_key(
    gone: PartyId, message: type[wire.Message]
) -> None:
    kind, silent = KINDS["semi-honest"], Silences()

    def serve(conversation: Conversation) -> None:
        serving_key(kind, CLIENTS, silent=silent)(Losing(conversation, gone, message))

    def lost(conversation: Conversation) -> None:
        with pytest.raises(LeftOut):
            joining(kind, CLIENTS)(conversation)

    keys = converse({SERVER: serve} | dict.fromkeys(CLIENTS, joining(kind, CLIENTS)) | {gone: lost})
    assert silent.seen == [({gone}, STEP)]
    assert len({secret_of(keys[party]) for party in CLIENTS if party != gone}) == 1


def test_only_those_present_are_asked_and_served() -> None:
    """Client 1 was lost after the channels were set up: it neither draws nor is sent anything."""
    kind = KINDS["signed"]

    def serve(conversation: Conversation) -> None:
        kind.server(CLIENTS).setup(at_server(conversation, CLIENTS, Foreseen(), Silences()))
        group_key.serve(at_server(conversation, CLIENTS[1:], Foreseen(), Silences()))
        conversation.send(ONE, Abort("nothing was sent before this"), SETUP)

    def lost(conversation: Conversation) -> None:
        with pytest.raises(Aborted, match="nothing was sent before this"):
            joining(kind, CLIENTS)(conversation)

    keys = converse({SERVER: serve} | dict.fromkeys(CLIENTS, joining(kind, CLIENTS)) | {ONE: lost})
    assert len({secret_of(keys[party]) for party in CLIENTS[1:]}) == 1


def test_a_client_that_misses_the_channels_is_dealt_no_key() -> None:
    """It would have no way to open it; who draws does not know it."""
    kind, silent = KINDS["semi-honest"], Silences()

    def serve(conversation: Conversation) -> None:
        server = kind.server(CLIENTS)
        server.setup(at_server(conversation, CLIENTS, Foreseen(("advertise channel", TWO)), silent))
        group_key.serve(at_server(conversation, server.channels, Foreseen(), silent))

    parts = {SERVER: serve} | dict.fromkeys(CLIENTS, joining(kind, CLIENTS)) | {TWO: lambda conversation: None}
    keys = converse(parts)
    assert silent.seen == [({TWO}, "advertise channel")]
    assert len({secret_of(keys[party]) for party in (ONE, THREE, FOUR)}) == 1


# --- clients that misbehave -----------------------------------------------------------------------------------------


def stage(make: Callable[[SealedGroupKeys], wire.Message], problem: type[ProtocolError], match: str) -> None:
    """Client 1 answers what `make` turns its keys into; the server must notice, and nobody hangs."""
    kind = KINDS["semi-honest"]

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        assert isinstance(message, SealedGroupKeys)
        return make(message)

    def serve(conversation: Conversation) -> None:
        with pytest.raises(problem, match=match):
            serving_key(kind, CLIENTS)(conversation)
        conversation.abort(CLIENTS, "client 1 misbehaves", SETUP)

    def wait(conversation: Conversation) -> None:
        with pytest.raises(Aborted):
            joining(kind, CLIENTS)(conversation)

    drawer = bent(joining(kind, CLIENTS), instead_of(SealedGroupKeys, bend))
    converse({SERVER: serve} | dict.fromkeys(CLIENTS, wait) | {ONE: drawer})


@pytest.mark.parametrize("left_out", [TWO, FOUR])
def test_a_client_that_leaves_another_one_out_is_noticed_by_the_server(left_out: PartyId) -> None:
    def leave_out(drawn: SealedGroupKeys) -> wire.Message:
        return SealedGroupKeys(drawn.commitment, {k: v for k, v in drawn.sealed.items() if k != left_out})

    stage(leave_out, PeerMisbehaved, f"client 1 has encrypted no group key for client {left_out}")


def test_another_answer_than_keys_is_unexpected() -> None:
    stage(lambda drawn: ClearNames(["x"]), UnexpectedMessage, "client 1 sent ClearNames")


# --- a server that misbehaves ---------------------------------------------------------------------------------------


class Room:
    """Clients with channels in one thread, each at its end; the test is the server."""

    def __init__(self, kind: Kind) -> None:
        network = InProcessNetwork(len(CLIENTS))
        self.talk = {party: Conversation(network.endpoint(party), SESSION) for party in (SERVER, *CLIENTS)}
        self.sessions = kind.sessions(CLIENTS)

    def tell(self, to: PartyId, message: wire.Message, round_id: RoundId = SETUP) -> GroupKey:
        """What a client makes of a message that is already there."""
        self.talk[SERVER].send(to, message, round_id)
        return group_key.join(ClientSession(self.talk[to], Deadline.after(SHORT)), self.sessions[to])

    def draw(self, party: PartyId) -> tuple[GroupKey, SealedGroupKeys]:
        key = self.tell(party, DrawGroupKey())
        return key, self.talk[SERVER].receive(party, SealedGroupKeys, SETUP, soon())


def replaced(entry: bytes, place: int) -> bytes:
    return entry[:place] + bytes([entry[place] ^ 1]) + entry[place + 1 :]


@both
def test_what_an_honest_server_hands_on_is_accepted_by_each(kind: Kind) -> None:
    """Without this the refusals below would prove nothing."""
    room = Room(kind)
    key, drawn = room.draw(TWO)
    assert drawn.sealed.keys() == {ONE, THREE, FOUR}
    for party, entry in drawn.sealed.items():
        same = room.tell(PartyId(party), SealedGroupKey(TWO, drawn.commitment, entry))
        assert (secret_of(same), same.commitment) == (secret_of(key), key.commitment)


@both
@pytest.mark.parametrize("place", [0, 11, 12, 43, 44, 59])
def test_an_entry_with_a_changed_bit_is_refused(kind: Kind, place: int) -> None:
    """In nonce, ciphertext and tag."""
    room = Room(kind)
    _, drawn = room.draw(ONE)
    forged = SealedGroupKey(ONE, drawn.commitment, replaced(drawn.sealed[TWO], place))
    with pytest.raises(PeerMisbehaved, match="the group key of client 1 cannot be opened"):
        room.tell(TWO, forged)


@both
def test_an_entry_is_good_for_its_receiver_its_sender_and_its_session_only(kind: Kind) -> None:
    room, other_room = Room(kind), Room(kind)
    _, drawn = room.draw(ONE)
    _, elsewhere = other_room.draw(ONE)
    _, by_three = room.draw(THREE)
    commitment = drawn.commitment
    for told in (
        SealedGroupKey(ONE, commitment, drawn.sealed[THREE]),  # meant for another client
        SealedGroupKey(THREE, commitment, drawn.sealed[TWO]),  # drawn by another client
        SealedGroupKey(ONE, commitment, by_three.sealed[TWO]),
        SealedGroupKey(ONE, elsewhere.commitment, elsewhere.sealed[TWO]),  # of another session's channels
        SealedGroupKey(STRANGER, commitment, drawn.sealed[TWO]),
        SealedGroupKey(2**64 - 1, commitment, drawn.sealed[TWO]),
        SealedGroupKey(TWO, commitment, drawn.sealed[TWO]),  # by the receiver itself
    ):
        with pytest.raises(PeerMisbehaved, match=f"the group key of client {told.drawn_by} cannot be opened"):
            room.tell(TWO, told)
    # One that the receiver has encrypted itself does not come back as the other's.
    _, by_two = room.draw(TWO)
    with pytest.raises(PeerMisbehaved, match="cannot be opened"):
        room.tell(TWO, SealedGroupKey(ONE, by_two.commitment, by_two.sealed[ONE]))


@both
def test_another_commitment_than_that_of_the_key_is_refused(kind: Kind) -> None:
    room = Room(kind)
    _, drawn = room.draw(ONE)
    _, again = room.draw(ONE)
    for commitment in (again.commitment, bytes(32), replaced(drawn.commitment, 31)):
        with pytest.raises(PeerMisbehaved, match="the group key of client 1 is not the one it has committed to"):
            room.tell(TWO, SealedGroupKey(ONE, commitment, drawn.sealed[TWO]))


@both
def test_a_client_that_deals_out_two_keys_is_noticed(kind: Kind) -> None:
    """It seals another key for client 3 than for client 2: under one commitment only one of them can be right."""
    room = Room(kind)
    _, first = room.draw(ONE)
    _, second = room.draw(ONE)
    room.tell(TWO, SealedGroupKey(ONE, first.commitment, first.sealed[TWO]))
    with pytest.raises(PeerMisbehaved, match="not the one it has committed to"):
        room.tell(THREE, SealedGroupKey(ONE, first.commitment, second.sealed[THREE]))


def test_a_commitment_binds_the_setup_as_the_client_saw_it() -> None:
    """Clients that were told different sets of channels do not accept each other's key."""
    clients = {party: SecAggSession(party, CLIENTS, SESSION) for party in CLIENTS}
    keys = {int(party): client.start().channel_key for party, client in clients.items()}
    for party, client in clients.items():
        client.receive(ChannelDirectory({k: v for k, v in keys.items() if party != TWO or k != FOUR}, {}))
    room = Room(KINDS["semi-honest"])
    room.sessions = clients
    _, drawn = room.draw(ONE)
    room.tell(THREE, SealedGroupKey(ONE, drawn.commitment, drawn.sealed[THREE]))
    with pytest.raises(PeerMisbehaved, match="cannot be opened"):
        room.tell(TWO, SealedGroupKey(ONE, drawn.commitment, drawn.sealed[TWO]))


@both
@pytest.mark.parametrize(
    ("message", "round_id"),
    [
        (ClearNames(["x"]), SETUP),
        (SealedGroupKeys(bytes(32), {}), SETUP),
        (DrawGroupKey(), RoundId(1)),
        (SealedGroupKey(1, bytes(32), bytes(60)), RoundId(3)),
    ],
    ids=["another kind", "a client's message", "asked in a later round", "told in a later round"],
)
def test_another_message_than_is_due_ends_it(kind: Kind, message: wire.Message, round_id: RoundId) -> None:
    room = Room(kind)
    with pytest.raises(UnexpectedMessage, match="the server sent"):
        room.tell(TWO, message, round_id)
    assert room.talk[TWO].transport.traffic.total("sent").messages == 0


@both
def test_a_server_that_says_nothing_is_not_waited_for_without_end(kind: Kind) -> None:
    room = Room(kind)
    with pytest.raises(DeadlineExpired, match="the server"):
        group_key.join(ClientSession(room.talk[ONE], Deadline.after(SHORT)), room.sessions[ONE])


@both
def test_clients_dealt_different_keys_share_no_derived_key(kind: Kind) -> None:
    """An active server may have two keys drawn. Nobody notices, and nothing that is derived from one fits the other."""
    room = Room(kind)
    one, drawn = room.draw(ONE)
    three, other = room.draw(THREE)
    two = room.tell(TWO, SealedGroupKey(ONE, drawn.commitment, drawn.sealed[TWO]))
    four = room.tell(FOUR, SealedGroupKey(THREE, other.commitment, other.sealed[FOUR]))
    derived = [key.derive("use", RoundId(1), ONE) for key in (one, two, three, four)]
    assert derived[0] == derived[1] != derived[2] == derived[3]


# --- the key itself -------------------------------------------------------------------------------------------------


def test_a_key_shows_nothing_of_itself_and_stays_in_memory() -> None:
    key = a_key(65)
    assert repr(key) == str(key) == "GroupKey()"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="not serialised"):
            pickle.dumps(key, protocol)
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not serialised"):
            duplicate(key)
    with pytest.raises(TypeError):
        msgspec.msgpack.encode(key)
    assert not hasattr(key, "__dict__")


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_secret_of_another_length_is_no_key(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        GroupKey(bytes(length), SESSION, bytes(32))


Derivation = tuple[bytes, SessionId, bytes, str, RoundId, PartyId, bytes]
derivations = st.tuples(
    st.sampled_from([bytes(32), bytes([1]) * 32]),
    st.sampled_from([SESSION, SessionId(bytes(16))]),
    st.sampled_from([bytes(32), bytes([1]) * 32]),
    st.text(max_size=3),
    st.integers(0, 3).map(RoundId),
    st.integers(0, 3).map(PartyId),
    st.binary(max_size=2),
)


def derived(derivation: Derivation) -> bytes:
    secret, session, commitment, use, round_id, party, binding = derivation
    return GroupKey(secret, session, commitment).derive(use, round_id, party, binding)


@given(derivations, derivations)
@settings(deadline=None)
def test_two_derivations_agree_only_if_everything_does(one: Derivation, other: Derivation) -> None:
    assert (derived(one) == derived(other)) == (one == other)


BASE: Derivation = (bytes(32), SESSION, bytes(32), "use", RoundId(1), ONE, b"binding")
CHANGES: dict[str, Derivation] = {
    "secret": (bytes([1]) * 32, *BASE[1:]),
    "session": (BASE[0], SessionId(bytes(16)), *BASE[2:]),
    "commitment": (*BASE[:2], bytes([1]) * 32, *BASE[3:]),
    "use": (*BASE[:3], "uses", *BASE[4:]),
    "round": (*BASE[:4], RoundId(2), *BASE[5:]),
    "party": (*BASE[:5], TWO, BASE[6]),
    "the server's": (*BASE[:5], SERVER, BASE[6]),
    "binding": (*BASE[:6], b"bindinG"),
    "no binding": (*BASE[:6], b""),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_gives_another_key(change: Derivation) -> None:
    assert len(derived(BASE)) == 32
    assert derived(change) != derived(BASE)
