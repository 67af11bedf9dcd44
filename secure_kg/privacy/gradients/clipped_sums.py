"""Sums of per-triple gradients of the self-adversarial loss, each clipped jointly over all rows that it touches.

Of one triple (h, r, t) with the candidates N of the step, without h and t:

    L = −log σ(f(h, r, t)) − Σ_j p_j log σ(−f(h, r, n_j)),   p = softmax_j(α f(h, r, n_j)) held constant,

which is the project's loss (`secure_kg.learning.loss`) without its filter of false negatives: that would look at other
triples. Its gradient touches the rows of h, r, t and of every candidate. One norm is taken over all of them, and one
factor min(1, C / norm) scales all of them, so that a triple changes the two sums together by at most C. Clipping tables
apart, or ends apart from candidates, would let it change them by more.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from secure_kg.data.graph import Side
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.models.base import EmbeddingModel
from secure_kg.privacy.gradients.comparisons import COMPARISONS, Comparison
from secure_kg.privacy.gradients.pulls import PULLS, Anchored, ByRelation, dots, squared_norms

_CHUNK: Final = 1024  # triples whose [b, m] fits a processor's cache
_LARGEST_VALUE: Final = 1e4
"""Of a row. Larger ones could make a norm overflow, and a training that has them has diverged."""
_SLACK: Final = 2**10
"""Rounding errors, in units of the last place, that a norm is taken to have: it is enlarged by them before clipping."""


@dataclass(frozen=True, slots=True)
class ClippedSums:
    """Sums of clipped gradients. Private, all of it, until noise is added to both tables."""

    entity: Tensor
    """[n, width], in double precision."""
    relation: Tensor
    """[m, relation width]."""
    clipped: int
    """Triples whose gradient was longer than the clip. For the holder of the triples alone."""
    count: int
    """Triples in the batch. For the holder alone as well: neighbours differ in it."""


@dataclass(frozen=True, slots=True)
class EndRows:
    """Gradients of b triples by the rows of their two ends [b, width], and the norm [b] over all rows of each."""

    head: Tensor
    tail: Tensor
    norms: Tensor


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Gradients of some triples, before clipping."""

    anchor_ids: Tensor
    answer_ids: Tensor
    relation_ids: Tensor
    by_anchor: Tensor
    by_answer: Tensor
    by_relation: ByRelation
    comparison: Comparison
    norms: Tensor


def models_with_gradients() -> tuple[str, ...]:
    """Names of the models that can be trained privately."""
    return tuple(PULLS)


def touched_coordinates(model: EmbeddingModel, candidates: int) -> int:
    """The largest number of coordinates of both tables that one triple can change: h, t, candidates and r."""
    rows = min(len(model.entity), candidates + 2)
    return rows * model.entity.shape[1] + model.relation.shape[1]


class PrivateGradients:
    """Clipped sums over batches of triples, by the current rows of a model, which it never changes."""

    def __init__(self, model: EmbeddingModel, temperature: float = 1.0) -> None:
        """`temperature` is α. A model whose scores hold weights (TransM) must have them from public data."""
        if model.name not in PULLS or type(model.geometry) not in COMPARISONS:
            raise UserError(f"{model.name} has no per-triple gradients: choose one of {', '.join(PULLS)}")
        if not (math.isfinite(temperature) and temperature >= 0):
            raise UserError("the temperature of private training must not be negative")
        self._model, self._temperature = model, temperature

    @torch.no_grad()
    def sums(self, triples: Tensor, negatives: Tensor, clip: float, side: Side = "tail") -> ClippedSums:
        """triples [b, 3], also none, against public candidates negatives [m] that replace one side, all different.

        Raises `TrainingDiverged` by a look at the public rows alone, before any triple is seen.
        """
        if not (math.isfinite(clip) and clip > 0):
            raise UserError("the clip of private training must be a positive number")
        self._require_sound(negatives)
        model = self._model
        entity, relation = (torch.zeros_like(table, dtype=torch.float64) for table in (model.entity, model.relation))
        by_candidate = entity.new_zeros(len(negatives), entity.shape[1])
        clipped = 0
        for chunk in self._chunks(triples, negatives, side):
            enlarged = chunk.norms * (1.0 + _SLACK * torch.finfo(chunk.norms.dtype).eps)
            scale = (clip / enlarged.clamp_min(1e-30)).clamp_max(1.0)
            clipped += int((chunk.norms > clip).sum())
            entity.index_add_(0, chunk.anchor_ids, (chunk.by_anchor * scale[:, None]).double())
            entity.index_add_(0, chunk.answer_ids, (chunk.by_answer * scale[:, None]).double())
            chunk.by_relation.add_to(relation, chunk.relation_ids, scale)
            by_candidate += chunk.comparison.candidate_sums(scale)
        entity.index_add_(0, negatives, by_candidate)
        return ClippedSums(entity, relation, clipped, len(triples))

    @torch.no_grad()
    def end_rows(self, triples: Tensor, negatives: Tensor, side: Side = "tail") -> EndRows:
        """Gradients by the two ends of each of triples [b, 3], b ≥ 1, unclipped; a self loop has one in each part."""
        self._require_sound(negatives)
        found = list(self._chunks(triples, negatives, side))
        anchor, answer = (torch.cat(rows) for rows in zip(*((c.by_anchor, c.by_answer) for c in found), strict=True))
        head, tail = (anchor, answer) if side == "tail" else (answer, anchor)
        return EndRows(head, tail, torch.cat([chunk.norms for chunk in found]))

    def _require_sound(self, negatives: Tensor) -> None:
        if len(torch.unique(negatives)) != len(negatives):
            raise ValueError("candidates must differ: the norm of a row drawn twice would be too small")
        for table in (self._model.entity, self._model.relation):
            if table.numel() and not float(table.abs().max()) <= _LARGEST_VALUE:
                raise TrainingDiverged("private training diverged; a smaller step may help")

    def _chunks(self, triples: Tensor, negatives: Tensor, side: Side) -> Iterator[_Chunk]:
        if len(triples) == 0:
            return
        position = torch.full((len(self._model.entity),), -1, device=negatives.device)
        position[negatives] = torch.arange(len(negatives), device=negatives.device)
        candidates = self._model.entity[negatives]
        for batch in torch.split(triples, _CHUNK):
            yield self._chunk(batch, candidates, position, side)

    def _chunk(self, batch: Tensor, candidates: Tensor, position: Tensor, side: Side) -> _Chunk:
        model = self._model
        head, relation_ids, tail = batch.t()
        anchor_ids, answer_ids = (head, tail) if side == "tail" else (tail, head)
        anchor, rows, answer = model.entity[anchor_ids], model.relation[relation_ids], model.entity[answer_ids]
        full = model.relation_rows(relation_ids, rows)
        points = model.tail_points(anchor, full) if side == "tail" else model.head_points(full, anchor)
        comparison = COMPARISONS[type(model.geometry)](model.geometry, points, answer, candidates)
        own = _own_places(batch, position)
        by_similarity = self._by_similarity(comparison, model.weights(full), own)
        by_point, by_answer, candidate_norms = comparison.pull(*by_similarity)
        known = Anchored(anchor, rows, points, side)
        by_anchor, by_relation = PULLS[model.name].back(model, known, by_point)
        squares = squared_norms(by_anchor) + squared_norms(by_answer) + by_relation.squared_norms() + candidate_norms
        # A self loop touches one row twice.
        squares += torch.where(head == tail, 2.0 * dots(by_anchor, by_answer), 0.0)
        norms = squares.clamp_(min=0.0).sqrt_()
        return _Chunk(anchor_ids, answer_ids, relation_ids, by_anchor, by_answer, by_relation, comparison, norms)

    def _by_similarity(
        self, comparison: Comparison, weights: Tensor | None, own: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Gradients of the loss by similarities: w (σ(f) − 1) [b] and w p σ(f) [b, m], w the weight of the relation."""
        positive, negative = comparison.positive(), comparison.negative()
        if weights is not None:
            positive, negative = positive * weights, negative * weights[:, None]
        positive, negative = positive + self._model.offset, negative + self._model.offset
        logits = self._temperature * negative
        logits[own] = torch.finfo(logits.dtype).min
        by_negative = torch.softmax(logits, dim=1).mul_(negative.sigmoid_())
        by_negative[own] = 0.0  # also where a triple has no other candidate
        by_positive = torch.sigmoid(positive) - 1.0
        if weights is not None:
            by_positive, by_negative = by_positive * weights, by_negative.mul_(weights[:, None])
        return by_positive, by_negative


def _own_places(batch: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns of [b, m] where a candidate is an end of the triple itself; the same place may come twice."""
    places = position[batch[:, [0, 2]]]
    rows, ends = torch.nonzero(places >= 0, as_tuple=True)
    return rows, places[rows, ends]
