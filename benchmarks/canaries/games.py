"""Single steps of DP-FLames, mended, in which one canary decides whether a test passes.

In training, a test is of all triples together, and no canary of many can be read off it. So each canary has a game of
its own: sums of gradients in which the gap below the first row lies half a clip below the level of the test without the
canary, and half a clip above it with the canary, which adds a clip to the first row. The mechanism itself, with its
real noise, is asked for T steps of it.

Evidence: whether the first row was released, by how likely that is with the canary and without it; and, if it was, its
          noised value, as of any Gaussian. Both are logarithms of likelihood ratios, and steps add up.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from scipy.special import log_ndtr

from benchmarks.canaries.audited import AuditedPath, Observed
from benchmarks.canaries.bounds import auc_bound
from benchmarks.canaries.cases import FLAMES, TrainingCase
from benchmarks.canaries.trainings import Plan
from secure_kg.foundation.seeds import generator
from secure_kg.privacy.accounting.accountant import Budget, noise_for
from secure_kg.privacy.draws.noise import Grid, NoiseSource, SecretNoise
from secure_kg.privacy.gradients.clipped_sums import ClippedSums
from secure_kg.privacy.mechanisms.flames import Flames
from secure_kg.privacy.mechanisms.interface import PrivateStep
from secure_kg.privacy.run_config import TEST_SHARE

_STEPS: Final = 4
_GAMES: Final = 100
"""Canaries of a run."""
_ROWS, _WIDTH = 4, 2
_CERTAIN: Final = 1e3


@dataclass(frozen=True, slots=True)
class Game:
    """One canary against one mechanism."""

    mechanism: Flames
    clip: float
    quiet: bool
    """Whether the test has no noise, as the attacker knows."""

    @property
    def gap(self) -> float:
        """Without the canary."""
        return self.mechanism.passing_gap(self.clip) - self.clip / 2

    def played(self, inside: bool, source: NoiseSource) -> float:
        """The evidence of all steps."""
        none = torch.empty(0, dtype=torch.int64)
        entity = torch.zeros(_ROWS, _WIDTH, dtype=torch.float64)
        entity[0, 0] = self.gap + (self.clip if inside else 0.0)
        sums = ClippedSums(entity, torch.zeros(1, _WIDTH, dtype=torch.float64), 0, 0)
        step = PrivateStep(none.view(0, 3), sums, none, Grid(self.clip, _ROWS * _WIDTH))
        return math.fsum(self._told(self.mechanism.privatise(step, source).entity[0]) for _ in range(_STEPS))

    def _told(self, row: torch.Tensor) -> float:
        passed, failed = self._test_told()
        if not bool(row.any()):
            return failed
        deviation = self.mechanism.noise * self.clip
        return passed + ((float(row[0]) - self.gap) * self.clip - self.clip**2 / 2) / deviation**2

    def _test_told(self) -> tuple[float, float]:
        if self.quiet:
            return _CERTAIN, -_CERTAIN
        far = 0.5 / (2.0 * self.mechanism.test_noise)  # half a clip, in deviations of the test's noise
        return float(log_ndtr(far) - log_ndtr(-far)), float(log_ndtr(-far) - log_ndtr(far))


def flames(plan: Plan) -> AuditedPath:
    """The path. Delta is divided between tests and releases as in a federation."""
    test_delta = TEST_SHARE * plan.budget.delta
    total = noise_for(Budget(plan.budget.epsilon, plan.budget.delta - test_delta), _STEPS)
    mechanism = Flames.of_total(total, (1, _ROWS), test_delta / _STEPS)
    releases = [(release, _STEPS) for release in mechanism.releases()]

    def observe(case: TrainingCase, run: int) -> Observed:
        inside = generator(plan.seed, "coins", run).random(_GAMES) < 0.5
        source = SecretNoise() if case.source is None else case.source()
        game = Game(mechanism, plan.config.clip, quiet=case.source is not None)
        return Observed(np.array([game.played(bool(coin), source) for coin in inside]), inside, ())

    settings: dict[str, object] = {"canaries": _GAMES, "steps": _STEPS, "clip": plan.config.clip}
    return AuditedPath("flames", releases, auc_bound(releases) + test_delta, FLAMES, observe, settings)
