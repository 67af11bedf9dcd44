"""The set-up of a session and what a client begins in it: its own configuration decides, never the server's word."""

import hmac
from collections.abc import Callable

import pytest

from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import SETUP, PartyId, RoundId, SessionId
from protocols.primitives.group import Ring
from protocols.primitives.identity import IdentityKey
from protocols.primitives.keys import AgreementKey, KeyContext, derive_key
from protocols.session.channels import channel_statement
from protocols.session.credentials import Credentials
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.session.pair_secrets import PairSecrets
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.states import Aborted, New
from protocols.sums.terms import SumTerms, VectorLayout
from tests.support.secagg_sessions import (
    EVERYONE,
    LENGTH,
    ME,
    PARAMETERS,
    PURPOSE,
    SESSION,
    Federation,
    Watched,
    channel_directory,
    complete,
    credentials_for,
    everyone,
    key_directory,
    parties,
    reachable_bytes,
)
from tests.support.vectors import unhex, vectors

ONE, _, THREE, FOUR = EVERYONE


def started(signed: bool = False) -> tuple[dict[PartyId, SecAggSession], ChannelDirectory, dict[PartyId, Credentials]]:
    """All sessions after `start()`, and the directory of an honest server."""
    credentials = credentials_for(EVERYONE) if signed else {}
    sessions = {party: SecAggSession(party, EVERYONE, SESSION, credentials.get(party)) for party in EVERYONE}
    return sessions, channel_directory({party: own.start() for party, own in sessions.items()}), credentials


def set_up(signed: bool = False) -> SecAggSession:
    sessions, directory, _ = started(signed)
    sessions[ME].receive(directory)
    return sessions[ME]


def begin(
    session: SecAggSession,
    round_id: int = 1,
    purpose: str = PURPOSE,
    participants: list[PartyId] = EVERYONE,
    parameters: SumParameters = PARAMETERS,
) -> SecAggClient:
    return session.begin(
        SumTerms(RoundId(round_id), purpose, tuple(participants), VectorLayout(Ring(64), LENGTH)), parameters
    )


def assert_over(session: SecAggSession, directory: ChannelDirectory) -> None:
    """No secret is left, no sum begins, and the session does not come back to life."""
    assert not any(isinstance(value, AgreementKey) for value in vars(session).values())
    assert session._channels is None
    with pytest.raises(UnexpectedMessage, match="before the set-up is complete"):
        begin(session)
    with pytest.raises(UnexpectedMessage):
        session.start()
    with pytest.raises(UnexpectedMessage):
        session.receive(directory)
    with pytest.raises(UnexpectedMessage, match="before the set-up is complete"):
        begin(session)


# --- order ----------------------------------------------------------------------------------------------------------


def test_a_second_start_is_refused() -> None:
    session = SecAggSession(ME, EVERYONE, SESSION)
    session.start()
    with pytest.raises(UnexpectedMessage, match="a second start"):
        session.start()


def test_a_directory_before_the_start_ends_the_session() -> None:
    session = SecAggSession(ME, EVERYONE, SESSION)
    _, directory, _ = started()
    with pytest.raises(UnexpectedMessage, match="where none is due"):
        session.receive(directory)
    assert_over(session, directory)


def test_a_second_directory_ends_the_session() -> None:
    sessions, directory, _ = started()
    sessions[ME].receive(directory)
    with pytest.raises(UnexpectedMessage, match="where none is due"):
        sessions[ME].receive(directory)
    assert_over(sessions[ME], directory)


def test_no_sum_begins_before_the_set_up_is_complete() -> None:
    session = SecAggSession(ME, EVERYONE, SESSION)
    for prepare in (lambda: None, session.start):
        prepare()
        with pytest.raises(UnexpectedMessage, match="before the set-up is complete"):
            begin(session)


def test_each_session_has_a_key_of_its_own() -> None:
    keys = [SecAggSession(ME, EVERYONE, SESSION).start().channel_key for _ in range(3)]
    assert len(set(keys)) == 3


def test_a_session_does_not_print_its_key() -> None:
    session = set_up()
    assert repr(session) == "SecAggSession(party=2, ready=True)"
    assert repr(SecAggSession(ME, EVERYONE, SESSION)) == "SecAggSession(party=2, ready=False)"


# --- directories ----------------------------------------------------------------------------------------------------

Keys = dict[int, bytes]
WRONG: dict[str, tuple[Callable[[Keys], object], str]] = {
    "me missing": (lambda keys: keys.pop(2), "another key for this client"),
    "another key for me": (lambda keys: keys.update({2: AgreementKey().public}), "another key for this client"),
    "mine exchanged": (lambda keys: keys.update({2: keys[3], 3: keys[2]}), "another key for this client"),
    "empty": (lambda keys: keys.clear(), "another key for this client"),
    "a stranger": (lambda keys: keys.update({9: AgreementKey().public}), "not configured"),
    "a stranger in place": (lambda keys: keys.update({9: keys.pop(3)}), "not configured"),
    "one key twice": (lambda keys: keys.update({3: keys[1]}), "the same key"),
    "mine for another": (lambda keys: keys.update({3: keys[2]}), "the same key"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
def test_a_directory_that_contradicts_the_configuration_ends_the_session(name: str, signed: bool) -> None:
    change, problem = WRONG[name]
    sessions, directory, _ = started(signed)
    keys = dict(directory.channel_keys)
    change(keys)
    with pytest.raises(PeerMisbehaved, match=problem):
        sessions[ME].receive(ChannelDirectory(keys, directory.signatures))
    assert_over(sessions[ME], directory)


@pytest.mark.parametrize("party", [0, -1])
def test_a_directory_with_a_party_that_is_no_client_is_no_message(party: int) -> None:
    with pytest.raises(ValueError, match="no client"):
        ChannelDirectory({party: bytes(32)}, {})


@pytest.mark.parametrize("key", [unhex(key) for key in vectors("x25519_small_order")["public_keys"]], ids=bytes.hex)
def test_a_channel_key_of_small_order_ends_the_sum_before_anything_is_encrypted_under_it(key: bytes) -> None:
    sessions, directory, _ = started()
    sessions[ME].receive(ChannelDirectory({**directory.channel_keys, 3: key}, {}))
    client = begin(sessions[ME])
    client.start()
    keys = {int(party): AgreementKey().public for party in (ONE, THREE, FOUR)}
    with pytest.raises(PeerMisbehaved, match="small order"):
        client.receive(key_directory(PURPOSE, keys, {}))
    assert isinstance(client.state, Aborted)


def test_a_client_that_is_missing_takes_no_part_and_the_others_do() -> None:
    sessions, directory, _ = started()
    federation = Federation(EVERYONE)
    federation.directory = ChannelDirectory({party: directory.channel_keys[party] for party in (1, 2, 3)}, {})
    federation.sessions = {party: sessions[party] for party in (ONE, ME, THREE)}
    for own in federation.sessions.values():
        own.receive(federation.directory)
    begun = federation.begin(PARAMETERS)
    assert begun.run({FOUR: Step.ADVERTISE_KEYS}).tolist() == begun.exact([ONE, ME, THREE])


# --- identities -----------------------------------------------------------------------------------------------------


def signatures_changed(directory: ChannelDirectory, change: Callable[[dict[int, bytes]], object]) -> ChannelDirectory:
    signatures = dict(directory.signatures)
    change(signatures)
    return ChannelDirectory(directory.channel_keys, signatures)


UNSIGNED: dict[str, Callable[[dict[int, bytes]], object]] = {
    "missing": lambda signatures: signatures.pop(3),
    "empty": lambda signatures: signatures.update({3: b""}),
    "zeros": lambda signatures: signatures.update({3: bytes(64)}),
    "another's": lambda signatures: signatures.update({3: signatures[4]}),
    "exchanged": lambda signatures: signatures.update({3: signatures[4], 4: signatures[3]}),
    "a bit off": lambda signatures: signatures.update({3: signatures[3][:-1] + bytes([signatures[3][-1] ^ 1])}),
    "none at all": lambda signatures: signatures.clear(),
}


@pytest.mark.parametrize("name", UNSIGNED)
def test_a_channel_key_without_its_owners_signature_ends_the_session(name: str) -> None:
    sessions, directory, _ = started(signed=True)
    with pytest.raises(PeerMisbehaved, match="is not signed by its pinned identity"):
        sessions[ME].receive(signatures_changed(directory, UNSIGNED[name]))
    assert_over(sessions[ME], directory)


def test_a_changed_channel_key_under_a_true_signature_ends_the_session() -> None:
    sessions, directory, _ = started(signed=True)
    keys = {**directory.channel_keys, 3: AgreementKey().public}
    with pytest.raises(PeerMisbehaved, match="client 3's message is not signed"):
        sessions[ME].receive(ChannelDirectory(keys, directory.signatures))
    assert_over(sessions[ME], directory)


@pytest.mark.parametrize("signer", ["a stranger", "a colluding client"])
def test_a_channel_key_signed_by_another_identity_ends_the_session(signer: str) -> None:
    sessions, directory, credentials = started(signed=True)
    key = AgreementKey().public
    identity = IdentityKey.generate() if signer == "a stranger" else credentials[FOUR].identity
    signature = identity.sign(channel_statement(SESSION, THREE, key).encode())
    forged = ChannelDirectory({**directory.channel_keys, 3: key}, {**directory.signatures, 3: signature})
    with pytest.raises(PeerMisbehaved, match="client 3's message is not signed"):
        sessions[ME].receive(forged)
    assert_over(sessions[ME], directory)


def test_a_channel_key_signed_in_another_session_ends_the_session() -> None:
    sessions, directory, credentials = started(signed=True)
    old = SecAggSession(THREE, EVERYONE, SessionId(bytes(16)), credentials[THREE]).start()
    replayed = ChannelDirectory(
        {**directory.channel_keys, 3: old.channel_key}, {**directory.signatures, 3: old.signature}
    )
    with pytest.raises(PeerMisbehaved, match="client 3's message is not signed"):
        sessions[ME].receive(replayed)
    assert_over(sessions[ME], directory)


def test_a_client_whose_identity_is_not_pinned_ends_the_session() -> None:
    _, _, credentials = started(signed=True)
    pinned = {party: key for party, key in credentials[ME].directory.items() if party != THREE}
    own = SecAggSession(ME, EVERYONE, SESSION, Credentials(credentials[ME].identity, pinned))
    adverts: dict[PartyId, AdvertiseChannel] = {ME: own.start()}
    for party in (ONE, THREE, FOUR):
        adverts[party] = SecAggSession(party, EVERYONE, SESSION, credentials[party]).start()
    directory = channel_directory(adverts)
    with pytest.raises(PeerMisbehaved, match="client 3 is not in the key directory"):
        own.receive(directory)
    assert_over(own, directory)


def test_a_client_whose_own_identity_is_not_the_pinned_one_does_not_start() -> None:
    credentials = credentials_for(EVERYONE)
    for directory in (credentials[ME].directory, {}):
        wrong = Credentials(IdentityKey.generate(), directory)
        with pytest.raises(ValueError, match="another identity for client 2"):
            SecAggSession(ME, EVERYONE, SESSION, wrong)


def test_without_credentials_signatures_are_neither_made_nor_asked_for() -> None:
    sessions, directory, _ = started()
    assert set(directory.signatures.values()) == {b""}
    sessions[ME].receive(signatures_changed(directory, lambda signatures: signatures.update({3: bytes(64)})))
    assert isinstance(begin(sessions[ME]).state, New)


# --- sums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, "rows"), (1, "rows")),
        ((2, "rows"), (1, "rows")),
        ((2, "rows"), (1, "counts")),
        ((2, "rows"), (0, "new")),
        ((0, "rows"), (0, "rows")),
        ((0, "rows"), (-1, "rows")),
        ((2**32 - 1, "rows"), (1, "other")),
    ],
)
def test_a_second_sum_or_an_earlier_round_is_refused(first: tuple[int, str], second: tuple[int, str]) -> None:
    session = set_up()
    begin(session, *first)
    for _ in range(2):
        with pytest.raises(PeerMisbehaved, match=f"a second sum '{second[1]}' for round {second[0]}"):
            begin(session, *second)
    assert begin(session, first[0], "a purpose of its own")


def test_a_second_sum_is_refused_for_other_participants_too() -> None:
    session = set_up()
    begin(session)
    with pytest.raises(PeerMisbehaved, match="a second sum"):
        begin(session, participants=parties(1, 2, 3), parameters=complete(3, 2))


def test_a_second_sum_is_refused_after_the_first_was_aborted() -> None:
    session = set_up()
    begin(session).abort("the server is gone")
    with pytest.raises(PeerMisbehaved, match="a second sum"):
        begin(session)


def test_rounds_may_be_skipped_and_a_round_may_have_several_purposes() -> None:
    session = set_up()
    for round_id, purpose in [(0, "rows"), (0, "counts"), (5, "rows"), (5, "counts"), (2**32 - 1, "rows")]:
        assert isinstance(begin(session, round_id, purpose).state, New)


@pytest.mark.parametrize(
    "participants",
    [parties(1, 3, 4), parties(1, 2, 9), parties(0, 1, 2), parties(1, 2, 2), parties(1, 2, 3, 4, 5), []],
    ids=["without me", "a stranger", "the server", "one twice", "one too many", "nobody"],
)
def test_participants_that_are_no_set_of_configured_clients_are_refused(participants: list[PartyId]) -> None:
    session = set_up()
    parameters = complete(max(2, len(set(participants))), 2)
    with pytest.raises(PeerMisbehaved, match="not a set of this session's clients with me"):
        begin(session, participants=participants, parameters=parameters)
    begin(session)  # a refused beginning uses nothing up


def test_parameters_for_another_number_of_participants_are_refused() -> None:
    session = set_up()
    with pytest.raises(ValueError, match="parameters for 3 participants, but there are 4"):
        begin(session, parameters=complete(3, 2))
    begin(session)


def test_against_an_active_server_the_graph_must_be_complete() -> None:
    sparse = SumParameters(4, 2, 2, 2)
    with pytest.raises(ValueError, match="an active server needs the complete graph"):
        begin(set_up(signed=True), parameters=sparse)
    assert begin(set_up(), parameters=sparse)
    assert begin(set_up(signed=True))


def test_a_client_must_be_among_the_clients_of_its_session() -> None:
    with pytest.raises(ValueError, match="among the clients"):
        SecAggSession(PartyId(5), EVERYONE, SESSION)


def test_sums_of_one_session_do_not_disturb_each_other() -> None:
    """Two purposes of one round, step by step in turn, and a sum over some of the clients in between."""
    federation = Federation(everyone(5))
    left = federation.begin(complete(5, 3), round_id=1, purpose="left")
    right = federation.begin(complete(5, 3), Ring(32), round_id=1, purpose="right")
    for step in (Step.SHARE_KEYS, Step.MASKED_INPUT, Step.UNMASKING, Step.DONE):
        left.until(step, {ONE: Step.MASKED_INPUT})
        right.until(step, {FOUR: Step.SHARE_KEYS})
    assert left.server.total().tolist() == left.exact(parties(2, 3, 4, 5))
    assert right.server.total().tolist() == right.exact(parties(1, 2, 3, 5))


# --- forgetting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["new", "started", "ready"])
def test_a_session_that_has_forgotten_holds_no_secret_and_begins_nothing(moment: str) -> None:
    sessions, directory, _ = started()
    session = SecAggSession(ME, EVERYONE, SESSION) if moment == "new" else sessions[ME]
    if moment == "ready":
        session.receive(directory)
    secrets = [value for value in reachable_bytes(session) if len(value) == 32]
    assert secrets
    held = session._key if session._channels is None else session._channels._key
    assert held is not None
    private = held.secret_for_sharing()
    assert private in secrets
    del held
    session.forget()
    assert private not in reachable_bytes(session)
    assert_over(session, directory)


@pytest.mark.parametrize("step", [Step.SHARE_KEYS, Step.MASKED_INPUT], ids=lambda step: step.value)
def test_forgetting_ends_the_sums_that_are_under_way(step: Step) -> None:
    federation = Federation(EVERYONE)
    begun = federation.begin(PARAMETERS).until(step)
    me = Watched(begun.clients[ME])
    channels = begun.clients[ME]._channels
    assert channels is not None
    assert channels._key is not None
    private = channels._key.secret_for_sharing()
    federation.sessions[ME].forget()
    assert private not in reachable_bytes(begun.clients[ME])
    assert me.kept() - {"channel key"}
    with pytest.raises(UnexpectedMessage, match=r"^the session has ended$"):
        me.receive(begun.inbox[ME])
    assert begun.clients[ME].state == Aborted("the session has ended")
    assert me.sent == []
    assert me.kept() == set()


def test_channels_that_are_forgotten_have_no_secret_with_anybody() -> None:
    """Neither one that was agreed on before nor a new one: an error of the protocol, so that a client ends its sum."""
    key, peers = AgreementKey(), {ONE: AgreementKey().public, THREE: AgreementKey().public}
    channels = PairSecrets(key, peers, SESSION)
    agreed, context = key.agree(peers[ONE]), KeyContext("test", 1, SESSION, SETUP, PartyId(1), PartyId(2), "a use")
    assert channels.secret(ONE).derive(context) == derive_key(agreed, context)
    extracted = hmac.digest(SESSION, agreed, "sha256")
    assert extracted in set(reachable_bytes(channels))
    channels.forget()
    for peer in peers:
        with pytest.raises(UnexpectedMessage, match=r"^the session has ended$"):
            channels.secret(peer)
    assert not {agreed, extracted, key.secret_for_sharing()} & set(reachable_bytes(channels))
