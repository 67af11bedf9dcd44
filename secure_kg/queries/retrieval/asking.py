"""The asker: from a question to ranked and named answers."""

import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
import torch

from protocols.foundation.errors import ProtocolError
from protocols.lookups import steps, vectors
from protocols.lookups.messages import NextStep
from protocols.lookups.vectors import Vectors
from protocols.scores import batches
from protocols.scores.interface import Answer, ScoringReport
from protocols.scores.ranking import Ranking
from protocols.scores.topk.hidden_batches import as_bytes
from secure_kg.foundation.errors import UserError
from secure_kg.models.queries.encoder import State
from secure_kg.queries.form import Anchor, Intersection, NamedQuery, Negation, Projection, QueryError
from secure_kg.queries.naming import Kind as NameKind
from secure_kg.queries.naming import ascii_quoted, unknown_names
from secure_kg.queries.retrieval.costs import SentBytes, sent_bytes
from secure_kg.queries.retrieval.formulas import ExactPlan
from secure_kg.queries.retrieval.knowledge import flat
from secure_kg.queries.retrieval.plan import NamedProjection, Plan
from secure_kg.queries.retrieval.requests import (
    CELL_BYTES,
    Numbers,
    Step,
    beyond,
    bytes_of_step,
    write_atoms,
    write_names,
    write_points,
    write_steps,
)
from secure_kg.queries.retrieval.rules import Exact
from secure_kg.queries.retrieval.session import Tools
from secure_kg.queries.retrieval.terms import LONGEST, Kind, PlannedStep

T = TypeVar("T")
_ROOM: Final = 1.5
"""How much longer than the asker's longest row those of others may be, at least."""


@dataclass(frozen=True, slots=True)
class Found:
    """One answer. `mean`: its score, where the backend opens means. `stored`: None if nobody was asked."""

    position: int
    name: str | None = field(repr=False)
    mean: float | None = None
    stored: bool | None = None


@dataclass(frozen=True, slots=True)
class AskedStep:
    """One step as everybody saw it announced."""

    kind: str
    sizes: tuple[int, ...]
    sent: SentBytes | None = None
    """What a lookup makes clients send at most, in closed form."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What stored facts give."""

    positions: tuple[int, ...] = field(repr=False)
    """All of them, in order."""
    answers: tuple[Found, ...]
    """Those that names were asked for: as many as answers are wanted, first those that are predicted, too."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a question came to."""

    answers: tuple[Found, ...]
    """Predicted, best first."""
    contributors: tuple[int, ...]
    """Whose scores are in it, the asker's aside."""
    steps: tuple[AskedStep, ...]
    clipped: int = 0
    """Scores of the asker's own that were too large to be carried."""
    stored: Stored | None = None
    """None: not asked for."""


class Asking:
    """One question at a time; several may follow each other in one session."""

    def __init__(self, tools: Tools) -> None:
        self._tools, self._knowledge, self._public = tools, tools.knowledge, tools.public
        self._number = 0
        self._asked: list[AskedStep] = []
        self._states: dict[NamedQuery, State] = {}

    @property
    def steps(self) -> tuple[AskedStep, ...]:
        """All that were announced so far, those of questions that came to nothing included."""
        return tuple(self._asked)

    def ask(self, query: NamedQuery) -> Retrieved:
        """`UserError` in one line for what nobody knows; `SumAbandoned` if a step came to nothing."""
        before, exact = len(self._asked), self._public.exact
        formula = None if exact is Exact.NO else ExactPlan.of(query)
        plan = None if exact is Exact.ONLY else self._encodable(query)
        stored = None if formula is None else self._stored(formula)
        answer = self._nothing_predicted() if plan is None else self._predicted(plan)
        ranking = answer.ranking
        best = ranking.positions[0].tolist()
        means: Sequence[float | None] = [None] * len(best) if ranking.means is None else ranking.means[0].tolist()
        shown = _shown(stored or (), best, self._public.top)
        named = self._named([*best, *(at for at in shown if at not in best)])
        found = tuple(
            Found(at, named.get(at), mean, None if stored is None else at in stored)
            for at, mean in zip(best, means, strict=True)
        )
        return Retrieved(
            found,
            tuple(sorted(ranking.contributors)),
            tuple(self._asked[before:]),
            answer.report.clipped,
            None if stored is None else Stored(stored, tuple(Found(at, named.get(at), stored=True) for at in shown)),
        )

    def end(self) -> None:
        """Tell everybody that there is no further step."""
        round_id = steps.round_of(self._number)
        steps.announce(self._tools.session, round_id, steps.last(self._tools.key, round_id))

    def _announced(self, kind: Kind, *sizes: int) -> PlannedStep:
        message = NextStep(kind.value, list(sizes), self._knowledge.table)
        try:
            step = self._public.planned(self._number, message)
        except (ValueError, ProtocolError) as problem:
            raise UserError(f"this question cannot be asked: {problem}") from None
        steps.announce(self._tools.session, steps.round_of(self._number), message)
        self._number += 1
        self._asked.append(AskedStep(kind.value, sizes, sent_bytes(self._public, step, signed=self._tools.signed)))
        return step

    def _encodable(self, query: NamedQuery) -> Plan:
        """Before anybody is asked: an encoder may have no definition of a negation."""
        plan, empty = Plan.of(query), torch.zeros(1, self._knowledge.dim)
        for branch in plan.branches:
            self._state(branch, {anchor: self._knowledge.encoder.anchor(empty) for anchor in plan.anchors}, dry=True)
        return plan

    def _stored(self, plan: ExactPlan) -> tuple[int, ...]:
        """Positions in order. Here, too, the asker's own facts are no more than its part of all."""
        request, own = write_atoms(plan.atoms), self._knowledge.facts.sets(plan.atoms, for_others=False)
        step = self._announced(Kind.EXACT, len(plan.atoms))
        return tuple(self._tools.exact.ask(self._tools.session, step.terms, plan.formula, request, own).tolist())

    def _predicted(self, plan: Plan) -> Answer:
        self._states = {}
        self._look_up_anchors(plan.anchors)
        for level in plan.levels:
            self._look_up_projections(level)
        return self._scored(self._points(plan))

    def _nothing_predicted(self) -> Answer:
        others = frozenset(int(party) for party in self._public.clients if party != self._public.asker)
        return Answer(Ranking((np.zeros(0, dtype=np.int64),), others), ScoringReport())

    def _look_up_anchors(self, anchors: Sequence[Anchor[str]]) -> None:
        encoder = self._knowledge.encoder
        for part in _in_parts(anchors, self._public.vectors_at_once(1, CELL_BYTES)):
            names = [anchor.entity for anchor in part]
            request, own = write_names(names), self._knowledge.entity_rows(names, for_others=False)
            rows = self._found(self._announced(Kind.ENTITIES, len(part)), request, own, [("entity", n) for n in names])
            with torch.no_grad():
                for anchor, row in zip(part, rows, strict=True):
                    self._states[anchor] = encoder.anchor(torch.from_numpy(row)[None])

    def _look_up_projections(self, level: Sequence[NamedProjection]) -> None:
        """Of one depth. Points of different widths go into different steps: sizes are those of one."""
        by_width: dict[int, list[tuple[NamedProjection, Step]]] = {}
        for node in level:
            state = self._state(node.of, self._states)
            point = flat(state)
            self._require_askable(point)
            step = Step(node.relation, node.inverse, isinstance(node.of, Anchor), point)
            by_width.setdefault(len(point), []).append((node, step))
        for width, asked in by_width.items():
            several = width // self._public.dim
            for part in _in_parts(asked, self._public.vectors_at_once(several, bytes_of_step(width))):
                wanted = [step for _, step in part]
                request, own = write_steps(wanted), self._knowledge.projected(wanted, width, for_others=False)
                names: list[tuple[NameKind, str]] = [("relation", step.relation) for step in wanted]
                rows = self._found(self._announced(Kind.PROJECTIONS, len(part), several), request, own, names)
                for (node, _), row in zip(part, rows, strict=True):
                    self._states[node] = self._knowledge.state(row)

    def _found(
        self, step: PlannedStep, request: bytes, own: Vectors, names: Sequence[tuple[NameKind, str]]
    ) -> Sequence[Numbers]:
        """The means of what all know; `UserError` for what nobody does."""
        if step.vectors is None:
            raise ValueError("a lookup without terms")
        found = vectors.ask(self._tools.vectors, self._tools.session, step.vectors, request, own)
        for known, (kind, name) in zip(found.counts.tolist(), names, strict=True):
            if not known:
                raise UserError(self._unknown(kind, name))
        return list(found.means.astype(np.float32))

    def _unknown(self, kind: NameKind, name: str) -> str:
        atom: NamedQuery = Anchor(name) if kind == "entity" else Projection(name, Anchor(name))
        own = self._knowledge.vocabulary
        near = [one.nearest for one in unknown_names(atom, own.entities, own.relations) if one.kind == kind]
        told = f"; the nearest known here: {', '.join(map(ascii_quoted, near[0]))}" if near and near[0] else ""
        return f"nobody knows, or tells of, the {kind} {ascii_quoted(name)}{told}"

    def _state(self, node: NamedQuery, known: dict[NamedQuery, State], *, dry: bool = False) -> State:
        """`dry`: every projection stays where it is; only to find out whether there are definitions."""
        encoder = self._knowledge.encoder
        if node in known:
            return known[node]
        with torch.no_grad():
            match node:
                case Intersection(parts=parts):
                    return encoder.intersect([self._state(part, known, dry=dry) for part in parts])
                case Negation(of=of):
                    return encoder.complement(self._state(of, known, dry=dry))
                case Projection(of=of) if dry:
                    return self._state(of, known, dry=True)
                case _:
                    raise QueryError("a part of the question was not looked up")

    def _points(self, plan: Plan) -> Numbers:
        """[k, d]: those of all branches. An entity's score is that of its best point, so it does not matter whose."""
        encoder = self._knowledge.encoder
        found = [encoder.points(self._state(branch, self._states))[0] for branch in plan.branches]
        points: Numbers = torch.cat(found).detach().numpy().astype(np.float32)
        return points

    def _require_askable(self, points: Numbers) -> None:
        """`UserError` for points that others refuse."""
        if beyond(points, self._public.largest_number):
            most = self._public.largest_number
            raise UserError(f"this question cannot be asked: its points have numbers beyond {most:g}")

    def _scored(self, points: Numbers) -> Answer:
        self._require_askable(points)
        if self._public.hidden:
            return self._scored_hidden(points)
        step, own = self._announced(Kind.SCORES, len(points)), self._knowledge.scores(points)
        return batches.ask(self._tools.scores, self._tools.session, step.terms, write_points(points), own)

    def _scored_hidden(self, points: Numbers) -> Answer:
        row = _power(_ROOM * self._knowledge.longest_row)
        query = max(row, _power(float(np.linalg.norm(points.astype(np.float64), axis=1).max()) * (1 + 1e-6)))
        step = self._announced(Kind.HIDDEN, len(points), row, query)
        client, own = self._tools.hidden(step), self._knowledge.scores(points)
        return batches.ask(client, self._tools.session, step.terms, as_bytes(points), own)

    def _named(self, best: Sequence[int]) -> dict[int, str]:
        """Own names first. Others are asked for, among own ones that fill the request up: its size tells nothing."""
        own, room = self._knowledge.own_names, self._public.top * len(self._public.bundles)
        lacking = [position for position in best if position not in own]
        others = [position for position in own if position not in best]
        wanted = _drawn(lacking + _drawn(others, room - len(lacking)), room)
        found: dict[int, str] = {}
        for part in _in_parts(wanted, self._public.top):
            step = self._announced(Kind.NAMES, len(part))
            names = self._tools.names.ask(self._tools.session, step.terms, part)
            found |= {position: name for position, name in zip(part, names, strict=True) if name}
        return found | own


def _in_parts(whole: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(whole), most):
        yield whole[start : start + most]


def _drawn(positions: Sequence[int], number: int) -> list[int]:
    """So many of them, or all, in random order."""
    left, drawn = list(positions), list[int]()
    while left and len(drawn) < number:
        drawn.append(left.pop(secrets.randbelow(len(left))))
    return drawn


def _shown(stored: Sequence[int], best: Sequence[int], most: int) -> list[int]:
    """So many of the stored answers: those that are predicted as well by their rank, then others by position."""
    ranks = {position: rank for rank, position in enumerate(best)}
    return sorted(stored, key=lambda position: (ranks.get(position, len(best)), position))[:most]


def _power(norm: float) -> int:
    """Binary logarithm of the smallest power of two that is not below."""
    return math.ceil(math.log2(min(max(norm, 1.0), 2.0**LONGEST)))
