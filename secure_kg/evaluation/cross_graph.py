"""Queries that no client could be asked alone, judged over the rows of all clients.

For experiments: whoever does this has everybody's triples and models. Clients that may not show them to each other ask
such queries through `secure_kg.queries.retrieval`, where what comes back of a row or a projection is the mean over its
holders. `joined` has these means as its rows, so that thousands of queries are ranked in seconds and without a session.
Holders of an averaged row have it alike; a row that is not averaged, and has several holders, can make a difference to
encoders whose projections are not linear in the relation's row.

The holder rule is that of questions with --min-holders 1: every entity that somebody holds is a candidate.
"""

from collections.abc import Sequence

import numpy as np
import torch

from secure_kg.data.graph import Part
from secure_kg.data.pooling import Member
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.seeds import seed_sequence
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.queries.clients import QueryClients
from secure_kg.queries.sampling import Evaluation, Sampler, hard_queries
from secure_kg.queries.structures import relation_columns, structure_of


def can_cross(kind: str) -> bool:
    """Whether a query of this type can have relations of two clients: it has two atoms or more."""
    return len(relation_columns(structure_of(kind))) > 1


def cross_graph_queries(
    clients: QueryClients, part: Part, kinds: Sequence[str], number: int, seed: int
) -> list[Evaluation]:
    """`number` different ones of each type with a hard answer; types that cannot cross are left out."""
    stages = clients.together
    smaller, larger = (stages.train, stages.valid) if part == "valid" else (stages.valid, stages.test)
    found = []
    for kind in filter(can_cross, kinds):
        sampler = Sampler(larger, seed_sequence(seed, "cross-graph", part, kind), clients.holders)
        found.append(hard_queries(sampler, kind, number, smaller, larger))
    return found


def joined(members: Sequence[Member], models: Sequence[QueryModel], entities: int, relations: int) -> QueryModel:
    """One model in the ids of the pool: each row the mean over the members that have it.

    `DataError` for members whose operators differ: encoded by one, a query means nothing to another.
    """
    first = models[0]
    if any(not torch.equal(first.operators, one.operators) for one in models[1:]):
        raise DataError("the clients' operators differ, so no query can be asked across them")
    size = QueryModelSize(entities, relations, first.size.encoder, first.size.shape, first.size.score)
    sums, counts = np.zeros((size.rows, size.shape.dim)), np.zeros(size.rows)
    for member, model in zip(members, models, strict=True):
        labels = (2 * member.relations[:, None] + np.arange(2)).reshape(-1)
        places = np.concatenate((member.entities, entities + labels))
        sums[places] += model.rows.detach().cpu().numpy()
        counts[places] += 1
    made = QueryModel(size, torch.Generator(), torch.Generator())
    with torch.no_grad():
        made.rows.copy_(torch.from_numpy(sums / counts[:, None]))
        made.operators.copy_(first.operators)
    return made
