"""The masked sum of numbers: the secure twin of `protocols.sums.plain`.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.sums.secagg`. A participant
that misses the deadline of a step is reported as a dropout (`ServerSession.on_dropout`) and is out of the steps that
follow.
"""

from abc import abstractmethod
from collections.abc import Sequence

from protocols.foundation.identifiers import PartyId
from protocols.foundation.spent import Spent
from protocols.primitives.fixed_point import Encoded
from protocols.primitives.group import GroupVector
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums import pipeline
from protocols.sums.interface import (
    Collected,
    Contribution,
    ContributionReport,
    MayOpen,
    R,
    SumClient,
    SumLayout,
    SumServer,
)
from protocols.sums.secagg.vectors import VectorClient, VectorServer, VectorTotal
from protocols.sums.terms import Layout, SumTerms


class Encoder:
    """Contributions as ring vectors (`protocols.sums.pipeline`), in memory that is used again."""

    def __init__(self) -> None:
        self._vector: GroupVector | None = None

    def encode(self, terms: SumTerms[SumLayout], contribution: Contribution) -> Encoded:
        """The vector is good until the next call: an upload is copied into its message, and fresh memory is slow."""
        layout, vector = terms.layout, self._vector
        if vector is None or (vector.dtype, len(vector)) != (layout.group.dtype, layout.entries):
            vector = self._vector = layout.group.zeros(layout.entries)
        return pipeline.encode(terms, contribution, into=vector)


class SecAggSumClient(SumClient):
    """`vectors` holds the session's channels; other protocols may run over the same ones."""

    def __init__(self, vectors: VectorClient) -> None:
        self._vectors, self._encoder = vectors, Encoder()

    def setup(self, session: ClientSession) -> None:
        self._vectors.setup(session)

    def prepare(self, session: ClientSession, terms: SumTerms[SumLayout]) -> None:
        self._vectors.prepare(session, self._of_vectors(terms))

    def contribute(
        self,
        session: ClientSession,
        terms: SumTerms[SumLayout],
        contribution: Contribution,
        may_open: MayOpen | None = None,
    ) -> ContributionReport:
        encoding = Spent()
        with encoding.measure():
            encoded = self._encoder.encode(terms, contribution)
            vector = self._vector(terms, encoded.vector)
        of_vectors = self._of_vectors(terms)
        masks = self._more_masks(of_vectors, session.party)
        masking = self._vectors.contribute(session, of_vectors, vector, masks, may_open)
        return ContributionReport(encoded.clipped, encoded.max_error, encoding, masking)

    def _of_vectors(self, terms: SumTerms[SumLayout]) -> SumTerms[Layout]:
        """The terms of the vectors that are sent for these numbers: the same."""
        return terms

    def _vector(self, terms: SumTerms[SumLayout], numbers: GroupVector) -> GroupVector:
        """What is sent under masks: the encoded numbers."""
        return numbers

    def _more_masks(self, terms: SumTerms[Layout], party: PartyId) -> Sequence[bytes]:
        """Keys of masks that stay on the sum: none, the server is to read it."""
        return ()


class VectorSumServer(SumServer[R]):
    """`vectors` holds the session's set-up; other protocols may share it. What becomes of a total is left open."""

    def __init__(self, vectors: VectorServer) -> None:
        self._vectors = vectors

    @property
    def unmasking(self) -> Spent:
        return self._vectors.unmasking

    def setup(self, session: ServerSession) -> None:
        self._vectors.setup(session)

    def prepare(self, session: ServerSession, terms: SumTerms[SumLayout]) -> None:
        self._vectors.prepare(session, self._of_vectors(terms))

    def collect(self, session: ServerSession, terms: SumTerms[SumLayout]) -> R:
        return self._read(terms, self._vectors.collect(session, self._of_vectors(terms)))

    def _of_vectors(self, terms: SumTerms[SumLayout]) -> SumTerms[Layout]:
        """As the clients' (`SecAggSumClient`)."""
        return terms

    @abstractmethod
    def _read(self, terms: SumTerms[SumLayout], total: VectorTotal) -> R:
        """What the server makes of a total."""


class SecAggSumServer(VectorSumServer[Collected]):
    """The server reads the sum."""

    def _read(self, terms: SumTerms[SumLayout], total: VectorTotal) -> Collected:
        with self._vectors.unmasking.measure():
            return Collected(terms.layout.decode(total.vector), total.contributors)
