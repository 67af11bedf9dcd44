"""Settings of differentially private training in a federation. All of them are public, and none may come from triples.

Free of torch: the server derives the room for noise from them too.
"""

import math
from dataclasses import dataclass
from typing import Literal

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.releases import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyConfig:
    """The defaults were chosen on Kinship, which is public, for about ten thousand triples in all."""

    dp: Literal["sgd"] = "sgd"
    """The mechanism: noise on every entry of clipped sums of gradients."""
    epsilon: float | None = None
    delta: float | None = None
    dp_clip: float = 0.3
    dp_step: float = 0.0234
    """Per unit of the noised sum over all clients, in the first step. Not divided by the number of triples."""
    dp_last_step: float = 0.1
    """Fraction of the step that is left in the last round; it falls linearly."""
    dp_sampling: float = 1.0
    """Probability of a triple to be in a round's Poisson sample; 1: full batches."""
    dp_noise: Literal["shares", "full"] = "shares"
    """`full`: every client adds all noise by itself, and needs to trust nobody."""
    public_evaluation: bool = False
    """Whether valid and test triples are declared public."""
    dp_tuned_on: str = ""
    """The data on which settings were chosen, for the statement."""

    def __post_init__(self) -> None:
        if self.epsilon is None or self.delta is None:
            lacks, has = ("--epsilon", "--delta") if self.epsilon is None else ("--delta", "--epsilon")
            raise UserError(f"--dp needs a budget: {lacks} is missing" + (f" beside {has}" if self._one_given else ""))
        Budget(self.epsilon, self.delta)
        if self.dp != "sgd":
            raise UserError("--dp: a federation has one private mechanism, sgd")
        if self.dp_noise not in ("shares", "full"):
            raise UserError("--dp-noise must be one of shares, full")
        for name in ("dp_clip", "dp_step"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise UserError(f"--{name.replace('_', '-')} must be a positive number")
        for name in ("dp_last_step", "dp_sampling"):
            if not 0 < getattr(self, name) <= 1:
                raise UserError(f"--{name.replace('_', '-')} must lie above 0 and at most at 1")

    @property
    def _one_given(self) -> bool:
        return self.epsilon is not None or self.delta is not None

    @property
    def budget(self) -> Budget:
        """What the run may spend in all."""
        if self.epsilon is None or self.delta is None:
            raise ValueError("checked when made")
        return Budget(self.epsilon, self.delta)
