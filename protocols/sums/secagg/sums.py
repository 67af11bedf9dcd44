"""The masked sum of numbers: the secure twin of `protocols.sums.plain`.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.sums.secagg`. A party that
stays silent in a step is reported to the caller (`Silent`) and left out of the steps that follow.
"""

from abc import abstractmethod
from collections.abc import Collection, Sequence

from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId
from protocols.foundation.spent import Spent
from protocols.primitives.fixed_point import Encoded
from protocols.primitives.group import GroupVector
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.turns import Silent
from protocols.sums.interface import (
    Collected,
    Contribution,
    ContributionReport,
    MayOpen,
    R,
    SumClient,
    SumLayout,
    SumServer,
    SumTask,
)
from protocols.sums.secagg.vectors import VectorClient, VectorServer, VectorTask, VectorTotal


def vector_task(task: SumTask) -> VectorTask:
    """The same sum as one of ring vectors."""
    layout = task.layout
    return VectorTask(task.round, task.purpose, task.participants, layout.ring, layout.entries, task.model, task.state)


class Encoder:
    """Contributions as ring vectors, in memory that is used again."""

    def __init__(self) -> None:
        self._vector: GroupVector | None = None

    def encode(self, layout: SumLayout, contribution: Contribution) -> Encoded:
        """The vector is good until the next call: an upload is copied into its message, and fresh memory is slow."""
        vector = self._vector
        if vector is None or (vector.dtype, len(vector)) != (layout.ring.dtype, layout.entries):
            vector = self._vector = layout.ring.zeros(layout.entries)
        return layout.encode(contribution, into=vector)


class SecAggSumClient(SumClient):
    """`vectors` holds the session; other protocols may run over the same one."""

    def __init__(self, vectors: VectorClient) -> None:
        self._vectors, self._encoder = vectors, Encoder()

    def setup(self, conversation: Conversation, deadline: Deadline) -> None:
        self._vectors.setup(conversation, deadline)

    def prepare(self, conversation: Conversation, task: SumTask, deadline: Deadline) -> None:
        self._vectors.prepare(conversation, self._vector_task(task), deadline)

    def contribute(
        self,
        conversation: Conversation,
        task: SumTask,
        contribution: Contribution,
        deadline: Deadline,
        may_open: MayOpen | None = None,
    ) -> ContributionReport:
        encoding = Spent()
        with encoding.measure():
            encoded = self._encoder.encode(task.layout, contribution)
            vector = self._vector(task, encoded.vector)
        vectors = self._vector_task(task)
        masks = self._more_masks(vectors, conversation.transport.party)
        masking = self._vectors.contribute(conversation, vectors, vector, deadline, masks, may_open)
        return ContributionReport(encoded.clipped, encoded.max_error, encoding, masking)

    def _vector_task(self, task: SumTask) -> VectorTask:
        return vector_task(task)

    def _vector(self, task: SumTask, numbers: GroupVector) -> GroupVector:
        """What is sent under masks: the encoded numbers."""
        return numbers

    def _more_masks(self, task: VectorTask, party: PartyId) -> Sequence[bytes]:
        """Keys of masks that stay on the sum: none, the server is to read it."""
        return ()


class VectorSumServer(SumServer[R]):
    """`vectors` holds the session; other protocols may run over the same one. What becomes of a total is left open."""

    def __init__(self, vectors: VectorServer) -> None:
        self._vectors = vectors

    @property
    def unmasking(self) -> Spent:
        return self._vectors.unmasking

    def setup(
        self, conversation: Conversation, present: Collection[PartyId], patience: Patience, silent: Silent
    ) -> None:
        self._vectors.setup(conversation, present, patience, silent)

    def prepare(
        self,
        conversation: Conversation,
        task: SumTask,
        present: Collection[PartyId],
        patience: Patience,
        silent: Silent,
    ) -> None:
        self._vectors.prepare(conversation, self._vector_task(task), present, patience, silent)

    def collect(
        self,
        conversation: Conversation,
        task: SumTask,
        patience: Patience,
        silent: Silent,
        present: Collection[PartyId] | None = None,
    ) -> R:
        vectors = self._vector_task(task)
        return self._read(task, self._vectors.collect(conversation, vectors, patience, silent, present))

    def _vector_task(self, task: SumTask) -> VectorTask:
        return vector_task(task)

    @abstractmethod
    def _read(self, task: SumTask, total: VectorTotal) -> R:
        """What the server makes of a total."""


class SecAggSumServer(VectorSumServer[Collected]):
    """The server reads the sum."""

    def _read(self, task: SumTask, total: VectorTotal) -> Collected:
        with self._vectors.unmasking.measure():
            return Collected(task.layout.decode(total.vector), total.contributors)
