"""Clients of the pairwise-masked sum, brought to any state without a transport."""

from collections.abc import Collection, Iterable

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from protocols.identifiers import PartyId, SessionId
from protocols.primitives.keys import AgreementKey
from protocols.secagg.client import SecAggClient
from protocols.secagg.messages import KeyDirectory
from protocols.secagg.server import directory_of

SESSION = SessionId(bytes(range(16)))


def parties(*numbers: int) -> list[PartyId]:
    return [PartyId(number) for number in numbers]


def started(
    clients: Collection[PartyId], session: SessionId = SESSION
) -> tuple[dict[PartyId, SecAggClient], KeyDirectory]:
    """All clients after `start()`, and the directory an honest server would send them."""
    group = {party: SecAggClient(party, clients, session) for party in clients}
    return group, directory_of({party: client.start() for party, client in group.items()})


def ready(clients: Collection[PartyId], session: SessionId = SESSION) -> dict[PartyId, SecAggClient]:
    """All clients after the key directory."""
    group, directory = started(clients, session)
    for client in group.values():
        client.receive(directory)
    return group


def ready_with(keys: Iterable[X25519PrivateKey], session: SessionId) -> dict[PartyId, SecAggClient]:
    """Clients 1, 2, ... with given keys instead of fresh ones, so that two sessions can share everything else."""
    chosen = {PartyId(number): key for number, key in enumerate(keys, start=1)}
    group = {party: SecAggClient(party, chosen, session) for party in chosen}
    for party, client in group.items():
        client._key = AgreementKey(chosen[party])
    directory = directory_of({party: client.start() for party, client in group.items()})
    for client in group.values():
        client.receive(directory)
    return group
