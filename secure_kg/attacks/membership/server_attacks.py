"""A_SI of DP-FLames (section 3): the server infers whether a client trains on a triple.

Attacker: the server. Where uploads are in clear it has the victim's rows; under masks it has the mean of all holders
          and nothing else. Positions of names, and auxiliary pairs (linked entities with their relation), come from a
          client on its side.
as printed: differences of all pairs of rows are clustered, twice as many clusters as there are relations. A pair in a
          concentrated cluster is called linked. TransE and RotatE only. The paper gives no rule for "concentrated":
          here clusters are ranked by their mean distance to the centre. Its number of pairs (1.6e8 for FB15k-237) does
          not fit any memory: pairs are sampled.
mended:   the relation's row is estimated from auxiliary pairs, and the triple is scored by the model. It needs no
          clusters, knows which relation it asks for, and works on means as well as on uploads. For bilinear models
          pairs tell little of a relation, and the row is that of the client on the server's side.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.membership.measures import Scores
from secure_kg.attacks.membership.plausibility import (
    Tables,
    as_complex,
    has_distances,
    phase_factor,
    plausibility,
    standing,
)
from secure_kg.data.graph import TripleArray
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.shapes import MODELS, relation_width

Points = npt.NDArray[np.float64]
_PAIRS: Final = 12_000
_STEPS: Final = 8


def by_estimated_relations(
    rows: Rows, auxiliary: TripleArray, targets: TripleArray, training: TrainingConfig
) -> Scores:
    """Scores [n] of targets by rows [entities, width] and relations that auxiliary triples tell.

    Auxiliary triples count whose rows are there: those of entities that nobody gave are zero.
    """
    there = np.asarray(rows.any(axis=1))
    auxiliary = auxiliary[there[auxiliary[:, [0, 2]]].all(axis=1)]
    count = int(max(auxiliary[:, 1].max(initial=0), targets[:, 1].max(initial=0))) + 1
    relations = estimated_relations(rows, auxiliary, count, training)
    return plausibility(Tables(rows, relations), targets, training)


def by_relations(
    rows: Rows, own: Rows, auxiliary: TripleArray, targets: TripleArray, training: TrainingConfig
) -> Scores:
    """Scores [n] of targets by rows [entities, width]; the mended attack.

    `own`: relation rows of the client on the server's side, whose triples are the auxiliary ones. They serve for
    products; for distances those that its triples tell are as good.
    """
    if has_distances(training):
        return by_estimated_relations(rows, auxiliary, targets, training)
    return standing(Tables(rows, own), targets, training)


def estimated_relations(rows: Rows, auxiliary: TripleArray, count: int, training: TrainingConfig) -> Rows:
    """Relation rows [count, width] from auxiliary triples; of a relation without any, those of all triples together.

    Medians of t - h for translations: a pair in which the victim has trained neither entity pulls a mean away.
    Rotations: the mean direction of the turn from h to t. Products: the mean of what multiplies r in the score, less
    that of random pairs, along which the score of linked pairs grows fastest.
    """
    kind = MODELS[training.model].relation
    estimated = np.zeros((count, relation_width(training.model, training.dim)), dtype=np.float32)
    if not len(auxiliary):
        return estimated
    evidence = pair_evidence(rows[auxiliary[:, 0]], rows[auxiliary[:, 2]], training)
    if kind in ("product", "complex product"):
        evidence = evidence - pair_evidence(rows[auxiliary[:, 0]], rows[np.roll(auxiliary[:, 2], 1)], training).mean(0)
    common = _centre(evidence, kind, training)
    for relation in range(count):
        of = evidence[auxiliary[:, 1] == relation]
        estimated[relation] = _centre(of, kind, training) if len(of) else common
    return estimated


def pair_evidence(heads: Rows, tails: Rows, training: TrainingConfig) -> Points:
    """What pairs of rows [n, width] say of the relation between them: [n, m]."""
    h, t = heads.astype(np.float64), tails.astype(np.float64)
    match MODELS[training.model].relation:
        case "translation":
            return t - h
        case "rotation":
            turn = as_complex(t) * as_complex(h).conj()
            turn = turn / np.maximum(np.abs(turn), np.finfo(np.float64).tiny)
            return np.concatenate((turn.real, turn.imag), axis=1)
        case "product":
            return h * t
        case "complex product":
            turn = as_complex(h) * as_complex(t).conj()
            return np.concatenate((turn.real, -turn.imag), axis=1)
        case _:
            raise UserError(f"--model {training.model}: membership attacks do not know this model")


def by_clusters(rows: Rows, held: npt.NDArray[np.int64], targets: TripleArray, training: TrainingConfig) -> Scores:
    """Scores [n] of targets: minus the spread of the cluster in which a target's pair lies; the attack as printed.

    `held`: ids of the entities whose rows the attacker has. The relation of a target has no part in it.
    """
    if MODELS[training.model].relation not in ("translation", "rotation"):
        raise UserError(f"--model {training.model}: A_SI as printed is for TransE and RotatE")
    draw = generator(0, "pairs of A_SI", len(held))
    pairs = draw.choice(held, (_PAIRS, 2))
    points = pair_evidence(rows[pairs[:, 0]], rows[pairs[:, 1]], training).astype(np.float32)
    relations = int(targets[:, 1].max()) + 1
    centres, spread = _clusters(points, min(2 * relations, len(points) // 4), draw)
    asked = pair_evidence(rows[targets[:, 0]], rows[targets[:, 2]], training).astype(np.float32)
    return -spread[_nearest(asked, centres)]


def _clusters(
    points: npt.NDArray[np.float32], number: int, draw: np.random.Generator
) -> tuple[npt.NDArray[np.float32], Points]:
    """k-means of points [n, m]: centres [number, m], and the mean distance [number] of the points around each."""
    centres = points[draw.choice(len(points), number, replace=False)]
    label = _nearest(points, centres)
    for _ in range(_STEPS):
        sums = np.zeros_like(centres)
        np.add.at(sums, label, points)
        sizes = np.bincount(label, minlength=number)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres).astype(np.float32)
        label = _nearest(points, centres)
    away = np.sqrt(np.square(points - centres[label]).sum(axis=1, dtype=np.float64))
    sizes = np.bincount(label, minlength=number)
    spread = np.bincount(label, weights=away, minlength=number) / np.maximum(sizes, 1)
    return centres, np.where(sizes > 1, spread, spread.max(initial=0.0))  # one point alone is no concentration


def _nearest(points: npt.NDArray[np.float32], centres: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    size = np.square(centres).sum(axis=1)
    return np.asarray((size - 2 * points @ centres.T).argmin(axis=1), dtype=np.int64)


def _centre(evidence: Points, kind: str, training: TrainingConfig) -> Points:
    match kind:
        case "translation":
            return np.median(evidence, axis=0)
        case "rotation":
            mean: npt.NDArray[np.complex128] = as_complex(evidence).mean(axis=0)
            return np.angle(mean) / phase_factor(training)
        case _:
            middle: Points = evidence.mean(axis=0)
            return middle / max(float(np.sqrt(np.square(middle).sum())), np.finfo(np.float64).tiny)
