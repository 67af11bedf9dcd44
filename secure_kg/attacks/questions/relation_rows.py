"""Rows of relations that others hold, from points before and after a projection along them.

Attacker:  the asker. It chooses the points, and has the operators: they are the same at all clients.
Has:       of one projection the point before and the point after it.
Gains:     where relations translate (GQE), the row: after minus before, to the rounding of the sum. Where a network
           moves points (Query2Particles, tree-LSTM), a difference gives nothing. But the network is known and only its
           input, the row, is not: it is solved for by least squares, from a start among the asker's own rows.
Bound by:  the budget of vectors, of which every answer costs one for each point in it; and rules: nobody projects along
           a relation under --no-atoms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from protocols.foundation.errors import SumAbandoned
from secure_kg.attacks.questions.curious import Curious, as_asker
from secure_kg.attacks.questions.parties import Parties
from secure_kg.models.queries.encoder import Encoder
from secure_kg.queries.retrieval.knowledge import Knowledge, flat
from secure_kg.queries.retrieval.requests import Step

TOLERANCE: Final = 1e-3
"""A row counts as computed if no number of it is off by more."""
_STARTS: Final = 3
_ITERATIONS: Final = 150
_EXPLAINED: Final = 1e-9
"""A sum of squares that is rounding: no other start is better."""

Rows = npt.NDArray[np.float64]
Way = tuple[str, bool]
"""A relation and whether it is followed backwards."""


def ways_of(knowledge: Knowledge) -> list[Way]:
    return [(name, inverse) for name in knowledge.vocabulary.relations for inverse in (False, True)]


def true_row(knowledge: Knowledge, way: Way) -> Rows:
    """For its holder, and to score a guess."""
    return np.asarray(knowledge.relation_row(*way), dtype=np.float64)


def foreign_ways(parties: Parties) -> dict[Way, Knowledge]:
    """What the asker lacks, with a holder of each."""
    own = set(ways_of(parties.own))
    return {way: one for one in parties.others.values() for way in ways_of(one) if way not in own}


@dataclass(frozen=True, slots=True)
class Projected:
    """Points before and after a projection along one relation [answers, width]."""

    before: npt.NDArray[np.float32]
    after: Rows


def projections(curious: Curious, own: Knowledge, ways: Sequence[Way], answers: int) -> dict[Way, Projected]:
    """So many answers for each way, from anchors of the asker's own. Ends where others refuse, without an error."""
    anchors = own.vocabulary.entities[:answers]
    rows = torch.from_numpy(own.entity_rows(anchors, for_others=False).values)
    with torch.no_grad():
        before = np.stack([flat(own.encoder.anchor(row[None])) for row in rows])
    found: dict[Way, Projected] = {}
    most = max(1, curious.most_steps(before.shape[1]) // answers)
    for start in range(0, len(ways), most):
        part = ways[start : start + most]
        steps = [Step(relation, inverse, True, point) for relation, inverse in part for point in before]
        try:
            told = curious.projected(steps)
        except SumAbandoned:
            break
        means = told.means.reshape(len(part), answers, -1)
        known = told.counts.reshape(len(part), answers)[:, 0] > 0
        found |= {way: Projected(before, after) for way, after, one in zip(part, means, known, strict=True) if one}
    return found


def rows_by_difference(found: dict[Way, Projected], dim: int) -> dict[Way, Rows]:
    """After minus before, of the first point."""
    return {way: one.after[0, :dim] - one.before[0, :dim].astype(np.float64) for way, one in found.items()}


def rows_by_fit(found: dict[Way, Projected], own: Knowledge) -> dict[Way, Rows]:
    """The input of the known network that moves points as they were moved; the best of a few starts."""
    starts = [true_row(own, way) for way in ways_of(own)[:_STARTS]]
    return {way: _fitted(one, own, starts) for way, one in found.items()}


def _fitted(found: Projected, own: Knowledge, starts: Sequence[Rows]) -> Rows:
    encoder = _in_double(own.encoder)
    before = torch.cat([own.state(point) for point in found.before]).double()
    after = torch.from_numpy(found.after).view_as(before)
    best, least = starts[0], np.inf
    for start in starts:
        row = torch.from_numpy(start.copy()).requires_grad_()
        solver = torch.optim.LBFGS([row], max_iter=_ITERATIONS, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

        def loss(row: Tensor = row, solver: torch.optim.LBFGS = solver) -> Tensor:
            solver.zero_grad()
            moved = encoder.project(before, row[None].expand(len(before), -1), True)
            error = (moved - after).square().sum()
            error.backward()  # type: ignore[no-untyped-call]
            return error

        solver.step(loss)  # type: ignore[no-untyped-call]
        error = float(loss().detach())
        if error < least:
            best, least = row.detach().numpy().copy(), error
        if error < _EXPLAINED:
            break
    return best


def _in_double(encoder: Encoder) -> Encoder:
    """Single precision would end the search early."""
    operators = {name: part.detach().double() for name, part in encoder.operators.items()}
    return type(encoder)(operators, encoder.shape)


@dataclass(frozen=True, slots=True)
class RowsFound:
    """Rows that were computed, beside those that there are."""

    wanted: int
    answered: int
    computed: int
    """No number of them is off by more than `TOLERANCE`."""
    largest_error: float
    """Of a number of any row that was answered."""
    error: float
    """Root mean square of a row, relative to that of a guess, the mean of the asker's own rows; median over rows."""

    @classmethod
    def score(cls, guessed: dict[Way, Rows], wanted: int, parties: Parties) -> "RowsFound":
        truth = foreign_ways(parties)
        if not guessed:
            return cls(wanted, 0, 0, 0.0, 1.0)
        right = np.stack([true_row(truth[way], way) for way in guessed])
        errors = np.abs(np.stack(list(guessed.values())) - right)
        mean = np.mean([true_row(parties.own, way) for way in ways_of(parties.own)], axis=0)
        computed = int((errors.max(axis=1) <= TOLERANCE).sum())
        relative = np.sqrt(np.square(errors).mean(axis=1) / np.square(mean - right).mean(axis=1))
        return cls(wanted, len(guessed), computed, float(errors.max()), float(np.median(relative)))


def attack_rows(parties: Parties, answers: int = 1, *, fit: bool, most: int | None = None) -> RowsFound:
    """One real session: as many answers as asked for, for relations that the asker lacks and either way.

    `most`: how many rows, spread over all of them; None: every one.
    """
    wanted, own = list(foreign_ways(parties)), parties.own
    wanted = wanted[:: max(1, len(wanted) // most)][:most] if most is not None else wanted
    found = as_asker(parties, lambda curious: projections(curious, own, wanted, answers))
    return RowsFound.score(rows_by_fit(found, own) if fit else rows_by_difference(found, own.dim), len(wanted), parties)


def attack_within_budget(parties: Parties) -> RowsFound:
    """One relation at a time, until others refuse."""
    wanted, own = list(foreign_ways(parties)), parties.own

    def one_by_one(curious: Curious) -> dict[Way, Projected]:
        found: dict[Way, Projected] = {}
        for way in wanted:
            told = projections(curious, own, [way], 1)
            if not told:
                break
            found |= told
        return found

    found = as_asker(parties, one_by_one)
    return RowsFound.score(rows_by_difference(found, own.dim), len(wanted), parties)
