"""Triples of a relation that nobody projects along for others (--no-atoms), guessed by an asker from what it may ask.

What an asker reads are functions of entity rows, of operators, and of rows of relations that are not hidden: no answer
depends on the hidden relation's row (`secure_kg.queries.retrieval.knowledge`). What is left is what training on the
hidden triples has done to entity rows, of which the asker has most by itself.

Attacker:  the asker, which wants tails of the hidden relation for heads that it knows.
Guesses:   degree     the more triples of its own an entity has, the better. No model, no answer.
           related    the sum, over the relations that it knows, both ways, of the reciprocal rank of the tail among
                      the entities near head plus row: how many relations lead from one to the other? From its own
                      relations without an answer; every answer adds a relation, or the row of an entity that it lacks.
                      Chains cost nothing more where relations translate: rows add up.
           known      it knows some triples of the hidden relation, and takes the mean of tail minus head for its row,
                      drawn towards the mean of the rows of relations that it knows.
           direct     the answer itself, if the relation were not hidden; or a row that was read before it was.
Paper:     Hu et al., "Privacy-Preserved Neural Graph Databases", arXiv 2312.15591: innocuous answers that combine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import PartyId
from secure_kg.attacks.questions.curious import Curious, as_asker
from secure_kg.attacks.questions.parties import AttackedRun, Parties
from secure_kg.attacks.questions.predicting import Guessed, Scores, Truth, guessed
from secure_kg.attacks.questions.relation_rows import Way, foreign_ways, projections, rows_by_difference, ways_of
from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.seeds import generator
from secure_kg.queries.retrieval.rules import Rules

Row = npt.NDArray[np.float64]
LEAST_TRIPLES: Final = 20
"""Of a relation that is tried: fewer say little."""
KNOWN: Final = 5
"""Triples of the hidden relation that the asker of guess `known` knows; half of them, if that is fewer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one asker has: rows of entities by name, and of relations by way."""

    entities: Mapping[str, Row]
    relations: Mapping[Way, Row]


@dataclass(frozen=True, slots=True)
class Trial:
    """One asker and one hidden relation."""

    asker: PartyId
    holder: PartyId
    relation: str


@dataclass(frozen=True, slots=True)
class Case:
    """A trial with its truth, which no guess reads but for the triples that it knows."""

    heads: tuple[str, ...]
    candidates: tuple[str, ...]
    true: Truth
    known: tuple[tuple[str, str], ...]
    hidden: Truth


def trials_of(run: AttackedRun) -> list[Trial]:
    """Every relation with enough triples, and every client that lacks it."""
    return [
        Trial(asker, holder, relation)
        for holder, graph in run.graphs.items()
        for place, relation in enumerate(graph.relations)
        if int((graph.train[:, 1] == place).sum()) >= LEAST_TRIPLES
        for asker, own in run.graphs.items()
        if relation not in own.relations
    ]


def own_knowledge(parties: Parties) -> Asked:
    """Without an answer."""
    own = parties.own
    names = own.vocabulary.entities
    rows = own.entity_rows(names, for_others=False).values.astype(np.float64)
    ways = {way: own.relation_row(*way).astype(np.float64) for way in ways_of(own)}
    return Asked(dict(zip(names, rows, strict=True)), ways)


def answered(parties: Parties, names: Sequence[str]) -> Asked:
    """One session: the rows of these names and of every relation that others project along, as the asker reads them."""
    own, wanted = parties.own, list(foreign_ways(parties))

    def ask(curious: Curious) -> Asked:
        found = curious.rows(names) if names else None
        relations = rows_by_difference(projections(curious, own, wanted, 1), own.dim)
        entities = {} if found is None else _given(names, found.means, found.counts)
        return Asked(entities, relations)

    return as_asker(parties, ask)


def _given(names: Sequence[str], rows: Row, counts: npt.NDArray[np.int64]) -> dict[str, Row]:
    return {name: row for name, row, count in zip(names, rows, counts.tolist(), strict=True) if count}


def series(own: Asked, answers: Asked, number: int, seed: int) -> Asked:
    """What the asker has after so many answers, in an order that is drawn."""
    keys: list[str | Way] = [*answers.entities, *answers.relations]
    drawn = {keys[place] for place in generator(seed, "order of questions").permutation(len(keys))[:number].tolist()}
    return Asked(
        {**own.entities, **{name: row for name, row in answers.entities.items() if name in drawn}},
        {**own.relations, **{way: row for way, row in answers.relations.items() if way in drawn}},
    )


def case_of(trial: Trial, graph: ClientGraph, candidates: Sequence[str], seed: int) -> Case:
    """`graph`: the holder's."""
    triples = graph.train[graph.train[:, 1] == graph.relations.index(trial.relation)]
    pairs = [(graph.entities[head], graph.entities[tail]) for head, _, tail in triples.tolist()]
    heads = tuple(sorted({head for head, _ in pairs}))
    at = {name: place for place, name in enumerate(candidates)}
    true = np.zeros((len(heads), len(candidates)), dtype=np.bool_)
    for head, tail in pairs:
        true[heads.index(head), at[tail]] = True
    order = generator(seed, "known triples", int(trial.asker)).permutation(len(pairs))[: min(KNOWN, len(pairs) // 2)]
    known = tuple(pairs[place] for place in order.tolist())
    hidden = true.copy()
    for head, tail in known:
        hidden[heads.index(head), at[tail]] = False
    return Case(heads, tuple(candidates), true, known, hidden)


def by_degree(case: Case, own: ClientGraph) -> Guessed:
    degree = np.bincount(own.train[:, [0, 2]].reshape(-1), minlength=len(own.entities)).astype(np.float64)
    known = dict(zip(own.entities, degree.tolist(), strict=True))
    row = np.array([known.get(name, -np.inf) for name in case.candidates])
    return guessed(np.broadcast_to(row, case.true.shape), case.hidden, case.true)


def by_related(case: Case, asked: Asked) -> Guessed:
    scores = np.zeros(case.true.shape)
    for row in asked.relations.values():
        near = _near(case, asked, row)
        ranks = np.argsort(np.argsort(-near, axis=1), axis=1) + 1.0
        scores += np.where(np.isfinite(near), 1 / ranks, 0.0)
    return guessed(scores, case.hidden, case.true)


def by_known(case: Case, asked: Asked) -> Guessed:
    """The mean difference of n known pairs counts n times, the mean of all known rows once."""
    rows = asked.entities
    seen = [rows[tail] - rows[head] for head, tail in case.known if head in rows and tail in rows]
    prior = np.mean(list(asked.relations.values()), axis=0)
    return by_row(case, asked, (np.sum(seen, axis=0) + prior) / (len(seen) + 1) if seen else prior)


def by_row(case: Case, asked: Asked, row: Row) -> Guessed:
    """With the row of the relation itself: read directly, or before it was hidden."""
    return guessed(_near(case, asked, row), case.hidden, case.true)


def _near(case: Case, asked: Asked, row: Row) -> Scores:
    """Of every tail to head plus row, for translations."""
    lacking = np.full(len(row), np.nan)
    heads = np.stack([asked.entities.get(name, lacking) for name in case.heads])
    tails = np.stack([asked.entities.get(name, lacking) for name in case.candidates])
    near = -np.linalg.norm(heads[:, None] + row - tails[None], axis=2)
    scores: Scores = np.where(np.isnan(near), -np.inf, near)
    return scores


@dataclass(frozen=True, slots=True)
class TrialFound:
    """Of one trial: every guess, by name and number of answers."""

    trial: Trial
    asked: int
    """Answers that there are to be had."""
    found: Mapping[tuple[str, int], Guessed]


def attack_relation(run: AttackedRun, trial: Trial, numbers: Sequence[int], seed: int = 0) -> TrialFound:
    """With and without the relation hidden: two real sessions. `numbers`: of answers; 0: none."""
    parties = run.parties.asked_by(int(trial.asker))
    candidates = sorted({name for graph in run.graphs.values() for name in graph.entities})
    own = own_knowledge(parties)
    lacking = [name for name in candidates if name not in own.entities]
    answers = answered(parties.under(Rules(no_atoms=frozenset({trial.relation}))), lacking)
    if any(relation == trial.relation for relation, _ in answers.relations):
        raise AssertionError("somebody has projected along a hidden relation")
    open_ = answered(parties, lacking)
    case = case_of(trial, run.graphs[trial.holder], candidates, seed)
    found = {("degree", 0): by_degree(case, run.graphs[trial.asker])}
    for number in numbers:
        asked = series(own, answers, number, seed)
        found["related", number] = by_related(case, asked)
        found["known", number] = by_known(case, asked)
    everything = Asked({**own.entities, **open_.entities}, open_.relations)
    found["direct", 1] = by_row(case, everything, open_.relations[trial.relation, False])
    return TrialFound(trial, len(answers.entities) + len(answers.relations), found)
