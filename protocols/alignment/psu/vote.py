"""Secret vote on the places of a union, so that nobody shows by a complaint what it holds.

A server that makes up places can put the tags of two names on one position, or claim a union smaller than some client's
set. Whoever holds both names notices. Were that client to say so, the server would learn that it holds them. So a
client that has an objection keeps it to itself, and all vote in the same two messages: a secret sum
(`protocols.sums.secret.aggregation`) of two elements of the field of p = 2^61 - 1 elements. The first is zero, or, of a
client that objects, a uniform element other than zero. The second is the first times a factor f that only clients know.
Every client opens the total (t, d). It goes on if d = f t and t = 0, and otherwise stops with the same words as all
others (`REFUSED`), whether or not it had an objection itself.

Parties:     the clients of a union that share a group key (`protocols.session.group_key`), 1 server.
Adversary:   the server, semi-honest, or active with signed channels. No client on its side.
Reveals:     to the server who has voted, and by what clients do next whether they go on: of those who voted, as the
             server chose them within the thresholds of the sum, whether anybody objected. Not who, how many, or why.
             To a client the same, and t: uniform but for zero if one client objected, and nearly so if several did.
Assumes:     what `protocols.sums.secret.aggregation` assumes.
Not covered: the one bit itself. A server that puts two tags on one position learns whether some client holds both, at
             the price of the job: a refused union ends it. A client on the server's side: it knows f and the masks of
             the vote, so the two can make the others go on, and they read t. Clients that object without a reason:
             anybody can end an alignment. Places that put names of different clients on one position: no client can
             see that, so none objects.
Reference:   none. Selective failure in general: Mohassel and Franklin, PKC 2006.
Deviations:  none.

False totals. If the server adds (a, b) to the masked total, it is accepted for b = f a only: probability 1/p, as f is
uniform to the server and everything it was sent is under masks. Other contributors than the true ones give masks that
do not come off, that is, a uniform (t, d), which is accepted with probability 1/p and is then hardly ever zero. In both
cases all that receive it stop alike. To make an objection vanish the server would have to know t besides. Weights of
several clients that object cancel with probability 1/(p - 1) at most; they themselves stop even then.

Clients that are missing. The vote is that of the clients that are left, with the threshold of every masked sum. What is
opened of a client that dropped out, or that the server says did, is the masks it shares with others, never its self
mask and never its group mask: its vote stays uniform. It has no part in what follows, and what it says of it (that it
was left out, or, if it is sent a total without its vote, the words of a refusal) does not depend on its vote. Each
client answers for one set of survivors in a sum, so a server cannot have votes of two sets opened and compare them.

Different places. The vote is bound to a digest of the places: clients that were sent different ones do not share keys
and stop before anything is sent, which depends on what they were sent and not on what they hold.
"""

from typing import Final

import numpy as np

from protocols.foundation.errors import PeerMisbehaved, ProtocolError
from protocols.foundation.identifiers import SETUP, PartyId
from protocols.primitives.group import FieldArray, PrimeField
from protocols.primitives.prg import combine_keystreams
from protocols.session.client_session import ClientSession
from protocols.session.group_key import GroupKey
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys
from protocols.sums.secagg.vectors import VectorServer
from protocols.sums.secret.aggregation import mask_key, open_total
from protocols.sums.terms import Layout, SumTerms, VectorLayout
from protocols.sums.totals import SumTotal

PURPOSE: Final = "union vote"
ENTRIES: Final = 2
"""The vote and its check."""
REFUSED: Final = "the alignment was refused by a vote of the clients; a client that objected keeps its reason to itself"
_FIELD: Final = PrimeField()


class AlignmentRefused(ProtocolError):
    """The words are the same for all clients. `objection` is this client's own, for its own log; empty if it had none.

    Misuse: `objection` depends on the names that this client holds. It must not be sent to anybody.
    """

    def __init__(self, objection: str = "") -> None:
        super().__init__(REFUSED)
        self.objection = objection


def vote_terms(clients: tuple[PartyId, ...], digest: bytes) -> SumTerms[VectorLayout]:
    """`digest`: of the places that were sent to all (`Attempt.digest`)."""
    return SumTerms(SETUP, PURPOSE, clients, VectorLayout(_FIELD, ENTRIES), digest)


def vote(session: ClientSession, keys: ClientKeys, clients: tuple[PartyId, ...], digest: bytes, objection: str) -> None:
    """The client's side: returns if all who voted accept the places with this digest, else `AlignmentRefused`.

    `objection`: why this client does not accept them; empty if it does. It is not sent.
    """
    terms, key = vote_terms(clients, digest), keys.key
    keys.vectors.prepare(session, terms)
    own = ballot(bool(objection), terms, key)
    keys.vectors.contribute(session, terms, own, [mask_key(key, terms, session.party)])
    with session.phase(SETUP, PURPOSE):
        total = session.receive(SumTotal, SETUP, PURPOSE)
    accepted = session.party in total.contributors and accepts(total, terms, key)
    if objection or not accepted:
        raise AlignmentRefused(objection)


def count_votes(session: ServerSession, vectors: VectorServer, clients: tuple[PartyId, ...], digest: bytes) -> None:
    """The server's side: add up what it cannot read, and send it to those who are in it and still there."""
    terms = vote_terms(clients, digest)
    vectors.prepare(session, terms)
    total = vectors.collect(session, terms)
    message = SumTotal.of(SETUP, PURPOSE, total.contributors, total.vector)
    with session.phase(SETUP, PURPOSE):
        session.broadcast(total.contributors, message, SETUP, PURPOSE)


def ballot(objects: bool, terms: SumTerms[Layout], key: GroupKey) -> FieldArray:
    """A vote and its check [2], before any mask."""
    weight = _FIELD.uniform((1,))
    while not weight[0]:
        weight = _FIELD.uniform((1,))
    # The same work for both votes.
    chosen = weight * np.uint64(objects)
    return np.concatenate((chosen, _FIELD.multiply(chosen, _factor(terms, key))))


def accepts(total: SumTotal, terms: SumTerms[Layout], key: GroupKey) -> bool:
    """Whether the total is that of its contributors' votes, none of which is an objection."""
    try:
        opened = open_total(key, terms, total).astype(np.uint64, copy=False)
    except PeerMisbehaved:
        return False
    sound = bool(_FIELD.multiply(opened[:1], _factor(terms, key))[0] == opened[1])
    return sound and not opened[0]


def _factor(terms: SumTerms[Layout], key: GroupKey) -> FieldArray:
    """[1]: uniform to whoever lacks the group key."""
    factor: FieldArray = np.zeros(1, dtype=_FIELD.dtype)
    combine_keystreams(factor, _FIELD, [key.derive("union vote check", terms.round, binding=terms.model)])
    return factor
