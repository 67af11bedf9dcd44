"""Settings of private training in one place. All of them are public, and none may be derived from the triples."""

import math
from dataclasses import dataclass
from typing import Final, Literal

from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig

USUAL_STEP: Final = 0.0667
"""For little noise, per unit of the sum of some ten thousand triples."""
_LITTLE_NOISE: Final = 2.9
"""The signal of all steps over their noise, at epsilon 16 and delta 1e-5."""


def usual_step(noise: float, steps: int, sampling: float = 1.0) -> float:
    """The first step if nobody gives one: the more noise a budget asks for, the shorter.

    All steps together, of `noise` clips each, have the signal sampling · √steps / noise. It follows from the budget,
    and so the step from public values alone. Steps as long as the signal is strong did best on validation triples of
    Kinship (docs/privacy.md).
    """
    return USUAL_STEP * min(1.0, sampling * math.sqrt(steps) / noise / _LITTLE_NOISE)


@dataclass(frozen=True, slots=True)
class PrivateTrainingConfig:
    """The defaults are for a graph of about ten thousand triples; full batches spend a budget best.

    Choosing settings by a look at results on the triples, also on validation triples, is outside ε.
    """

    model: str = "DistMult"
    dim: int = 24
    negatives: int = 96
    """Public candidates per step, shared by all triples; all entities if there are fewer."""
    clip: float = 0.15
    steps: int = 200
    step: float = USUAL_STEP
    """Per unit of the noised sum, in the first step. Not divided by the number of triples, which is private."""
    last_step: float = 0.1
    """Fraction of `step` that is left in the last step; it falls linearly."""
    sampling: float = 1.0
    """Probability of a triple to be in a step's Poisson sample; 1: full batches."""
    margin: float = 10.0
    temperature: float = 2.0
    norm: Literal[1, 2] = 2
    corrupt: Literal["tail", "both"] = "tail"
    """`both`: steps alternate between corrupted tails and heads."""

    def __post_init__(self) -> None:
        self.as_training()
        if self.steps < 1:
            raise UserError("private training takes at least one step")
        for name in ("clip", "step"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise UserError(f"the {name} of private training must be a positive number")
        if not 0 < self.last_step <= 1:
            raise UserError("the last step of private training lies above 0 and is at most 1")
        if not 0 < self.sampling <= 1:
            raise UserError(f"a sampling rate lies above 0 and is at most 1, not {self.sampling:g}")

    def as_training(self) -> TrainingConfig:
        """What it shares with training in clear, checked there."""
        return TrainingConfig(
            model=self.model,
            dim=self.dim,
            negatives=self.negatives,
            margin=self.margin,
            temperature=self.temperature,
            corrupt=self.corrupt,
            norm=self.norm,
        )

    def step_at(self, number: int) -> float:
        """The size of step number 0 to steps − 1."""
        done = number / max(1, self.steps - 1)
        return self.step * (1.0 - (1.0 - self.last_step) * done)
