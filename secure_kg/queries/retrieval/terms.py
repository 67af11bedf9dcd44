"""Public parameters of a question's steps. Every party makes them from its own settings and the announced sizes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from protocols.bundles import AskerReads, ScoreBackend
from protocols.exact.terms import exact_terms
from protocols.foundation.errors import PeerMisbehaved, ProtocolError
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.lookup_registry import EXACT, LOOKUPS, NAMES, VECTORS
from protocols.lookups import steps
from protocols.lookups.messages import NextStep
from protocols.lookups.names import names_terms
from protocols.lookups.vectors import VectorTerms
from protocols.registry import SCORES
from protocols.scores.messages import MAX_QUERY_BYTES
from protocols.scores.terms import MOST_POSITIONS, ScoreTerms
from protocols.scores.topk.hidden import HiddenBatch
from protocols.scores.topk.hidden_shape import HiddenShape, Similarity
from secure_kg.models.queries.shapes import Score
from secure_kg.queries.retrieval.rules import Exact
from secure_kg.runs.records.scores import HiddenQueries, ScoreBatch

MOST_VECTORS: Final = 512
"""In one step."""
MOST_POINTS: Final = 4096
"""Of all branches of a question."""
MOST_STEPS: Final = 1 << 16
"""In one session."""
LONGEST: Final = 20
"""Binary logarithm of the largest norm of a row or of a point that is hidden."""
_HEADROOM: Final = 4.0
"""How much larger numbers of a point may be than those of a row."""
_ROOM_FOR_POINTS: Final = 64.0
"""The same for points in a request, which an intersection may have made: more than any honest one needs."""
_BOUNDS: Final[dict[Score, float]] = {"l2": 64.0, "squared": 1024.0, "dot": 1024.0}
_SIMILARITIES: Final[dict[Score, Similarity]] = {
    "l2": Similarity.SQUARED,  # which ranks alike
    "squared": Similarity.SQUARED,
    "dot": Similarity.INNER,
}


class Kind(StrEnum):
    """Kinds of steps, as they are announced."""

    ENTITIES = "entities"
    """Rows of entities; [how many]."""
    PROJECTIONS = "projections"
    """Points along relations; [how many, of how many points each]."""
    SCORES = "scores"
    """The answers; [points of the question]."""
    HIDDEN = "hidden scores"
    """The same, while scorers do not see the points; [points, and the binary logarithms of two norms]."""
    EXACT = "exact"
    """Stored answers; [atoms of the question]."""
    NAMES = "names"
    """Names of positions; [how many]."""


SIZES: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.ENTITIES: ("entities",),
    Kind.PROJECTIONS: ("projections", "points in each"),
    Kind.SCORES: ("points of the question",),
    Kind.HIDDEN: ("points of the question", "binary logarithm of the longest row", "of the longest point"),
    Kind.EXACT: ("atoms of the question",),
    Kind.NAMES: ("positions",),
}
"""What the numbers of an announcement count, in words."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step in the terms of its protocol."""

    kind: Kind
    sizes: tuple[int, ...]
    backend: str
    """As its batch is recorded."""
    terms: ScoreTerms
    vectors: VectorTerms | None = None
    shape: HiddenShape | None = None
    tables_round: int = 0

    @property
    def batch(self) -> ScoreBatch:
        hidden = HiddenQueries.of(self.shape, self.tables_round) if self.shape is not None else None
        return ScoreBatch.of(self.backend, self.terms, hidden)

    @property
    def tables(self) -> HiddenBatch:
        """What tables are masked for, before a hidden batch."""
        made = self.batch.hidden_tables()
        if made is None:
            raise ValueError("a step without hidden queries masks no tables")
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTerms:
    """What all parties of a session have alike."""

    clients: tuple[PartyId, ...]
    asker: PartyId
    union: int
    """Size of the union of aligned names."""
    dim: int
    score: Score
    clip: float
    """No number of a shared row is larger."""
    backend: str
    top: int
    least: int
    hidden: bool = False
    exact: Exact = Exact.NO

    @property
    def bundle(self) -> ScoreBackend:
        return SCORES[self.backend]

    @property
    def bundles(self) -> tuple[ScoreBackend, ...]:
        """What answers come from: scores, stored facts, or both."""
        scores = () if self.exact is Exact.ONLY else (self.bundle,)
        return scores if self.exact is Exact.NO else (*scores, LOOKUPS[EXACT])

    @property
    def needs_all(self) -> bool:
        """Whether nothing comes of a question without all clients: then nothing of it is opened without one."""
        return self.exact is not Exact.NO or self.hidden or self.bundle.asker_reads is AskerReads.POSITIONS

    @property
    def largest_number(self) -> float:
        """No number of a point in a request is larger: what is computed from such points does not overflow."""
        return _ROOM_FOR_POINTS * self.clip

    def step(self, number: int, announced: NextStep) -> PlannedStep:
        """What was announced as the step of this number. `PeerMisbehaved` for one that is outside of these terms."""
        try:
            return self.planned(number, announced)
        except (ValueError, ProtocolError):
            raise PeerMisbehaved("a step was announced that this party's settings do not know") from None

    def planned(self, number: int, announced: NextStep) -> PlannedStep:
        """The same for the asker's own step: `ValueError` or `ProtocolError` says why it cannot be."""
        kind = Kind(announced.kind)
        if len(announced.sizes) != len(SIZES[kind]) or not announced.table:
            raise ValueError("a step of other sizes than its kind has")
        if number >= MOST_STEPS:
            raise ValueError(f"more than {MOST_STEPS} steps in one session")
        return self._step(kind, announced.sizes, steps.round_of(number), announced.table)

    def vectors_at_once(self, points: int, request_bytes: int) -> int:
        """How many vectors of so many points, and of so many bytes in a request, go into one step."""
        return max(1, min(MOST_VECTORS, MAX_QUERY_BYTES // request_bytes, MOST_POSITIONS // (points * self.dim)))

    def _step(self, kind: Kind, sizes: Sequence[int], round_id: RoundId, table: bytes) -> PlannedStep:
        first, given = sizes[0], tuple(sizes)
        if kind is Kind.EXACT:
            if self.exact is Exact.NO:
                raise ValueError("exact answers in a session without")
            terms = exact_terms(round_id, self.clients, self.asker, self.union, first, table)
            return PlannedStep(kind, given, EXACT, terms)
        if kind is not Kind.NAMES and self.exact is Exact.ONLY:
            raise ValueError("predictions in a session of exact answers")
        if kind in (Kind.ENTITIES, Kind.PROJECTIONS):
            vectors = self._vectors(first, sizes[1] if len(sizes) > 1 else 1, round_id, table)
            return PlannedStep(kind, given, VECTORS, vectors.scores, vectors)
        if kind is Kind.NAMES:
            if first > self.top:
                raise ValueError(f"{first} names for {self.top} answers")
            return PlannedStep(kind, given, NAMES, names_terms(round_id, self.clients, self.asker, first, table))
        if self.hidden != (kind is Kind.HIDDEN) or not 1 <= first <= MOST_POINTS:
            raise ValueError("scores of another kind")
        if kind is Kind.SCORES:
            return PlannedStep(kind, given, self.backend, self._scores(round_id, table))
        if not all(0 <= power <= LONGEST for power in sizes[1:]):
            raise ValueError("norms that no asker announces")
        shape = HiddenShape(
            similarity=_SIMILARITIES[self.score],
            dimensions=self.dim,
            row_norm=math.ldexp(1.0, sizes[1]),
            query_norm=math.ldexp(1.0, sizes[2]),
            branches=(first,),
        )
        terms = self._scores(RoundId(round_id + 1), table)
        step = PlannedStep(kind, given, self.backend, terms, shape=shape, tables_round=int(round_id))
        step.tables.bits  # noqa: B018  refuses norms that leave too few
        return step

    def _vectors(self, count: int, points: int, round_id: RoundId, table: bytes) -> VectorTerms:
        if not 1 <= count <= MOST_VECTORS or not 1 <= points <= MOST_POINTS:
            raise ValueError("too many vectors")
        return VectorTerms(
            round=round_id,
            clients=self.clients,
            asker=self.asker,
            vectors=count,
            width=points * self.dim,
            bound=_HEADROOM * self.clip,
            table=table,
        )

    def _scores(self, round_id: RoundId, table: bytes) -> ScoreTerms:
        return ScoreTerms(
            round=round_id,
            clients=self.clients,
            asker=self.asker,
            positions=self.union,
            top=self.top,
            bound=_BOUNDS[self.score],
            least=self.least,
            table=table,
        )
