"""What a server has not passed on: by the sum's own graph, and without blame for those who dropped out."""

import secrets
from collections.abc import Mapping

import pytest
from msgspec import structs

from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.primitives.group import Ring
from protocols.primitives.keys import AgreementKey
from protocols.sums.secagg.messages import SEALED_SHARES_BYTES, AdvertiseKeys, EncryptedShares, KeyDirectory, ShareKeys
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.replay import RecordedSum, withheld
from protocols.sums.secagg.server import SecAggServer
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.terms import SumTerms, VectorLayout

CLIENTS = tuple(PartyId(number) for number in range(1, 13))
ABSENT, SILENT = PartyId(5), PartyId(9)
"""One that never answers, and one that advertises keys and gives no shares."""


def terms(degree: int) -> BoundTerms:
    parameters = SumParameters(len(CLIENTS), degree, threshold=2, min_survivors=2)
    return BoundTerms(
        SessionId(bytes(16)), bytes(32), parameters, SumTerms(RoundId(1), "rows", CLIENTS, VectorLayout(Ring(32), 4))
    )


def recorded(degree: int) -> RecordedSum:
    """The first two steps of a sum as an honest server holds it."""
    server, found = SecAggServer(terms(degree), frozenset(CLIENTS)), RecordedSum()
    for party in CLIENTS:
        if party != ABSENT:
            found.adverts[party] = AdvertiseKeys("rows", AgreementKey().public, b"", b"")
            server.receive(party, found.adverts[party])
    directories: Mapping[PartyId, object] = server.close()
    for party, directory in directories.items():
        assert isinstance(directory, KeyDirectory)
        found.directories[party] = directory
        if party != SILENT:
            sealed = {peer: secrets.token_bytes(SEALED_SHARES_BYTES) for peer in directory.mask_keys}
            found.shares[party] = ShareKeys("rows", sealed, bytes(32), b"", b"")
            server.receive(party, found.shares[party])
    relayed: Mapping[PartyId, object] = server.close()
    for party, shares in relayed.items():
        assert isinstance(shares, EncryptedShares)
        found.relayed[party] = shares
    return found


def without(shares: EncryptedShares, of: PartyId) -> EncryptedShares:
    """As if `of` had shared nothing."""
    kept = [peer for peer in shares.sealed if peer != of]
    return structs.replace(
        shares,
        sealed={peer: shares.sealed[peer] for peer in kept},
        states={peer: shares.states[peer] for peer in kept},
    )


@pytest.mark.parametrize("degree", [4, 6, len(CLIENTS) - 1])
def test_an_honest_server_withholds_nothing(degree: int) -> None:
    assert list(withheld(terms(degree), recorded(degree))) == []


@pytest.mark.parametrize("degree", [4, len(CLIENTS) - 1])
def test_nor_does_one_that_could_not_reach_a_client_or_was_ended_in_the_middle(degree: int) -> None:
    for last in range(1, len(CLIENTS)):
        found = recorded(degree)
        found.relayed = dict(list(found.relayed.items())[:last])
        assert list(withheld(terms(degree), found)) == []
        found.directories.pop(CLIENTS[0], None)
        assert list(withheld(terms(degree), found)) == []


@pytest.mark.parametrize("degree", [4, len(CLIENTS) - 1])
def test_a_neighbour_that_is_not_shown_is_named(degree: int) -> None:
    to = PartyId(2)
    found = recorded(degree)
    of = PartyId(min(found.relayed[to].sealed))
    keys, shares = found.directories[to], found.relayed[to]
    less = {peer: key for peer, key in keys.mask_keys.items() if peer != of}
    found.directories[to] = KeyDirectory("rows", less, dict.fromkeys(less, b""), {})
    found.relayed[to] = without(shares, of)
    assert [(one.of, one.to, one.what) for one in withheld(terms(degree), found)] == [
        (of, to, "keys"),
        (of, to, "shares"),
    ]


@pytest.mark.parametrize("degree", [4, len(CLIENTS) - 1])
def test_one_that_all_its_neighbours_are_not_shown_is_named_to_each(degree: int) -> None:
    of, found = PartyId(2), recorded(degree)
    for to, shares in found.relayed.items():
        found.relayed[to] = without(shares, of)
    expected = {to for to in terms(degree).graph.neighbours(of) if to in found.relayed}
    assert {(one.of, one.to) for one in withheld(terms(degree), found)} == {(of, to) for to in expected}


def test_a_client_that_has_sent_nothing_is_missed_by_nobody() -> None:
    """Whoever invents a client's keys for one neighbour withholds them from no other; that is another finding."""
    found = recorded(4)
    to = PartyId(min(set(terms(4).graph.neighbours(ABSENT)) & found.directories.keys()))
    keys = {**found.directories[to].mask_keys, int(ABSENT): AgreementKey().public}
    found.directories[to] = KeyDirectory("rows", keys, dict.fromkeys(keys, b""), {})
    assert list(withheld(terms(4), found)) == []
