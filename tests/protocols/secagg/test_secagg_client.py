"""The client's states: every method in every state, and every contradiction of its own record ends it for good."""

from collections.abc import Callable

import numpy as np
import pytest
from sessions import SESSION, parties, ready, started
from vectors import unhex, vectors

from protocols.errors import PeerMisbehaved, UnexpectedMessage
from protocols.identifiers import PartyId, RoundId
from protocols.primitives.group import Ring
from protocols.primitives.keys import AgreementKey
from protocols.secagg.client import SecAggClient, State
from protocols.secagg.messages import AdvertiseKeys, KeyDirectory, MaskedInput

EVERYONE = parties(1, 2, 3)
ME = PartyId(2)
RING = Ring(64)


def client_in(state: State) -> tuple[SecAggClient, KeyDirectory]:
    """Client 2 in `state`, and a key directory that fits it."""
    if state is State.NEW:
        client = SecAggClient(ME, EVERYONE, SESSION)
        others = {int(party): AgreementKey().public for party in EVERYONE if party != ME}
        assert client._key is not None
        return client, KeyDirectory(others | {int(ME): client._key.public})
    group, directory = started(EVERYONE)
    client = group[ME]
    if state is not State.ADVERTISED:
        client.receive(directory)
    if state is State.ABORTED:
        client.abort()
    assert client.state is state
    return client, directory


def mask(client: SecAggClient, round_id: int = 1, purpose: str = "rows") -> MaskedInput:
    return client.mask(RoundId(round_id), purpose, EVERYONE, RING, RING.zeros(4))


METHODS: dict[str, Callable[[SecAggClient, KeyDirectory], object]] = {
    "start": lambda client, directory: client.start(),
    "receive": lambda client, directory: client.receive(directory),
    "mask": lambda client, directory: mask(client),
    "abort": lambda client, directory: client.abort(),
}
WORKS = {
    (State.NEW, "start"): State.ADVERTISED,
    (State.ADVERTISED, "receive"): State.READY,
    (State.READY, "mask"): State.READY,
} | {(state, "abort"): State.ABORTED for state in State}
# A message that has no place is the server's doing and ends the session; a call that has none is refused and no more.
RAISES = {
    (State.NEW, "receive"): State.ABORTED,
    (State.NEW, "mask"): State.NEW,
    (State.ADVERTISED, "start"): State.ADVERTISED,
    (State.ADVERTISED, "mask"): State.ADVERTISED,
    (State.READY, "start"): State.READY,
    (State.READY, "receive"): State.ABORTED,
    (State.ABORTED, "start"): State.ABORTED,
    (State.ABORTED, "receive"): State.ABORTED,
    (State.ABORTED, "mask"): State.ABORTED,
}


def assert_over(client: SecAggClient) -> None:
    """No secret is left, and nothing is answered any more."""
    assert client.state is State.ABORTED
    assert client._secrets == {}
    assert client._key is None
    with pytest.raises(UnexpectedMessage):
        client.start()
    with pytest.raises(UnexpectedMessage):
        client.receive(KeyDirectory({}))
    with pytest.raises(UnexpectedMessage):
        mask(client, round_id=99)
    client.abort()
    assert client.state is State.ABORTED


def test_the_tables_name_every_method_in_every_state() -> None:
    assert WORKS.keys() | RAISES.keys() == {(state, method) for state in State for method in METHODS}
    assert not WORKS.keys() & RAISES.keys()


@pytest.mark.parametrize(("state", "method"), WORKS, ids=str)
def test_what_a_state_answers(state: State, method: str) -> None:
    client, directory = client_in(state)
    METHODS[method](client, directory)
    assert client.state is WORKS[state, method]
    if client.state is State.ABORTED:
        assert_over(client)


@pytest.mark.parametrize(("state", "method"), RAISES, ids=str)
def test_what_a_state_refuses(state: State, method: str) -> None:
    client, directory = client_in(state)
    with pytest.raises(UnexpectedMessage, match=state.value):
        METHODS[method](client, directory)
    assert client.state is RAISES[state, method]
    if client.state is State.ABORTED:
        assert_over(client)


def test_the_advertised_key_is_its_own_and_the_private_one_goes_when_all_have_agreed() -> None:
    group, directory = started(EVERYONE)
    client = group[ME]
    assert client._key is not None
    assert AdvertiseKeys(directory.mask_keys[ME]).mask_key == client._key.public
    client.receive(directory)
    assert client._key is None
    assert client._secrets.keys() == set(EVERYONE) - {ME}


def test_a_client_does_not_show_its_secrets() -> None:
    client = ready(EVERYONE)[ME]
    assert repr(client) == "SecAggClient(party=2, state=masked input)"


# --- key directories ------------------------------------------------------------------------------------------------


def changed(directory: KeyDirectory, change: Callable[[dict[int, bytes]], object]) -> KeyDirectory:
    keys = dict(directory.mask_keys)
    change(keys)
    return KeyDirectory(keys)


SMALL_ORDER = [unhex(key) for key in vectors("x25519_small_order")["public_keys"]]
CHANGES: dict[str, tuple[str, Callable[[dict[int, bytes]], object]]] = {
    "one missing": ("configured clients", lambda keys: keys.pop(3)),
    "me missing": ("configured clients", lambda keys: keys.pop(2)),
    "one too many": ("configured clients", lambda keys: keys.update({4: AgreementKey().public})),
    "the server among them": ("configured clients", lambda keys: keys.update({0: AgreementKey().public})),
    "a stranger in place": ("configured clients", lambda keys: keys.update({-3: keys.pop(3)})),
    "empty": ("configured clients", lambda keys: keys.clear()),
    "another key for me": ("another key for this client", lambda keys: keys.update({2: AgreementKey().public})),
    "keys exchanged": ("another key for this client", lambda keys: keys.update({2: keys[3], 3: keys[2]})),
    "two with one key": ("same key", lambda keys: keys.update({3: keys[1]})),
    "mine for another": ("same key", lambda keys: keys.update({3: keys[2]})),
} | {
    f"small order {key.hex()[:8]}": ("small order", lambda keys, key=key: keys.update({3: key})) for key in SMALL_ORDER
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_directory_that_contradicts_the_configuration_ends_the_session(name: str) -> None:
    problem, change = CHANGES[name]
    client, directory = client_in(State.ADVERTISED)
    with pytest.raises(PeerMisbehaved, match=problem):
        client.receive(changed(directory, change))
    assert_over(client)


def test_a_directory_is_taken_once() -> None:
    client, directory = client_in(State.READY)
    with pytest.raises(UnexpectedMessage):
        client.receive(directory)
    assert_over(client)


# --- inputs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "participants",
    [
        parties(1, 3),  # without me
        parties(1, 2, 4),  # unknown
        parties(0, 2),  # the server
        parties(1, 2, 2),  # twice
        parties(1, 1, 2, 3),
        parties(2),  # too few
        parties(2, 2),
        [],
    ],
    ids=str,
)
def test_participants_that_are_none_end_the_session(participants: list[PartyId]) -> None:
    client, _ = client_in(State.READY)
    vector = RING.zeros(4)
    with pytest.raises(PeerMisbehaved, match="participants"):
        client.mask(RoundId(1), "rows", participants, RING, vector)
    assert not vector.any()
    assert_over(client)


def test_the_fewest_participants_are_the_clients_own_choice() -> None:
    client = SecAggClient(ME, EVERYONE, SESSION, min_participants=3)
    others = {int(party): AgreementKey().public for party in EVERYONE if party != ME}
    client.receive(KeyDirectory(others | {int(ME): client.start().mask_key}))
    client.mask(RoundId(1), "rows", EVERYONE, RING, RING.zeros(4))
    with pytest.raises(PeerMisbehaved, match="2 participants, fewer than 3"):
        client.mask(RoundId(2), "rows", parties(1, 2), RING, RING.zeros(4))
    assert_over(client)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, "rows"), (1, "rows")),  # a second input
        ((2, "rows"), (1, "rows")),  # an earlier round
        ((2, "rows"), (1, "counts")),
        ((2, "rows"), (0, "new")),
        ((0, "rows"), (0, "rows")),
        ((0, "rows"), (-1, "rows")),
    ],
)
def test_a_second_input_or_an_earlier_round_ends_the_session(first: tuple[int, str], second: tuple[int, str]) -> None:
    client, _ = client_in(State.READY)
    mask(client, *first)
    with pytest.raises(PeerMisbehaved, match="second input"):
        mask(client, *second)
    assert_over(client)


def test_a_round_before_the_first_ends_the_session() -> None:
    client, _ = client_in(State.READY)
    with pytest.raises(PeerMisbehaved):
        mask(client, round_id=-1)
    assert_over(client)


def test_a_second_input_is_refused_for_other_participants_too() -> None:
    client, _ = client_in(State.READY)
    mask(client)
    with pytest.raises(PeerMisbehaved, match="second input"):
        client.mask(RoundId(1), "rows", parties(1, 2), RING, RING.zeros(4))
    assert_over(client)


def test_rounds_may_be_skipped_and_a_round_may_have_several_purposes() -> None:
    client, _ = client_in(State.READY)
    for round_id, purpose in [(0, "rows"), (0, "counts"), (5, "rows"), (5, "counts"), (2**32 - 1, "rows")]:
        assert mask(client, round_id, purpose).purpose == purpose


def test_an_input_of_another_ring_is_not_masked() -> None:
    client, _ = client_in(State.READY)
    vector = np.zeros(4, dtype="<u8")
    with pytest.raises(ValueError, match="is not a vector"):
        client.mask(RoundId(1), "rows", EVERYONE, Ring(32), vector)
    assert not vector.any()


# --- configuration --------------------------------------------------------------------------------------------------


def test_a_client_must_be_one_of_its_session() -> None:
    with pytest.raises(ValueError, match="among the clients"):
        SecAggClient(PartyId(4), EVERYONE, SESSION)


@pytest.mark.parametrize("fewest", [-1, 0, 1])
def test_a_sum_of_one_is_no_sum(fewest: int) -> None:
    with pytest.raises(ValueError, match="hides nothing"):
        SecAggClient(ME, EVERYONE, SESSION, min_participants=fewest)
