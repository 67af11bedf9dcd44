"""Public parameters of one exact answer, and how large its messages are."""

from typing import Final

from protocols.foundation.digests import digest
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.scores.messages import require_sendable
from protocols.scores.terms import ScoreTerms

MOST_ATOMS: Final = 32
"""Of one question."""
_DOMAIN: Final = b"secure-kg/exact/1"
_OVERHEAD: Final = 256
"""Of one sealed message, its place in a map included."""


def exact_terms(
    round_id: RoundId, clients: tuple[PartyId, ...], asker: PartyId, union: int, atoms: int, table: bytes
) -> ScoreTerms:
    """Of a formula of `atoms` atoms. `table`: digest of the union whose positions are meant."""
    if not 1 <= atoms <= MOST_ATOMS:
        raise ValueError(f"{atoms} atoms, not in 1..{MOST_ATOMS}")
    terms = ScoreTerms(
        round=round_id,
        clients=clients,
        asker=asker,
        positions=union,
        queries=atoms,
        top=1,
        table=digest(_DOMAIN, table),
    )
    if not terms.asker_is_client:
        raise ValueError("exact answers are for a client: an asker outside has no share of them")
    require_sendable(terms, relay_bytes(terms))
    return terms


def set_bytes(terms: ScoreTerms) -> int:
    """Of one set: a bit for each position."""
    return -(-terms.positions // 8)


def most_dealt(terms: ScoreTerms) -> int:
    """How many bytes the server deals in one exchange, at most: those of the first level of unions over clients."""
    return len(terms.clients) // 2 * terms.queries * set_bytes(terms)


def step_bytes(terms: ScoreTerms) -> int:
    """What one client sends in one exchange, at most: two operands, masked."""
    return 2 * most_dealt(terms) + _OVERHEAD


def relay_bytes(terms: ScoreTerms) -> int:
    """What one client is sent in one exchange, at most."""
    return len(terms.clients) * step_bytes(terms) + most_dealt(terms) + _OVERHEAD
