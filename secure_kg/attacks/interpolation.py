"""Updates of a client that dropped out of one round, from the sums of the rounds before and after it.

Attacker: the server, which reads sums and knows who is in each of them.
Has:      sums of rows of consecutive rounds: two with a client, one without it, two with it again.
Does:     subtracts from each sum the means at which its round began, which leaves the sum of the clients' updates. Four
          of them, interpolated by a cubic polynomial to the round of the dropout, are what the sum of updates would
          have been with the client. The sum without it is subtracted. Counts tell which rows the client holds.
Gains:    the client's update of those rows, as far as updates change smoothly from round to round. They do where
          training is nearly deterministic: with many negatives, large batches and a small learning rate.
Paper:    none; `differencing` without the assumption that a client contributes the same twice.

Truth is not needed for the score. In a round without a dropout nothing should be left, and what is left there is the
error of the method. So an auditor, who has no rows of past rounds, can say how much of a result is more than error.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.result import AttackResult, explains_more
from secure_kg.attacks.single_holder import OpenedRows
from secure_kg.federation.plan.run_plan import AGREEING_ROUND

Values = npt.NDArray[np.float64]
"""[rows, width]."""

WEIGHTS: Final = (-1 / 6, 4 / 6, 0.0, 4 / 6, -1 / 6)
"""Of five consecutive rounds: the cubic polynomial through the outer four, at the middle one."""
_MIDDLE: Final = len(WEIGHTS) // 2


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What the middle round lacks of what the rounds around it predict."""

    client: int | None
    """Whose update it is; None: nobody's, since nobody dropped out."""
    positions: npt.NDArray[np.int64] = field(repr=False)
    """[n]: the client's rows; all rows that were summed, if nobody dropped out."""
    update: Values = field(repr=False)
    """[n, width]: the client's update; error alone, if nobody dropped out."""
    mean: Values = field(repr=False)
    """[n, width]: the mean update of all clients as predicted, which is the guess without this attack."""

    @property
    def deviation(self) -> Values:
        """By how much the client's update differs from the mean one."""
        return self.update - self.mean


def means(opened: OpenedRows) -> Values:
    """The rows [union, width] at which the round after a sum begins; NaN where nobody has contributed."""
    counts = np.where(opened.counts > 0, opened.counts, np.nan)
    return opened.sums / counts[:, None]


def left_over(sums: Sequence[OpenedRows], bases: Sequence[Values]) -> LeftOver | None:
    """`sums`: of five rounds. `bases`: the rows [union, width] at which each of these rounds began; NaN: not known.

    None unless the outer four are over the same clients, and the middle one over these or all but one of them.
    """
    middle, others = sums[_MIDDLE], [one for number, one in enumerate(sums) if number != _MIDDLE]
    everybody = others[0].contributors
    missing = everybody - middle.contributors
    if any(one.contributors != everybody for one in others) or middle.contributors - everybody or len(missing) > 1:
        return None
    counts = others[0].counts
    same = np.logical_and.reduce([one.counts == counts for one in others])
    known = np.logical_and.reduce([np.isfinite(base).all(axis=1) for base in bases])
    at = np.flatnonzero(same & known & (counts - middle.counts == len(missing)) & (middle.counts > 0))
    if not len(at):
        return None
    updates = [one.sums[at] - one.counts[at, None] * base[at] for one, base in zip(sums, bases, strict=True)]
    predicted = np.tensordot(WEIGHTS, np.stack(updates), axes=1)
    client = next(iter(missing)) if missing else None
    return LeftOver(client, at, predicted - updates[_MIDDLE], predicted / counts[at, None])


class Interpolation:
    """The attack on the sums of a run, which it is told in their order. It keeps six of them at a time."""

    def __init__(self) -> None:
        self._last: deque[tuple[int, OpenedRows]] = deque(maxlen=len(WEIGHTS) + 1)
        self._dropouts: set[tuple[int, int]] = set()
        """Round and client."""
        self._values = self._controls = self._control_values = 0
        self._deviations = self._errors = 0.0

    def take(self, round: int, opened: OpenedRows) -> None:
        """The next sum. A gap, or a session that repeats rounds, begins anew."""
        if self._last and round != self._last[-1][0] + 1:
            self._last.clear()
        if round == AGREEING_ROUND:  # its means are scaled, and nobody has trained
            return
        self._last.append((round, opened))
        if len(self._last) <= len(WEIGHTS):
            return
        sums = [one for _, one in self._last]
        if (found := left_over(sums[1:], [means(one) for one in sums[:-1]])) is None:
            return
        if found.client is None:
            # As many clients as there were: of one client fewer, the error would be that much smaller.
            self._controls += 1
            self._control_values += found.update.size
            self._errors += float(np.square(found.update).sum())
        else:
            self._dropouts.add((self._last[1 + _MIDDLE][0], found.client))
            self._values += found.update.size
            self._deviations += float(np.square(found.deviation).sum())

    def result(self) -> AttackResult | None:
        """Score `explained`: the squared correlation of the deviations found with the true ones, as estimated.

        A deviation is a client's update less the mean update. Its estimate is the share of the variance found that is
        not error. Chance: the mean explains nothing of it. None without a dropout between two rounds on either side, or
        without five rounds of the same clients to measure the error in.
        """
        if not self._values or not self._control_values:
            return None
        error, found = self._errors / self._control_values, self._deviations / self._values
        score = max(0.0, 1 - error / found) if found else 0.0
        clients = len({client for _, client in self._dropouts})
        return AttackResult(
            "interpolated-rows",
            "Updates of single clients from the sums before and after a dropout",
            "aggregate",
            "the sums of a run and who is in each of them",
            {"explained": score},
            {"explained": 0.0},
            explains_more(score, self._values),
            f"From the rounds before and after {len(self._dropouts)} dropouts the server gets updates of {clients} "
            f"clients. They explain {score:.2%} of the variance by which these clients' updates differ from the mean, "
            "by the error that the same computation has in rounds without a dropout.",
            {"dropouts": len(self._dropouts), "clients": clients, "values": self._values, "controls": self._controls},
        )
