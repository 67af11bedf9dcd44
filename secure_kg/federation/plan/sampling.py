"""Sampling of the clients that take part in a round (FedR, algorithm 1, line 5).

Every party computes the sample from the public seed, so no client has to believe the server who is in it: a server
that asks an unsampled client for its rows is refused.
"""

from collections.abc import Collection

from protocols.foundation.identifiers import PartyId, RoundId
from secure_kg.foundation.seeds import generator


def participants(
    clients: Collection[PartyId], fraction: float, at_least: int, seed: int, round_id: RoundId
) -> tuple[PartyId, ...]:
    """A random `fraction` of the clients, but no fewer than `at_least`, in ascending order."""
    size = min(len(clients), max(at_least, round(fraction * len(clients))))
    if size == len(clients):
        return tuple(sorted(clients))
    chosen = generator(seed, "participants", round_id).choice(sorted(clients), size=size, replace=False)
    return tuple(PartyId(int(party)) for party in sorted(chosen))
