"""Records of a session of score queries: what its parties had agreed on, for whoever reads its transcript."""

from typing import ClassVar

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.scores.terms import ScoreTerms
from secure_kg.runs.records.events import TranscriptEnd
from secure_kg.runs.records.record import Record


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

    @classmethod
    def of(cls, backend: str, terms: ScoreTerms) -> "ScoreBatch":
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
        )

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
    transcript: TranscriptEnd | None = None
    """None: the session did not come to its end."""
