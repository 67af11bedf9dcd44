"""The noise of a run that releases one table of counts, and whichever private plan a run has.

Unit:         one triple of one client, added or removed. Which names each client aligns is taken as given.
The table:    a row for every entity of the union, and `--dp-count-width` columns. The column of a relation is a public
              hash of its name. A triple adds 1 to one cell: the row of its tail, the column of its relation.
Sensitivity:  1, in one cell. Cells are clipped to ±2^16 at every client, which is 1-Lipschitz. Counts are whole numbers
              and a unit of the ring is a power of two of at most 1, so encoding does not round them.
One round:    there are no first rows to agree on, since every table begins empty. One sum, with shares of noise or all
              of it from every client, is all that is released.

Everything that clients do with the noised table, thresholds included, is post-processing.
"""

import hashlib
from typing import TYPE_CHECKING, Final

from protocols.foundation.errors import EncodingOverflow
from protocols.sums.noise_shares import NARROWEST
from secure_kg.federation.plan.private_plan import PrivatePlan
from secure_kg.foundation.errors import UserError

if TYPE_CHECKING:
    from secure_kg.federation.plan.settings import RunConfig
    from secure_kg.federation.plan.strategies import Strategy

COUNT_ROUNDS: Final = 1
COUNT_BOUND: Final = 2.0**16
"""Of one cell at one client. Cells beyond it are clipped, and counted as clipped values."""
_SHARED: Final = "entity"
_DOMAIN: Final = b"secure-kg/bucket of a relation/1\0"


class CountPlan(PrivatePlan):
    """What follows from the settings of a run that counts. Public."""

    __slots__ = ()

    @staticmethod
    def _widths(settings: "RunConfig") -> tuple[int, int]:
        width = 0 if settings.privacy is None else settings.privacy.dp_count_width
        return width, width

    @staticmethod
    def _bound(settings: "RunConfig") -> float:
        return COUNT_BOUND

    @property
    def first_round(self) -> int:
        return COUNT_ROUNDS

    @property
    def keeps_own(self) -> bool:
        """There is one table."""
        return False

    @property
    def coordinates(self) -> int:
        """One cell. As counts are never rounded, this is a unit of sensitivity more than there is."""
        return 1

    @property
    def sensitivity(self) -> float:
        return 1.0

    def _sensitivity(self, round_id: int) -> float:
        return 1.0

    def require_room(self) -> None:
        shares = self.shares()
        units = shares.share / self._unit(shares.deviation)
        if units < NARROWEST:
            hint = "--ring-bits 64" if self.ring_bits < 64 else "fewer clients"
            raise UserError(f"--dp counts: a share of noise would be {units:.2g} units of the ring wide; {hint}")

    @property
    def _what(self) -> str:
        return "Gaussian noise on one table of counts, of tails by relation"

    @property
    def _clip(self) -> float:
        return self.sensitivity


def plan_of(settings: "RunConfig", strategy: "Strategy") -> PrivatePlan:
    """The plan of a private run. `UserError` where the settings leave no room for noise."""
    counts = settings.privacy is not None and settings.privacy.counts
    return (CountPlan if counts else PrivatePlan).of(settings, strategy)


def require_room(settings: "RunConfig", strategy: "Strategy") -> None:
    """Refuse what a table of counts cannot do, and noise that does not fit."""
    if settings.privacy is not None and settings.privacy.counts:
        if strategy.shared != _SHARED:
            raise UserError(
                f"--strategy {strategy.name}: under --dp counts the table has a row for every entity: --strategy fede"
            )
        if settings.rounds != COUNT_ROUNDS:
            raise UserError(f"--rounds {settings.rounds}: --dp counts is one release, in one round")
    if settings.clients is None:
        return
    try:
        plan_of(settings, strategy).require_room()
    except EncodingOverflow as problem:
        raise UserError(f"--dp: {problem}") from None


def bucket(relation: str, width: int) -> int:
    """The column of a relation, the same at every client."""
    name = relation.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(_DOMAIN + name).digest(), "big") % width
