"""Records of a session of score queries: what its parties had agreed on, for whoever reads its transcript."""

from dataclasses import replace
from typing import ClassVar

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.hidden import HiddenBatch
from protocols.scores.topk.hidden_shape import HiddenShape, Similarity
from secure_kg.runs.records.events import TranscriptEnd
from secure_kg.runs.records.record import Record


class HiddenQueries(Record, kw_only=True, frozen=True):
    """Public parameters of hidden queries (`protocols.scores.topk.hidden_shape`)."""

    kind: ClassVar[str] = "record of hidden queries"

    tables_round: int
    """In which tables were masked, before the first batch of the session."""
    similarity: str
    dimensions: int
    row_norm: float
    query_norm: float
    branches: list[int]

    @classmethod
    def of(cls, shape: HiddenShape, tables_round: int) -> "HiddenQueries":
        return cls(
            tables_round=tables_round,
            similarity=shape.similarity.value,
            dimensions=shape.dimensions,
            row_norm=shape.row_norm,
            query_norm=shape.query_norm,
            branches=list(shape.branches),
        )

    @property
    def shape(self) -> HiddenShape:
        """`ValueError` for parameters that no query has."""
        return HiddenShape(
            similarity=Similarity.named(self.similarity),
            dimensions=self.dimensions,
            row_norm=self.row_norm,
            query_norm=self.query_norm,
            branches=tuple(self.branches),
        )


class ScoreBatch(Record, kw_only=True, frozen=True):
    """Public parameters of one batch (`protocols.scores.terms`), in its first attempt."""

    kind: ClassVar[str] = "record of a batch of queries"

    backend: str
    """A name in `protocols.registry.SCORES`."""
    round: int
    clients: list[int]
    asker: int
    positions: int
    queries: int
    top: int
    bound: float
    least: int
    table: str
    """Digest of what is scored with, in hexadecimal."""
    hidden: HiddenQueries | None = None
    """Of queries that scorers do not see."""

    @classmethod
    def of(cls, backend: str, terms: ScoreTerms, hidden: HiddenQueries | None = None) -> "ScoreBatch":
        return cls(
            backend=backend,
            round=int(terms.round),
            clients=[int(party) for party in terms.clients],
            asker=int(terms.asker),
            positions=terms.positions,
            queries=terms.queries,
            top=terms.top,
            bound=terms.bound,
            least=terms.least,
            table=terms.table.hex(),
            hidden=hidden,
        )

    def hidden_batch(self, attempt: int = 0) -> HiddenBatch | None:
        """None if its queries are not hidden. `ValueError` for parameters that no batch has."""
        return None if self.hidden is None else HiddenBatch.of(self.terms(attempt), self.hidden.shape)

    def hidden_tables(self) -> HiddenBatch | None:
        """What clients mask their tables for."""
        if self.hidden is None:
            return None
        if self.hidden.tables_round < 1:
            raise ValueError("tables of hidden queries that were masked during the set-up")
        return HiddenBatch.of(replace(self.terms(), round=RoundId(self.hidden.tables_round)), self.hidden.shape)

    def terms(self, attempt: int = 0) -> ScoreTerms:
        """Of one of its attempts. `ValueError` for parameters that no batch has."""
        return ScoreTerms(
            round=RoundId(self.round + attempt),
            clients=tuple(PartyId(party) for party in self.clients),
            asker=PartyId(self.asker),
            positions=self.positions,
            queries=self.queries,
            top=self.top,
            bound=self.bound,
            least=self.least,
            table=bytes.fromhex(self.table),
        )


class ScoreSession(Record, kw_only=True, frozen=True):
    """`scores-S.json`: one session of score queries, in which batches follow each other."""

    kind: ClassVar[str] = "record of score queries"
    nested: ClassVar[dict[str, type[Record]]] = {"batches": ScoreBatch}

    version: int
    session: str
    """Its number, in hexadecimal."""
    parties: list[int]
    """All that have channels to each other: clients, and askers outside."""
    adversary: str
    max_corrupt: float
    max_dropout: float
    min_survivors: int
    allow_extraction: bool
    """Whether scorers open means without a limit."""
    dimensions: int
    """How many numbers a row of the table has; 0 if scores are made of no rows."""
    batches: list[ScoreBatch]
    announced_by: int | None = None
    """The asker whose announcements say which batch comes next (`protocols.lookups.steps`); None: all know it."""
    greeting: str = ""
    """Digest of what the server had told everybody before, in hexadecimal: between organisations the asker's statement.
    Keys are bound to it."""
    transcript: TranscriptEnd | None = None
    """None: the session did not come to its end."""
