"""Triples without being told which entities are linked: the reconstruction of `reconstruction`, minus its credit.

Attacker: the server and one client that colludes, as there. Paper: FedR's algorithm 2 is given the linked pairs; this
          stricter figure is ours.
Has:      the target's upload, the colluder's pairs of names and rows, and how many triples the target has.
Does:     scores candidates (h, r, t) by the embedding model: h from a random sample of the uploaded rows, r among the
          colluder's relations, t among all uploaded rows, so that there are at most `MOST_CANDIDATES` of them. It
          keeps the best, as many as the sample's share of the target's triples, and names their ends.
Gains:    a list of triples. `precision`: how many of them are the target's.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from secure_kg.attacks.knowledge import UNKNOWN, LeakedPairs, Naming
from secure_kg.attacks.result import Rate
from secure_kg.attacks.truth import Truth
from secure_kg.attacks.uploads import RowUpload
from secure_kg.foundation.seeds import generator
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model
from secure_kg.models.shapes import MODELS

MOST_CANDIDATES: Final = 1 << 23
_AT_A_TIME: Final = 1 << 20

Handles = npt.NDArray[np.int64]
"""Shape (n, 3): position of the head, number of the relation in the colluder's list, position of the tail."""


@dataclass(frozen=True, slots=True)
class RankedTriples:
    """The best of the candidates, best first, and what they were chosen from."""

    triples: Handles = field(repr=False)
    heads: npt.NDArray[np.int64] = field(repr=False)
    """[sample]: the positions whose triples were looked for."""
    candidates: int
    relations: tuple[str, ...] = field(repr=False)


def rank_triples(
    upload: RowUpload,
    leaked: LeakedPairs,
    number_of_triples: int,
    training: TrainingConfig,
    seed: int,
    most_candidates: int = MOST_CANDIDATES,
) -> RankedTriples:
    """`number_of_triples`: of the target, an upper figure that any server has a fair idea of."""
    places, relations = upload.positions, len(leaked.relations)
    if len(places) < 2 or not relations:
        return RankedTriples(np.zeros((0, 3), np.int64), places[:0], 0, leaked.relations.names)
    sample = min(len(places), max(1, most_candidates // (relations * len(places))))
    heads = np.sort(generator(seed, "heads looked at", upload.client).permutation(places)[:sample])
    keep = max(1, round(number_of_triples * sample / len(places)))
    candidates = sample * relations * (len(places) - 1)
    found = _best(upload, heads, places, leaked.relations.rows, training, min(keep, candidates))
    return RankedTriples(found, heads, candidates, leaked.relations.names)


def ranked_rate(guess: RankedTriples, entities: Naming, truth: Truth) -> Rate:
    """How many of the ranked triples are the target's, with the names that `entities` gives to positions.

    Chance: a candidate drawn at random, with the right names.
    """
    graph = truth.graph
    named = entities.as_ids(graph.entities)
    relation = Naming(guess.relations, guess.triples[:, 1]).as_ids(graph.relations)
    said = np.column_stack((named[guess.triples[:, 0]], relation, named[guess.triples[:, 2]]))
    right = _key(said, truth)[(said != UNKNOWN).all(axis=1)]
    looked_at = np.isin(truth.positions[truth.triples[:, 0]], guess.heads)
    true_keys = np.unique(_key(truth.triples, truth))
    there = len(np.unique(_key(truth.triples[looked_at], truth)))
    hits = int(np.isin(np.unique(right), true_keys).sum())  # a triple that is named twice was found once
    return Rate(hits, len(guess.triples), there / max(guess.candidates, 1))


def _key(triples: Handles, truth: Truth) -> npt.NDArray[np.int64]:
    entities, relations = len(truth.graph.entities) + 1, len(truth.graph.relations) + 1
    keys: npt.NDArray[np.int64] = (triples[:, 0] * relations + triples[:, 1]) * entities + triples[:, 2]
    return keys


def _best(
    upload: RowUpload,
    heads: npt.NDArray[np.int64],
    tails: npt.NDArray[np.int64],
    relations: npt.NDArray[np.float32],
    training: TrainingConfig,
    keep: int,
) -> Handles:
    """The `keep` best of all (h, r, t) with h in heads, t in tails and h != t: scored in pieces, best first."""
    model, rows = scorer(training), torch.from_numpy(upload.rows)
    tail_rows, relation_rows = rows[torch.from_numpy(tails)], torch.from_numpy(relations)
    number, score, query = len(relations), torch.empty(0), torch.empty(0, dtype=torch.int64)
    step = max(1, _AT_A_TIME // (number * len(tails)))
    for start in range(0, len(heads), step):
        part = torch.from_numpy(heads[start : start + step])
        h = rows[part].repeat_interleave(number, dim=0)
        scores = model.score_tails(h, relation_rows.repeat(len(part), 1), tail_rows)  # [heads · relations, tails]
        itself = torch.from_numpy(np.searchsorted(tails, heads[start : start + step])).repeat_interleave(number)
        scores[torch.arange(len(scores)), itself] = -torch.inf
        flat = scores.reshape(-1)
        top = torch.topk(flat, min(keep, len(flat)))
        score = torch.cat((score, top.values))
        query = torch.cat((query, top.indices + start * number * len(tails)))
        if len(score) > keep:
            best = torch.topk(score, keep).indices
            score, query = score[best], query[best]
    head, rest = np.divmod(query.numpy(), number * len(tails))
    relation, tail = np.divmod(rest, len(tails))
    return np.column_stack((heads[head], relation, tails[tail]))


def scorer(training: TrainingConfig) -> EmbeddingModel:
    """A model without rows of its own, for its score. Weights are the target's secret: TransE stands in for TransM."""
    name = MODELS[training.model].unweighted or training.model
    size = ModelSize(1, 1, training.dim, training.margin, training.norm)
    model = build_model(name, size, torch.Generator().manual_seed(0))
    return model.requires_grad_(False)
