"""Bytes of the messages of score batches, counted without sending them (`protocols.scores`).

As `byte_counts`, and of what the server sends as well. By step, under the names by which the transport counts. Counts
are exact for every size, with two exceptions that follow from no setting and are therefore asked for: how long BFV's
keys and ciphertexts are once SEAL has compressed them, and how many comparisons a selection over many positions takes
(`selection_bytes`).

Not covered: what the server sends in the masked sums of a batch, and what CrypTen's processes tell each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocols.costs.byte_counts import MaskedSum, secret_count
from protocols.foundation.frame_sizes import (
    array_bytes,
    binary_bytes,
    frame_bytes,
    list_head_bytes,
    map_bytes,
    number_bytes,
    text_bytes,
)
from protocols.foundation.identifiers import PartyId
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.primitives.keys import PUBLIC_KEY_BYTES
from protocols.primitives.prg import KEY_BYTES
from protocols.scores.crypten.messages import RING_KEY_BYTES, sealed_words_bytes
from protocols.scores.layout import ScoreLayout
from protocols.scores.messages import PURPOSE, contributors_bytes
from protocols.scores.terms import RING, ScoreTerms
from protocols.sums.secagg.messages import PEERS_BYTES

DIGEST_BYTES: Final = 32
_NAMED: Final = text_bytes(PURPOSE)


@dataclass(frozen=True, slots=True)
class ScoreBatch:
    """One batch in which everybody takes part and nobody drops out."""

    terms: ScoreTerms
    query_bytes: int
    """Of all queries together."""
    signed: bool = False
    """Against an active server."""
    announced: bool = False
    """Whether means of this table were opened before, so that scorers announce over whom."""

    def neighbours(self, party: PartyId) -> frozenset[PartyId]:
        """The other scorers."""
        return frozenset(self.terms.scorers) - {party}

    def asking(self, attached: int = 0) -> int:
        """`AskScores`. `attached`: bytes that a backend has the asker say beside its queries."""
        return frame_bytes(_NAMED, map_bytes(self.terms.scorers, self._sealed(attached)))

    def asked(self, attached: int = 0) -> int:
        """`ScoresAsked`."""
        return frame_bytes(_NAMED, binary_bytes(self._sealed(attached)))

    def _sealed(self, attached: int) -> int:
        """Digest of the terms, two secrets, and the rest."""
        return DIGEST_BYTES + 2 * KEY_BYTES + attached + self.query_bytes + OVERHEAD_BYTES

    def counted(self, party: PartyId) -> dict[str, int]:
        """The count of holders, up, per step; empty where any number of holders will do."""
        terms = self.terms
        if terms.least == 1:
            return {}
        return secret_count(terms.positions, party, self.neighbours(party), terms.least, self.signed).bytes_up()


def served() -> int:
    """`BatchServed`, to every scorer."""
    return frame_bytes(_NAMED)


def clear_queries(query_bytes: int) -> int:
    """`ClearQueries`, from the asker and to every scorer."""
    return frame_bytes(_NAMED, binary_bytes(query_bytes))


def total(terms: ScoreTerms) -> int:
    """`ScoresTotal`, of all scorers."""
    return frame_bytes(_NAMED, contributors_bytes(terms), array_bytes(ScoreLayout(terms).entries, RING.element_bytes))


def plain_up(batch: ScoreBatch, party: PartyId) -> dict[str, int]:
    """`protocols.scores.plain`, per step."""
    if party == batch.terms.asker:
        return {"ask": clear_queries(batch.query_bytes)}
    scores = array_bytes(ScoreLayout(batch.terms).entries, RING.element_bytes)
    return {f"input/{PURPOSE}": frame_bytes(_NAMED, scores)}


def plain_down(batch: ScoreBatch, party: PartyId) -> dict[str, int]:
    if party == batch.terms.asker:
        return {f"total/{PURPOSE}": total(batch.terms)}
    return {"ask": clear_queries(batch.query_bytes), f"served/{PURPOSE}": served()}


def masked_up(batch: ScoreBatch, party: PartyId) -> dict[str, int]:
    """`protocols.scores.masked`, per step."""
    if party == batch.terms.asker:
        return {"ask": batch.asking()}
    return batch.counted(party) | _summed(batch, party, ScoreLayout(batch.terms).entries)


def masked_down(batch: ScoreBatch, party: PartyId) -> dict[str, int]:
    """Without the steps of the masked sums."""
    if party == batch.terms.asker:
        return {f"total/{PURPOSE}": total(batch.terms)}
    return {"ask": batch.asked(), f"served/{PURPOSE}": served()}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of what a cipher makes in one batch."""

    key: int
    scores: Sequence[int]
    """Of each ciphertext of the scorer that is asked about."""
    total: Sequence[int]
    """Of each ciphertext of the total."""


def encrypted_up(batch: ScoreBatch, party: PartyId, sizes: Sizes) -> dict[str, int]:
    """`protocols.scores.encrypted`, per step. The ciphertexts take the place of the masked vector."""
    if party == batch.terms.asker:
        return {"ask": batch.asking(DIGEST_BYTES), f"key/{PURPOSE}": asker_key(sizes.key)}
    scores = frame_bytes(_NAMED, _binaries(sizes.scores), binary_bytes(PEERS_BYTES))
    return batch.counted(party) | _summed(batch, party, 0) | {f"masked input/{PURPOSE}": scores}


def encrypted_down(batch: ScoreBatch, party: PartyId, sizes: Sizes) -> dict[str, int]:
    """Without the steps of the masked sums."""
    if party == batch.terms.asker:
        whole = frame_bytes(_NAMED, contributors_bytes(batch.terms), _binaries(sizes.total))
        return {f"total/{PURPOSE}": whole}
    return {
        "ask": batch.asked(DIGEST_BYTES),
        f"key/{PURPOSE}": asker_key(sizes.key),
        f"served/{PURPOSE}": served(),
    }


def asker_key(key_bytes: int) -> int:
    """`PaillierKey` and `BfvKey`."""
    return frame_bytes(_NAMED, binary_bytes(key_bytes))


def join_group(terms: ScoreTerms, party: PartyId, host: str, port: int) -> int:
    """`JoinGroup` of a client with channels to all others."""
    others = [peer for peer in terms.clients if peer != party]
    sealed = map_bytes(others, RING_KEY_BYTES)
    return frame_bytes(_NAMED, binary_bytes(PUBLIC_KEY_BYTES), sealed, text_bytes(host), number_bytes(port))


def group_formed(terms: ScoreTerms, party: PartyId, host: str, port: int) -> int:
    """`GroupFormed`, to client `party` of a group of all clients."""
    key = binary_bytes(PUBLIC_KEY_BYTES)
    sealed = map_bytes([peer for peer in terms.clients if peer != party], RING_KEY_BYTES)
    return frame_bytes(_NAMED, _numbers(terms.clients), key, sealed, text_bytes(host), number_bytes(port))


def answer_shares(terms: ScoreTerms) -> int:
    """`AnswerShares`, from every scorer."""
    return frame_bytes(_NAMED, binary_bytes(sealed_words_bytes(terms)))


def group_answer(terms: ScoreTerms) -> int:
    """`GroupAnswer`, to the asker, of a group of all clients."""
    return frame_bytes(_NAMED, _numbers(terms.clients), map_bytes(terms.scorers, sealed_words_bytes(terms)))


def _summed(batch: ScoreBatch, party: PartyId, entries: int) -> dict[str, int]:
    neighbours = batch.neighbours(party)
    size = RING.element_bytes
    sums = MaskedSum(
        PURPOSE, entries, size, party, neighbours, signed=batch.signed, guarded=True, announced=batch.announced
    )
    return sums.bytes_up()


def _binaries(lengths: Sequence[int]) -> int:
    return list_head_bytes(len(lengths)) + sum(map(binary_bytes, lengths))


def _numbers(parties: Sequence[PartyId]) -> int:
    return list_head_bytes(len(parties)) + sum(map(number_bytes, parties))
