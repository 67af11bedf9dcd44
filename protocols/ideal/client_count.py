"""A client's view of counting holders (`protocols.holders.secret`), written from how many others hold each row, up to
k.

Of each row a client sees its total less what it has added itself: the rest. `SeenCounts` holds real counts and keeps
what one of the clients sees; `simulate_rests` writes the same from min(m, k) of each row alone, where m other
contributors hold it and k = least - 1. The simulator is not told m, nor who they are. The two differ by a statistical
distance of 2^-60 per row at most; `protocols.holders.secret` has the proof.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import PURPOSE, CountTask
from protocols.holders.secret import SecretHolderClient, regular
from protocols.ideal.real import at_once
from protocols.ideal.real_sessions import CountSession
from protocols.primitives.group import FieldArray, GroupVector, PrimeField
from protocols.session.conversation import Conversation
from protocols.session.group_key import GroupKey
from protocols.sums.secagg.keys import ClientKeys
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.vectors import VectorClient

_FIELD = PrimeField()


def simulate_rests(others: npt.NDArray[np.int64], task: CountTask) -> FieldArray:
    """[k, k, union]: for each row a uniform matrix of rank `others`, or any uniform matrix where `others` is k."""
    size = task.least - 1
    if len(others) != task.union_size or (others < 0).any() or (others > size).any():
        raise ValueError(f"of each row of the union, how many others hold it, up to {size}")
    rests: FieldArray = np.zeros((size, size, task.union_size), dtype=np.uint64)
    for rank in range(1, size + 1):
        rows = np.flatnonzero(others == rank)
        rests[..., rows] = _FIELD.uniform((size, size, len(rows))) if rank == size else _of_rank(rank, size, len(rows))
    return rests


def _of_rank(rank: int, size: int, count: int) -> FieldArray:
    """[size, size, count]: the first columns of regular matrices times the first rows of others."""
    left, right = _regular(size, count), _regular(size, count)
    products = [_FIELD.multiply(left[:, None, number], right[None, number]) for number in range(rank)]
    return _FIELD.sum(np.stack(products))


def _regular(size: int, count: int) -> FieldArray:
    matrices = _FIELD.uniform((size, size, count))
    while len(singular := np.flatnonzero(~regular(matrices))):
        matrices[..., singular] = _FIELD.uniform((size, size, len(singular)))
    return matrices


class _SeeingClient(SecretHolderClient):
    """Keeps what it sees: its own rows less its own entries, all other rows as they are."""

    def __init__(self, vectors: VectorClient, key: GroupKey) -> None:
        super().__init__(vectors, key)
        self.seen: list[FieldArray] = []

    def _rest(self, total: GroupVector, held: npt.NDArray[np.int64], own: FieldArray, task: CountTask) -> FieldArray:
        rest = super()._rest(total, held, own, task)
        seen = total[:-1].astype(np.uint64).reshape(task.entries_per_row, task.union_size)
        seen[:, held] = rest
        self.seen.append(seen.reshape(task.least - 1, task.least - 1, task.union_size))
        return rest


@dataclass(frozen=True)
class SeenCounts(CountSession):
    """Real counts, of which one client tells what it sees."""

    def seen_by(self, observer: PartyId) -> list[FieldArray]:
        """[k, k, union] of each count."""
        seen: list[FieldArray] = []

        def take_part(conversation: Conversation) -> None:
            me = conversation.transport.party
            keys = ClientKeys.agree(at_once(conversation), self.parties.vector_client(me))
            client = _SeeingClient(keys.vectors, keys.key)
            for task, held in self.counts:
                client.prepare(at_once(conversation), task)
                client.count(at_once(conversation), task, held[me])
            if me == observer:
                seen.extend(client.seen)

        self.parties.view(self.serve, take_part, self.falls)
        return seen

    def others(self, observer: PartyId) -> list[npt.NDArray[np.int64]]:
        """[union] of each count: how many contributors other than `observer` hold each row."""
        found = []
        for task, held in self.counts:
            falls = self.falls.at(task.round, PURPOSE)
            counted = np.zeros(task.union_size, dtype=np.int64)
            for party in task.participants:
                if party != observer and falls.get(party) is not Step.MASKED_INPUT:
                    counted[held[party]] += 1
            found.append(counted)
        return found
