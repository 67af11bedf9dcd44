"""The messages around a CrypTen group: who joins it and where it meets, and shares of the answers for the asker.

What the ranks of a group exchange meanwhile is CrypTen's traffic, outside of these messages.
"""

import ipaddress
from itertools import pairwise
from typing import Final

from protocols.foundation import wire
from protocols.foundation.frame_sizes import LONGEST_NUMBER, binary_bytes, frame_bytes, list_head_bytes, text_bytes
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.primitives.keys import PUBLIC_KEY_BYTES
from protocols.primitives.prg import KEY_BYTES
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import MOST_CLIENTS, ScoreTerms
from protocols.session.conversation import MAX_PURPOSE

DIGEST_BYTES: Final = 32
RING_KEY_BYTES: Final = DIGEST_BYTES + KEY_BYTES + OVERHEAD_BYTES
"""A sealed ring key: what was asked, key."""
WORD_BYTES: Final = 8
_PORTS: Final = 1 << 16


@wire.message(0x0451)
class JoinGroup(wire.Message, frozen=True):
    """Client to server: I compute with the others. The group meets at my address if I am its first rank."""

    purpose: str
    public: bytes
    """Of an X25519 key, for this client's stream with the dealer."""
    sealed: dict[int, bytes]
    """For every other client, encrypted for it alone: what this one was asked, and a ring key in case it is next."""
    host: str
    port: int

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(len(self.public) == PUBLIC_KEY_BYTES, "a public key of impossible length")
        wire.require(len(self.sealed) < MOST_CLIENTS, "too many ring keys")
        wire.require(all(party > 0 for party in self.sealed), "a party that is no client")
        wire.require(all(len(key) == RING_KEY_BYTES for key in self.sealed.values()), "a ring key of impossible length")
        _require_address(self.host, self.port)


@wire.message(0x0452)
class GroupFormed(wire.Message, frozen=True):
    """Server to client: who computes, in the order of ranks, where they meet, and what the ring needs."""

    purpose: str
    participants: list[int]
    public: bytes
    """Of the dealer's X25519 key."""
    sealed: dict[int, bytes]
    """By participant: what it has encrypted for this one."""
    host: str
    port: int

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        _require_participants(self.participants)
        wire.require(len(self.public) == PUBLIC_KEY_BYTES, "a public key of impossible length")
        wire.require(set(self.sealed) <= set(self.participants), "a ring key of no participant")
        wire.require(all(len(key) == RING_KEY_BYTES for key in self.sealed.values()), "a ring key of impossible length")
        _require_address(self.host, self.port)


@wire.message(0x0453, wire.MAX_FRAME_BYTES)
class AnswerShares(wire.Message, frozen=True):
    """Scorer to server: its shares of the answer words, encrypted for the asker."""

    purpose: str
    sealed: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(_holds_words(self.sealed), "shares of impossible length")


@wire.message(0x0454, wire.MAX_FRAME_BYTES)
class GroupAnswer(wire.Message, frozen=True):
    """Server to asker: who has computed, and the scorers' shares as they came."""

    purpose: str
    participants: list[int]
    sealed: dict[int, bytes]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        _require_participants(self.participants)
        wire.require(set(self.sealed) <= set(self.participants), "shares of a party that does not take part")
        wire.require(all(map(_holds_words, self.sealed.values())), "shares of impossible length")


def _require_participants(participants: list[int]) -> None:
    in_order = all(a < b for a, b in pairwise(participants))
    wire.require(in_order and all(party > 0 for party in participants), "participants that are no set")
    wire.require(2 <= len(participants) <= MOST_CLIENTS, "too few or too many participants")


def _require_address(host: str, port: int) -> None:
    ipaddress.IPv4Address(host)  # a name would have to be looked up; raises a ValueError of its own
    wire.require(0 < port < _PORTS, "not a port")


def _holds_words(sealed: bytes) -> bool:
    words = len(sealed) - OVERHEAD_BYTES - DIGEST_BYTES
    return words > 0 and words % WORD_BYTES == 0


def sealed_words_bytes(terms: ScoreTerms) -> int:
    """The size of one scorer's sealed shares."""
    return DIGEST_BYTES + terms.queries * min(terms.top, terms.positions) * WORD_BYTES + OVERHEAD_BYTES


def shares_bytes(terms: ScoreTerms) -> int:
    """The size of an `AnswerShares` frame."""
    return frame_bytes(text_bytes(PURPOSE), binary_bytes(sealed_words_bytes(terms)))


def for_asker_bytes(terms: ScoreTerms) -> int:
    """The largest size of a `GroupAnswer` frame."""
    head = list_head_bytes(len(terms.clients))
    entry = LONGEST_NUMBER + binary_bytes(sealed_words_bytes(terms))
    participants = head + len(terms.clients) * LONGEST_NUMBER
    return frame_bytes(text_bytes(PURPOSE), participants, head + len(terms.scorers) * entry)
