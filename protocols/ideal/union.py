"""The server's view of a private set union (`protocols.alignment.psu`), written from the size of the union; of names,
from them.

1. The masked sum of the tables is simulated from its total (`masked_sum`).
2. The total is drawn as a table written by one client that holds as many random tags as the union has names. In the
   real total stand the tags of the union, which are uniform to the server (keyed BLAKE2b as a pseudorandom function
   under a key derived from the group key), each under the sum of its holders' weights, which is exactly uniform
   however many they are (`protocols.alignment.psu.table`). If the table cannot be peeled there is another attempt, in
   the simulation as in reality and with the same probability.
3. The server's answer is computed by its own code from the total, with its own randomness.
4. The vote on that answer (`protocols.alignment.psu.vote`) is a secret sum of two entries (`secret_sum`). The honest
   server's places give nobody a reason to object, so the session goes on; what a refusal adds is that it ends.

Where the server is meant to have the names (`protocols.alignment.psu.names`) they are given to the simulator, which
does not know who holds them. It writes them as one client that holds all would, at positions in a random order: the
real positions are dealt out to tags at random, and names and tags are matched by a function that the server lacks.
Again a weight in the sum is uniform for one holder as for many.
"""

import secrets
from collections.abc import Collection
from itertools import count

import numpy as np

from protocols.alignment.interface import Positions, Union
from protocols.alignment.psu.attempts import Attempt
from protocols.alignment.psu.names import names_terms, written
from protocols.alignment.psu.table import write
from protocols.alignment.psu.tags import LIMBS
from protocols.alignment.psu.union import STEP, answer_of
from protocols.alignment.psu.vote import vote_terms
from protocols.foundation.identifiers import SETUP
from protocols.ideal.masked_sum import Silences, SimulatedSums
from protocols.ideal.secret_sum import simulate_secret_sum
from protocols.primitives.group import PrimeField


def simulate_union(
    sums: SimulatedSums, commitment: bytes, size: int, bound: int, silent: Silences | None = None
) -> Union:
    """After the group key. `size`: of the union of those who survive; `silent`: in the first attempt."""
    for number in count():
        attempt = Attempt.of(number, bound, sums.session, commitment)
        tags = PrimeField().uniform((size, LIMBS))
        terms, dropping = attempt.terms(sums.clients), silent if not number else None
        total = sums.masked_sum(terms, write(tags, attempt.layout), dropping)
        answer = answer_of(total.vector, attempt)
        for party in sorted(total.contributors & sums.present):
            sums.sent(party, answer, SETUP, STEP)
        if answer.size:
            break
    union = Union(answer.size, attempt.digest(answer))
    simulate_secret_sum(sums, vote_terms(sums.clients, union.digest))
    return union


def simulate_names(sums: SimulatedSums, union: Union, names: Collection[str]) -> dict[int, str]:
    """After the union, over the same clients; the names by position."""
    if len(set(names)) != union.size:
        raise ValueError(f"{len(set(names))} names for a union of {union.size}")
    ordered = sorted(set(names))
    secrets.SystemRandom().shuffle(ordered)
    own = np.arange(union.size, dtype=np.int64)
    total = written(Positions(union.size, own, union.digest), ordered)
    sums.masked_sum(names_terms(sums.clients, union.size, union.digest), total)
    return dict(enumerate(ordered))
