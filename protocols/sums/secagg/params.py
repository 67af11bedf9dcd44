"""Parameters of a masked sum (neighbours, threshold), derived from what the operator declares.

Parties:     n clients of one sum, 1 server. Every client reckons the parameters from its own copy of the declaration.
Adversary:   the server (semi-honest or active) with at most c = floor(corrupt n) clients; at most d = floor(dropout n)
             clients drop out at any point of the sum, before or after their input.
Reveals:     nothing: parameters are functions of public figures.
Assumes:     who is corrupt and who drops out does not depend on the ring order of a sparse graph (see `graph`).
             Against an active server: a client answers one unmask request per sum, and those who answer have first
             agreed on one set of survivors. Without that agreement 2t > n + c keeps both secrets of one client from
             opening, and no more: the server may tell everyone a different set of survivors and open only what few of
             the sets have in common, in the end one client's input.
Not covered: declarations that are not met. With more corrupt clients nothing is promised; with more dropouts an
             honest server abandons the sum (`least_present`).
Reference:   Bonawitz et al., CCS 2017, section 6 (complete graph); Bell et al., CCS 2020, section 3 (sparse graph).
Deviations:  tails are reckoned exactly instead of bounded in closed form; a client holds a share of its own secrets;
             a sparse graph against a semi-honest server only.

Each client's mask key and self-mask seed are shared with threshold t among its closed neighbourhood: its k neighbours
and itself. A client that answers gives its share of its own seed, never that of its own mask key. A dropout
gives neither, so that either of its secrets must come from its k neighbours.

The complete graph, k = n - 1:
    privacy      t >= c + 1: the corrupt shares alone open nothing.
    two honest   n - d >= c + 2: a sum over one honest client is that client's input.
    correctness  t <= n - d: enough shares are left, of survivors and of dropouts alike.
    active       2t > n + c: the server tells some honest clients that u survived (a shares of u's seed) and the
                 others that it did not (b shares of its mask key). a + b <= n - c, and both secrets open if
                 a + c >= t and b + c >= t, which can be had if and only if 2t <= n + c.
The largest t is taken: what the declaration leaves over goes to privacy. It is t = n - d.

The sparse graph, a circulant graph on a random ring order, k even and k < n - 1, with X ~ Hyp(m) the number of marked
clients among k drawn without replacement from n - 1 of which m are marked:
    (i)   privacy       n P[X >= t] <= 2^-security, X ~ Hyp(c): no client has t corrupt neighbours.
    (ii)  connectivity  n (r)_h / (n)_h <= 2^-security with h = k/2, r = c + d and (x)_h = x (x-1) ... (x-h+1). The
                        masks of honest survivors hide all but their sum if these are connected. Without h removed
                        clients in a row, each survivor is a neighbour of the next on the ring; a row begins at one
                        of n places. (To cut the ring takes two such rows, so the bound is generous.)
    (iii) correctness   n max(P[X >= k + 2 - M], P[Y >= k + 1 - t]) <= 2^-correctness, X ~ Hyp(d), Y ~ Hyp(d - 1) and
                        M = `min_survivors`. A survivor answers if itself and its k - X neighbours left are M; then its
                        secret opens too, because M >= t. A dropout's secrets need k - Y >= t. There is none if
                        d = 0, and then Y's term is missing.
    two honest          n - d >= c + 2, as above.
The smallest k for which some t >= 2 satisfies all of them is taken, and the largest t that satisfies (iii) for this k.
(i) and (ii) hold with probability 1 - 2^-security each and sum by sum.

No such k is offered against an active server. The ring order comes from a hash of public values, among them the
session, which the server has a hand in: it could try values until corrupt clients surround a victim.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import ProtocolError

Server = Literal["semi-honest", "active"]

MAX_BITS: Final = 256
LEAST_THRESHOLD: Final = 2
"""With a threshold of one, every share would be the secret."""


class ParametersRefused(ProtocolError):
    """A declaration under which no sum is both private and correct. The text says what to change."""


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """What the operator declares. Every client has its own copy in its configuration."""

    corrupt: float
    """At most floor(corrupt n) clients are on the server's side."""
    dropout: float
    """At most floor(dropout n) clients drop out in one sum."""
    server: Server = "semi-honest"
    security_bits: int = 40
    """Statistical: each way in which a sparse graph can fail to hide has probability at most 2^-this."""
    correctness_bits: int = 30
    """A sum that meets the declaration fails with probability at most 2^-this."""
    server_apart: bool = False
    """Whether the server is declared to work together with no client (`--no-collusion`). No sum is made any weaker by
    it; some score backends need it said."""

    def __post_init__(self) -> None:
        for name, share in (("corrupt", self.corrupt), ("dropout", self.dropout)):
            if not 0 <= share < 1:  # refuses NaN too
                raise ParametersRefused(f"{name} = {share} is no fraction of the clients: give 0 <= {name} < 1")
        for name, bits in (("security_bits", self.security_bits), ("correctness_bits", self.correctness_bits)):
            if not 1 <= bits <= MAX_BITS:
                raise ParametersRefused(f"{name} = {bits} lies outside 1..{MAX_BITS}")
        if self.server not in get_args(Server):
            raise ParametersRefused(f"server = '{self.server}' is neither of {', '.join(get_args(Server))}")

    def corrupt_of(self, participants: int) -> int:
        return _floor(self.corrupt, participants)

    def among(self, participants: int, clients: int) -> "ThreatModel":
        """The declaration for a sum of `participants` drawn from `clients`: `corrupt` is a share of all of them.

        Against an active server, and in small groups, all corrupt clients may be among those drawn. Against a
        semi-honest one the draw is random, and so many corrupt ones are in it only with probability 2^-security.
        """
        corrupt = min(self.corrupt_of(clients), participants)
        if self.server == "semi-honest" and participants < clients:
            # Among `participants` drawn from all clients, who are the others of one more.
            rare = _out_of_reach(clients + 1, self.corrupt_of(clients), participants, self.security_bits)
            corrupt = min(corrupt, rare - 1)
        if corrupt >= participants:
            raise ParametersRefused(
                f"a sum of {participants} of {clients} clients may have corrupt participants only: declare less "
                "corruption or draw more clients"
            )
        return dataclasses.replace(self, corrupt=corrupt / participants)

    def dropouts_of(self, participants: int) -> int:
        return _floor(self.dropout, participants)


@dataclass(frozen=True, slots=True)
class SumParameters:
    """The parameters of one sum, equal for all its participants."""

    participants: int
    degree: int
    """k: how many neighbours each client has."""
    threshold: int
    """t: how many shares open a secret."""
    min_survivors: int
    """How many members of a client's closed neighbourhood must survive before it answers an unmask request."""
    least_present: int = 0
    """How many participants must be left in all: the server abandons a sum that loses more than declared."""

    @property
    def complete(self) -> bool:
        return self.degree == self.participants - 1


def complete_parameters(participants: int, model: ThreatModel, min_survivors: int = 2) -> SumParameters:
    """Everyone is everyone's neighbour, and the conditions hold with certainty. t = `min_survivors` = n - d."""
    if participants < 2:
        raise ParametersRefused(f"a sum of {participants} clients hides nothing: at least 2 are needed")
    if not 2 <= min_survivors <= participants:
        raise ParametersRefused(f"min_survivors = {min_survivors} lies outside 2..{participants}")
    corrupt, dropouts = model.corrupt_of(participants), model.dropouts_of(participants)
    declared = f"{participants} clients of which {corrupt} may be corrupt and {dropouts} may drop out"
    threshold = participants - dropouts
    if model.server == "active" and 2 * threshold <= participants + corrupt:
        bearable = max(0, participants - corrupt - 1) // 2
        raise ParametersRefused(
            f"{declared} cannot stand an active server: 2t > {participants + corrupt} and t <= {threshold} contradict; "
            f"declare at most {bearable} dropouts, or fewer corrupt"
        )
    # Two honest survivors imply t >= c + 1 and t >= 2.
    if threshold < corrupt + 2:
        raise ParametersRefused(
            f"{declared} may leave {max(0, threshold - corrupt)} honest survivors, and a sum over fewer than 2 hides "
            f"nothing: declare less corruption or dropout, or sum over more clients"
        )
    if threshold < min_survivors:
        raise ParametersRefused(
            f"{declared} may leave {threshold} survivors, fewer than min_survivors = {min_survivors}: "
            f"declare less dropout or lower min_survivors"
        )
    # No client answers for fewer than t, c + 2 or `min_survivors` survivors; the checks above leave t as the largest.
    return SumParameters(participants, participants - 1, threshold, threshold, least_present=threshold)


@lru_cache(maxsize=256)
def sparse_parameters(participants: int, model: ThreatModel, min_survivors: int = 2) -> SumParameters:
    """The smallest degree that the conditions above justify; the complete graph if they justify no smaller one."""
    if model.server == "active":
        raise ParametersRefused(
            "a sparse graph cannot stand an active server, which can try sessions until the ring order suits it: "
            "use the complete graph"
        )
    complete = complete_parameters(participants, model, min_survivors)
    removed = model.corrupt_of(participants) + model.dropouts_of(participants)
    first = 2 * _connecting_half(participants, removed, model.security_bits)
    estimate = _Estimate(participants)
    for degree in range(first, participants - 1, 2):
        # Floating point only skips what is out of reach; whole numbers decide.
        if _threshold(participants, degree, model, min_survivors, estimate) is None:
            continue
        threshold = _threshold(participants, degree, model, min_survivors, _out_of_reach)
        if threshold is not None:
            least = max(threshold, min_survivors)
            return SumParameters(participants, degree, threshold, least, participants - model.dropouts_of(participants))
    return complete


def _floor(share: float, participants: int) -> int:
    """floor(share n) for the number that was meant: a float 0.29 lies below 29/100, and 0.29 of 100 clients are 29."""
    return math.floor(Fraction(share).limit_denominator(10**9) * participants)


def _connecting_half(participants: int, removed: int, bits: int) -> int:
    """Condition (ii): the smallest h >= 1 with n (r)_h / (n)_h <= 2^-bits. It holds for every larger h too."""
    half, left, right = 0, participants << bits, 1
    while half < 1 or left > right:
        left *= removed - half
        right *= participants - half
        half += 1
    return half


def _threshold(
    participants: int,
    degree: int,
    model: ThreatModel,
    min_survivors: int,
    out_of_reach: Callable[[int, int, int, int], int],
) -> int | None:
    """The largest t that satisfies (iii), if it satisfies (i) as well."""
    corrupt, dropouts = model.corrupt_of(participants), model.dropouts_of(participants)
    most = degree + 2 - out_of_reach(participants, dropouts, degree, model.correctness_bits)
    if most < min_survivors:
        return None
    threshold = most
    if dropouts:
        dropped_neighbours = out_of_reach(participants, dropouts - 1, degree, model.correctness_bits)
        threshold = min(most, degree + 1 - dropped_neighbours)
    private = out_of_reach(participants, corrupt, degree, model.security_bits)
    return threshold if threshold >= max(private, LEAST_THRESHOLD) else None


def _out_of_reach(participants: int, marked: int, drawn: int, bits: int) -> int:
    """The smallest x with n P[X >= x] <= 2^-bits: how many marked neighbours no client has. Exact.

    X counts the marked among `drawn` of the n - 1 others, so P[X = j] = C(m, j) C(n-1-m, k-j) / C(n-1, k).
    """
    unmarked = participants - 1 - marked
    least, most = max(0, drawn - unmarked), min(marked, drawn)
    allowed = math.comb(participants - 1, drawn)
    ways = math.comb(marked, most) * math.comb(unmarked, drawn - most)  # of drawing `most` marked
    tail = 0
    for j in range(most, least - 1, -1):
        tail += ways
        if participants * tail << bits > allowed:
            return j + 1
        ways = ways * j * (unmarked - drawn + j) // ((marked - j + 1) * (drawn - j + 1))  # of drawing j - 1
    raise AssertionError("the whole of a distribution is not rare")


class _Estimate:
    """`_out_of_reach` in floating point: faster, and lowered by 1 % of probability so that it never exceeds it."""

    def __init__(self, participants: int) -> None:
        logs = np.log(np.arange(1, participants, dtype=np.float64))
        self._log_factorials: npt.NDArray[np.float64] = np.concatenate([np.zeros(1), np.cumsum(logs)])

    def __call__(self, participants: int, marked: int, drawn: int, bits: int) -> int:
        unmarked = participants - 1 - marked
        least, most = max(0, drawn - unmarked), min(marked, drawn)
        j = np.arange(most, least - 1, -1)
        log_pmf = (
            self._log_choose(marked, j)
            + self._log_choose(unmarked, drawn - j)
            - self._log_choose(participants - 1, np.array(drawn))
        )
        rare = participants * np.cumsum(np.exp(log_pmf)) <= math.ldexp(1.01, -bits)
        return most + 1 - int(np.count_nonzero(rare))

    def _log_choose(self, n: int, k: npt.NDArray[np.int_]) -> npt.NDArray[np.float64]:
        logs = self._log_factorials
        return np.asarray(logs[n] - logs[k] - logs[n - k])
