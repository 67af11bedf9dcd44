"""The server's view of secret sums (`protocols.sums.secret.aggregation`), written from who took part in them.

The total that the server opens lies under one more mask for each survivor, whose keys clients derive from the group key
for this client, round and purpose: to the server random keys (HKDF-SHA256 as a random oracle), each used once for an
AES-256-CTR keystream. So the total is uniform, whatever the vectors are, and independent of all other totals. The
simulator draws a uniform total; the rest is the view of a masked sum with that total.
"""

from protocols.ideal.masked_sum import Silences, SimulatedSums, uniform_vector
from protocols.sums.terms import Layout, SumTerms
from protocols.sums.totals import SumTotal


def simulate_secret_sum(sums: SimulatedSums, terms: SumTerms[Layout], silent: Silences | None = None) -> SumTotal:
    """The sum, and the server's message that brings it back to the clients that are in it and still there."""
    collected = sums.masked_sum(terms, uniform_vector(terms.layout.group, terms.layout.entries), silent)
    vector = terms.layout.group.to_wire(collected.vector)
    total = SumTotal.of(terms.round, terms.purpose, collected.contributors, vector)
    for party in sorted(collected.contributors & sums.present):
        sums.sent(party, total, terms.round, terms.purpose)
    return total
