"""Clients of a made-up model as an attack meets them, and one whose hidden triples follow from its rows."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from protocols.foundation.identifiers import PartyId
from protocols.sums.secagg.params import ThreatModel
from secure_kg.attacks.questions.parties import AttackedRun, Parties
from secure_kg.data.graph import ClientGraph
from secure_kg.models.queries.model import QueryModel
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.retrieval.terms import PublicTerms
from tests.support.retrieval import DIM, ENTITIES, RELATIONS, UNION, World


def parties_of(world: World, asker: int = 1) -> Parties:
    clients = tuple(PartyId(number) for number in range(1, world.clients + 1))
    public = PublicTerms(
        clients=clients,
        asker=PartyId(asker),
        union=UNION,
        dim=DIM,
        score=world.whole.size.compares,
        clip=16.0,
        backend="topk",
        top=5,
        least=1,
    )
    knowledge = {party: world.knowledge(party, Rules("all")) for party in clients}
    return Parties.of(public, ThreatModel(0.0, 0.25, server_apart=True), knowledge)


class Trained(World):
    """Every entity is the one before it plus the row of `likes`."""

    @property
    def whole(self) -> QueryModel:
        model = super().whole
        likes = model.rows.detach()[len(ENTITIES) + 2 * RELATIONS.index("likes")]
        with torch.no_grad():
            for place in range(len(ENTITIES)):
                model.rows[place] = model.rows[0] + place * likes
        return model

    def graph(self, client: int) -> ClientGraph:
        """Each likes the next one that the client holds; only where these follow each other does the model say so."""
        own = self.held(client)
        numbers = [ENTITIES.index(name) for name in own.entities]
        follow = [(one, two) for one, two in pairwise(numbers) if two == one + 1]
        triples = np.array([[numbers.index(one), 0, numbers.index(two)] for one, two in follow], dtype=np.int64)
        empty = np.zeros((0, 3), dtype=np.int64)
        return ClientGraph(own.entities, own.relations, triples, empty, empty)

    @property
    def run(self) -> AttackedRun:
        graphs = {PartyId(client): self.graph(client) for client in range(1, self.clients + 1)}
        return AttackedRun(Path(), self.encoder, parties_of(self), graphs)
