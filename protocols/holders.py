"""How many clients hold each row of a union: counted right before rows are added up, so that no row of too few is.

A row that one client holds is not hidden by adding it up. Clients therefore count first, and contribute to a row only
if at least `least` of them hold it. The counts are a secret sum (`protocols.secret_aggregation`) in the field of
p = 2^61 - 1 elements, with one more entry for a check: with random factors f_i that only clients know, each client adds
the sum of f_i over the rows it holds. A total c with check d is accepted if d = sum of f_i c_i.

Parties:     n >= 2 clients that share a group key, 1 server.
Adversary:   the server, semi-honest, or active with signed channels. No client on its side.
Reveals:     to the server who has contributed; and if counted clients fall silent before their rows are added, whether
             the rarest of the added rows has enough holders without them, as the others then refuse or do not. To every
             client how many hold each row, by position: of its own rows it knows the names.
Assumes:     what `protocols.secret_aggregation` assumes.
Not covered: clients that lie about what they hold: two that claim a row make a third one contribute to it. A client on
             the server's side: it can tell the server the factors, and an active server then names any counts. What
             two counts tell the clients: if they differ by one contributor, their difference is what that one holds.
Reference:   none; FedR and FedE add up rows whoever holds them.
Deviations:  none.

Whatever the server sends that differs from the true total in counts or check is accepted with probability 1/p at most:
the factors are uniform and unknown to it, and what it was sent is under masks.

Dropouts. A client that is counted and then falls silent before its rows are added may leave a row with fewer holders
than counted. The others therefore do not help to open such a sum (`Holders.may_open`), unless every row would still
have enough if the missing had held it. Where a client hears of its neighbours only (a sparse graph), it takes any
missing one for too many. So the bound holds whatever dropouts do, at the price of a round's sum.

All counted clients must be participants of the sum of rows: others are not missed. One that has shared no keys for it
is missed like one that fell silent later. In a sparse graph the refusal of its neighbours is enough then too: its next
ones on the ring have nearly the same neighbours, so that too few are left to give shares of their self masks.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.conversation import Conversation
from protocols.errors import PeerMisbehaved, SumAbandoned
from protocols.group_key import GroupKey
from protocols.identifiers import SERVER, PartyId, RoundId
from protocols.patience import Patience
from protocols.primitives.group import FieldArray, GroupVector, PrimeField
from protocols.primitives.prg import combine_keystreams
from protocols.secagg.vectors import VectorClient, VectorServer, VectorTask
from protocols.secret_aggregation import mask_key, open_total
from protocols.sums import MayOpen, Silent
from protocols.totals import SumTotal
from protocols.transport.deadline import Deadline

PURPOSE: Final = "holders"
_FIELD: Final = PrimeField()


@dataclass(frozen=True, slots=True)
class CountTask:
    """One count, as a party reckons it itself."""

    round: RoundId
    participants: tuple[PartyId, ...]
    union_size: int
    union: bytes
    """Digest of the alignment: only clients whose positions mean the same rows can count together."""


@dataclass(frozen=True, slots=True)
class Holders:
    """What clients know of the holders of rows. Kept out of reprs."""

    counts: npt.NDArray[np.int64] = field(repr=False)
    """[union]: how many of `contributors` hold each row."""
    contributors: frozenset[PartyId]

    def enough(self, least: int) -> npt.NDArray[np.bool_]:
        """[union]: which rows may be added up."""
        return self.counts >= least

    def may_open(self, least: int) -> MayOpen:
        """Refuses to open a sum of rows from which counted holders are missing, if a row may be left with too few."""
        fewest = int(self.counts[self.enough(least)].min(initial=len(self.contributors)))

        def check(missing: frozenset[PartyId], all_of_them: bool) -> None:
            gone = missing & self.contributors
            if gone and not (all_of_them and fewest - len(gone) >= least):
                raise SumAbandoned(
                    f"{len(gone)} clients fell silent after their rows were counted: a row may have fewer than "
                    f"{least} holders left"
                )

        return check


class HolderClient(ABC):
    """A client's part in counting."""

    @abstractmethod
    def prepare(self, conversation: Conversation, task: CountTask, deadline: Deadline) -> None:
        """Agree on whatever this count needs."""

    @abstractmethod
    def count(
        self, conversation: Conversation, task: CountTask, held: npt.NDArray[np.int64], deadline: Deadline
    ) -> Holders:
        """`held`: the positions of the rows this client holds, each once."""


class HolderServer(ABC):
    """The server's part in counting."""

    @abstractmethod
    def prepare(
        self,
        conversation: Conversation,
        task: CountTask,
        present: Collection[PartyId],
        patience: Patience,
        silent: Silent,
    ) -> None:
        """The counterpart of `HolderClient.prepare`."""

    @abstractmethod
    def collect(
        self,
        conversation: Conversation,
        task: CountTask,
        patience: Patience,
        silent: Silent,
        present: Collection[PartyId],
    ) -> None:
        """Add up, and send the total to those who are in it."""


def vector_task(task: CountTask) -> VectorTask:
    return VectorTask(task.round, PURPOSE, task.participants, _FIELD, task.union_size + 1, task.union)


def held_vector(held: npt.NDArray[np.int64], task: CountTask, key: GroupKey) -> FieldArray:
    """One for every row held, and the check."""
    vector: FieldArray = np.zeros(task.union_size + 1, dtype=_FIELD.dtype)
    vector[held] = 1
    if int(held.min(initial=0)) < 0 or np.count_nonzero(vector[:-1]) != len(held):
        raise ValueError("rows held are positions in the union, each once")  # else no client could read the counts
    vector[-1] = _FIELD.sum(_factors(task, key)[held])
    return vector


def counts_of(total: GroupVector, task: CountTask, key: GroupKey, contributors: int) -> npt.NDArray[np.int64]:
    """The counts of an opened total; `PeerMisbehaved` unless they are those that clients have sent."""
    counts, check = total[:-1].astype(np.uint64), total[-1]
    right = _FIELD.sum(_FIELD.multiply(_factors(task, key), counts)) == check
    if not right or int(counts.max(initial=0)) > contributors:
        raise PeerMisbehaved("the numbers of holders are not those that the clients have sent")
    return counts.astype(np.int64)


def _factors(task: CountTask, key: GroupKey) -> FieldArray:
    factors: FieldArray = np.zeros(task.union_size, dtype=_FIELD.dtype)
    combine_keystreams(factors, _FIELD, [key.derive("holder check", task.round, binding=task.union)])
    return factors


class SecretHolderClient(HolderClient):
    def __init__(self, vectors: VectorClient, key: GroupKey) -> None:
        self._vectors, self._key = vectors, key

    def prepare(self, conversation: Conversation, task: CountTask, deadline: Deadline) -> None:
        self._vectors.prepare(conversation, vector_task(task), deadline)

    def count(
        self, conversation: Conversation, task: CountTask, held: npt.NDArray[np.int64], deadline: Deadline
    ) -> Holders:
        vectors, me = vector_task(task), conversation.transport.party
        mask = mask_key(self._key, vectors, me)
        vector = held_vector(held, task, self._key)
        self._vectors.contribute(conversation, vectors, vector, deadline, [mask])
        with conversation.transport.phase(task.round, PURPOSE):
            total = conversation.receive(SERVER, SumTotal, task.round, deadline, PURPOSE)
        if me not in total.contributors:
            raise PeerMisbehaved("a count without this client, which has contributed to it")
        opened = open_total(self._key, vectors, total)
        counts = counts_of(opened, task, self._key, len(total.contributors))
        return Holders(counts, frozenset(PartyId(party) for party in total.contributors))


class SecretHolderServer(HolderServer):
    def __init__(self, vectors: VectorServer) -> None:
        self._vectors = vectors

    def prepare(
        self,
        conversation: Conversation,
        task: CountTask,
        present: Collection[PartyId],
        patience: Patience,
        silent: Silent,
    ) -> None:
        self._vectors.prepare(conversation, vector_task(task), present, patience, silent)

    def collect(
        self,
        conversation: Conversation,
        task: CountTask,
        patience: Patience,
        silent: Silent,
        present: Collection[PartyId],
    ) -> None:
        vectors = vector_task(task)
        total = self._vectors.collect(conversation, vectors, patience, silent, present)
        send_total(conversation, task, total.contributors, total.vector, present, silent)


def send_total(
    conversation: Conversation,
    task: CountTask,
    contributors: Collection[PartyId],
    vector: GroupVector,
    present: Collection[PartyId],
    silent: Silent,
) -> None:
    """To those who are in it and still there."""
    total = SumTotal.of(task.round, PURPOSE, contributors, vector)
    with conversation.transport.phase(task.round, PURPOSE):
        if lost := conversation.broadcast(set(contributors) & set(present), total, task.round):
            silent(lost, PURPOSE)
