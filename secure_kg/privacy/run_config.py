"""Settings of differentially private training in a federation. All of them are public, and none may come from triples.

Free of torch: the server derives the room for noise from them too.
"""

import math
from dataclasses import dataclass, fields
from typing import Final, Literal

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.releases import Budget

MECHANISMS: Final = ("sgd", "adafest", "flames", "counts")
CHOOSING: Final = ("adafest", "flames")
"""Every client chooses rows and adds all noise by itself."""
TEST_SHARE: Final = 0.1
"""Of delta, for the tests of all steps of flames."""
MOST_BUCKETS: Final = 1 << 16
OWN_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "dp_clip": ("sgd", "adafest", "flames"),
    "dp_step": ("sgd", "adafest", "flames"),
    "dp_last_step": ("sgd", "adafest", "flames"),
    "dp_sampling": ("sgd", "adafest", "flames"),
    "dp_row_share": ("adafest",),
    "dp_row_threshold": ("adafest",),
    "dp_count_width": ("counts",),
    "dp_count_threshold": ("counts",),
}
"""Settings that have a meaning for some mechanisms only."""

_RANGES: Final = {
    "epsilon": (1e-6, 1e6),
    "dp_clip": (1e-9, 1e9),
    "dp_step": (1e-9, 1e9),
    "dp_last_step": (1e-9, 1.0),
    "dp_sampling": (1e-9, 1.0),
    "dp_row_share": (1e-6, 1 - 1e-6),
}
"""Numbers beyond these are mistakes, and would overflow or round to nothing on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyConfig:
    """The defaults were chosen on Kinship, which is public, for about ten thousand triples in all."""

    dp: Literal["sgd", "adafest", "flames", "counts"] = "sgd"
    """The mechanism (`secure_kg.privacy.mechanisms`)."""
    epsilon: float | None = None
    delta: float | None = None
    dp_clip: float = 0.15
    dp_step: float | None = None
    """Per unit of the noised sum over all clients, in the first step. Not divided by the number of triples. None: what
    the budget's noise asks for (`secure_kg.privacy.training_config.usual_step`)."""
    dp_last_step: float = 0.1
    """Fraction of the step that is left in the last round; it falls linearly."""
    dp_sampling: float = 1.0
    """Probability of a triple to be in a round's Poisson sample; 1: full batches."""
    dp_noise: Literal["auto", "shares", "full"] = "auto"
    """`full`: every client adds all noise by itself, and needs to trust nobody. `auto` is never kept: it stands for
    shares, and for full where clients choose rows."""
    dp_row_share: float = 0.1
    """adafest: the part of a step's cost, in squared inverse noise, that the choice of rows takes."""
    dp_row_threshold: float = 1.0
    """adafest: rows whose noised count is at least so many deviations of its noise are chosen."""
    dp_count_width: int = 1024
    """counts: buckets for the names of relations."""
    dp_count_threshold: float = 1.0
    """counts: cells below so many deviations of their noise count as empty."""
    public_evaluation: bool = False
    """Whether valid and test triples are declared public."""
    dp_tuned_on: str = ""
    """The data on which settings were chosen, for the statement."""

    def __post_init__(self) -> None:
        if self.epsilon is None or self.delta is None:
            lacks, has = ("--epsilon", "--delta") if self.epsilon is None else ("--delta", "--epsilon")
            raise UserError(f"--dp needs a budget: {lacks} is missing" + (f" beside {has}" if self._one_given else ""))
        Budget(self.epsilon, self.delta)
        if self.dp not in MECHANISMS:
            raise UserError(f"--dp must be one of {', '.join(MECHANISMS)}")
        self._settle_noise()
        self._require_own_options()
        for name, (least, most) in _RANGES.items():
            if (value := getattr(self, name)) is not None and not least <= value <= most:
                raise UserError(f"--{name.replace('_', '-')} must lie between {least:g} and {most:g}")
        for name in ("dp_row_threshold", "dp_count_threshold"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise UserError(f"--{name.replace('_', '-')} must be a number of at least 0")
        if not 1 <= self.dp_count_width <= MOST_BUCKETS:
            raise UserError(f"--dp-count-width must lie between 1 and {MOST_BUCKETS}")

    def _settle_noise(self) -> None:
        if self.dp_noise not in ("auto", "shares", "full"):
            raise UserError("--dp-noise must be one of auto, shares, full")
        if self.dp_noise == "shares" and self.dp in CHOOSING:
            raise UserError(
                f"--dp-noise shares: under --dp {self.dp} every client chooses rows by its own noised sums; to choose "
                "by sums that nobody may see before noise would need another protocol"
            )
        if self.dp_noise == "auto":
            object.__setattr__(self, "dp_noise", "full" if self.dp in CHOOSING else "shares")

    def _require_own_options(self) -> None:
        usual = {entry.name: entry.default for entry in fields(self)}
        for name, mechanisms in OWN_OPTIONS.items():
            if self.dp not in mechanisms and getattr(self, name) != usual[name]:
                raise UserError(f"--{name.replace('_', '-')} is for --dp {' or '.join(mechanisms)}, not for {self.dp}")

    @property
    def _one_given(self) -> bool:
        return self.epsilon is not None or self.delta is not None

    @property
    def chooses(self) -> bool:
        """Whether every client chooses rows and adds all noise by itself."""
        return self.dp in CHOOSING

    @property
    def counts(self) -> bool:
        """Whether there is one table of counts, and no training."""
        return self.dp == "counts"

    @property
    def test_delta(self) -> float:
        """The part of delta that the tests of all steps take; of no mechanism but flames."""
        return TEST_SHARE * self.budget.delta if self.dp == "flames" else 0.0

    @property
    def budget(self) -> Budget:
        """What the run may spend in all."""
        if self.epsilon is None or self.delta is None:
            raise ValueError("checked when made")
        return Budget(self.epsilon, self.delta)
