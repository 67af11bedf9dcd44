"""Hidden queries in a measurement: made-up tables and queries in place of made-up scores.

Tables are masked before the first batch, and what that costs is not counted: it serves all batches of a session.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.scoring.workload import Truth, Workload
from protocols.bundles import ScoreBackend
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.registry import SCORES
from protocols.scores.interface import ScoreClient, ScoreServer
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.hidden import HiddenBatch, HiddenTable, in_clear
from protocols.scores.topk.hidden_batches import HiddenScoreClient, HiddenScoreServer
from protocols.scores.topk.hidden_parties import HiddenClient, HiddenServer
from protocols.scores.topk.hidden_shape import HiddenShape, Similarity
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator
from secure_kg.runs.records.scores import HiddenQueries

NAME: Final = "topk-hidden"
TABLES: Final = 0
"""The number under which tables are masked: that of no batch."""
_NORM: Final = 1.0


@dataclass(frozen=True)
class HiddenWork:
    """Rows and queries of random directions, no longer than 1."""

    work: Workload
    similarity: Similarity

    @classmethod
    def named(cls, work: Workload, similarity: str) -> "HiddenWork":
        """`UserError` in one line for scores, or a size, that hidden queries cannot have."""
        try:
            made = cls(work, Similarity.named(similarity))
            made.tables_for  # noqa: B018  refuses sizes that do not fit
        except (ValueError, ProtocolError) as problem:
            raise UserError(f"--hide-query: {problem}") from None
        return made

    @property
    def shape(self) -> HiddenShape:
        return HiddenShape(
            similarity=self.similarity,
            dimensions=self.work.dimensions,
            row_norm=_NORM,
            query_norm=_NORM,
            branches=(1,) * self.work.queries,
        )

    def terms(self, number: int) -> ScoreTerms:
        """Of every batch over the same tables."""
        return replace(self.work.terms(bundle(), number), table=self.work.terms(bundle(), TABLES).table)

    @property
    def tables_for(self) -> HiddenBatch:
        batch = HiddenBatch.of(self.terms(TABLES), self.shape)
        batch.bits  # noqa: B018  refuses norms that leave too few
        return batch

    @property
    def record(self) -> HiddenQueries:
        return HiddenQueries.of(self.shape, int(self.tables_for.terms.round))

    @cached_property
    def tables(self) -> Mapping[PartyId, HiddenTable]:
        """Rows of what each client holds, which are the same at all holders, as after aggregation."""
        rows = _within(generator(self.work.seed, "rows"), self.work.entities, self.work.dimensions)
        return {party: HiddenTable(one.held, rows[one.held]) for party, one in self.work.scores.items()}

    @cached_property
    def queries(self) -> npt.NDArray[np.float64]:
        return _within(generator(self.work.seed, "queries"), self.work.queries, self.work.dimensions)

    def client(self, session: ClientSession, keys: ClientKeys) -> ScoreClient:
        made = HiddenClient(keys.vectors, SecretHolderClient(keys.vectors, keys.key), self.tables_for)
        made.begin(session, self.tables[session.party])
        return HiddenScoreClient(made, self.shape)

    def server(self, session: ServerSession, keys: ServerKeys) -> ScoreServer:
        made = HiddenServer(SecretHolderServer(keys.vectors), self.tables_for)
        made.begin(session)
        return HiddenScoreServer(made, self.shape)

    def truth(self, number: int) -> Truth:
        batch = HiddenBatch.of(self.terms(number), self.shape)
        return Truth(in_clear(self.tables, self.queries, batch), self._means(batch.terms))

    def _means(self, terms: ScoreTerms) -> npt.NDArray[np.float64]:
        """Never rounded. All holders have the same row, so a mean is its score."""
        rows = _within(generator(self.work.seed, "rows"), self.work.entities, self.work.dimensions)
        scores = self.queries @ rows.T
        if self.similarity is Similarity.SQUARED:
            lengths = np.square(rows).sum(axis=1) + np.square(self.queries).sum(axis=1, keepdims=True)
            scores = 2 * scores - lengths
        holders = np.zeros(self.work.entities, dtype=np.int64)
        for party in terms.scorers:
            holders[self.work.scores[party].held] += 1
        given = holders >= terms.least
        given[self.work.scores[terms.asker].held] = True
        means: npt.NDArray[np.float64] = np.where(given, scores, np.nan)
        return means


def bundle() -> ScoreBackend:
    """What is said of `topk` holds here, too."""
    return SCORES["topk"]


def _within(draw: np.random.Generator, count: int, dimensions: int) -> npt.NDArray[np.float64]:
    made = draw.normal(0, 1, (count, dimensions))
    lengths = np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)
    within: npt.NDArray[np.float64] = made / lengths * (_NORM * (1 - 1e-9)) * draw.uniform(0.5, 1.0, (count, 1))
    return within
