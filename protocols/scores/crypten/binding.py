"""What the parties of a group agree on: steps, what keys and sealed messages are bound to, and who may compute."""

from collections.abc import Sequence
from typing import Final

from protocols.foundation.digests import digest, encode_parties
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId, SessionId
from protocols.primitives.keys import KeyContext, derive_key
from protocols.scores.asking import PROTOCOL, VERSION
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms

JOIN: Final = f"join/{PURPOSE}"
SHARES: Final = f"shares/{PURPOSE}"
"""Steps of a batch."""
RING: Final = "crypten ring"
_DEALER: Final = "crypten dealer"


def dealer_key(agreed: bytes, session: SessionId, terms: ScoreTerms, party: PartyId) -> bytes:
    """The key of a client's stream with the dealer, from the secret that the two agreed on."""
    return derive_key(agreed, KeyContext(PROTOCOL, VERSION, session, terms.round, party, SERVER, _DEALER, terms.digest))


def ring_use(terms: ScoreTerms) -> str:
    """Channel keys are single-use: no session has two batches of one round."""
    return f"{RING}/{terms.round}"


def answer_use(terms: ScoreTerms) -> str:
    return f"crypten answer/{terms.round}"


def of_group(terms: ScoreTerms, participants: Sequence[PartyId]) -> bytes:
    """One digest of the terms and of who computes: shares of other groups do not add up to an answer."""
    return digest(b"crypten group", terms.digest, encode_parties(participants))


def require_participants(participants: Sequence[PartyId], terms: ScoreTerms) -> None:
    """`PeerMisbehaved` unless they are clients, the asker among them if it is one, and enough of them scorers."""
    scorers = set(participants) & set(terms.scorers)
    if not set(participants) <= set(terms.clients):
        raise PeerMisbehaved("a group with participants that are no clients of the batch")
    if terms.asker_is_client and terms.asker not in participants:
        raise PeerMisbehaved("a group without the asker, which is a client")
    if len(scorers) < fewest(terms):
        raise PeerMisbehaved(f"a group of {len(scorers)} scorers, fewer than {fewest(terms)}")


def fewest(terms: ScoreTerms) -> int:
    """How many scorers a group must have, so that no answer is one scorer's own."""
    return max(2, terms.least)
