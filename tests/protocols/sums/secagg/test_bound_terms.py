"""Different terms on two sides: keys, shares and statements are bound to everything in them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import msgspec
import pytest

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.primitives.group import Group, Ring
from protocols.primitives.keys import AgreementKey
from protocols.sums.secagg.messages import EncryptedShares
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.terms import SumTerms, VectorLayout
from tests.support.hostile_sums import FOUR, ONE, THREE, assert_refused
from tests.support.secagg_sessions import (
    EVERYONE,
    LENGTH,
    ME,
    OTHERS,
    PARAMETERS,
    PURPOSE,
    SESSION,
    Federation,
    Watched,
    channel_directory,
    complete,
    everyone,
    parties,
)

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
    "shares": lambda terms: terms.share_context(ONE, ME, {ONE: bytes(32), ME: bytes(32)}, b"").encode(),
    "pairwise mask": lambda terms: terms.pairwise_context(ONE, ME, {ONE: bytes(32), ME: bytes(32)}).encode(),
    "self mask": lambda terms: terms.self_mask_context(ME).encode(),
    "advert": lambda terms: terms.advert_statement(ME, bytes(32)).encode(),
    "state": lambda terms: terms.state_statement(ME, bytes(32), bytes(32)).encode(),
    "survivors": lambda terms: terms.survivors_statement(ME, EVERYONE).encode(),
}


@pytest.mark.parametrize("name", BINDINGS)
def test_every_key_and_statement_is_bound_to_everything_in_the_terms(name: str) -> None:
    bound = [BINDINGS[name](terms) for terms in (BASE, *VARIED.values())]
    assert len(set(bound)) == len(VARIED) + 1
    assert BINDINGS[name](replace(BASE)) == bound[0]
    # What a client has applied is nothing that the server knows: it is in the keys between clients, and in no others.
    assert (BINDINGS[name](of_sum(model=b"other")) != bound[0]) == (name == "shares")
    assert (BINDINGS[name](of_sum(counted=b"other")) != bound[0]) == (name == "shares")


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
    contexts = [BASE.share_context(a, b, keys, b"").encode() for a, b in product(EVERYONE, repeat=2) if a != b]
    contexts += [BASE.pairwise_context(a, b, keys).encode() for a, b in combinations(EVERYONE, 2)]
    contexts += [BASE.self_mask_context(party).encode() for party in EVERYONE]
    contexts += [BASE.advert_statement(party, keys[party]).encode() for party in EVERYONE]
    contexts += [BASE.survivors_statement(party, EVERYONE).encode() for party in EVERYONE]
    assert len(set(contexts)) == len(contexts)
    assert BASE.pairwise_context(ONE, ME, keys) == BASE.pairwise_context(ME, ONE, keys)
    assert BASE.pairwise_context(ONE, ME, keys) != BASE.pairwise_context(ONE, ME, keys | {ME: bytes(32)})


def test_shares_are_bound_to_both_keys_and_to_the_state_of_their_sender() -> None:
    keys, zero = {party: bytes([party]) * 32 for party in EVERYONE}, bytes(32)
    varied = [keys | {ONE: zero}, keys | {ME: zero}, keys | {ONE: keys[ME], ME: keys[ONE]}]
    contexts = [BASE.share_context(ONE, ME, known, b"state").encode() for known in (keys, *varied)]
    contexts += [BASE.share_context(ME, ONE, known, b"state").encode() for known in (keys, *varied)]
    contexts += [BASE.share_context(ONE, ME, keys, state).encode() for state in (b"", zero)]
    assert len(set(contexts)) == 10
    assert BASE.share_context(ONE, ME, keys, zero) == BASE.share_context(ONE, ME, keys | {FOUR: zero}, zero)


def test_a_statement_of_a_state_is_bound_to_it_and_to_the_key() -> None:
    keys, states = (bytes(32), b"1" * 32), (b"", bytes(32), b"1" * 32)
    statements = {BASE.state_statement(ME, key, state).encode() for key in keys for state in states}
    assert len(statements) == 6
    assert BASE.advert_statement(ME, bytes(32)).encode() not in statements


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("state", [bytes(32), b""])
def test_a_state_that_the_server_changes_ends_the_sum_before_any_input(signed: bool, state: bytes) -> None:
    begun = Federation(EVERYONE, signed=signed).begin(complete(4, 3))
    for party, client in begun.clients.items():
        client._states = {party: bytes([party]) * 32}
    begun.until(Step.MASKED_INPUT)
    message = begun.inbox[ME]
    assert isinstance(message, EncryptedShares)
    assert message.states[3] == bytes([3]) * 32
    begun.inbox[ME] = msgspec.structs.replace(message, states={**message.states, 3: state})
    with pytest.raises(PeerMisbehaved, match="is not signed by" if signed else "cannot be opened"):
        begun.clients[ME].receive(begun.inbox[ME])
