"""Secret count of holders, made right before rows are added up, so that no row of too few holders is.

A row that one client holds is not hidden by adding it up. Clients therefore ask first, and contribute to a row only if
at least `least` of them hold it. Let k = least - 1. For each row it holds, a client draws u and v, uniform vectors of k
elements of the field of p = 2^61 - 1 elements, and adds the matrix u v^T to the row's k^2 entries (for k = 1 one
uniform element, its weight). The entries are a secret sum (`protocols.sums.secret.aggregation`). From a row's total a
holder subtracts its own matrix. At least k others hold the row if what is left, the rest, is regular.

Parties:     n >= 2 clients that share a group key, 1 server.
Adversary:   the server alone, semi-honest, or active with signed channels. Or semi-honest clients, one or several, with
             a semi-honest server or without.
Reveals:     to the server who has contributed. To a client, of each row, min(m, k), where m contributors other than
             itself hold the row: of its own rows, and by position of all others. For k = 1 this is whether anybody else
             does. Several clients together see the same of the contributors other than themselves. Nothing else, but
             for a statistical distance of 2^-60 per row at most (exactly nothing for k = 1); the proof is below.
Assumes:     what `protocols.sums.secret.aggregation` assumes.
Not covered: clients that lie about what they hold. One that claims a row counts as a holder; one that adds a regular
             matrix of its own counts as any number of holders. So the bound is a claim against semi-honest clients. A
             client on the side of an active server: it can tell the server the factors of the check (below), which
             then makes a holder believe what it likes. What answers over different clients tell: if somebody else held
             a row last time and nobody does without client 3, it was client 3. Where participants are sampled, enough
             rounds tell a client in this way who holds a row, its own or another by position. Sums of rows tell the
             same. Denial of service: a client that contributes here and then stays away costs the round's sum.
Reference:   none; FedR and FedE add up rows whoever holds them.
Deviations:  none.

Why the rest shows min(m, k) alone. With m others it is U V^T, where U and V are uniform k x m matrices. For k = 1 it is
a sum of m uniform elements: zero for m = 0, and uniform for every other m. For k >= 2:
    m < k    The rank is m at most, so the rest is never regular: no row of too few passes. U and V both have rank m but
             for a probability of 2 / (p^(k-m) (p - 1)) at most. The rest is then a uniform matrix of rank m: its
             distribution does not change under multiplication by regular matrices from either side, and these take any
             matrix of rank m to any other.
    m >= k   U has rank k but for a probability of 1 / (p^(m-k) (p - 1)) at most. The map V -> U V^T is then onto, so
             that V makes the rest exactly uniform among all k x k matrices, whatever m is. A uniform one is singular
             with probability 1 / (p - 1) at most. So a row of enough holders is taken for one of too few with
             probability 2 / (p - 1) < 2^-59 at most, and then stays local.
A client that does not hold the row, or several clients that subtract all they have added, are in the same position.

The check. A server that can change a total makes a lone holder believe in others. So there is one more entry: with
random factors f_i that only clients know, each client adds the sum of f_i times its i-th entry. A total t with check d
is accepted if d = sum of f_i t_i. Whatever else the server sends is accepted with probability 1/p at most: the factors
are uniform and unknown to it, and all it was sent is under masks.

Dropouts. A client that has contributed here and then drops out before its rows are added may leave a row with fewer
holders. The others therefore do not help to open such a sum (`Holders.may_open`), in this round or in a later one for
which the count stands (`protocols.holders.interface`). So the bound holds whatever dropouts do, at the price of a
round's sum. All clients that contribute here must be participants of the sum of rows: others are
not missed. One that has shared no keys for it is missed like one that dropped out later. In a sparse graph, where a
client hears of its neighbours only, their refusal is enough: too few are left to recover what belongs to the missing.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import (
    PURPOSE,
    CountTask,
    HolderClient,
    Holders,
    HolderServer,
    binding_of,
    require_positions,
    send_total,
)
from protocols.primitives.group import FieldArray, GroupVector, PrimeField
from protocols.primitives.prg import combine_keystreams
from protocols.session.client_session import ClientSession
from protocols.session.group_key import GroupKey
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.secret.aggregation import admit_total, mask_key, open_total
from protocols.sums.terms import SumTerms, VectorLayout
from protocols.sums.totals import SumTotal

_FIELD: Final = PrimeField()
_BLOCK: Final = 1 << 14
"""So many elements are worked on at a time: they and what is computed from them stay in the processor's cache."""


def count_terms(task: CountTask) -> SumTerms[VectorLayout]:
    """Of the secret sum of the clients' matrices, and of their check."""
    return SumTerms(task.round, PURPOSE, task.participants, VectorLayout(_FIELD, task.entries + 1), task.binding)


def own_entries(rows: int, task: CountTask) -> FieldArray:
    """What a client adds for each of its rows [entries per row, rows]: a matrix of rank one, row by row."""
    size = task.least - 1
    if size == 1:
        return _FIELD.uniform((1, rows))
    left, right = _FIELD.uniform((2, size, rows))
    entries = [_FIELD.multiply(one, right) for one in left]
    return np.concatenate(entries)


def held_vector(held: npt.NDArray[np.int64], own: FieldArray, task: CountTask, key: GroupKey) -> FieldArray:
    """The entries of the rows at `held`, zeros elsewhere, and the check."""
    require_positions(held, task)
    vector: FieldArray = np.zeros(task.entries + 1, dtype=_FIELD.dtype)
    vector[:-1].reshape(task.entries_per_row, task.union_size)[:, held] = own
    vector[-1] = _checksum(vector[:-1], task, key)
    return vector


def rest_of_rows(
    total: GroupVector, held: npt.NDArray[np.int64], own: FieldArray, task: CountTask, key: GroupKey
) -> FieldArray:
    """[entries per row, held]: from an opened total, what the others have added to the rows at `held`.

    `PeerMisbehaved` unless the total is that of what the contributors have sent.
    """
    words = total.astype(np.uint64, copy=False)
    if _checksum(words[:-1], task, key) != words[-1]:
        raise PeerMisbehaved("the total of the holders is not that of what the clients have sent")
    return _FIELD.subtract(words[:-1].reshape(task.entries_per_row, task.union_size)[:, held], own)


def enough_holders(rest: FieldArray, task: CountTask) -> npt.NDArray[np.bool_]:
    """[held]: for which rows enough others have added something."""
    size, rows = task.least - 1, rest.shape[1]
    matrices = rest.reshape(size, size, rows)
    step = max(1, _BLOCK // task.entries_per_row)
    found = [regular(matrices[..., start : start + step]) for start in range(0, rows, step)]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.bool_)


def regular(matrices: FieldArray) -> npt.NDArray[np.bool_]:
    """[n]: which of the matrices [k, k, n] have an inverse. Elimination of all at once, without divisions."""
    left = matrices.copy()
    found: npt.NDArray[np.bool_] = np.ones(left.shape[-1], dtype=np.bool_)
    while len(left) > 1:
        if len(unled := np.flatnonzero(left[0, 0] == 0)):  # another row is to lead
            candidates = left[:, 0, unled] != 0
            found[unled] &= candidates.any(axis=0)
            pivot = candidates.argmax(axis=0)
            left[0, :, unled], left[pivot, :, unled] = left[pivot, :, unled], left[0, :, unled]
        lead, first, column = left[0, 0], left[None, 0, 1:], left[1:, :1]
        left = _FIELD.subtract(_FIELD.multiply(left[1:, 1:], lead), _FIELD.multiply(column, first))
    found &= left[0, 0] != 0
    return found


def _checksum(entries: FieldArray, task: CountTask, key: GroupKey) -> np.uint64:
    factors: FieldArray = np.zeros(task.entries, dtype=_FIELD.dtype)
    combine_keystreams(factors, _FIELD, [key.derive("holder check", task.round, binding=task.binding)])
    blocks = [slice(start, start + _BLOCK) for start in range(0, task.entries, _BLOCK)]
    sums = [_FIELD.sum(_FIELD.multiply(factors[block], entries[block])) for block in blocks]
    return np.uint64(_FIELD.sum(np.array(sums, dtype=_FIELD.dtype)))


class SecretHolderClient(HolderClient):
    def __init__(self, vectors: VectorClient, key: GroupKey) -> None:
        super().__init__()
        self._vectors, self._key = vectors, key

    def prepare(self, session: ClientSession, task: CountTask) -> None:
        terms = count_terms(task)
        admit_total(session.conversation, terms)
        self._vectors.prepare(session, terms)

    def count(self, session: ClientSession, task: CountTask, held: npt.NDArray[np.int64]) -> Holders:
        terms, me = count_terms(task), session.party
        with self.spent.measure():
            own = own_entries(len(held), task)
            vector = held_vector(held, own, task, self._key)
            mask = mask_key(self._key, terms, me)
        self.spent.add(self._vectors.contribute(session, terms, vector, [mask]))
        with session.phase(task.round, PURPOSE):
            total = session.receive(SumTotal, task.round, PURPOSE)
        if me not in total.contributors:
            raise PeerMisbehaved("a count without this client, which has contributed to it")
        with self.spent.measure():
            enough = enough_holders(self._rest(open_total(self._key, terms, total), held, own, task), task)
            binding = binding_of(total)
        return Holders(enough, frozenset(PartyId(party) for party in total.contributors), binding)

    def _rest(self, total: GroupVector, held: npt.NDArray[np.int64], own: FieldArray, task: CountTask) -> FieldArray:
        return rest_of_rows(total, held, own, task, self._key)


class SecretHolderServer(HolderServer):
    def __init__(self, vectors: VectorServer) -> None:
        self._vectors = vectors

    def prepare(self, session: ServerSession, task: CountTask) -> None:
        self._vectors.prepare(session, count_terms(task))

    def collect(self, session: ServerSession, task: CountTask) -> frozenset[PartyId]:
        total = self._vectors.collect(session, count_terms(task))
        send_total(session, task, total.contributors, total.vector)
        return total.contributors
