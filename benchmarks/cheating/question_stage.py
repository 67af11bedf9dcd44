"""A session of questions in one process for a party to cheat in: real clients with parts of one made-up model.

What is watched, to judge a cheat by, is what the asker got, and why parties would not go on.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import torch

from benchmarks.cheating.meddling import Cheat, Meddling
from benchmarks.cheating.score_stage import ACTIVE, ASKER, CLIENTS, Signers
from protocols.alignment.interface import Positions
from protocols.foundation.errors import Aborted, LeftOut, PeerLost, ProtocolError
from protocols.foundation.identifiers import SERVER, PartyId, SessionId
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.transport.base import Transport
from secure_kg.foundation.errors import UserError
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.models.queries.shapes import EncoderShape
from secure_kg.queries.language.reading import read_question
from secure_kg.queries.retrieval.asking import Retrieved
from secure_kg.queries.retrieval.facts import Vocabulary
from secure_kg.queries.retrieval.in_process import hold_session
from secure_kg.queries.retrieval.knowledge import Knowledge
from secure_kg.queries.retrieval.parts import Member, Session
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.retrieval.serving import Serving
from secure_kg.queries.retrieval.session import Budgets, Guards
from secure_kg.queries.retrieval.terms import PublicTerms

ENTITIES: Final = tuple(f"entity {number:02}" for number in range(12))
RELATIONS: Final = ("causes", "hinders", "needs", "treats")
DIM: Final = 4
QUESTION: Final = '?x : treats(?x, "entity 03")'
"""Of four steps: an entity, a projection, scores, names."""
OTHER: Final = '?x : needs("entity 07", ?x)'
"""Along a relation that the asker lacks."""
THIRD: Final = '?x : hinders("entity 01", ?x)'
EVERYTHING: Final = Rules("all")
_SECONDS: Final = 60.0
MakePatience = Callable[[Cheat], Patience]


@cache
def _whole() -> QueryModel:
    size = QueryModelSize(len(ENTITIES), len(RELATIONS), "gqe", EncoderShape(DIM, 1), "squared")
    return QueryModel(size, torch.Generator().manual_seed(1), torch.Generator().manual_seed(2))


def _knowledge(client: PartyId, rules: Rules) -> Knowledge:
    """Every relation and every entity has two holders at least, so that no lookup depends on one client."""
    entities = [place for place in range(len(ENTITIES)) if place % len(CLIENTS) != client - 1]
    relations = [place for place in range(len(RELATIONS)) if (place + client) % 2 == 0]
    whole = _whole()
    size = dataclasses.replace(whole.size, entities=len(entities), relations=len(relations))
    rows = entities + [len(ENTITIES) + 2 * place + way for place in relations for way in (0, 1)]
    model = QueryModel(size, torch.Generator(), torch.Generator())
    with torch.no_grad():
        model.rows.copy_(whole.rows[rows])
        model.operators.copy_(whole.operators)
    own = Vocabulary(tuple(ENTITIES[place] for place in entities), tuple(RELATIONS[place] for place in relations))
    return Knowledge(own, model, Positions(len(ENTITIES), np.array(entities), b"a union"), None, rules)


@dataclass
class QuestionStage:
    """One session, its folder, and what became of it. `perform` holds it."""

    path: Path
    questions: tuple[str, ...] = (QUESTION, QUESTION)
    rules: Rules = EVERYTHING
    """Of the clients that answer."""
    budgets: Mapping[PartyId, Budgets] = field(default_factory=dict)
    patience: MakePatience = lambda cheat: Patience.fixed(_SECONDS)
    client: tuple[PartyId, Cheat] | None = None
    """A client that cheats, and how it bends what it says."""
    refused: dict[str, str] = field(default_factory=dict)
    """By client: why it would not go on, or what the asker was told in place of an answer."""
    crashed: list[str] = field(default_factory=list)
    server_end: str = "done"

    def __post_init__(self) -> None:
        self._signers = Signers.of(CLIENTS)
        self.directory: Mapping[PartyId, bytes] | None = self._signers.directory
        self.session = Session()

    @property
    def run(self) -> Path:
        return self.path / "run"

    def retrieved(self, number: int) -> Retrieved | None:
        """What a question came to, if the session came so far."""
        outcomes = self.session.outcomes
        return outcomes[number].retrieved if number < len(outcomes) else None

    def perform(self, cheat: Cheat) -> None:
        """The session under a server's `cheat`."""
        self.run.mkdir()
        public = PublicTerms(
            clients=CLIENTS,
            asker=ASKER,
            union=len(ENTITIES),
            dim=DIM,
            score="squared",
            clip=16.0,
            backend="masked",
            top=3,
            least=1,
        )
        serving = Serving(public, ACTIVE, self.patience(cheat), lambda parties, step: None, self.run)
        members = {
            party: Member(
                _knowledge(party, self.rules if party != ASKER else EVERYTHING),
                Guards(ACTIVE, _SECONDS, self.budgets.get(party, Budgets()), self._signers.credentials[party]),
            )
            for party in CLIENTS
        }
        bends = {SERVER: cheat} | (dict([self.client]) if self.client is not None else {})

        def converse(transport: Transport, session: SessionId) -> Conversation:
            bend = bends.get(transport.party)
            return Conversation(transport if bend is None else Meddling(transport, bend), session)

        asked = [read_question(text) for text in self.questions]
        self.session = hold_session(serving, members, asked, _SECONDS, converse)
        self._judge_ends()

    def _judge_ends(self) -> None:
        for party, problem in self.session.problems.items():
            if isinstance(problem, Aborted):
                self.server_end = str(problem)
            elif isinstance(problem, LeftOut | PeerLost):
                continue
            elif isinstance(problem, ProtocolError | UserError):
                self.refused[str(party)] = f"{type(problem).__name__}: {problem}"
            else:
                self.crashed.append(f"party {party}: {type(problem).__name__}: {problem}")
        for outcome in self.session.outcomes:
            if outcome.problem:
                self.refused.setdefault(str(ASKER), outcome.problem)
