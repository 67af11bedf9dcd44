"""Clients with parts of one made-up model, and questions over them as sessions of threads."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from protocols.alignment.interface import Positions
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.sums.secagg.params import ThreatModel
from protocols.transport.base import Transport
from secure_kg.data.graph import TripleArray
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.models.queries.scoring import pairs
from secure_kg.models.queries.shapes import EncoderShape, Score
from secure_kg.queries.edges import QueryGraph
from secure_kg.queries.form import NamedQuery
from secure_kg.queries.language.reading import read_question
from secure_kg.queries.naming import to_ids
from secure_kg.queries.retrieval.facts import Vocabulary
from secure_kg.queries.retrieval.in_process import hold_session
from secure_kg.queries.retrieval.knowledge import Knowledge
from secure_kg.queries.retrieval.parts import Member, Session
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.retrieval.serving import Serving
from secure_kg.queries.retrieval.session import Budgets, Guards
from secure_kg.queries.retrieval.terms import PublicTerms
from secure_kg.queries.structures import as_row

ENTITIES = tuple(f"e{number:02}" for number in range(14))
RELATIONS = ("cures", "has", "likes", "owns")
UNION = 18
DIM = 6
SHARED = 10
"""So many entities are held by two clients or more; each of the others by one."""

_UNION_ORDER = np.random.default_rng(5).permutation(UNION)


def positions_of(entities: Sequence[str]) -> np.ndarray[Any, Any]:
    return np.array([_UNION_ORDER[ENTITIES.index(name)] for name in entities], dtype=np.int64)


@dataclass(frozen=True)
class World:
    """One model, and who holds what of it."""

    encoder: str = "gqe"
    score: Score = "squared"
    clients: int = 3
    facts: int = 0
    """How many triples each client has stored. With facts every client has all relations."""
    seed: int = 0

    @property
    def whole(self) -> QueryModel:
        size = QueryModelSize(len(ENTITIES), len(RELATIONS), self.encoder, EncoderShape(DIM, 2), self.score)
        return QueryModel(size, torch.Generator().manual_seed(1), torch.Generator().manual_seed(2))

    def held(self, client: int) -> Vocabulary:
        """Relations have one holder each. Shared entities are with all but one client, in turn."""
        shared = [name for place, name in enumerate(ENTITIES[:SHARED]) if place % self.clients != client - 1]
        alone = [name for place, name in enumerate(ENTITIES[SHARED:]) if place % self.clients == client - 1]
        relations = [name for place, name in enumerate(RELATIONS) if self.facts or place % self.clients == client - 1]
        return Vocabulary((*shared, *alone), tuple(relations))

    def stored(self, client: int) -> TripleArray:
        """In ids of the client's own names."""
        own, rng = self.held(client), np.random.default_rng([self.seed, client])
        sizes = (len(own.entities), len(own.relations), len(own.entities))
        return np.column_stack([rng.integers(0, size, self.facts) for size in sizes])

    def graph(self, clients: Sequence[int]) -> QueryGraph:
        """What these clients have stored, in one place, in ids of all names."""
        parts = [np.zeros((0, 3), dtype=np.int64)]
        for client in clients:
            entities = np.array([ENTITIES.index(name) for name in self.held(client).entities])
            triples = self.stored(client)
            parts.append(np.column_stack([entities[triples[:, 0]], triples[:, 1], entities[triples[:, 2]]]))
        return QueryGraph.of(np.concatenate(parts), len(ENTITIES), len(RELATIONS))

    def knowledge(self, client: int, rules: Rules) -> Knowledge:
        own, whole = self.held(client), self.whole
        size = dataclasses.replace(whole.size, entities=len(own.entities), relations=len(own.relations))
        rows = [ENTITIES.index(name) for name in own.entities]
        first = len(ENTITIES)
        rows += [first + 2 * RELATIONS.index(name) + way for name in own.relations for way in (0, 1)]
        model = QueryModel(size, torch.Generator(), torch.Generator())
        with torch.no_grad():
            model.rows.copy_(whole.rows[rows])
            model.operators.copy_(whole.operators)
        positions = Positions(UNION, positions_of(own.entities), b"a union" * 4)
        averaged = np.array([name in ENTITIES[:SHARED] for name in own.entities])
        return Knowledge(own, model, positions, averaged, rules, self.stored(client))

    def best(self, question: NamedQuery, top: int) -> list[int]:
        """The best positions if one party had everything."""
        structure, row = as_row(to_ids(question, ENTITIES, RELATIONS))
        whole = self.whole
        with torch.no_grad():
            points = whole.points(structure, torch.tensor([list(row)]))
            scores = pairs(points, whole.entity, whole.size.compares)[0].numpy()
        at = positions_of(ENTITIES)
        return [int(at[place]) for place in np.lexsort((at, -scores))[:top]]


Bends: TypeAlias = Mapping[int, Callable[[Conversation], Conversation]]
"""By party: how its end is bent."""


def ask(
    world: World,
    *questions: str | NamedQuery,
    rules: Mapping[int, Rules] | None = None,
    budgets: Mapping[int, Budgets] | None = None,
    bends: Bends | None = None,
    record: Path | None = None,
    patience: float = 20.0,
    **more: Any,
) -> Session:
    """One session in which client 1 asks, unless `more` says otherwise."""
    clients = tuple(PartyId(number) for number in range(1, world.clients + 1))
    given: dict[str, Any] = {"asker": clients[0], "backend": "topk", "top": 5, "least": 1} | more
    public = PublicTerms(clients=clients, union=UNION, dim=DIM, score=world.whole.size.compares, clip=16.0, **given)
    model = ThreatModel(0.0, 0.25, server_apart=True)
    if record is not None:
        record.mkdir(exist_ok=True)
    serving = Serving(public, model, Patience.fixed(patience), lambda who, step: None, record)
    members = {
        party: Member(
            world.knowledge(party, (rules or {}).get(party, Rules("all"))),
            Guards(model, 30.0, (budgets or {}).get(party, Budgets())),
        )
        for party in clients
    }

    def converse(transport: Transport, number: SessionId) -> Conversation:
        straight, bend = Conversation(transport, number), (bends or {}).get(transport.party)
        return straight if bend is None else bend(straight)

    asked = [read_question(one) if isinstance(one, str) else one for one in questions]
    return hold_session(serving, members, asked, 60.0, converse)


def answers(session: Session, number: int = 0) -> list[tuple[int, str | None]]:
    """Positions and names; whoever failed, fails the test."""
    assert not session.problems, session.problems
    retrieved = session.outcomes[number].retrieved
    assert retrieved is not None, session.outcomes[number].problem
    return [(answer.position, answer.name) for answer in retrieved.answers]
