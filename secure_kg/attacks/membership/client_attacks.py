"""A_CIP and A_CIA of DP-FLames (section 3): one client infers whether another one trains on a triple.

Attacker: a client. It has what every client has by design, whichever sum is used: the rows that it uploads, the means
          that come back, its own relation rows. It computes the mean of the other holders from them.
A_CIP     passive. as printed: E = (N mean - own) / (N - 1) with N clients, and member iff f(E) / f(own) >= τ. With a
          score that is minus a distance the ratio stands the wrong way round, and a bilinear score changes its sign,
          so that a ratio means nothing. mended: the number of holders of each row instead of N, and the score on
          the mean of the others alone, which is a difference of rows instead of a ratio of scores; a bilinear score
          beside those of other triples with the same head or tail (`plausibility.standing`).
A_CIA     active: the attacker uploads -t for the tail t of a target. Whoever trains on the triple pulls the row back
          within a round. as printed: member iff s1 / s2 >= τ, s1 the distance with the reversed row, s2 that with the
          means some rounds later. mended: s2 on the mean of the others, differences, and a group of targets at a
          time, since reversed rows disturb each other.

The number of holders of a row is told to nobody, and follows from the first round: there the means are of rows that
each holder has drawn uniformly in ±span, and the rest c mean - own is what c - 1 such rows add up to.
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.membership.measures import Scores
from secure_kg.attacks.membership.plausibility import Tables, gained, plausibility, standing
from secure_kg.data.graph import TripleArray
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.learner import Contributed

Holders = npt.NDArray[np.int64]
"""[entities]: how many clients contribute to each row, the attacker among them; 1: nobody else."""

_SLACK: Final = 1e-3
"""Of the span: fixed point rounds."""
_MOST_EXACT: Final = 8
"""Of how many numbers the density of the sum is computed exactly: beyond, its terms cancel, and it is normal anyway."""
_TRACE: Final = 1e-9


def holders_by_first_means(own: Rows, means: Rows, span: float, clients: int) -> Holders:
    """For first rows [n, width] and their means [n, width], zero where there is none: the likeliest number [n].

    The rest c mean - own is the sum of c - 1 rows, each uniform in ±span.
    """
    counts = np.arange(2, clients + 1)
    likelihood = np.full((len(counts), len(own)), -np.inf)
    for place, count in enumerate(counts):
        rest = (count * means.astype(np.float64) - own) / (span * (1 + _SLACK))
        density = count * _density_of_sum(rest, int(count) - 1)
        with np.errstate(divide="ignore"):  # of a rest that so few rows cannot add up to
            likelihood[place] = np.log(density).sum(axis=1)
    return np.where(means.any(axis=1), counts[likelihood.argmax(axis=0)], 1).astype(np.int64)


def _density_of_sum(values: npt.NDArray[np.float64], rows: int) -> npt.NDArray[np.float64]:
    """The density at `values` of a sum of so many numbers uniform in ±1 (Irwin and Hall); of many, the normal one."""
    if rows > _MOST_EXACT:
        return np.exp(-1.5 * np.square(values) / rows) / math.sqrt(2 * math.pi * rows / 3)
    total = np.zeros_like(values)
    for place in range(rows + 1):
        beyond = values + rows - 2 * place
        powers = np.where(beyond > 0, np.power(np.maximum(beyond, 0), rows - 1), 0.0)
        total += (-1) ** place * math.comb(rows, place) * powers
    possible = np.abs(values) <= rows
    # Far out terms cancel, and rounding leaves a negative trace of them.
    density: npt.NDArray[np.float64] = np.maximum(total, _TRACE) / (2**rows * math.factorial(rows - 1))
    return np.where(possible, density, 0.0)


def others_mean(own: Rows, means: Rows, holders: Holders | int) -> Rows:
    """The mean [n, width] of the other holders; the attacker's own row where there are none."""
    count = np.broadcast_to(np.asarray(holders, dtype=np.float64), (len(own),))[:, None]
    rest = (count * means - own) / np.maximum(count - 1, 1)
    return np.where(count > 1, rest, own).astype(np.float32)


def passive_as_printed(
    own: Tables, means: Rows, clients: int, targets: TripleArray, training: TrainingConfig
) -> Scores:
    """f(mean of the others) / f(own), with all N clients taken for holders."""
    rest = own.with_entities(others_mean(own.entities, means, clients))
    return _ratio(plausibility(rest, targets, training), plausibility(own, targets, training))


def passive(own: Tables, others: Rows, targets: TripleArray, training: TrainingConfig) -> Scores:
    """How plausible the mean of the others makes a triple, with the attacker's own relations; for products, beside
    triples with another end (FB15k-237, 10 rounds: an AUC of 0.74 instead of 0.68 for DistMult).

    Not how much more so than the attacker's own rows do: those follow the means, and take more from a trained
    federation's scores than they correct (FB15k-237, 20 rounds: an AUC of 0.94 instead of 0.97 on canaries).
    """
    return standing(own.with_entities(others), targets, training)


def active_as_printed(reversed_rows: Tables, later: Rows, targets: TripleArray, training: TrainingConfig) -> Scores:
    """s1 / s2: with the attacker's reversed upload, and with the means `later`."""
    first = plausibility(reversed_rows, targets, training)
    second = plausibility(reversed_rows.with_entities(later), targets, training)
    return _ratio(first, second)


def active(reversed_rows: Tables, others: Rows, targets: TripleArray, training: TrainingConfig) -> Scores:
    """How far the others have made a triple plausible that the attacker has denied."""
    return gained(reversed_rows, reversed_rows.with_entities(others), targets, training)


def reverse(rows: Contributed, tails: npt.NDArray[np.int64]) -> Contributed:
    """What A_CIA uploads: the rows of `tails` with the other sign."""
    sent = rows.copy()
    sent[tails] = -sent[tails]
    return sent


def _ratio(above: Scores, below: Scores) -> Scores:
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)
