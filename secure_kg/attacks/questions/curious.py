"""An asker that keeps to the protocol and asks for what it likes: any names, points and relations, in real sessions.

All parties are threads, and each has its own end of the wire (`protocols.transport.in_threads`). The others run the
program of every client that answers.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import SERVER, SETUP, new_session
from protocols.lookups import vectors
from protocols.lookups.vectors import FoundVectors, Vectors
from protocols.scores.ranking import Ranking
from protocols.session.conversation import Conversation, Failed
from protocols.session.patience import Patience
from protocols.transport.base import Transport
from protocols.transport.in_threads import run_in_process
from secure_kg.attacks.questions.parties import Parties
from secure_kg.queries.retrieval.answering import Answering
from secure_kg.queries.retrieval.asking import Asking
from secure_kg.queries.retrieval.requests import (
    CELL_BYTES,
    Numbers,
    Step,
    bytes_of_step,
    write_names,
    write_steps,
)
from secure_kg.queries.retrieval.serving import Serving, serve
from secure_kg.queries.retrieval.session import Guards, Tools
from secure_kg.queries.retrieval.terms import Kind, PlannedStep

T = TypeVar("T")
_SECONDS: Final = 600.0


class Curious(Asking):
    """What it reads is what others say: its own knowledge is no part of the answers. `SumAbandoned` if they refuse."""

    def rows(self, names: Sequence[str]) -> FoundVectors:
        """Rows of entities by name, and how many others gave each."""
        step = self._announced(Kind.ENTITIES, len(names))
        return self._looked_up(step, write_names(names), len(names), self._public.dim)

    def projected(self, steps: Sequence[Step]) -> FoundVectors:
        """Points along relations, all of one width, and how many others gave each."""
        width = len(steps[0].point)
        step = self._announced(Kind.PROJECTIONS, len(steps), width // self._public.dim)
        return self._looked_up(step, write_steps(steps), len(steps), width)

    def best(self, point: Numbers) -> Ranking:
        """The answers to one point of its choice. Here its own scores count, as the protocol has it."""
        return self._scored(point[None]).ranking

    @property
    def most_rows(self) -> int:
        """In one step."""
        return self._public.vectors_at_once(1, CELL_BYTES)

    def most_steps(self, width: int) -> int:
        """Projections of points of so many numbers in one step."""
        return self._public.vectors_at_once(width // self._public.dim, bytes_of_step(width))

    def _looked_up(self, step: PlannedStep, request: bytes, number: int, width: int) -> FoundVectors:
        if step.vectors is None:
            raise ValueError("a lookup without terms")
        nothing: npt.NDArray[np.float32] = np.zeros((0, width), dtype=np.float32)
        own = Vectors(np.zeros(number, dtype=np.bool_), nothing)
        return vectors.ask(self._tools.vectors, self._tools.session, step.vectors, request, own)


def as_asker(parties: Parties, work: Callable[[Curious], T]) -> T:
    """What the asker of `parties` makes of one session; raises what ended it."""
    number, asker = new_session(), parties.public.asker
    serving = Serving(parties.public, parties.model, Patience.fixed(_SECONDS), lambda who, step: None)
    found = list[T]()

    def part(transport: Transport) -> None:
        conversation, party = Conversation(transport, number), transport.party
        try:
            guards = Guards(parties.model, _SECONDS, parties.budgets[party])
            tools = Tools(parties.public, parties.knowledge[party], conversation, guards)
            if party != asker:
                Answering(tools).run()
                return
            curious = Curious(tools)
            found.append(work(curious))
            curious.end()
        except Exception:
            conversation.send(SERVER, Failed("an attack has ended"), SETUP)
            raise

    ended = run_in_process(
        lambda wire: serve(serving, Conversation(wire, number)),
        dict.fromkeys(parties.knowledge, part),
        seconds=_SECONDS,
    )
    for party in (asker, *parties.others):
        if (error := ended.clients[party].error) is not None:
            raise error
    if not found:
        raise TimeoutError("the asker has not ended in time")
    return found[0]
