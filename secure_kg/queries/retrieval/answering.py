"""Every client but the asker: it answers what is announced and within its own settings, and nothing else."""

from collections.abc import Callable
from itertools import count
from typing import assert_never

from protocols.exact.circuit import Sets
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.lookups import steps, vectors
from protocols.lookups.vectors import Vectors
from protocols.scores import batches
from protocols.scores.interface import Scores
from secure_kg.queries.retrieval.requests import read_atoms, read_names, read_points, read_steps
from secure_kg.queries.retrieval.session import Tools
from secure_kg.queries.retrieval.terms import Kind, PlannedStep


class Answering:
    """One client's part in one session."""

    def __init__(self, tools: Tools, after_step: Callable[[], None] = lambda: None) -> None:
        """`after_step`: called after every step, whatever came of it."""
        self._tools, self._knowledge, self._public = tools, tools.knowledge, tools.public
        self._after_step = after_step

    def run(self) -> int:
        """Until the asker says that there is no more to come; how many steps there were."""
        for number in count():
            announced = steps.awaited(self._tools.session, steps.round_of(number))
            if steps.is_last(announced, self._tools.key, steps.round_of(number)):
                return number
            if announced.table != self._knowledge.table:
                raise PeerMisbehaved("the asker has another model than this client")
            try:
                self._answer(self._public.step(number, announced))
            except SumAbandoned:
                continue  # the asker was told, and decides whether there is another step
            finally:
                self._after_step()
        raise AssertionError("unreachable: there is a last step")

    def _answer(self, step: PlannedStep) -> None:
        tools = self._tools
        match step.kind:
            case Kind.ENTITIES | Kind.PROJECTIONS:
                if step.vectors is None:
                    raise ValueError("a lookup without terms")
                if step.kind is Kind.PROJECTIONS:  # all clients alike, whoever knows the relation: it is not asked yet
                    self._knowledge.require_width(step.vectors.width)
                answering = self._entities if step.kind is Kind.ENTITIES else self._projections
                vectors.answer(tools.vectors, tools.session, step.vectors, lambda request: answering(request, step))
            case Kind.SCORES:
                batches.score(tools.scores, tools.session, step.terms, lambda request: self._scored(request, step))
            case Kind.HIDDEN:
                batches.score(tools.hidden(step), tools.session, step.terms, lambda _: self._never())
            case Kind.EXACT:
                tools.exact.answer(tools.session, step.terms, lambda atoms: self._stored(atoms, step))
            case Kind.NAMES:
                tools.names.answer(tools.session, step.terms, self._knowledge.named)
            case _:
                assert_never(step.kind)

    def _stored(self, atoms: bytes, step: PlannedStep) -> Sets:
        return self._knowledge.facts.sets(read_atoms(atoms, step.sizes[0]), for_others=True)

    def _entities(self, request: bytes, step: PlannedStep) -> Vectors:
        return self._knowledge.entity_rows(read_names(request, step.sizes[0]), for_others=True)

    def _projections(self, request: bytes, step: PlannedStep) -> Vectors:
        number, points = step.sizes
        width = points * self._public.dim
        asked = read_steps(request, number, width, self._public.largest_number)
        return self._knowledge.projected(asked, width, for_others=True)

    def _scored(self, request: bytes, step: PlannedStep) -> Scores:
        points = read_points(request, step.sizes[0], self._public.dim, self._public.largest_number)
        return self._knowledge.scores(points)

    @staticmethod
    def _never() -> Scores:
        raise TypeError("hidden queries are not scored in clear")
