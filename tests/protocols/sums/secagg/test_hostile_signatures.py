"""An active server against signed keys and signed survivors: what is not signed by its owner ends the sum."""

from collections.abc import Callable, Mapping
from itertools import combinations

import pytest

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.primitives.group import Ring
from protocols.primitives.identity import IdentityKey
from protocols.primitives.keys import AgreementKey
from protocols.session.credentials import Credentials
from protocols.sums.secagg.messages import (
    KeyDirectory,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.states import Advertised, Signed
from tests.support.hostile_sums import FIVE, FOUR, ONE, THREE, assert_refused, due
from tests.support.secagg_sessions import (
    EVERYONE,
    ME,
    PARAMETERS,
    PURPOSE,
    Federation,
    Script,
    Sum,
    channel_directory,
    complete,
    credentials_for,
    key_directory,
    parties,
)

# --- an active server: signed keys ----------------------------------------------------------------------------------


def signed_directory(script: Script) -> tuple[dict[int, bytes], dict[int, bytes]]:
    message = due(script)
    assert isinstance(message, KeyDirectory)
    return dict(message.mask_keys), dict(message.signatures)


def assert_not_signed(script: Script, keys: dict[int, bytes], signatures: dict[int, bytes], problem: str) -> None:
    assert_refused(script.me, key_directory(PURPOSE, keys, signatures), problem)


NOT_PINNED = "client 3's message is not signed by its pinned identity"


@pytest.mark.parametrize("name", ["empty", "missing", "of another", "zeros", "a bit off"])
def test_a_key_without_its_owners_signature_ends_the_sum(name: str) -> None:
    script = Script(signed=True).reach(Advertised)
    keys, signatures = signed_directory(script)
    right = signatures.pop(3)
    wrong = {
        "empty": {3: b""},
        "missing": {},
        "of another": {3: signatures[4]},
        "zeros": {3: bytes(64)},
        "a bit off": {3: right[:-1] + bytes([right[-1] ^ 1])},
    }
    assert_not_signed(script, keys, signatures | wrong[name], NOT_PINNED)


def test_a_key_signed_by_another_identity_ends_the_sum() -> None:
    """The server makes a key of its own for client 3 and signs it with an identity of its own."""
    script = Script(signed=True).reach(Advertised)
    keys, signatures = signed_directory(script)
    keys[3] = AgreementKey().public
    stranger = IdentityKey.generate()
    signatures[3] = stranger.sign(script.sum.terms.advert_statement(THREE, keys[3]).encode())
    assert_not_signed(script, keys, signatures, NOT_PINNED)


def test_a_key_signed_by_a_colluding_client_ends_the_sum() -> None:
    federation = Federation(EVERYONE, signed=True)
    script = Script(signed=True, begun=federation.begin(PARAMETERS)).reach(Advertised)
    keys, signatures = signed_directory(script)
    keys[3] = AgreementKey().public
    signatures[3] = federation.credentials[FOUR].sign(script.sum.terms.advert_statement(THREE, keys[3]))
    assert_not_signed(script, keys, signatures, NOT_PINNED)


@pytest.mark.parametrize("change", [{1: 3, 3: 1}, {3: None}], ids=["exchanged", "replaced"])
def test_other_keys_under_true_signatures_end_the_sum(change: dict[int, int | None]) -> None:
    script = Script(signed=True).reach(Advertised)
    keys, signatures = signed_directory(script)
    changed = {party: keys[other] if other else AgreementKey().public for party, other in change.items()}
    assert_not_signed(script, keys | changed, signatures, "is not signed by its pinned identity")


@pytest.mark.parametrize("source", ["session", "round", "purpose", "group", "model"])
def test_a_signed_key_of_another_sum_ends_the_sum(source: str) -> None:
    """Key and signature are client 3's own, and true, but for something else."""
    federation = Federation(EVERYONE, signed=True)
    old = federation
    if source == "session":
        old = Federation(EVERYONE, signed=True, session=SessionId(bytes(16)))
        old.sessions = {
            party: SecAggSession(party, EVERYONE, SessionId(bytes(16)), credentials)
            for party, credentials in federation.credentials.items()
        }
        old.directory = channel_directory({party: begun.start() for party, begun in old.sessions.items()})
        for begun in old.sessions.values():
            begun.receive(old.directory)
    other = old.begin(
        PARAMETERS,
        Ring(32) if source == "group" else Ring(64),
        purpose=PURPOSE if source in ("session", "round") else "counts",
        model=b"other" if source == "model" else b"",
        round_id=1,
    )
    advert = other.clients[THREE].start()
    script = Script(signed=True, begun=federation.begin(PARAMETERS, round_id=2 if source == "round" else 1))
    script.reach(Advertised)
    keys, signatures = signed_directory(script)
    assert_not_signed(script, keys | {3: advert.mask_key}, signatures | {3: advert.signature}, NOT_PINNED)


def test_a_client_without_a_pinned_identity_ends_the_sum() -> None:
    script = Script(signed=True).reach(Advertised)
    credentials = script.me.client._credentials
    assert credentials is not None
    pinned = {party: key for party, key in credentials.directory.items() if party != THREE}
    script.me.client._credentials = Credentials(credentials.identity, pinned)
    assert_refused(script.me, due(script), "client 3 is not in the key directory")


# --- an active server: signed survivors -----------------------------------------------------------------------------


FOUR_OF_FIVE = complete(5, 4)


def told(begun: Sum, dropped: Mapping[PartyId, list[int]]) -> dict[PartyId, bytes]:
    """Each client is told its own list of dropped clients; their signatures."""
    signatures = {}
    for party, gone in dropped.items():
        answer = begun.clients[party].receive(Survivors(PURPOSE, gone))
        assert isinstance(answer, SurvivorSignature)
        signatures[party] = answer.signature
    return signatures


def answers_to_any_signatures(begun: Sum, party: PartyId, signatures: Mapping[PartyId, bytes]) -> int:
    """How many of all sets of signatures get an answer out of a client; each finds it in the same state."""
    client, answered = begun.clients[party], 0
    state, channels = client.state, client._channels
    for size in range(len(signatures) + 1):
        for chosen in combinations(sorted(signatures), size):
            client.state, client._channels = state, channels
            try:
                answer = client.receive(SignedSurvivors(PURPOSE, {int(peer): signatures[peer] for peer in chosen}))
            except PeerMisbehaved:
                continue
            assert isinstance(answer, UnmaskShares)
            answered += 1
    return answered


@pytest.mark.parametrize(
    "split",
    [
        {1: [], 2: [], 3: [], 4: [1], 5: [1]},
        {1: [], 2: [], 3: [], 4: [], 5: [1]},
        {1: [5], 2: [5], 3: [5], 4: [1], 5: [1]},
        {1: [2], 2: [3], 3: [4], 4: [5], 5: [1]},
    ],
    ids=["three against two", "four against one", "both drop one of the other", "everyone another"],
)
def test_clients_told_different_survivors_do_not_answer(split: dict[int, list[int]]) -> None:
    """Whatever signatures the server passes on: only a view that a threshold of four was told gets an answer."""
    begun = Federation(FIVE, signed=True).begin(FOUR_OF_FIVE).until(Step.CONSISTENCY_CHECK)
    signatures = told(begun, {PartyId(party): gone for party, gone in split.items()})
    for party in FIVE:
        alike = sum(gone == split[party] for gone in split.values())
        assert (answers_to_any_signatures(begun, party, signatures) > 0) == (alike >= 4), party


def test_clients_told_the_same_survivors_answer_once_a_threshold_has_signed() -> None:
    """Of the subsets of five signatures: all with four or more, counting one's own, which it knows without."""
    begun = Federation(FIVE, signed=True).begin(FOUR_OF_FIVE).until(Step.CONSISTENCY_CHECK)
    signatures = told(begun, {party: [] for party in FIVE})
    # Three or four of the other four signatures, each with or without the own one.
    assert [answers_to_any_signatures(begun, party, signatures) for party in FIVE] == [10] * 5


def all_signed() -> tuple[Script, dict[int, bytes]]:
    script = Script(signed=True).reach(Signed)
    message = due(script)
    assert isinstance(message, SignedSurvivors)
    return script, dict(message.signatures)


SIGNATURES: dict[str, tuple[Callable[[dict[int, bytes]], object], str]] = {
    "none": (lambda given: given.clear(), "1 clients have signed the survivors, fewer than 3"),
    "mine alone": (lambda given: [given.pop(party) for party in (1, 3, 4)], "1 clients have signed"),
    "too few": (lambda given: [given.pop(party) for party in (1, 3)], "2 clients have signed"),
    "a stranger's": (lambda given: given.update({9: given[1]}), "by a client that is none"),
    "exchanged": (lambda given: given.update({1: given[3], 3: given[1]}), "is not signed by its pinned identity"),
    "mine for another": (lambda given: given.update({1: given[2]}), "is not signed by its pinned identity"),
    "forged": (lambda given: given.update({1: bytes(64)}), "is not signed by its pinned identity"),
    "a bit off": (
        lambda given: given.update({1: bytes([given[1][0] ^ 1]) + given[1][1:]}),
        "is not signed by its pinned identity",
    ),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_survivors_that_are_not_signed_by_enough_are_not_answered(name: str) -> None:
    change, problem = SIGNATURES[name]
    script, signatures = all_signed()
    change(signatures)
    assert_refused(script.me, SignedSurvivors(PURPOSE, signatures), problem)


def test_a_signature_by_a_client_that_is_no_survivor_is_not_counted() -> None:
    """Client 4 has dropped out as far as client 2 was told, but signs the same set nevertheless."""
    federation = Federation(EVERYONE, signed=True)
    begun = federation.begin(PARAMETERS)
    script = Script(signed=True, begun=begun, silent_at={FOUR: Step.MASKED_INPUT}).reach(Signed)
    message = due(script)
    assert isinstance(message, SignedSurvivors)
    statement = begun.terms.survivors_statement(FOUR, parties(1, 2, 3))
    signatures = {**message.signatures, 4: federation.credentials[FOUR].sign(statement)}
    assert_refused(script.me, SignedSurvivors(PURPOSE, signatures), "by a client that is none")


@pytest.mark.parametrize("source", ["round", "purpose", "advert"])
def test_signatures_of_something_else_are_not_counted(source: str) -> None:
    """Client 3's true signature: on the same survivors of another sum, or on its mask key."""
    federation = Federation(EVERYONE, signed=True)
    purpose = "counts" if source == "purpose" else PURPOSE
    other = Script(signed=True, begun=federation.begin(PARAMETERS, purpose=purpose, round_id=1)).reach(Signed)
    round_id = 1 if source == "purpose" else 2
    script = Script(signed=True, begun=federation.begin(PARAMETERS, round_id=round_id)).reach(Signed)
    old, message = due(other), due(script)
    assert isinstance(old, SignedSurvivors)
    assert isinstance(message, SignedSurvivors)
    replayed = old.signatures[3]
    if source == "advert":
        replayed = script.sum.server._adverts[THREE].signature
    signatures = {**message.signatures, 3: replayed}
    assert_refused(script.me, SignedSurvivors(PURPOSE, signatures), NOT_PINNED)


def test_an_honest_server_gets_its_answer_in_all_of_these_scripts() -> None:
    """Otherwise a client that refuses everything would pass the tests above."""
    script, signatures = all_signed()
    assert isinstance(script.me.receive(SignedSurvivors(PURPOSE, signatures)), UnmaskShares)
    begun = Federation(EVERYONE).begin(PARAMETERS)
    assert begun.run({FOUR: Step.MASKED_INPUT}).tolist() == begun.exact([ONE, ME, THREE])


def test_identities_of_the_federation_are_all_different() -> None:
    credentials = credentials_for(EVERYONE)
    assert len({own.identity.public for own in credentials.values()}) == 4
    with pytest.raises(ValueError, match="the same identity key"):
        Credentials(credentials[ONE].identity, dict.fromkeys(EVERYONE, credentials[ONE].identity.public))
