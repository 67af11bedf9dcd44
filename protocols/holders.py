"""Whether enough clients hold a row: found out right before rows are added up, so that no row of too few is.

A row that one client holds is not hidden by adding it up. Clients therefore ask first, and contribute to a row only if
at least `least` of them hold it. For each row it holds, a client draws a weight r and a point y, uniform in the field
of p = 2^61 - 1 elements, and adds r y^j to the row's j-th entry, for j = 0 ... 2 least - 4. The entries are a secret
sum (`protocols.secret_aggregation`). From a row's total a holder subtracts what it has added itself; what is left are
the power sums of the other holders. With k = least - 1, there are at least k of them if the k x k Hankel matrix of the
power sums is regular. With fewer it never is: it is the sum of as many matrices of rank one as there are other holders.
(With more it is singular with probability k^2 / p at most, and the row then stays local.) For `least` = 2 there is one
entry per row: what is left is the sum of the others' weights, zero if there are none.

Parties:     n >= 2 clients that share a group key, 1 server.
Adversary:   the server, semi-honest, or active with signed channels. No client on its side.
Reveals:     to the server who has contributed. To a client, for each row that it holds itself, whether `least` - 1
             others do; for each other row, by position, whether any contributor does. (In a union somebody holds every
             row: nobody does if its holders are away.) Whatever else it sees is uniform, however many the holders are.
             This is for `least` = 2, the usual case. For more, how many hold a row, its own or another by position,
             shows where they are too few; where they are enough, it shows power sums with fewer entries than there are
             weights and points behind them, and how close to uniform these are is not proved here.
Assumes:     what `protocols.secret_aggregation` assumes.
Not covered: clients that lie about what they hold: one that claims a row makes its only holder contribute to it. A
             client on the server's side: it can tell the server the factors of the check (below), and an active server
             then makes a holder believe what it likes. What answers over different clients tell: if somebody else held
             a row last time and nobody does without client 3, it was client 3. Where participants are sampled, enough
             rounds tell a client in this way who holds a row, its own or another by position. Sums of rows tell the
             same. Denial of service: a client that contributes here and then stays away costs the round's sum.
Reference:   none; FedR and FedE add up rows whoever holds them. Power sums and Hankel matrices: Prony, 1795.
Deviations:  none.

The check. A server that can change a total makes a lone holder believe in others. So there is one more entry: with
random factors f_i that only clients know, each client adds the sum of f_i times its i-th entry. A total t with check d
is accepted if d = sum of f_i t_i. Whatever else the server sends is accepted with probability 1/p at most: the factors
are uniform and unknown to it, and all it was sent is under masks.

Dropouts. A client that has contributed here and then falls silent before its rows are added may leave a row with fewer
holders. The others therefore do not help to open such a sum (`Holders.may_open`). So the bound holds whatever dropouts
do, at the price of a round's sum. All clients that contribute here must be participants of the sum of rows: others are
not missed. One that has shared no keys for it is missed like one that fell silent later. In a sparse graph, where a
client hears of its neighbours only, their refusal is enough: too few are left to recover what belongs to the missing.
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
from protocols.primitives.encoding import length_prefixed
from protocols.primitives.group import FieldArray, GroupVector, PrimeField
from protocols.primitives.prg import combine_keystreams
from protocols.secagg.vectors import VectorClient, VectorServer, VectorTask
from protocols.secret_aggregation import admit_total, mask_key, open_total
from protocols.spent import Spent
from protocols.sums import Silent
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
    least: int = 2
    """How many holders a row must have."""

    def __post_init__(self) -> None:
        if self.least < 2:
            raise ValueError(f"a bound of {self.least}: every row has that many holders")

    @property
    def entries_per_row(self) -> int:
        return 2 * self.least - 3

    @property
    def entries(self) -> int:
        """Without the check."""
        return self.union_size * self.entries_per_row

    @property
    def terms(self) -> bytes:
        """What clients must agree on before they can count together."""
        return length_prefixed(self.union, self.least.to_bytes(8, "little"))


@dataclass(frozen=True, slots=True)
class Holders:
    """What a client knows of the holders of its own rows. Kept out of reprs."""

    enough: npt.NDArray[np.bool_] = field(repr=False)
    """[held]: which of its rows have enough holders among `contributors`, in the order in which it named them."""
    contributors: frozenset[PartyId]

    def may_open(self, missing: frozenset[PartyId]) -> None:
        """A `protocols.sums.MayOpen`: no sum of rows from which a holder may be missing that was there before."""
        if gone := missing & self.contributors:
            raise SumAbandoned(
                f"{len(gone)} clients fell silent after holders were counted: a row may have too few of them left"
            )


class HolderClient(ABC):
    """A client's part in counting."""

    def __init__(self) -> None:
        self.spent = Spent()
        """The work of all counts so far, without waiting."""

    @abstractmethod
    def prepare(self, conversation: Conversation, task: CountTask, deadline: Deadline) -> None:
        """Agree on whatever this count needs. At most once per round."""

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
    return VectorTask(task.round, PURPOSE, task.participants, _FIELD, task.entries + 1, task.terms)


def require_positions(held: npt.NDArray[np.int64], task: CountTask) -> None:
    """`ValueError` for rows that would count elsewhere or be read back wrongly."""
    if held.size and not (int(held.min()) >= 0 and int(held.max()) < task.union_size):
        raise ValueError(f"rows held are positions in the union, below {task.union_size}")
    taken = np.zeros(task.union_size, dtype=np.bool_)
    taken[held] = True
    if np.count_nonzero(taken) != len(held):  # without sorting: this is done in every round
        raise ValueError("rows held are positions in the union, each once")


def own_entries(rows: int, task: CountTask) -> FieldArray:
    """What a client adds for each of its rows [entries per row, rows]: r, r y, r y^2, ..."""
    weights, points = _FIELD.uniform((2, rows))
    entries = [weights]
    while len(entries) < task.entries_per_row:
        entries.append(_FIELD.multiply(entries[-1], points))
    return np.stack(entries)


def held_vector(held: npt.NDArray[np.int64], own: FieldArray, task: CountTask, key: GroupKey) -> FieldArray:
    """The entries of the rows at `held`, zeros elsewhere, and the check."""
    require_positions(held, task)
    vector: FieldArray = np.zeros(task.entries + 1, dtype=_FIELD.dtype)
    vector[:-1].reshape(task.entries_per_row, task.union_size)[:, held] = own
    vector[-1] = _checksum(vector[:-1], task, key)
    return vector


def enough_holders(
    total: GroupVector, held: npt.NDArray[np.int64], own: FieldArray, task: CountTask, key: GroupKey
) -> npt.NDArray[np.bool_]:
    """[held]: from an opened total, for which rows enough others have added something.

    `PeerMisbehaved` unless the total is that of what the contributors have sent.
    """
    words = total.astype(np.uint64, copy=False)
    if _checksum(words[:-1], task, key) != words[-1]:
        raise PeerMisbehaved("the total of the holders is not that of what the clients have sent")
    others = _FIELD.subtract(words[:-1].reshape(task.entries_per_row, task.union_size)[:, held], own)
    size = task.least - 1
    hankel = others[np.add.outer(np.arange(size), np.arange(size))]
    return _regular(np.moveaxis(hankel, -1, 0))


def _regular(matrices: FieldArray) -> npt.NDArray[np.bool_]:
    """[n]: which of the matrices [n, k, k] have an inverse. Elimination of all at once, without divisions."""
    matrices = matrices.copy()
    count, size, _ = matrices.shape
    each, regular = np.arange(count), np.ones(count, dtype=np.bool_)
    for column in range(size):
        candidates = matrices[:, column:, column] != 0
        regular &= candidates.any(axis=1)
        pivot = column + candidates.argmax(axis=1)
        matrices[each, column], matrices[each, pivot] = matrices[each, pivot], matrices[each, column]
        first = matrices[:, column]
        for row in range(column + 1, size):
            other = matrices[:, row].copy()
            factor, lead = first[:, column, None], other[:, column, None]
            matrices[:, row] = _FIELD.subtract(_FIELD.multiply(other, factor), _FIELD.multiply(first, lead))
    return regular


def _checksum(entries: FieldArray, task: CountTask, key: GroupKey) -> np.uint64:
    factors: FieldArray = np.zeros(task.entries, dtype=_FIELD.dtype)
    combine_keystreams(factors, _FIELD, [key.derive("holder check", task.round, binding=task.terms)])
    return np.uint64(_FIELD.sum(_FIELD.multiply(factors, entries)))


class SecretHolderClient(HolderClient):
    def __init__(self, vectors: VectorClient, key: GroupKey) -> None:
        super().__init__()
        self._vectors, self._key = vectors, key

    def prepare(self, conversation: Conversation, task: CountTask, deadline: Deadline) -> None:
        admit_total(conversation, vector_task(task))
        self._vectors.prepare(conversation, vector_task(task), deadline)

    def count(
        self, conversation: Conversation, task: CountTask, held: npt.NDArray[np.int64], deadline: Deadline
    ) -> Holders:
        vectors, me = vector_task(task), conversation.transport.party
        with self.spent.measure():
            own = own_entries(len(held), task)
            vector = held_vector(held, own, task, self._key)
            mask = mask_key(self._key, vectors, me)
        self.spent.add(self._vectors.contribute(conversation, vectors, vector, deadline, [mask]))
        with conversation.transport.phase(task.round, PURPOSE):
            total = conversation.receive(SERVER, SumTotal, task.round, deadline, PURPOSE)
        if me not in total.contributors:
            raise PeerMisbehaved("a count without this client, which has contributed to it")
        with self.spent.measure():
            enough = enough_holders(open_total(self._key, vectors, total), held, own, task, self._key)
        return Holders(enough, frozenset(PartyId(party) for party in total.contributors))


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
