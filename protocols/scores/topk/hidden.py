"""Hidden queries: scorers score a query that they never see, and nobody but the asker reads anything.

Every scorer i holds a table E_i [positions, dimensions], zero where it holds nothing. The asker has queries q. Shares
of E_i q come from one product with a fixed operand. The server deals a mask A_i for each table, once. For each batch it
deals a mask b of the queries and a share r of the product of the two.

    once        scorer i sends the asker M = E_i + A_i
    per batch   the asker sends every scorer u = q + b; the server sends scorer i A_i b - r
                share of scorer i   E_i u + (A_i b - r)
                share of the asker  -M b + r

The two add up to E_i q, since E_i u - M b = E_i q - A_i b. The selection goes on from there as in
`protocols.scores.topk`, with means, and for a query of several branches the largest of their means.

Parties, adversary, what is assumed and not covered: see the package, `protocols.scores.topk`; here the asker is one of
the clients.
Reveals:     to scorers nothing of the queries but their number and that of their branches. To the asker its answers. M
             is uniform to the asker and u to the scorers, as long as they do not work together with the server. A table
             is masked once: that is sound because the mask of the queries is fresh in every batch, and all that A_i
             enters besides is hidden by r. Both M and u are sealed, so the server, who knows A_i and b, reads neither.
Costs:       once, positions x dimensions words per scorer, which the asker keeps; per batch and scorer, branches x
             dimensions words to it from the asker and branches x positions words from the server.
Reference:   Beaver, CRYPTO 1991; a fixed operand as in Mohassel, Zhang, S&P 2017.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation import wire
from protocols.foundation.digests import digest
from protocols.foundation.identifiers import PartyId
from protocols.scores.messages import MAX_QUERY_BYTES
from protocols.scores.ranking import Ranking
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.dealing import Seed
from protocols.scores.topk.hidden_shape import HiddenShape, Integers, Similarity
from protocols.scores.topk.keys import KeyLayout, largest_score
from protocols.scores.topk.words import Words

PURPOSE: Final = "hidden scores"
_FRAME_ROOM: Final = 4096
_BLOCK: Final = 1 << 12
"""So many rows of a mask are made at a time: a table may have more entries than memory should hold twice."""


@dataclass(frozen=True, slots=True)
class HiddenBatch:
    """A batch of hidden queries. `terms`: bound to the shape (`of`)."""

    terms: ScoreTerms
    shape: HiddenShape
    table: bytes = b""
    """Digest of what all clients score with, before it was bound to the shape."""

    @classmethod
    def of(cls, terms: ScoreTerms, shape: HiddenShape) -> "HiddenBatch":
        """`ValueError` or `EncodingOverflow` for a batch that cannot be."""
        _require_sendable(terms, shape)
        if len(shape.branches) != terms.queries:
            raise ValueError(f"branches of {len(shape.branches)} queries in a batch of {terms.queries}")
        if not terms.asker_is_client:
            raise ValueError("hidden queries are asked by a client: an asker outside has no share of the scores")
        return cls(replace(terms, table=digest(b"hidden", terms.table, shape.encode())), shape, terms.table)

    def attempt(self, terms: ScoreTerms) -> "HiddenBatch":
        return HiddenBatch(terms, self.shape, self.table)

    @property
    def rows(self) -> int:
        """All branches of all queries."""
        return sum(self.shape.branches)

    @property
    def bits(self) -> int:
        """Fraction bits of rows and queries."""
        return self.shape.fraction_bits(largest_score(self.terms))

    @property
    def layout(self) -> KeyLayout:
        return KeyLayout(self.terms, self.shape.largest_score(self.bits))

    @property
    def widest(self) -> ScoreTerms:
        """Terms of as many queries as there are branches, for the sizes of messages."""
        return replace(self.terms, queries=self.rows)


def _require_sendable(terms: ScoreTerms, shape: HiddenShape) -> None:
    """`ValueError`, before anybody works, for tables, queries or products that would be too large to be sent."""
    branches, room = sum(shape.branches), wire.MAX_FRAME_BYTES - _FRAME_ROOM
    if 8 * branches * shape.dimensions > MAX_QUERY_BYTES:
        most = MAX_QUERY_BYTES // (8 * shape.dimensions)
        raise ValueError(f"{branches} hidden queries of {shape.dimensions} dimensions: ask {most} at a time")
    if 8 * terms.positions * max(branches, shape.dimensions) > room:
        raise ValueError(
            f"{terms.positions} positions with {shape.dimensions} dimensions and {branches} queries have messages of "
            f"more than {wire.MAX_FRAME_BYTES >> 20} MiB"
        )


@dataclass(frozen=True, slots=True)
class HiddenTable:
    """One client's rows. Private: kept out of reprs."""

    held: npt.NDArray[np.int64] = field(repr=False)
    """Positions in ascending order, each once."""
    rows: npt.NDArray[np.floating] = field(repr=False)
    """[held, dimensions]."""

    def only(self, kept: npt.NDArray[np.bool_]) -> "HiddenTable":
        return HiddenTable(self.held[kept], self.rows[kept])


@dataclass(frozen=True, slots=True)
class PaddedTable:
    """Rows in fixed point, in the shape of the union."""

    entries: Integers = field(repr=False)
    """[positions, dimensions], zero where nothing is held."""
    held: npt.NDArray[np.bool_] = field(repr=False)
    shortened: int = field(default=0, repr=False)
    """How many rows were longer than declared."""

    @classmethod
    def of(cls, table: HiddenTable, batch: HiddenBatch) -> "PaddedTable":
        terms = batch.terms
        if len(table.held) and not (table.held[0] >= 0 and table.held[-1] < terms.positions):
            raise ValueError(f"positions held lie in the union, below {terms.positions}")
        if (np.diff(table.held) <= 0).any() or len(table.held) != len(table.rows):
            raise ValueError("positions held are in ascending order, each once, and each has a row")
        entries = np.zeros((terms.positions, batch.shape.dimensions), dtype=np.int64)
        entries[table.held] = batch.shape.rows(table.rows, batch.bits)
        held = np.zeros(terms.positions, dtype=np.bool_)
        held[table.held] = True
        return cls(entries, held, batch.shape.too_long(table.rows))

    @property
    def words(self) -> Words:
        return self.entries.view(np.uint64)

    def lengths(self) -> Words:
        """Squared lengths of the rows."""
        squared: Integers = (self.entries * self.entries).sum(axis=1)
        return squared.view(np.uint64)


def factors(queries: Integers, shape: HiddenShape) -> Words:
    """[branches, dimensions]: what rows are multiplied with."""
    doubled = queries if shape.similarity is Similarity.INNER else 2 * queries
    return doubled.view(np.uint64)


def table_mask(seed: Seed, start: int, stop: int, batch: HiddenBatch) -> Words:
    """Rows `start` to `stop` of the mask of a scorer's table. A block has a key of its own."""
    dimensions = batch.shape.dimensions
    blocks = [
        seed.words(0, f"table/{block}", _BLOCK * dimensions).reshape(_BLOCK, dimensions)
        for block in range(start // _BLOCK, -(-stop // _BLOCK))
    ]
    first = start // _BLOCK * _BLOCK
    return np.concatenate(blocks)[start - first : stop - first]


def masked(table: PaddedTable, seed: Seed, batch: HiddenBatch) -> Words:
    """M = E + A."""
    result = table.words.copy()
    for start in range(0, len(result), _BLOCK):
        stop = min(start + _BLOCK, len(result))
        result[start:stop] += table_mask(seed, start, stop, batch)
    return result


def query_mask(seed: Seed, batch: HiddenBatch) -> Words:
    """b: [branches, dimensions]. `seed`: the asker's; fresh in every attempt of every batch."""
    shape = (batch.rows, batch.shape.dimensions)
    return seed.words(0, f"queries/{batch.terms.round}", shape[0] * shape[1]).reshape(shape)


def product_share(seed: Seed, batch: HiddenBatch, scorer: PartyId) -> Words:
    """r: [branches, positions]. `seed`: the asker's."""
    shape = (batch.rows, batch.terms.positions)
    return seed.words(0, f"product/{batch.terms.round}/{scorer}", shape[0] * shape[1]).reshape(shape)


def dealt_product(scorer: Seed, asker: Seed, batch: HiddenBatch) -> Words:
    """A_i b - r, by the server."""
    positions, b = batch.terms.positions, query_mask(asker, batch)
    product = np.empty((batch.rows, positions), dtype=np.uint64)
    for start in range(0, positions, _BLOCK):
        stop = min(start + _BLOCK, positions)
        product[:, start:stop] = b @ table_mask(scorer, start, stop, batch).T
    product -= product_share(asker, batch, scorer.party)
    return product


def scorer_share(table: PaddedTable, opened: Words, dealt: Words, shape: HiddenShape) -> Words:
    """[branches, positions]: E u + (A b - r), less the squared lengths of the rows where these count."""
    share: Words = opened @ table.words.T + dealt
    if shape.similarity is Similarity.SQUARED:
        share -= table.lengths()
    return share


def asker_share(
    tables: Mapping[PartyId, Words], own: PaddedTable, queries: Integers, seed: Seed, batch: HiddenBatch
) -> Words:
    """[branches, positions]: the sum over scorers of r - M b, and its own scores, without any protocol."""
    b = query_mask(seed, batch)
    share: Words = factors(queries, batch.shape) @ own.words.T
    if batch.shape.similarity is Similarity.SQUARED:
        share -= own.lengths()
    for scorer, table in tables.items():
        share += product_share(seed, batch, scorer) - b @ table.T
    return share


def query_lengths(queries: Integers, batch: HiddenBatch) -> Words:
    """[branches, 1]: what the asker adds to all means of a branch, times L."""
    if batch.shape.similarity is Similarity.INNER:
        return np.zeros((len(queries), 1), dtype=np.uint64)
    squared: Integers = (queries * queries).sum(axis=1, keepdims=True) * batch.terms.common_multiple
    return np.negative(squared).view(np.uint64)


def in_clear(tables: Mapping[PartyId, HiddenTable], queries: npt.NDArray[np.floating], batch: HiddenBatch) -> Ranking:
    """The plain twin: the same rows and queries in fixed point, scored, averaged and ranked in one place."""
    terms, shape, bits = batch.terms, batch.shape, batch.bits
    fixed = shape.queries(queries, bits)
    padded = {party: PaddedTable.of(table, batch) for party, table in tables.items()}
    others = sum(padded[party].held.astype(np.int64) for party in terms.scorers)
    enough = np.asarray(others) >= terms.least
    sums, counts = np.zeros((batch.rows, terms.positions), dtype=np.int64), np.zeros(terms.positions, dtype=np.int64)
    for party, table in padded.items():
        gives = table.held if party == terms.asker else table.held & enough
        scores = (factors(fixed, shape) @ table.words.T).view(np.int64)
        if shape.similarity is Similarity.SQUARED:
            scores = scores - table.lengths().view(np.int64)
        sums += np.where(gives, scores, 0)
        counts += gives
    weights = np.where(counts > 0, terms.common_multiple // np.maximum(counts, 1), 0)
    means = sums * weights + query_lengths(fixed, batch).view(np.int64)
    largest = np.stack([part.max(axis=0) for part in split_branches(means, shape.branches)])
    return _ranked(largest, counts, terms)


def split_branches(rows: npt.NDArray[np.int64], branches: Sequence[int]) -> list[npt.NDArray[np.int64]]:
    """Those of each query."""
    return np.split(rows, np.cumsum(branches)[:-1])


def _ranked(means: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], terms: ScoreTerms) -> Ranking:
    given = np.flatnonzero(counts > 0)
    order = [np.lexsort((given, -row[given]))[: terms.top] for row in means]
    return Ranking(tuple(given[one] for one in order), frozenset(map(int, terms.scorers)))
