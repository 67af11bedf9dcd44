"""Correlated randomness: what each client draws from its seed, and what the server adds so that all of it fits.

A client's share of everything is a keystream of its own seed, but for one client per deal: the share of that one makes
the correlation true, and the server sends it. The server knows all of the randomness and none of the values that are
opened under it.

    kind      sizes                  correlation                                              sent to
    LOOKUP    positions, table       r modulo the table's size, and the unit vector of r      the lead
    SCALE     queries, positions     b for each position, a for each score, and a b           the lead
    SIGN      words                  r as a number, and the bits of r in tree order           the lead
    AND       words, word's bytes    a, b and a & b                                           the lead
    SHUFFLE   turn, queries, length  for every client but that of the turn a and b; for that  the client of the turn
                                     one permutations, and the permuted sum of a less that of b
    BIT       words                  random bits, as bits and as numbers                      the lead
    NOTHING                          none
    ANSWER                           none: the last step of a batch

The lead is the client with the lowest number. Every key is used for one deal of one step of one batch. It is bound to
the set-up of the session, which holds a fresh key of every client: a server that deals the same seeds under the same
session number in another session deals other randomness. So nothing that was opened there can be subtracted here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.digests import digest
from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import SERVER, PartyId, SessionId
from protocols.primitives.keys import KeyContext, derive_key
from protocols.scores.asking import PROTOCOL, VERSION
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.words import AnyWords, Words, in_tree_order, keystream, permutation
from protocols.session.channels import ClientChannels
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation


class Deal(IntEnum):
    NOTHING = 0
    LOOKUP = 1
    SCALE = 2
    SIGN = 3
    AND = 4
    SHUFFLE = 5
    ANSWER = 6
    BIT = 7


WORD_TYPES: Final = {size: np.dtype(f"<u{size}") for size in (1, 2, 4, 8)}
_LARGEST_TABLE: Final = 256
"""A shift into a table is one byte."""


@dataclass(frozen=True, slots=True)
class Seed:
    """The seed of one party's part of the randomness of one batch, as that party and the server hold it."""

    secret: bytes = field(repr=False)
    session: SessionId
    setup: bytes
    """Digest of the session's set-up (`channels.setup_transcript`)."""
    terms: ScoreTerms
    party: PartyId

    @classmethod
    def of_client(cls, session: ClientSession, channels: ClientChannels, secret: bytes, terms: ScoreTerms) -> "Seed":
        """A client's own, bound to the set-up as that client saw it."""
        return cls(secret, session.conversation.session, channels.transcript, terms, session.party)

    @classmethod
    def within(cls, conversation: Conversation, secret: bytes, terms: ScoreTerms, party: PartyId) -> "Seed":
        """As the server of this conversation deals it."""
        if not conversation.setup:
            raise UnexpectedMessage("randomness is dealt after the set-up of keys")
        return cls(secret, conversation.session, conversation.setup, terms, party)

    def words(self, step: int, what: str, count: int, dtype: npt.DTypeLike = np.uint64) -> AnyWords:
        return keystream(self._key(step, what), count, dtype)

    def permutations(self, step: int, queries: int, length: int) -> npt.NDArray[np.int64]:
        """[queries x length]: one permutation after the other, each of its own stretch."""
        drawn = [permutation(self._key(step, f"permutation/{query}"), length) for query in range(queries)]
        return np.concatenate([order + query * length for query, order in enumerate(drawn)])

    def _key(self, step: int, what: str) -> bytes:
        context = KeyContext(
            PROTOCOL,
            VERSION,
            self.session,
            self.terms.round,
            self.party,
            SERVER,
            f"dealt/{step}/{what}",
            digest(self.terms.digest, self.setup),
        )
        return derive_key(self.secret, context)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a seed is not serialised")


class Dealer:
    """The server's side. `seeds`: of all clients. `most`: so many words one deal of this batch may have."""

    def __init__(self, seeds: Mapping[PartyId, Seed], most: int) -> None:
        self._seeds, self._most = dict(sorted(seeds.items())), most
        self._parties = tuple(self._seeds)

    def deal(self, step: int, numbers: Sequence[int]) -> tuple[PartyId, bytes]:
        """For whom the missing share of a step is, and that share. `PeerMisbehaved` for numbers that are no deal."""
        lead = self._parties[0]
        match list(numbers):
            case [Deal.NOTHING | Deal.ANSWER]:
                return lead, b""
            case [Deal.LOOKUP, positions, table] if self._fits(positions, table) and _is_table(table):
                return lead, self._look_up(step, positions, table).tobytes()
            case [Deal.SCALE, queries, positions] if self._fits(queries, positions):
                return lead, self._scale(step, queries, positions).tobytes()
            case [Deal.SIGN, count] if self._fits(count):
                return lead, self._sign(step, count).tobytes()
            case [Deal.AND, count, size] if self._fits(count) and size in WORD_TYPES:
                return lead, self._and(step, count, size).tobytes()
            case [Deal.BIT, count] if self._fits(count):
                return lead, self._bits(step, count).tobytes()
            case [Deal.SHUFFLE, turn, queries, length] if turn in self._parties and self._fits(queries, length):
                return PartyId(turn), self._shuffle(step, PartyId(turn), queries, length).tobytes()
            case _:
                raise PeerMisbehaved("a step of a selection asks for randomness of no known kind")

    def _fits(self, *sizes: int) -> bool:
        """Whether a deal of these sizes may be drawn at all: clients that ask for more are not of this batch."""
        return min(sizes) >= 1 and math.prod(sizes) <= self._most

    def _look_up(self, step: int, positions: int, table: int) -> Words:
        """[table, positions], less the shares of all but the lead."""
        shift = sum(look_up_shift(seed, step, positions, table) for seed in self._seeds.values()) & (table - 1)
        unit: Words = (np.arange(table, dtype=np.int64)[:, None] == shift).astype(np.uint64).reshape(-1)
        for seed in self._others():
            unit -= seed.words(step, "unit", table * positions)
        return unit

    def _scale(self, step: int, queries: int, positions: int) -> Words:
        left = self._sum(step, "a", queries * positions)
        right = self._sum(step, "b", positions)
        product: Words = (left.reshape(queries, positions) * right).reshape(-1)
        for seed in self._others():
            product -= seed.words(step, "c", queries * positions)
        return product

    def _sign(self, step: int, count: int) -> Words:
        bits = in_tree_order(self._sum(step, "r", count))
        for seed in self._others():
            bits ^= seed.words(step, "bits", count)
        return bits

    def _and(self, step: int, count: int, size: int) -> AnyWords:
        drawn = [seed.words(step, "and", 3 * count, WORD_TYPES[size]).reshape(3, count) for seed in self._others()]
        lead = next(iter(self._seeds.values())).words(step, "and", 2 * count, WORD_TYPES[size]).reshape(2, count)
        left: AnyWords = lead[0].copy()
        right: AnyWords = lead[1].copy()
        for a, b, _ in drawn:
            left ^= a
            right ^= b
        left &= right
        for _, _, c in drawn:
            left ^= c
        return left

    def _bits(self, step: int, count: int) -> Words:
        bits = np.zeros(count, dtype=np.uint8)
        for seed in self._seeds.values():
            bits ^= seed.words(step, "bit", count, np.uint8)
        numbers = (bits & np.uint8(1)).astype(np.uint64)
        for seed in self._others():
            numbers -= seed.words(step, "number", count)
        return numbers

    def _shuffle(self, step: int, turn: PartyId, queries: int, length: int) -> Words:
        order = self._seeds[turn].permutations(step, queries, length)
        given = np.zeros(queries * length, dtype=np.uint64)
        kept = np.zeros(queries * length, dtype=np.uint64)
        for party, seed in self._seeds.items():
            if party != turn:
                given += seed.words(step, "a", queries * length)
                kept += seed.words(step, "b", queries * length)
        corrected: Words = given[order] - kept
        return corrected

    def _others(self) -> list[Seed]:
        return [seed for party, seed in self._seeds.items() if party != self._parties[0]]

    def _sum(self, step: int, what: str, count: int) -> Words:
        total = np.zeros(count, dtype=np.uint64)
        for seed in self._seeds.values():
            total += seed.words(step, what, count)
        return total


def look_up_shift(seed: Seed, step: int, positions: int, table: int) -> npt.NDArray[np.uint8]:
    """A party's share of r, modulo the size of the table."""
    drawn: npt.NDArray[np.uint8] = seed.words(step, "shift", positions, np.uint8) & np.uint8(table - 1)
    return drawn


def _is_table(size: int) -> bool:
    return size <= _LARGEST_TABLE and size & (size - 1) == 0
