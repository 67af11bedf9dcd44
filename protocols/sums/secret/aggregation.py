"""Sums that the server adds up and cannot read: FedCQA's secret aggregation, made safe.

A client adds one more mask to its vector before it takes part in a masked sum (`protocols.sums.secagg`). The key of
that mask comes from the group key, which only clients have, and is derived anew for every client, round and purpose.
The sum that the server opens is then the sum of the vectors plus the sum of these masks, which is uniform. The server
sends it to the clients; they know the masks of all contributors, remove them, and read the sum.

Parties:     n >= 2 clients that share a group key (`protocols.session.group_key`), 1 server.
Adversary:   the server, semi-honest, or active with signed channels; or the server with some of the clients.
Reveals:     to the server nothing but who has contributed. To every client the sum.
Assumes:     what `protocols.sums.secagg` and `protocols.session.group_key` assume; AES-256 as a pseudorandom generator.
Not covered: the server together with a client: that client's group key opens the sums, all of this session's. It opens
             no client's vector: those stay under the masks of `protocols.sums.secagg`, with the threshold of that
             protocol. Integrity of sums of more than 4096 entries against an active server. Tables of rows are mostly
             too long for the check (below), and clients answer none of their sums. A false one whose counts are
             impossible is noticed, which is so for noise, as false contributors or another round's sum give, the more
             surely the more counts there are and the smaller they may be; without counts noise passes. A known amount
             added to such a sum is not noticed here, and different clients may be sent different ones. Whoever refuses
             what it reads, because it is impossible, tells the server so. A client that tells an active server the
             factors of the check: the server then makes the others read what it likes.
Reference:   FedCQA, algorithm 1.
Deviations:  - The paper masks every round with the same perturbation, drawn once: the differences of a client's uploads
               are then in clear, and so is every upload to a client that colludes with the server. Here no mask is
               used twice, and uploads are pairwise masked besides.
             - Each contributor has a mask of its own. One mask added by all would stand on the sum as many times as
               there are contributors; an even multiple of it modulo 2^32 leaves the lowest bits of the sum in clear.
             - Sums of few entries have a check.

The check. What clients answer may depend on a sum: after an evaluation they say whether it was the best so far. A
server that adds known amounts to the total would read the sum from such answers, bit by bit. So a client appends 40
entries to a vector x of at most 4096 entries: entry s is the sum over i of f_{s,i} x_i, with factors that only clients
know (`protocols.sums.secret.check`). They lie under the same masks. A client reads a total t only if each check of it
is the same sum of its entries.

Why a total that was changed does not pass. Let the ring have 2^b elements (b from 16 to 64), and let the server add d
to the entries and e to the checks, not both zero. The total passes if e_s = sum of f_{s,i} d_i for all s. If d = 0,
this says e = 0, so it does not pass. Else let 2^v be the largest power of two that divides all d_i; v < b. For one i,
d_i is an odd multiple of 2^v. Whatever the other factors are, f_{s,i} d_i is uniform among the 2^(b-v) multiples of
2^v, so that check s passes with probability 2^-(b-v) <= 1/2 at most. The checks have independent factors: all 40 pass
with probability 2^-40 at most. The factors are uniform to the server and independent of all it has seen, since
everything that depends on them lies under masks (AES-256 as a pseudorandom generator). That a client has refused tells
it only that the change was one. So of q changed totals, chosen one after the other, one passes with probability q 2^-40
at most. A total said to be of other contributors, or of another sum, is changed by masks that are independent of the
factors.
"""

from collections.abc import Sequence
from typing import Final

from protocols.foundation.digests import encode_parties, length_prefixed
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.primitives.group import GroupVector
from protocols.primitives.prg import combine_keystreams
from protocols.session import group_key
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.group_key import GroupKey
from protocols.session.server_session import ServerSession
from protocols.sums.interface import SumLayout, Total
from protocols.sums.secagg.sums import SecAggSumClient, VectorSumServer
from protocols.sums.secagg.vectors import VectorClient, VectorTotal
from protocols.sums.secret.check import checked_numbers, checks_of, with_checks
from protocols.sums.terms import Layout, SumTerms, VectorLayout
from protocols.sums.totals import SumTotal, TotalReader, sum_total_bytes

_MASKS_AT_A_TIME: Final = 64


def secret_terms(terms: SumTerms[SumLayout]) -> SumTerms[Layout]:
    """The terms of the vectors that are sent for a secret sum of numbers: these and, of few entries, their checks."""
    layout = VectorLayout(terms.layout.group, terms.layout.entries + checks_of(terms.layout))
    return SumTerms(
        terms.round, terms.purpose, terms.participants, layout, terms.model, terms.state, counted=terms.counted
    )


def mask_key(key: GroupKey, terms: SumTerms[Layout], party: PartyId) -> bytes:
    """The key of the mask that `party` adds to its vector, and that every client can remove from the sum.

    Not bound to `terms.model`: a dropout that is back reads the sum later, when it no longer knows what the
    participants had been sent before. Round and purpose alone keep a key from being used twice, as no sum is begun
    twice.
    """
    length = terms.layout.entries.to_bytes(8, "little")
    binding = length_prefixed(terms.layout.group.name.encode(), length, encode_parties(terms.participants))
    return key.derive(f"group mask/{terms.purpose}", terms.round, party, binding)


def open_total(key: GroupKey, terms: SumTerms[Layout], total: SumTotal) -> GroupVector:
    """The sum itself. With another key, other terms or other contributors than the true ones it is noise."""
    if (RoundId(total.of_round), total.purpose) != terms.key:
        raise PeerMisbehaved(f"the sum of {total.purpose} of round {total.of_round} where another one was due")
    contributors = [PartyId(party) for party in total.contributors]
    if not contributors or not set(contributors) <= set(terms.participants):
        raise PeerMisbehaved("a sum with contributors that take no part in it")
    group = terms.layout.group
    try:
        received = group.from_wire(total.vector, terms.layout.entries)
    except ValueError:
        raise PeerMisbehaved("a sum of another length or group") from None
    opened = received.copy()
    for start in range(0, len(contributors), _MASKS_AT_A_TIME):
        keys = [mask_key(key, terms, party) for party in contributors[start : start + _MASKS_AT_A_TIME]]
        combine_keystreams(opened, group, subtracted=keys)
    return opened


def admit_total(conversation: Conversation, terms: SumTerms[Layout]) -> None:
    """A client will be sent the total of this sum."""
    layout = terms.layout
    size = sum_total_bytes(terms.purpose, *layout.group.on_wire(layout.entries), terms.participants)
    conversation.admit(size)


class SecretSumClient(SecAggSumClient, TotalReader):
    """`vectors` holds the session's channels. `key`: the session's group key, if it is agreed on already."""

    def __init__(self, vectors: VectorClient, key: GroupKey | None = None) -> None:
        super().__init__(vectors)
        self._key = key

    def setup(self, session: ClientSession) -> None:
        super().setup(session)
        self._key = group_key.join(session, self._vectors.session)

    def prepare(self, session: ClientSession, terms: SumTerms[SumLayout]) -> None:
        admit_total(session.conversation, secret_terms(terms))
        super().prepare(session, terms)

    def open(self, terms: SumTerms[SumLayout], total: SumTotal) -> Total:
        """What the contributors' numbers add up to."""
        key, of_vectors = self._group_key(), secret_terms(terms)
        numbers = checked_numbers(key, of_vectors, open_total(key, of_vectors, total), terms.layout.entries)
        try:
            return terms.layout.decode(numbers)
        except SumAbandoned:
            raise PeerMisbehaved("the server sent a sum that is none of these contributors") from None

    def _of_vectors(self, terms: SumTerms[SumLayout]) -> SumTerms[Layout]:
        return secret_terms(terms)

    def _vector(self, terms: SumTerms[SumLayout], numbers: GroupVector) -> GroupVector:
        return with_checks(self._group_key(), secret_terms(terms), numbers)

    def _more_masks(self, terms: SumTerms[Layout], party: PartyId) -> Sequence[bytes]:
        return [mask_key(self._group_key(), terms, party)]

    def _group_key(self) -> GroupKey:
        if self._key is None:
            raise RuntimeError("setup() comes first")
        return self._key


class SecretSumServer(VectorSumServer[SumTotal]):
    """What it collects is for the clients."""

    def setup(self, session: ServerSession) -> None:
        """Dropouts of one step are not asked in the next."""
        super().setup(session)
        group_key.serve(session.among(self._vectors.channels))

    def _of_vectors(self, terms: SumTerms[SumLayout]) -> SumTerms[Layout]:
        return secret_terms(terms)

    def _read(self, terms: SumTerms[SumLayout], total: VectorTotal) -> SumTotal:
        vector = terms.layout.group.to_wire(total.vector)
        return SumTotal.of(terms.round, terms.purpose, total.contributors, vector)
