"""Mask keys that are advertised before their sum begins: used for that very sum, once, or for none."""

import pytest

from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.primitives.group import Ring
from protocols.sums.secagg.messages import AdvertiseKeys, KeyDirectory
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.states import Advertised, New
from protocols.sums.terms import SumTerms, VectorLayout
from tests.support.secagg_sessions import (
    EVERYONE,
    LENGTH,
    ME,
    PARAMETERS,
    PURPOSE,
    Federation,
    Sum,
    complete,
    reachable_bytes,
)


def coming(round_id: int, purpose: str = PURPOSE) -> SumTerms[VectorLayout]:
    """What the plan says of a sum that is to come: its public terms."""
    return SumTerms(RoundId(round_id), purpose, tuple(EVERYONE), VectorLayout(Ring(64), LENGTH))


def advertised(federation: Federation, round_id: int) -> dict[PartyId, AdvertiseKeys]:
    return {party: begun.advertise(coming(round_id), PARAMETERS) for party, begun in federation.sessions.items()}


def with_keys(begun: Sum, adverts: dict[PartyId, AdvertiseKeys]) -> Sum:
    """The server has the keys before it asks anybody."""
    for party, advert in adverts.items():
        begun.server.receive(party, advert)
    begun.inbox = begun.server.close()
    return begun


@pytest.mark.parametrize("signed", [False, True])
def test_a_sum_under_keys_advertised_ahead_is_exact(signed: bool) -> None:
    federation = Federation(EVERYONE, signed=signed)
    adverts = advertised(federation, 1)
    begun = federation.begin(PARAMETERS, model=b"known only now")
    assert all(isinstance(client.state, Advertised) for client in begun.clients.values())
    assert with_keys(begun, adverts).run().tolist() == begun.exact(EVERYONE)


@pytest.mark.parametrize("lost_at", [Step.SHARE_KEYS, Step.MASKED_INPUT, Step.UNMASKING])
def test_dropouts_of_such_a_sum_are_recovered(lost_at: Step) -> None:
    federation = Federation(EVERYONE)
    adverts = advertised(federation, 1)
    begun = with_keys(federation.begin(PARAMETERS), adverts)
    assert begun.run({ME: lost_at}).tolist() == begun.exact()
    assert (ME in begun.server.survivors) == (lost_at is Step.UNMASKING)


def test_a_key_is_used_once() -> None:
    federation = Federation(EVERYONE)
    first = advertised(federation, 1)
    with_keys(federation.begin(PARAMETERS), first)
    later = federation.begin(PARAMETERS)
    assert all(isinstance(client.state, New) for client in later.clients.values())
    assert {client.start().mask_key for client in later.clients.values()}.isdisjoint(
        advert.mask_key for advert in first.values()
    )


def test_the_key_of_a_sum_that_did_not_come_is_thrown_away() -> None:
    federation = Federation(EVERYONE)
    session = federation.sessions[ME]
    session.advertise(coming(2), PARAMETERS)
    (ahead,) = session._ahead.values()
    secret = ahead.mask_key.secret_for_sharing()
    assert any(secret in piece for piece in reachable_bytes(session))
    federation.begin(PARAMETERS, round_id=3)
    del ahead
    assert not any(secret in piece for piece in reachable_bytes(session))
    with pytest.raises(PeerMisbehaved, match="a second sum"):
        federation.begin(PARAMETERS, round_id=2)


def test_a_dropout_forgets_what_it_has_advertised() -> None:
    federation = Federation(EVERYONE)
    advertised(federation, 1)
    federation.sessions[ME].forget_ahead()
    begun = federation.begin(PARAMETERS)
    assert isinstance(begun.clients[ME].state, New)
    assert isinstance(begun.clients[PartyId(1)].state, Advertised)


def test_no_key_is_advertised_twice_or_after_its_sum() -> None:
    federation = Federation(EVERYONE)
    session = federation.sessions[ME]
    session.advertise(coming(1), PARAMETERS)
    session.advertise(coming(1, "valid"), PARAMETERS)
    with pytest.raises(ValueError, match="advertised twice"):
        session.advertise(coming(1), PARAMETERS)
    federation.begin(PARAMETERS)
    for number in (0, 1):
        with pytest.raises(ValueError, match="advertised twice"):
            session.advertise(coming(number), PARAMETERS)


def test_a_key_advertised_under_other_terms_is_not_used() -> None:
    federation = Federation(EVERYONE)
    federation.sessions[ME].advertise(coming(1), PARAMETERS)
    with pytest.raises(UnexpectedMessage, match="advertised for another sum"):
        federation.begin(complete(4, 2))


def test_no_key_is_advertised_for_a_sum_that_the_client_is_not_in() -> None:
    session = Federation(EVERYONE).sessions[ME]
    others = tuple(party for party in EVERYONE if party != ME)
    terms = SumTerms(RoundId(1), PURPOSE, others, VectorLayout(Ring(64), LENGTH))
    with pytest.raises(PeerMisbehaved, match="not a set of this session's clients with me"):
        session.advertise(terms, complete(3, 2))


@pytest.mark.parametrize("signed", [False, True])
def test_keys_of_another_round_make_an_end_before_any_input(signed: bool) -> None:
    """The server passes on, as those of round 2, what three clients have advertised for round 3."""
    federation = Federation(EVERYONE, signed=signed)
    second, third = advertised(federation, 2), advertised(federation, 3)
    begun = federation.begin(PARAMETERS, round_id=2)
    with_keys(begun, second)
    message = begun.inbox[ME]
    assert isinstance(message, KeyDirectory)
    swapped = {int(party): one.mask_key for party, one in third.items() if party != ME}
    signatures = {int(party): one.signature for party, one in third.items() if party != ME} if signed else {}
    begun.inbox[ME] = KeyDirectory(PURPOSE, swapped, {}, signatures)
    if signed:
        with pytest.raises(PeerMisbehaved, match="not signed by its pinned identity"):
            begun.clients[ME].receive(begun.inbox[ME])
        return
    begun.step()  # everybody shares keys
    for party, client in begun.clients.items():
        with pytest.raises(PeerMisbehaved, match="cannot be opened"):
            client.receive(begun.inbox[party])


@pytest.mark.parametrize("changed", ["model", "counted"])
def test_what_becomes_known_later_is_bound_all_the_same(changed: str) -> None:
    """Of clients that have advertised alike one has applied something else, or goes by another count."""
    federation = Federation(EVERYONE)
    adverts = advertised(federation, 1)
    begun = federation.begin(PARAMETERS)
    terms = begun.clients[ME]._terms
    begun.clients[ME]._terms = type(terms)(
        terms.session,
        terms.transcript,
        terms.parameters,
        SumTerms(*coming(1).key, tuple(EVERYONE), VectorLayout(Ring(64), LENGTH), **{changed: b"other"}),  # type: ignore[arg-type]
    )
    with_keys(begun, adverts).step()
    for party, client in begun.clients.items():
        with pytest.raises(PeerMisbehaved, match="cannot be opened"):
            client.receive(begun.inbox[party])
