"""Openings of sums, and records of them, for tests."""

from collections.abc import Collection

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.secagg.openings import Opening, Openings
from tests.support.secagg_sessions import everyone

CLIENTS = everyone(4)


def opening(number: int, purpose: str, survivors: Collection[PartyId], **states: bytes) -> Opening:
    """`states`: by client, as `c1=...`."""
    given = {PartyId(int(name[1:])): state for name, state in states.items()}
    of_all = {party: given.get(party, b"") for party in survivors}
    return Opening(RoundId(number), purpose, frozenset(survivors), of_all)


def records(clients: Collection[PartyId] = CLIENTS) -> dict[PartyId, Openings]:
    return {party: Openings() for party in clients}
