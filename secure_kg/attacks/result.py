"""Result of an attack beside the result of guessing, and the rule by which one counts as more than the other.

An attack has succeeded if it is better than chance in both senses: it would be by luck in fewer than 1 of 1,000 cases,
and the difference is large enough to matter. Luck alone is a poor rule, since on thousands of rows a difference of no
consequence is significant; size alone is one too, since of five rows a guess may hit three.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from secure_kg.audit.records.parts import AttackResult as AttackResult

SIGNIFICANCE: Final = 1e-3
"""The largest probability of doing as well by guessing."""
MATERIAL_RATE: Final = 0.01
"""The least difference between two rates that matters: one more element in a hundred."""
MATERIAL_EXPLAINED: Final = 0.05
"""The least difference that matters between two shares of variance."""
_NORMAL_QUANTILE: Final = 3.0902323
"""1 - SIGNIFICANCE of the normal distribution lies below it."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many hits in so many trials, and the rate that guessing has."""

    hits: int
    trials: int
    chance: float
    independent: int | None = None
    """How many of the trials may count as independent, if not all: triples share the rows of their entities."""

    @property
    def value(self) -> float:
        return self.hits / self.trials if self.trials else 0.0

    @property
    def beats_chance(self) -> bool:
        """One-sided binomial test, that is, the lower Clopper-Pearson bound lies above chance; by a material margin."""
        material = self.value >= self.chance + MATERIAL_RATE
        trials = self.trials if self.independent is None else min(self.trials, self.independent)
        hits = self.hits if trials == self.trials else int(self.value * trials)
        return material and binomial_tail(hits, trials, self.chance) < SIGNIFICANCE


def scores_of(rates: Mapping[str, Rate]) -> tuple[dict[str, float], dict[str, float]]:
    """The scores and what chance gets, under the names of the rates."""
    return {name: rate.value for name, rate in rates.items()}, {name: rate.chance for name, rate in rates.items()}


def binomial_tail(hits: int, trials: int, chance: float) -> float:
    """The probability of `hits` or more in `trials` that succeed with probability `chance` each."""
    if hits <= 0 or chance >= 1:
        return 1.0
    if hits > trials or chance <= 0:
        return 0.0
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, trials + 1)))))
    number = np.arange(hits, trials + 1)
    terms = log_factorial[trials] - log_factorial[number] - log_factorial[trials - number]
    terms += number * math.log(chance) + (trials - number) * math.log1p(-chance)
    largest = float(terms.max())
    return min(1.0, math.exp(largest) * float(np.exp(terms - largest).sum()))


def explains_more(explained: float, values: int, chance: float = 0.0) -> bool:
    """Whether a share of variance, of so many values, is clearly more than chance.

    Of independent values the correlation is about normal with deviation 1/√values; its square must lie beyond what that
    brings once in 1,000 cases, and above chance by a material margin.
    """
    noise = _NORMAL_QUANTILE**2 / max(values, 1)
    return explained > noise and explained >= chance + MATERIAL_EXPLAINED
