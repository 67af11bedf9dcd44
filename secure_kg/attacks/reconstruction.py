"""Reconstruction of a client's graph: FedR (Zhang et al. 2022), section 3.1 and algorithm 2.

Attacker: the server and one client that colludes.
Has:      the uploads of another client, the target, as it reads them (`RowUpload`), and the colluder's pairs of names
          and rows (`LeakedPairs`). Against FedR also the target's entity rows without names (the paper's table 3).
          As in the paper it is credited with knowing which entities of the target are linked, as pairs of rows; what it
          has to find are the names of both and the relation between them. `secure_kg.attacks.open_pairs` goes without
          that credit.
Gains:    names of the target's entities and its triples.

The functions here see no truth; `secure_kg.attacks.reconstruction_score` compares what they return with it.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.knowledge import UNKNOWN, LeakedPairs, Named, Naming
from secure_kg.attacks.relations_from_rows import likeliest_relations, nearest
from secure_kg.attacks.uploads import Places, RowUpload, ServerView
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.learning.config import TrainingConfig

Pairs = npt.NDArray[np.int64]
"""Linked entities, shape (n, 2): head and tail, as the attacker numbers them (under FedE: positions in the union)."""


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """A guess at a client's graph."""

    entities: Naming
    """Of each row that the attacker numbers; under FedE of each position in the union."""
    relations: Naming
    """Of each linked pair, in the order in which the attacker was given them."""
    pairs: Pairs = field(repr=False)


def names_by_similarity(rows: Rows, places: Places, known: Named) -> Naming:
    """Algorithm 2, lines 1 to 5: a row at `places` has the name of the known row that is most similar by cosine."""
    chosen = np.full(len(rows), UNKNOWN, dtype=np.int64)
    chosen[places] = nearest(rows[places], known.rows)
    return Naming(known.names, chosen)


def names_by_position(upload: RowUpload, known: Named) -> Naming:
    """All clients add up at the same positions, so the colluder's names at its own positions are the target's too."""
    chosen = np.full(len(upload.rows), UNKNOWN, dtype=np.int64)
    if known.positions is not None:
        chosen[known.positions] = np.arange(len(known))
        chosen[np.setdiff1d(np.arange(len(chosen)), upload.positions, assume_unique=True)] = UNKNOWN
    return Naming(known.names, chosen)


def names_in_view(view: ServerView, client: int) -> Naming:
    """Plain alignment: the client has sent its names, and the server itself has given each its position."""
    own = set(view.names.get(client, ()))
    named = [(place, name) for place, name in enumerate(view.name_at) if name is not None and name in own]
    chosen = np.full(len(view.name_at), UNKNOWN, dtype=np.int64)
    chosen[[place for place, _ in named]] = np.arange(len(named))
    return Naming(tuple(name for _, name in named), chosen)


def reconstruct_fede(
    upload: RowUpload,
    leaked: LeakedPairs,
    pairs: Pairs,
    training: TrainingConfig,
    entities: Naming | None = None,
) -> Reconstruction:
    """Against FedE: names by similarity (or `entities`, found otherwise), relations from rows; algorithm 2, i)."""
    if entities is None:
        entities = names_by_similarity(upload.rows, upload.positions, leaked.entities)
    chosen = np.full(len(pairs), UNKNOWN, dtype=np.int64)
    uploaded = np.zeros(len(upload.rows), dtype=np.bool_)
    uploaded[upload.positions] = True
    visible = uploaded[pairs].all(axis=1)  # of a row that was never sent nothing can be computed
    heads, tails = upload.rows[pairs[visible, 0]], upload.rows[pairs[visible, 1]]
    chosen[visible] = likeliest_relations(heads, tails, leaked.relations.rows, training)
    return Reconstruction(entities, Naming(leaked.relations.names, chosen), pairs)


def reconstruct_fedr(
    upload: RowUpload, leaked: LeakedPairs, entity_rows: Rows, pairs: Pairs, relation_of_pair: Places
) -> Reconstruction:
    """Against FedR: entities from their rows without names, relations from the uploaded rows; algorithm 2, ii).

    `entity_rows` [entities, width] in any order; `pairs` number them. `relation_of_pair` [n]: at which position of the
    union the row of the relation between them stands. That too is a credit: which rows belong to one triple.
    """
    entities = names_by_similarity(entity_rows, np.arange(len(entity_rows), dtype=np.int64), leaked.entities)
    relations = names_by_similarity(upload.rows, upload.positions, leaked.relations)
    return Reconstruction(entities, Naming(relations.vocabulary, relations.chosen[relation_of_pair]), pairs)
