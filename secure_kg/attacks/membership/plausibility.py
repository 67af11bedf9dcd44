"""Plausibility of triples by rows that an attacker has: the model's own score without its constants, in numpy.

    TransE, TransM  -‖h + r - t‖_p        DistMult  Σ h r t
    RotatE          -Σ |h e^(iθ) - t|     ComplEx   Re Σ h r conj(t)

For the models of distances, the plausibility is minus the distance D of DP-FLames, section 3. Other models are
refused: an attack that scores triples wrongly fails for a reason that protects nobody.
"""

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import TripleArray
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.shapes import MODELS, initial_range

Numbers = npt.NDArray[np.float64]
_LEAST: Final = 1e-12
"""A distance below it counts as this much."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Rows of entities [entities, width] and of relations [relations, width], under the attacker's own ids."""

    entities: Rows = field(repr=False)
    relations: Rows = field(repr=False)

    def with_entities(self, entities: Rows) -> "Tables":
        return Tables(entities, self.relations)


def require_known_model(training: TrainingConfig) -> None:
    """`UserError` unless the attacks know the model."""
    if MODELS[training.model].relation == "matrix":
        raise UserError(f"--model {training.model}: membership attacks know TransE, RotatE, DistMult and ComplEx")


def has_distances(training: TrainingConfig) -> bool:
    """Whether the model's score is a distance: only then a ratio of two scores has a meaning."""
    return MODELS[training.model].relation in ("translation", "rotation")


def plausibility(tables: Tables, triples: TripleArray, training: TrainingConfig) -> Numbers:
    """triples [n, 3] to [n]; larger is more plausible."""
    h, t = (tables.entities[triples[:, column]].astype(np.float64) for column in (0, 2))
    r = tables.relations[triples[:, 1]].astype(np.float64)
    match MODELS[training.model].relation:
        case "translation":
            return -_norm(h + r - t, training.norm)
        case "rotation":
            turned = as_complex(h) * np.exp(1j * r * phase_factor(training))
            distance: Numbers = np.abs(turned - as_complex(t)).sum(axis=1)
            return -distance
        case "product":
            summed: Numbers = (h * r * t).sum(axis=1)
            return summed
        case "complex product":
            product: Numbers = (as_complex(h) * as_complex(r) * as_complex(t).conj()).real.sum(axis=1)
            return product
        case _:
            raise UserError(f"--model {training.model}: membership attacks do not know this model")


def standing(tables: Tables, triples: TripleArray, training: TrainingConfig) -> Numbers:
    """triples [n, 3] to [n]: how far the plausibility of each stands above that of triples with another end.

    Products are as large as their rows are, and rows of well-connected entities are large. They are linear in the tail
    and in the head, so their mean and deviation over all entities that have a row follow from those of the rows: the
    score is taken in these deviations, once for each end, and added. Distances are as they are.
    """
    score = plausibility(tables, triples, training)
    if has_distances(training):
        return score
    rows = tables.entities[tables.entities.any(axis=1)].astype(np.float64)
    if len(rows) < 2:
        return score
    centre, spread = rows.mean(axis=0), np.atleast_2d(np.cov(rows, rowvar=False))
    total = np.zeros_like(score)
    for slope in _slopes(tables, triples, training):
        deviation = np.sqrt(np.maximum(np.einsum("nd,de,ne->n", slope, spread, slope), 0))
        total += np.divide(score - slope @ centre, deviation, out=np.zeros_like(score), where=deviation > 0)
    return total


def _slopes(tables: Tables, triples: TripleArray, training: TrainingConfig) -> tuple[Numbers, Numbers]:
    """What multiplies the tail, and what multiplies the head, in the score of a product [n, width]."""
    h, t = (tables.entities[triples[:, column]].astype(np.float64) for column in (0, 2))
    r = tables.relations[triples[:, 1]].astype(np.float64)
    if MODELS[training.model].relation == "product":
        return h * r, r * t
    forward, backward = as_complex(h) * as_complex(r), as_complex(r) * as_complex(t).conj()
    return (
        np.concatenate((forward.real, forward.imag), axis=1),
        np.concatenate((backward.real, -backward.imag), axis=1),
    )


def gained(before: Tables, after: Tables, targets: TripleArray, training: TrainingConfig) -> Numbers:
    """How much plausibility [n] targets gain; of distances their logarithm, because rows differ in size."""
    first, second = (plausibility(tables, targets, training) for tables in (before, after))
    if has_distances(training):
        return np.log(np.maximum(-first, _LEAST)) - np.log(np.maximum(-second, _LEAST))
    return second - first


def as_complex(rows: Numbers) -> npt.NDArray[np.complex128]:
    """Rows [n, 2 dim] of real parts, then imaginary parts, as [n, dim]."""
    half = rows.shape[1] // 2
    return rows[:, :half] + 1j * rows[:, half:]


def phase_factor(training: TrainingConfig) -> float:
    """What a stored value of a RotatE relation is multiplied by to be a phase."""
    return math.pi / initial_range(training.margin, training.dim)


def _norm(rows: Numbers, p: int) -> Numbers:
    norm: Numbers = np.abs(rows).sum(axis=1) if p == 1 else np.sqrt(np.square(rows).sum(axis=1))
    return norm
