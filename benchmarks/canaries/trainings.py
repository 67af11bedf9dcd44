"""Training in one place under audit: full batches, Poisson samples, and rows chosen by noised counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from torch import Tensor

from benchmarks.canaries.audited import AuditedPath, Observed
from benchmarks.canaries.bounds import auc_bound
from benchmarks.canaries.cases import ADAFEST, CENTRAL, POISSON, TrainingCase
from benchmarks.canaries.insecure import InsecurePublicSamples, InsecureQuietChoice, public_sample
from benchmarks.canaries.planting import Planted, plant
from benchmarks.canaries.watching import ChoiceTold, Knowledge, Watched
from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.seeds import generator
from secure_kg.privacy.accounting.accountant import Budget, noise_for
from secure_kg.privacy.gradients.clipped_sums import PrivateGradients
from secure_kg.privacy.mechanisms.adafest import AdaFest
from secure_kg.privacy.mechanisms.sgd import Sgd
from secure_kg.privacy.training import PrivateTraining
from secure_kg.privacy.training_config import PrivateTrainingConfig

END_THRESHOLD: Final = 0.5
"""Of noised counts (adafest): without noise, a canary that is in passes it, and one that is out does not."""
_CERTAIN: Final = 1e3


@dataclass(frozen=True, slots=True)
class Plan:
    """What all paths are audited with."""

    graph: ClientGraph
    config: PrivateTrainingConfig
    """Of full batches."""
    budget: Budget
    canaries: int
    seed: int
    sampling: float = 0.25
    """Of the path of Poisson samples."""

    def planted(self, run: int) -> Planted:
        return plant(self.graph, self.canaries, generator(self.seed, "coins", run))

    @property
    def settings(self) -> dict[str, object]:
        found = {name: getattr(self.config, name) for name in self.config.__dataclass_fields__}
        return found | {"canaries": self.canaries}


def central(plan: Plan) -> AuditedPath:
    return _path("central", plan, Sgd(noise_for(plan.budget, plan.config.steps)), CENTRAL)


def poisson(plan: Plan) -> AuditedPath:
    sampled = replace(plan, config=replace(plan.config, sampling=plan.sampling))
    noise = noise_for(plan.budget, plan.config.steps, plan.sampling)
    return _path("poisson", sampled, Sgd(noise, plan.sampling), POISSON)


def adafest(plan: Plan) -> AuditedPath:
    total = noise_for(plan.budget, plan.config.steps)
    return _path("adafest", plan, AdaFest.of_total(total, END_THRESHOLD), ADAFEST)


def _path(name: str, plan: Plan, mechanism: Sgd | AdaFest, cases: Sequence[TrainingCase]) -> AuditedPath:
    releases = [(release, plan.config.steps) for release in mechanism.releases()]

    def observe(case: TrainingCase, run: int) -> Observed:
        return _trained(plan, mechanism, case, run)

    return AuditedPath(name, releases, auc_bound(releases), cases, observe, plan.settings)


def _trained(plan: Plan, mechanism: Sgd | AdaFest, case: TrainingCase, run: int) -> Observed:
    """One whole training of the audited code, watched."""
    planted, seed, config = plan.planted(run), plan.seed + run, plan.config
    if case.samples == "none":
        config, mechanism = replace(config, sampling=1.0), replace(mechanism, sampling=1.0)
    kind = InsecurePublicSamples if case.samples == "public" else PrivateTraining
    source = None if case.source is None else case.source()  # None: training takes the operating system's randomness
    training = kind(planted.graph, config, seed, source)
    gradients = PrivateGradients(training.model, config.temperature)
    knows = Knowledge(
        (lambda triples, candidates: gradients.sums(triples, candidates, config.clip))
        if case.clipping is None
        else case.clipping(training.model, config.clip),
        deviation=mechanism.noise * config.clip * case.added,
        sampling=config.sampling,
        taken=(lambda step: _taken(planted, config.sampling, (seed, step))) if case.samples == "public" else None,
        choice=_told(mechanism, isinstance(source, InsecureQuietChoice)) if isinstance(mechanism, AdaFest) else None,
    )
    audited = mechanism if case.mechanism is None else case.mechanism(mechanism)
    watched = Watched(audited, torch.from_numpy(planted.canaries), knows, case.clipping is not None)
    training.run(watched)
    return Observed(watched.evidence.numpy(), planted.inside, watched.residuals)


def _taken(planted: Planted, rate: float, drawn_by: tuple[int, int]) -> Tensor:
    """Which canaries are in a public sample if they are in: their places follow from the other coins."""
    chosen = np.zeros(len(planted.graph.train) + 1, dtype=np.bool_)  # one more, for a canary after all others
    chosen[public_sample(len(planted.graph.train), rate, drawn_by)] = True
    first = len(planted.graph.train) - int(planted.inside.sum())
    return torch.from_numpy(chosen[first + np.cumsum(planted.inside) - planted.inside])


def _told(mechanism: AdaFest, quiet: bool) -> ChoiceTold:
    """What the choice of a row says of the canary whose end it is: no other triple touches it."""
    if quiet:
        return ChoiceTold(_CERTAIN, -_CERTAIN)
    from scipy.special import log_ndtr

    inside, out = ((count - mechanism.threshold) / mechanism.selection_noise for count in (math.sqrt(0.5), 0.0))
    return ChoiceTold(float(log_ndtr(inside) - log_ndtr(out)), float(log_ndtr(-inside) - log_ndtr(-out)))
