"""The server's view of counting holders (`protocols.holders.secret`), written from who took part.

A count is a secret sum of random matrices and their check, so its view is that of a secret sum of as many field
elements (`secret_sum`). Which rows a client holds enters nothing but the vector, and that not the length of it.
"""

from protocols.holders.interface import CountTask
from protocols.holders.secret import count_terms
from protocols.ideal.masked_sum import Silences, SimulatedSums
from protocols.ideal.secret_sum import simulate_secret_sum


def simulate_count(sums: SimulatedSums, task: CountTask, silent: Silences | None = None) -> None:
    simulate_secret_sum(sums, count_terms(task), silent)
