"""A hostile server and hostile peers against one client: it ends the sum, and nothing of what it protects gets out.

That nothing gets out is read off the bytes of everything the client has sent (`Watched.shown`). The others and the
rest of the server are honest, so that a client that did not notice would go on to the end.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import msgspec
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, ProtocolError, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.primitives.group import Group, Ring
from protocols.primitives.identity import IdentityKey
from protocols.primitives.keys import AgreementKey
from protocols.session.credentials import Credentials
from protocols.sums.secagg.client import Advertised, Answered, Masked, Ready, Shared, Signed, State
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.terms import Advert, BoundTerms
from protocols.sums.terms import SumTerms, VectorLayout
from tests.support.secagg_sessions import (
    EVERYONE,
    LENGTH,
    ME,
    OTHERS,
    PARAMETERS,
    PURPOSE,
    SESSION,
    Federation,
    Script,
    Sum,
    Watched,
    assert_over,
    channel_directory,
    complete,
    credentials_for,
    everyone,
    key_directory,
    parties,
)
from tests.support.vectors import unhex, vectors

ONE, _, THREE, FOUR = EVERYONE


def assert_refused(
    me: Watched, message: wire.Message, problem: str, error: type[ProtocolError] = PeerMisbehaved
) -> None:
    """The message ends the sum for this client, which has shown no secret before and shows none now."""
    sent = list(me.sent)
    with pytest.raises(error, match=problem):
        me.receive(message)
    assert me.sent == sent
    assert me.shown() == set()
    assert_over(me)


def due(script: Script) -> wire.Message:
    return script.sum.inbox[ME]


# --- lists of survivors ---------------------------------------------------------------------------------------------

LISTS = {
    "itself": ([2], "names this client"),
    "itself and another": ([2, 3], "names this client"),
    "one twice": ([3, 3], "names one twice"),
    "a stranger": ([9], "has sent no shares"),
    "the server": ([0], "has sent no shares"),
    "a negative one": ([-1], "has sent no shares"),
    "a huge one": ([2**64 - 1], "has sent no shares"),
    "too many": ([1, 3], "2 clients are said to have sent their input, fewer than 3"),
    "all others": ([1, 3, 4], "1 clients are said to have sent their input, fewer than 3"),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
def test_a_list_that_contradicts_the_own_record_is_not_answered(name: str, signed: bool) -> None:
    dropped, problem = LISTS[name]
    script = Script(signed).reach(Masked)
    assert_refused(script.me, Survivors(PURPOSE, dropped), problem)


def test_a_client_that_never_shared_cannot_have_dropped_out() -> None:
    script = Script(silent_at={FOUR: Step.SHARE_KEYS}).reach(Masked)
    assert_refused(script.me, Survivors(PURPOSE, [4]), "has sent no shares")


def test_the_fewest_survivors_are_the_clients_own_choice() -> None:
    """The threshold would allow two; the client insists on four."""
    script = Script(begun=Federation(EVERYONE).begin(complete(4, 2, min_survivors=4))).reach(Masked)
    assert_refused(script.me, Survivors(PURPOSE, [3]), "3 clients are said to have sent their input, fewer than 4")


FIVE = everyone(5)
TELLABLE = [list(chosen) for size in range(3) for chosen in combinations([1, 3, 4, 5], size)]


@pytest.mark.parametrize("first", TELLABLE, ids=str)
def test_no_two_lists_get_both_shares_of_a_client(first: list[int]) -> None:
    """Whatever is asked after the first answer: the second list is refused, and each client has shown one share."""
    for second in TELLABLE:
        script = Script(begun=Federation(FIVE).begin(complete(5, 3))).reach(Masked)
        answer = script.me.receive(Survivors(PURPOSE, first))
        assert isinstance(answer, UnmaskShares)
        with pytest.raises(UnexpectedMessage, match="Survivors in state 'unmasking'"):
            script.me.receive(Survivors(PURPOSE, second))
        expected = {str(peer): {"mask key" if peer in first else "seed"} for peer in (1, 3, 4, 5)}
        assert script.me.shares_shown() == expected | {"me": {"seed"}}
        assert_over(script.me)


@pytest.mark.parametrize("second", [[], [1], [3], [1, 3]], ids=str)
def test_a_signed_list_is_not_taken_back(second: list[int]) -> None:
    script = Script(signed=True).reach(Masked)
    assert isinstance(script.me.receive(Survivors(PURPOSE, [3])), SurvivorSignature)
    assert_refused(script.me, Survivors(PURPOSE, second), "in state 'consistency check'", UnexpectedMessage)


@pytest.mark.parametrize("state", [Advertised, Shared, Ready], ids=lambda state: state.__name__)
def test_no_share_leaves_before_the_input_has(state: type[State]) -> None:
    script = Script().reach(state)
    assert_refused(script.me, Survivors(PURPOSE, []), "Survivors in state", UnexpectedMessage)


# --- key directories ------------------------------------------------------------------------------------------------

Keys = dict[int, bytes]
DIRECTORIES: dict[str, tuple[Callable[[Keys, bytes], object], str]] = {
    "me among them": (lambda keys, mine: keys.update({2: mine}), "is no neighbour"),
    "another key for me": (lambda keys, mine: keys.update({2: AgreementKey().public}), "is no neighbour"),
    "a stranger": (lambda keys, mine: keys.update({9: AgreementKey().public}), "is no neighbour"),
    "a stranger in place": (lambda keys, mine: keys.update({9: keys.pop(3)}), "is no neighbour"),
    "one key twice": (lambda keys, mine: keys.update({3: keys[1]}), "the same key"),
    "my key for another": (lambda keys, mine: keys.update({3: mine}), "the same key"),
    "too few": (lambda keys, mine: (keys.pop(1), keys.pop(3)), "2 clients are said to have advertised keys"),
    "nobody": (lambda keys, mine: keys.clear(), "1 clients are said to have advertised keys"),
}


@pytest.mark.parametrize("name", DIRECTORIES)
@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
def test_a_directory_that_contradicts_the_own_record_ends_the_sum(name: str, signed: bool) -> None:
    change, problem = DIRECTORIES[name]
    script = Script(signed).reach(Advertised)
    message = due(script)
    assert isinstance(message, KeyDirectory)
    keys = dict(message.mask_keys)
    advert = script.me.sent[0]
    assert isinstance(advert, AdvertiseKeys)
    change(keys, advert.mask_key)
    assert_refused(script.me, key_directory(PURPOSE, keys, message.signatures), problem)


@pytest.mark.parametrize("party", [0, -1])
def test_a_directory_with_a_party_that_is_no_client_is_no_message(party: int) -> None:
    with pytest.raises(ValueError, match="no client"):
        key_directory(PURPOSE, {party: bytes(32)}, {})


@pytest.mark.parametrize("key", [unhex(key) for key in vectors("x25519_small_order")["public_keys"]], ids=bytes.hex)
def test_a_key_of_small_order_ends_the_sum_before_any_share_is_sent(key: bytes) -> None:
    """32 zero bytes among them."""
    script = Script().reach(Advertised)
    message = due(script)
    assert isinstance(message, KeyDirectory)
    assert_refused(script.me, key_directory(PURPOSE, {**message.mask_keys, 3: key}, {}), "small order")
    assert [type(sent) for sent in script.me.sent] == [AdvertiseKeys]


def test_a_client_without_a_channel_takes_no_part() -> None:
    """It is configured and among the participants, but had no key in the set-up's directory."""
    sessions = {party: SecAggSession(party, EVERYONE, SESSION) for party in EVERYONE}
    directory = channel_directory({party: begun.start() for party, begun in sessions.items() if party != FOUR})
    sessions[ME].receive(directory)
    client = sessions[ME].begin(
        SumTerms(RoundId(1), PURPOSE, tuple(EVERYONE), VectorLayout(Ring(64), LENGTH)), PARAMETERS
    )
    me = Watched(client)
    me.start()
    keys = {int(party): AgreementKey().public for party in OTHERS}
    assert_refused(me, key_directory(PURPOSE, keys, {}), "without a channel")


@pytest.mark.parametrize("state", [Shared, Ready, Masked, Answered], ids=lambda state: state.__name__)
def test_a_second_directory_ends_the_sum(state: type[State]) -> None:
    script = Script().reach(Advertised)
    message = due(script)
    script.reach(state)
    shown = script.me.shown()
    with pytest.raises(UnexpectedMessage, match="KeyDirectory in state"):
        script.me.receive(message)
    assert script.me.shown() == shown
    assert_over(script.me)


def tampered_directory(change: Callable[[Keys], object], threshold: int) -> Sum:
    """A sum in which client 2 alone has got a changed directory, up to everybody's input; nobody is silent."""
    begun = Federation(EVERYONE).begin(complete(4, threshold)).until(Step.SHARE_KEYS)
    message = begun.inbox[ME]
    assert isinstance(message, KeyDirectory)
    keys = dict(message.mask_keys)
    change(keys)
    begun.inbox[ME] = key_directory(PURPOSE, keys, {})
    return begun.until(Step.MASKED_INPUT)


@pytest.mark.parametrize("threshold", [2, 3])
@pytest.mark.parametrize(
    ("change", "deceived"),
    [
        (lambda keys: keys.update({1: keys[3], 3: keys[1]}), [ONE, ME, THREE]),
        (lambda keys: keys.update({3: AgreementKey().public}), [ME, THREE]),
    ],
    ids=["two keys exchanged", "one key replaced"],
)
def test_a_directory_with_other_keys_never_gives_a_wrong_sum(
    change: Callable[[Keys], object], deceived: list[PartyId], threshold: int
) -> None:
    """Of every pair that has other keys than the other's true ones, neither gives an input."""
    begun = tampered_directory(change, threshold)
    for party in deceived:
        me = Watched(begun.clients[party])
        assert_refused(me, begun.inbox[party], r"cannot be opened: forged, or it was told other keys, terms or rows")
    others = [party for party in EVERYONE if party not in deceived]
    if len(others) < threshold:
        with pytest.raises(SumAbandoned, match="clients have sent their input"):
            begun.step(silent=deceived)
        return
    begun.step(silent=deceived)
    assert begun.run().tolist() == begun.exact(others)


# --- shares of others -----------------------------------------------------------------------------------------------

Sealed = dict[int, bytes]


def shares_for_me(script: Script) -> Sealed:
    message = due(script)
    assert isinstance(message, EncryptedShares)
    return dict(message.sealed)


def assert_does_not_open(script: Script, sealed: Mapping[int, bytes]) -> None:
    assert_refused(script.me, EncryptedShares(PURPOSE, dict(sealed)), "cannot be opened")


@pytest.mark.parametrize("replayed", [[1], [3], [1, 3, 4]], ids=str)
@pytest.mark.parametrize("source", ["old session", "old round", "another purpose", "another group"])
def test_shares_of_another_sum_do_not_open(source: str, replayed: list[int]) -> None:
    """With the right label on the outside: only what they were encrypted for is wrong."""
    federation = Federation(EVERYONE)
    old = Federation(EVERYONE) if source == "old session" else federation
    other = old.begin(
        PARAMETERS,
        Ring(32) if source == "another group" else Ring(64),
        purpose="counts" if source in ("another purpose", "another group") else PURPOSE,
        round_id=1,
    )
    old_shares = Script(begun=other).reach(Shared)
    now = Script(begun=federation.begin(PARAMETERS, round_id=2 if source == "old round" else 1)).reach(Shared)
    fresh, stale = shares_for_me(now), shares_for_me(old_shares)
    assert_does_not_open(now, fresh | {party: stale[party] for party in replayed})


def test_shares_meant_for_another_receiver_do_not_open() -> None:
    script = Script().reach(Shared)
    for_three = script.sum.inbox[THREE]
    assert isinstance(for_three, EncryptedShares)
    assert_does_not_open(script, shares_for_me(script) | {1: for_three.sealed[1]})


def test_shares_in_the_name_of_another_sender_do_not_open() -> None:
    script = Script().reach(Shared)
    sealed = shares_for_me(script)
    assert_does_not_open(script, sealed | {1: sealed[3], 3: sealed[1]})


def test_the_own_shares_sent_back_do_not_open() -> None:
    """The channel with client 1 has one secret; its two directions have two keys."""
    script = Script().reach(Shared)
    for_one = script.sum.inbox[ONE]
    assert isinstance(for_one, EncryptedShares)
    assert_does_not_open(script, shares_for_me(script) | {1: for_one.sealed[2]})


@pytest.mark.parametrize("start", range(0, 108, 12))
def test_shares_with_any_byte_changed_do_not_open(start: int) -> None:
    """Every byte of nonce, both shares and tag, with a changing bit."""
    for place in range(start, start + 12):
        script = Script().reach(Shared)
        sealed = shares_for_me(script)
        damaged = bytearray(sealed[3])
        damaged[place] ^= 1 << place % 8
        assert_does_not_open(script, sealed | {3: bytes(damaged)})


SENDERS: dict[str, tuple[Callable[[Sealed], object], str]] = {
    "me among them": (lambda sealed: sealed.update({2: sealed[1]}), "has advertised no key"),
    "a stranger": (lambda sealed: sealed.update({9: sealed[1]}), "has advertised no key"),
    "too few": (lambda sealed: (sealed.pop(1), sealed.pop(3)), "2 clients are said to have shared keys"),
    "nobody": (lambda sealed: sealed.clear(), "1 clients are said to have shared keys"),
}


@pytest.mark.parametrize("name", SENDERS)
def test_shares_of_the_wrong_clients_end_the_sum(name: str) -> None:
    change, problem = SENDERS[name]
    script = Script().reach(Shared)
    sealed = shares_for_me(script)
    change(sealed)
    assert_refused(script.me, EncryptedShares(PURPOSE, sealed), problem)


def test_shares_of_a_client_that_advertised_nothing_end_the_sum() -> None:
    script = Script(silent_at={FOUR: Step.ADVERTISE_KEYS}).reach(Shared)
    sealed = shares_for_me(script)
    assert sealed.keys() == {1, 3}
    assert_refused(script.me, EncryptedShares(PURPOSE, sealed | {4: sealed[1]}), "has advertised no key")


@pytest.mark.parametrize("state", [Ready, Masked, Answered], ids=lambda state: state.__name__)
def test_shares_are_taken_once(state: type[State]) -> None:
    script = Script().reach(Shared)
    message = due(script)
    script.reach(state)
    shown = script.me.shown()
    with pytest.raises(UnexpectedMessage, match="EncryptedShares in state"):
        script.me.receive(message)
    assert script.me.shown() == shown
    assert_over(script.me)


def robbed(begun: Sum, of: PartyId, sender: PartyId) -> Sum:
    """The shares of `sender` do not reach client `of`."""
    message = begun.inbox[of]
    assert isinstance(message, EncryptedShares)
    kept = {party: entry for party, entry in message.sealed.items() if party != sender}
    assert len(kept) == len(message.sealed) - 1
    begun.inbox[of] = EncryptedShares(PURPOSE, kept)
    return begun


@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
@pytest.mark.parametrize("sender", [ME, THREE, FOUR], ids=int)
def test_shares_that_are_lost_on_the_way_are_noticed_with_the_input(signed: bool, sender: PartyId) -> None:
    """Client 1 then falls silent, and the others are enough to open everything: their sum is exact nevertheless."""
    begun = robbed(Federation(EVERYONE, signed=signed).begin(complete(4, 3)).until(Step.MASKED_INPUT), ONE, sender)
    with pytest.raises(PeerMisbehaved, match="client 1 has masked with others than its neighbours"):
        begun.server.receive(ONE, begun.answer(ONE))
    with pytest.raises(UnexpectedMessage, match="no sum"):
        begun.server.total()
    assert ONE in begun.server.missing
    total = begun.run({ONE: Step.MASKED_INPUT})
    assert begun.server.survivors == {ME, THREE, FOUR}
    assert total.tolist() == begun.exact([ME, THREE, FOUR])


def test_shares_that_are_lost_on_the_way_are_noticed_in_a_sparse_graph() -> None:
    clients = everyone(12)
    begun = Federation(clients).begin(SumParameters(12, 6, 3, 3)).until(Step.MASKED_INPUT)
    for party in clients:
        peer = begun.terms.graph.neighbours(party)[0]
        robbed(begun, party, peer)
        with pytest.raises(PeerMisbehaved, match=f"client {party} has masked with others than its neighbours"):
            begun.server.receive(party, begun.answer(party))
    assert begun.server.missing == set(clients)
    with pytest.raises(SumAbandoned):
        begun.server.close()


def test_a_client_that_was_told_of_other_sharers_gives_itself_away() -> None:
    """The server keeps client 2's shares from client 1, which therefore leaves out their common mask.

    Client 1 lies about that when it sends its input, and gives itself away when it opens the masks.
    """
    begun = robbed(Federation(EVERYONE).begin(complete(4, 2)).until(Step.MASKED_INPUT), ONE, ME)
    answer = begun.answer(ONE)
    assert isinstance(answer, MaskedInput)
    lie = begun.terms.peers_digest(ONE, [ME, THREE, FOUR])
    begun.server.receive(ONE, MaskedInput(PURPOSE, answer.vector, lie))
    for party in (ME, THREE, FOUR):
        begun.server.receive(party, begun.answer(party))
    begun.inbox = begun.server.close()
    with pytest.raises(PeerMisbehaved, match="client 1 does not answer for exactly its neighbours"):
        begun.server.receive(ONE, begun.answer(ONE))
    # The other three would be enough to rebuild every seed, but a mask is left over: there is no sum.
    for party in (ME, THREE, FOUR):
        with pytest.raises(UnexpectedMessage, match="in step 'abandoned'"):
            begun.server.receive(party, begun.answer(party))
    with pytest.raises(UnexpectedMessage, match="the sum is abandoned"):
        begun.server.close()
    with pytest.raises(UnexpectedMessage, match="no sum in step 'abandoned'"):
        begun.server.total()


# --- different terms on two sides -----------------------------------------------------------------------------------

OTHER_TERMS: dict[str, tuple[SumParameters, Group, int, bytes, int]] = {
    "the model": (PARAMETERS, Ring(64), LENGTH, b"another model", 1),
    "no model": (PARAMETERS, Ring(64), LENGTH, b"", 1),
    "the threshold": (complete(4, 2), Ring(64), LENGTH, b"the model", 1),
    "the fewest survivors": (complete(4, 3, min_survivors=3), Ring(64), LENGTH, b"the model", 1),
    "the group": (PARAMETERS, Ring(32), LENGTH, b"the model", 1),
    "the length": (PARAMETERS, Ring(64), LENGTH + 1, b"the model", 1),
    "the round": (PARAMETERS, Ring(64), LENGTH, b"the model", 2),
}


@pytest.mark.parametrize("name", [None, *OTHER_TERMS])
def test_clients_with_different_terms_cannot_open_each_others_shares(name: str | None) -> None:
    """Neither the one with the other terms nor anybody else goes on to give an input; with equal terms all do."""
    federation = Federation(EVERYONE)
    begun = federation.begin(PARAMETERS, model=b"the model", without=[ME])
    equal = (PARAMETERS, Ring(64), LENGTH, b"the model", 1)
    parameters, group, length, model, round_id = OTHER_TERMS[name] if name is not None else equal
    own = federation.sessions[ME].begin(
        SumTerms(RoundId(round_id), PURPOSE, tuple(EVERYONE), VectorLayout(group, length), model=model), parameters
    )
    begun.clients[ME] = own
    begun.until(Step.MASKED_INPUT)
    for party in OTHERS:
        if name is None:
            begun.clients[party].receive(begun.inbox[party])
            continue
        with pytest.raises(PeerMisbehaved, match=r"client 2 cannot be opened: .* told other keys, terms or rows"):
            begun.clients[party].receive(begun.inbox[party])
    if name is None:
        own.receive(begun.inbox[ME])
        return
    with pytest.raises(PeerMisbehaved, match="cannot be opened"):
        own.receive(begun.inbox[ME])


def test_a_client_with_other_participants_refuses_the_directory() -> None:
    federation = Federation(everyone(5))
    begun = federation.begin(complete(5, 3), without=[ME])
    own = federation.sessions[ME].begin(
        SumTerms(RoundId(1), PURPOSE, tuple(EVERYONE), VectorLayout(Ring(64), LENGTH)), PARAMETERS
    )
    begun.clients[ME] = own
    begun.until(Step.SHARE_KEYS)
    assert_refused(Watched(own), begun.inbox[ME], "no neighbour")


def test_clients_that_saw_different_set_ups_cannot_open_each_others_shares() -> None:
    """The server has shown client 2 another channel key of client 4; the shares of client 1 do not open either."""
    sessions = {party: SecAggSession(party, EVERYONE, SESSION) for party in EVERYONE}
    adverts = {party: begun.start() for party, begun in sessions.items()}
    honest = channel_directory(adverts)
    split = replace_key(honest.channel_keys, 4)
    federation = Federation(EVERYONE)
    federation.sessions, federation.directory = sessions, honest
    for party, begun in sessions.items():
        begun.receive(honest if party != ME else type(honest)(split, {}))
    begun_sum = federation.begin(PARAMETERS).until(Step.MASKED_INPUT)
    for party in OTHERS:
        with pytest.raises(PeerMisbehaved, match="client 2 cannot be opened"):
            begun_sum.clients[party].receive(begun_sum.inbox[party])
    with pytest.raises(PeerMisbehaved, match="client 1 cannot be opened"):
        begun_sum.clients[ME].receive(begun_sum.inbox[ME])


def replace_key(keys: Mapping[int, bytes], party: int) -> dict[int, bytes]:
    return {**keys, party: AgreementKey().public}


BASE = BoundTerms(
    SESSION,
    bytes(32),
    PARAMETERS,
    SumTerms(RoundId(1), PURPOSE, tuple(EVERYONE), VectorLayout(Ring(64), LENGTH), model=b"model"),
)


def of_sum(**changed: Any) -> BoundTerms:
    """`BASE` with something else in its sum."""
    return replace(BASE, sum=replace(BASE.sum, **changed))


VARIED = {
    "session": replace(BASE, session=SessionId(bytes(16))),
    "transcript": replace(BASE, transcript=bytes(31) + b"1"),
    "round": of_sum(round=RoundId(2)),
    "purpose": of_sum(purpose="counts"),
    "participants": of_sum(participants=tuple(parties(1, 2, 3, 5))),
    "threshold": replace(BASE, parameters=complete(4, 2)),
    "fewest": replace(BASE, parameters=complete(4, 3, min_survivors=3)),
    "degree": replace(BASE, parameters=SumParameters(4, 2, 3, 2)),
    "least": replace(BASE, parameters=replace(PARAMETERS, least_present=3)),
    "group": of_sum(layout=VectorLayout(Ring(32), LENGTH)),
    "length": of_sum(layout=VectorLayout(Ring(64), LENGTH + 1)),
}
BINDINGS: dict[str, Callable[[BoundTerms], bytes]] = {
    "shares": lambda terms: terms.share_context(ONE, ME, {ONE: Advert(bytes(32)), ME: Advert(bytes(32))}).encode(),
    "pairwise mask": lambda terms: terms.pairwise_context(ONE, ME, {ONE: bytes(32), ME: bytes(32)}).encode(),
    "self mask": lambda terms: terms.self_mask_context(ME).encode(),
    "advert": lambda terms: terms.advert_statement(ME, Advert(bytes(32))).encode(),
    "survivors": lambda terms: terms.survivors_statement(ME, EVERYONE).encode(),
}


@pytest.mark.parametrize("name", BINDINGS)
def test_every_key_and_statement_is_bound_to_everything_in_the_terms(name: str) -> None:
    bound = [BINDINGS[name](terms) for terms in (BASE, *VARIED.values())]
    assert len(set(bound)) == len(VARIED) + 1
    assert BINDINGS[name](replace(BASE)) == bound[0]
    # What a client has applied is nothing that the server knows: it is in the keys between clients, and in no others.
    assert (BINDINGS[name](of_sum(model=b"other")) != bound[0]) == (name == "shares")


def test_the_digest_of_the_peers_is_bound_to_the_terms_the_client_and_each_peer() -> None:
    # The session is in the transcript of its set-up.
    varied = [terms for name, terms in VARIED.items() if name != "session"]
    bound = {terms.peers_digest(ME, OTHERS) for terms in (BASE, *varied)}
    assert len(bound) == len(varied) + 1
    sets = [OTHERS, [ONE], [THREE], [ONE, THREE], [ONE, FOUR], [THREE, FOUR], [FOUR], []]
    digests = {BASE.peers_digest(party, peers) for peers in sets for party in (ME, PartyId(9))}
    assert len(digests) == 2 * len(sets)
    assert BASE.peers_digest(ME, [FOUR, ONE, THREE]) == BASE.peers_digest(ME, OTHERS)


def test_no_two_uses_share_a_context() -> None:
    keys = {party: bytes([party]) * 32 for party in EVERYONE}
    adverts = {party: Advert(key) for party, key in keys.items()}
    contexts = [BASE.share_context(a, b, adverts).encode() for a, b in product(EVERYONE, repeat=2) if a != b]
    contexts += [BASE.pairwise_context(a, b, keys).encode() for a, b in combinations(EVERYONE, 2)]
    contexts += [BASE.self_mask_context(party).encode() for party in EVERYONE]
    contexts += [BASE.advert_statement(party, adverts[party]).encode() for party in EVERYONE]
    contexts += [BASE.survivors_statement(party, EVERYONE).encode() for party in EVERYONE]
    assert len(set(contexts)) == len(contexts)
    assert BASE.pairwise_context(ONE, ME, keys) == BASE.pairwise_context(ME, ONE, keys)
    assert BASE.pairwise_context(ONE, ME, keys) != BASE.pairwise_context(ONE, ME, keys | {ME: bytes(32)})


def test_shares_are_bound_to_keys_and_states_of_their_sender_and_their_receiver() -> None:
    keys = {party: Advert(bytes([party]) * 32, bytes([party + 100]) * 32) for party in EVERYONE}
    zero, swapped = Advert(bytes(32)), {ONE: keys[ME], ME: keys[ONE]}
    states = [keys | {party: replace(keys[party], state=bytes(32))} for party in (ONE, ME)]
    varied = [keys | {ONE: zero}, keys | {ME: zero}, keys | swapped, *states]
    contexts = [BASE.share_context(ONE, ME, known).encode() for known in (keys, *varied)]
    contexts += [BASE.share_context(ME, ONE, known).encode() for known in (keys, *varied)]
    assert len(set(contexts)) == 12
    assert BASE.share_context(ONE, ME, keys) == BASE.share_context(ONE, ME, {ONE: keys[ONE], ME: keys[ME]})
    assert BASE.share_context(ONE, ME, keys) == BASE.share_context(ONE, ME, keys | {FOUR: zero})


def test_a_statement_is_bound_to_the_state() -> None:
    statements = {BASE.advert_statement(ME, Advert(bytes(32), state)).encode() for state in (b"", bytes(32), b"1" * 32)}
    assert len(statements) == 3


def test_a_state_that_the_server_changes_ends_the_sum_before_any_input() -> None:
    begun = Federation(EVERYONE).begin(complete(4, 3)).until(Step.SHARE_KEYS)
    message = begun.inbox[ME]
    assert isinstance(message, KeyDirectory)
    begun.inbox[ME] = msgspec.structs.replace(message, states={**message.states, 3: bytes(32)})
    begun.until(Step.MASKED_INPUT)
    with pytest.raises(PeerMisbehaved, match="cannot be opened"):
        begun.clients[ME].receive(begun.inbox[ME])


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
    signatures[3] = stranger.sign(script.sum.terms.advert_statement(THREE, Advert(keys[3])).encode())
    assert_not_signed(script, keys, signatures, NOT_PINNED)


def test_a_key_signed_by_a_colluding_client_ends_the_sum() -> None:
    federation = Federation(EVERYONE, signed=True)
    script = Script(signed=True, begun=federation.begin(PARAMETERS)).reach(Advertised)
    keys, signatures = signed_directory(script)
    keys[3] = AgreementKey().public
    signatures[3] = federation.credentials[FOUR].sign(script.sum.terms.advert_statement(THREE, Advert(keys[3])))
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
