"""Sums of per-triple gradients of the self-adversarial loss, each clipped jointly over all rows that it touches.

Of one triple (h, r, t) with the candidates N of the step, without h and t:

    L = −log σ(f(h, r, t)) − Σ_j p_j log σ(−f(h, r, n_j)),   p = softmax_j(α f(h, r, n_j)) held constant,

which is the project's loss (`secure_kg.learning.loss`) without its filter of false negatives: that would look at other
triples. Its gradient touches the rows of h, r, t and of every candidate. One norm is taken over all of them, and one
factor min(1, C / norm) scales all of them, so that a triple changes the two sums together by at most C. Clipping tables
apart, or ends apart from candidates, would let it change them by more.

**Claim.** For all finite rows of at most 10⁴, all candidates and batches of at most 2³¹ triples: one triple more or
less changes the two sums, as the numbers that are returned, by at most C in L2.

1. *A triple's part depends on that triple and public values alone.* Rows, points and weights are multiples of public
   powers of two, with so few bits that every partial sum of a matrix product is a whole number of units below 2⁵³. Such
   products are exact, so it does not matter how a library orders them, nor what other rows are there. All else is
   single operations of IEEE 754 on one value, or loops that keep their order (`strict`).
2. *A part as it is added is no longer than C (1 − 2⁻¹⁸).* What is added to the rows of the ends and of the relation is
   s v, cut towards zero to a public grid: no coordinate gets longer by that. What is added to candidate j is a weight
   times a vector, K (x − y) or W (s x) or K times a turn, and |K| ≤ s |W|, |cut(s x)| ≤ s |x| likewise; so it is no
   longer than s times W (x − y), and so on, whose norm is known from W and from |x|² or |x − y|², both exact. The norm
   over all is a sum of at most 2²⁹ squares in double precision; with square roots, products and the turns, whose
   modulus is bounded beside them, its relative error is below 2⁻²². Squares that underflow are less than 2⁻⁹⁰⁰ in all.
   So with s = min(1, C (1 − 2⁻¹⁷) / (computed norm² + 2⁻⁹⁰⁰)^1/2) the part is no longer than C (1 − 2⁻¹⁸). If a norm is
   not finite, s is zero. A row that a self loop touches twice is made one before its norm is taken; candidates that
   are ends of a triple have no weight. So no two parts of a triple fall on one row.
3. *Sums over triples are exact until the end.* Coordinates of ends and relations are at most 2²¹ units, and 2³¹ of
   those stay below 2⁵³. Sums over candidates are exact in a chunk, and across chunks in two limbs (`exact_sums`). Then
   there are two additions, each rounded once: off by at most 2⁻⁵³ times sums of norm 2³¹ C. For two neighbours that is
   4 · 2⁻²² C (1 + 2⁻²⁰) < 2⁻¹⁹ C, so all in all less than C (1 − 2⁻¹⁸ + 2⁻¹⁹) < C. ∎

It takes for granted that a library's matrix product adds up products of its entries, in any order and grouping, fused
or not, in double precision; that the compiler, told nothing else, keeps IEEE 754; and that it rounds to nearest. What
is cut off makes a gradient shorter, by less than 2⁻²⁰ of the clip in a coordinate of its ends. Rows are off by 2⁻¹⁸ of
the largest value in their table.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from secure_kg.data.graph import Side
from secure_kg.foundation.errors import UserError
from secure_kg.models.base import EmbeddingModel
from secure_kg.models.geometry import Dot
from secure_kg.privacy.gradients.comparisons import COMPARISONS, Comparison, squared_norms
from secure_kg.privacy.gradients.exact_sums import CHUNK, MOST_TRIPLES
from secure_kg.privacy.gradients.pulls import PULLS, Anchored, ByRelation, Pull, RelationSums
from secure_kg.privacy.gradients.strict import add_rows, gather, rounded
from secure_kg.privacy.gradients.units import END_BITS, ROW_BITS, Scales, largest, power_above, scales_of
from secure_kg.privacy.gradients.weighing import Loss

_MARGIN: Final = 1 - 2.0**-17
"""What rounding of norms, products and sums may take of the clip."""
_UNDERFLOW: Final = 2.0**-900
_TURN_UNIT: Final = 2.0**-40


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
    """Gradients of some triples, before clipping. A self loop has all of its row by the anchor."""

    anchor_ids: Tensor
    answer_ids: Tensor
    relation_ids: Tensor
    by_anchor: Tensor
    by_answer: Tensor
    by_relation: ByRelation
    norms: Tensor


def models_with_gradients() -> tuple[str, ...]:
    """Names of the models that can be trained privately."""
    return tuple(PULLS)


def touched_coordinates(model: EmbeddingModel, candidates: int) -> int:
    """The largest number of coordinates of both tables that one triple can change: h, t, candidates and r."""
    rows = min(len(model.entity), candidates + 2)
    return rows * model.entity.shape[1] + model.relation.shape[1]


class PrivateGradients:
    """Clipped sums over batches of triples, by the current rows of a model, which it never changes.

    All is computed on the processor, wherever the model is: other devices promise less of how they round.
    """

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
        step, device = _Step(self._model, negatives, clip, self._temperature), self._model.entity.device
        if len(triples) > MOST_TRIPLES:
            raise ValueError("so many triples that sums would be rounded")
        entity = torch.zeros(self._model.entity.shape, dtype=torch.float64)
        clipped = 0
        for chunk in step.chunks(triples, side):
            limit = (chunk.norms.square() + _UNDERFLOW).sqrt_()
            scale = torch.where(limit.isfinite(), (clip * _MARGIN / limit).clamp_(max=1.0), 0.0)
            clipped += int((chunk.norms > clip).sum())
            for ids, rows in ((chunk.anchor_ids, chunk.by_anchor), (chunk.answer_ids, chunk.by_answer)):
                add_rows(entity.numpy(), ids.numpy(), rows.numpy(), scale.numpy(), step.ends)
            step.relations.add(chunk.by_relation, chunk.relation_ids, scale)
            step.comparison.add(scale)
        entity.index_add_(0, negatives.cpu(), step.comparison.sums.total())
        return ClippedSums(entity.to(device), step.relations.total().to(device), clipped, len(triples))

    @torch.no_grad()
    def end_rows(self, triples: Tensor, negatives: Tensor, side: Side = "tail") -> EndRows:
        """Gradients by the two ends of each of triples [b, 3], b ≥ 1, unclipped; a self loop has all by the anchor."""
        step = _Step(self._model, negatives, 1.0, self._temperature)
        found = list(step.chunks(triples, side))
        anchor, answer = (torch.cat(rows) for rows in zip(*((c.by_anchor, c.by_answer) for c in found), strict=True))
        head, tail = (anchor, answer) if side == "tail" else (answer, anchor)
        return EndRows(head, tail, torch.cat([chunk.norms for chunk in found]))


class _Step:
    """What is the same for all triples of a step: public values, and where sums are made."""

    def __init__(self, model: EmbeddingModel, negatives: Tensor, clip: float, temperature: float) -> None:
        if len(torch.unique(negatives)) != len(negatives):
            raise ValueError("candidates must differ: the norm of a row drawn twice would be too small")
        self._model, self._temperature = model, temperature
        self._entity = model.entity.detach().cpu()
        self._pull: Pull = PULLS[model.name]()
        every = torch.arange(len(model.relation), device=model.relation.device)
        weights = model.weights(model.relation_rows(every, model.relation))
        self._weights = torch.ones(len(every), dtype=torch.float64) if weights is None else weights.cpu().double()
        if bool((self._weights < 0).any()):
            raise ValueError("weights of relations must not be negative")
        ids = negatives.cpu()
        scales = scales_of((self._entity, model.relation), self._entity[ids], largest(self._weights), clip)
        self._relation = self._pull.relation_table(model)
        self._find_units(scales)
        candidates = self._gathered(self._entity, ids, self._entity_unit)
        self.comparison: Comparison = COMPARISONS[type(model.geometry)](candidates, scales, self._point_unit)
        self.relations: RelationSums = self._pull.sums(model.relation.shape, self.ends[0], scales)
        self._position = torch.full((len(self._entity),), -1)
        self._position[ids] = torch.arange(len(ids))

    def _find_units(self, scales: Scales) -> None:
        pull, fine = self._pull, 2.0**-ROW_BITS
        farthest, steepest = pull.farthest(self._entity.shape[1], scales), pull.steepest(self._model, scales)
        if pull.one_grid:
            self._entity_unit = self._relation_unit = self._point_unit = fine * max(scales.entity, scales.relation)
        else:
            turns = self._relation.shape != self._model.relation.shape
            self._entity_unit, self._point_unit = fine * scales.entity, fine * farthest
            self._relation_unit = _TURN_UNIT if turns else fine * scales.relation
        # About the largest coordinate of a gradient, if it is below the clip. A larger one would be cut.
        steep, answer = (scales.entity, farthest) if isinstance(self._model.geometry, Dot) else (1.0, 1.0)
        reach = scales.weight * (2 * steep * steepest + answer)
        self.ends = min(2 * scales.clip, power_above(reach)) * 2.0**-END_BITS, 2.0**END_BITS

    def _gathered(self, table: Tensor, ids: Tensor, unit: float) -> Tensor:
        out = torch.empty(len(ids), table.shape[1], dtype=torch.float64)
        gather(table.numpy(), ids.numpy(), unit, out.numpy())
        return out

    def chunks(self, triples: Tensor, side: Side) -> Iterator[_Chunk]:
        """In turn; `comparison` stands at the one that was given last."""
        for batch in torch.split(triples.cpu(), CHUNK) if len(triples) else ():
            yield self._chunk(batch, side)

    def _chunk(self, batch: Tensor, side: Side) -> _Chunk:
        model = self._model
        head, relation_ids, tail = batch.t().contiguous()
        anchor_ids, answer_ids = (head, tail) if side == "tail" else (tail, head)
        anchor, answer = (self._gathered(self._entity, ids, self._entity_unit) for ids in (anchor_ids, answer_ids))
        rows = self._gathered(self._relation, relation_ids, self._relation_unit)
        points = self._pull.points(model, anchor, model.relation_rows(relation_ids, rows), side)
        if not self._pull.one_grid:
            rounded(points.numpy(), self._point_unit)
        own = self._position[batch[:, [0, 2]]]
        loss = Loss(self._temperature, model.offset, self._weights[relation_ids].numpy(), own.numpy())
        by_point, by_answer, candidate_squares = self.comparison.pull(points, answer, loss)
        by_anchor, by_relation = self._pull.back(model, Anchored(anchor, rows, points, side), by_point)
        loops = torch.nonzero(head == tail)[:, 0]
        if len(loops):
            by_anchor = by_anchor.clone()
            by_anchor[loops] += by_answer[loops]
            by_answer[loops] = 0.0
        squares = squared_norms(by_anchor) + squared_norms(by_answer) + by_relation.squared_norms() + candidate_squares
        return _Chunk(anchor_ids, answer_ids, relation_ids, by_anchor, by_answer, by_relation, squares.sqrt_())
