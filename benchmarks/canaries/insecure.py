"""Faults of private training for the audit to find. Each is a wrapper around the real code, never an option of it.

| name | fault |
|---|---|
| `InsecureLessNoise` | adds less noise than it declares, half of it for example |
| `InsecureDoubleClip` | clips to twice the sensitivity that the noise is for |
| `InsecureSeparateClips` | clips the positive and the negative part of a gradient apart, each to the whole clip |
| `InsecureTouchedRows` | leaves rows that the step's triples do not touch without noise |
| `InsecureReusedNoise` | adds the noise of the first step in every step |
| `InsecureSeededNoise` | draws noise from a generator with a fixed seed |
| `InsecureQuietChoice` | adds no noise to the numbers by which rows are chosen |
| `InsecureQuietTest` | adds no noise to the number that is tested |
| `InsecurePublicSamples` | draws Poisson samples by the public seed |
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.foundation.seeds import generator
from secure_kg.models.base import EmbeddingModel
from secure_kg.privacy.accounting.releases import Release
from secure_kg.privacy.confidential.printed import DpkgeAsPrintedUnsound
from secure_kg.privacy.draws.noise import Integers, NoiseSource, SecretNoise
from secure_kg.privacy.draws.sampling import poisson_sample
from secure_kg.privacy.gradients.clipped_sums import ClippedSums, PrivateGradients
from secure_kg.privacy.mechanisms.interface import Mechanism, NoisedSums, PrivateStep
from secure_kg.privacy.training import PrivateTraining


@dataclass(frozen=True, slots=True)
class InsecureLessNoise(Mechanism):
    """Declares the inner mechanism's noise and adds a part of it."""

    inner: Mechanism
    part: float = 0.5

    def releases(self) -> tuple[Release, ...]:
        return self.inner.releases()

    def privatise(self, step: PrivateStep, source: NoiseSource) -> NoisedSums:
        return self.inner.scaled(self.part).privatise(step, source)

    def scaled(self, factor: float) -> Self:
        return replace(self, inner=self.inner.scaled(factor))


@dataclass(frozen=True, slots=True)
class InsecureTouchedRows(Mechanism):
    """DPKGE's noise as printed, with the account that the paper makes of it."""

    inner: Mechanism

    def releases(self) -> tuple[Release, ...]:
        return self.inner.releases()

    def privatise(self, step: PrivateStep, source: NoiseSource) -> NoisedSums:
        (release,) = self.inner.releases()
        return DpkgeAsPrintedUnsound(release.noise).privatise(step, source)

    def scaled(self, factor: float) -> Self:
        return replace(self, inner=self.inner.scaled(factor))


@dataclass(frozen=True, slots=True)
class InsecureDoubleClip:
    """Sums of gradients clipped to twice the clip."""

    model: EmbeddingModel
    clip: float

    def __call__(self, triples: Tensor, candidates: Tensor) -> ClippedSums:
        return PrivateGradients(self.model).sums(triples, candidates, 2 * self.clip)


@dataclass(frozen=True, slots=True)
class InsecureSeparateClips:
    """Sums of positive parts and of negative parts, each clipped to C, so that a triple changes them by up to 2 C.

    For DistMult and corrupted tails: with point h ∘ r, weights w_j = p_j σ(f_j) and q = Σ_j w_j n_j, the negative part
    is r ∘ q by the head, h ∘ q by the relation, and w_j (h ∘ r) by candidate j.
    """

    model: EmbeddingModel
    clip: float

    def __call__(self, triples: Tensor, candidates: Tensor) -> ClippedSums:
        none = candidates.new_empty(0)
        positive = PrivateGradients(self.model).sums(triples, none, self.clip)
        entity, relation = self.negative_sums(triples, candidates)
        return replace(positive, entity=positive.entity + entity, relation=positive.relation + relation)

    @torch.no_grad()
    def negative_sums(self, triples: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Sums [n, width] and [m, width] of the negative parts of triples [b, 3], each clipped by itself."""
        head, kind, tail = triples.t()
        rows, relations, others = self.model.entity[head], self.model.relation[kind], self.model.entity[candidates]
        point = rows * relations
        similar = point @ others.t()
        own = (candidates == head[:, None]) | (candidates == tail[:, None])
        weight = torch.softmax(similar.masked_fill(own, -torch.inf), dim=1) * torch.sigmoid(similar)
        pull = weight @ others
        by_head, by_relation = relations * pull, rows * pull
        squares = by_head.square().sum(1) + by_relation.square().sum(1)
        squares += weight.square().sum(1) * point.square().sum(1)
        scale = (self.clip / squares.sqrt().clamp_min(1e-30)).clamp_max(1.0)[:, None]
        entity, relation = (torch.zeros_like(x, dtype=torch.float64) for x in (self.model.entity, self.model.relation))
        entity.index_add_(0, head, (by_head * scale).double())
        entity.index_add_(0, candidates, (weight.t() @ (point * scale)).double())
        relation.index_add_(0, kind, (by_relation * scale).double())
        return entity, relation


@dataclass(slots=True)
class InsecureReusedNoise:
    """The first draw of each shape, over and over."""

    source: NoiseSource = field(default_factory=SecretNoise)
    drawn: dict[tuple[int, ...], Integers] = field(default_factory=dict)

    def integers(self, sigma: float, shape: tuple[int, ...]) -> Integers:
        if shape not in self.drawn:
            self.drawn[shape] = self.source.integers(sigma, shape)
        return self.drawn[shape]


class InsecureSeededNoise:
    """Rounded Gaussian draws of a generator with a seed that anybody can know."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def integers(self, sigma: float, shape: tuple[int, ...]) -> Integers:
        return np.rint(self._random.normal(0.0, sigma, shape)).astype(np.int64)


@dataclass(slots=True)
class InsecureQuietChoice:
    """No noise where one number for each row is asked for: `AdaFest` chooses by those."""

    source: NoiseSource = field(default_factory=SecretNoise)

    def integers(self, sigma: float, shape: tuple[int, ...]) -> Integers:
        return np.zeros(shape, dtype=np.int64) if len(shape) == 1 else self.source.integers(sigma, shape)


@dataclass(slots=True)
class InsecureQuietTest:
    """No noise where a single number is asked for: `Flames` tests that."""

    source: NoiseSource = field(default_factory=SecretNoise)

    def integers(self, sigma: float, shape: tuple[int, ...]) -> Integers:
        return np.zeros(shape, dtype=np.int64) if shape == (1,) else self.source.integers(sigma, shape)


class InsecurePublicSamples(PrivateTraining):
    """Whoever knows the seed knows which triples, by their place, are in the sample of a step."""

    def _sample(self, number: int) -> npt.NDArray[np.int64]:
        return public_sample(len(self._train), self._config.sampling, (self._seed, number))


def public_sample(count: int, rate: float, drawn_by: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Which of `count` triples are in a sample, for everybody. `drawn_by`: seed and step."""
    seed, step = drawn_by
    return poisson_sample(count, rate, generator(seed, "public samples", step).bytes)
