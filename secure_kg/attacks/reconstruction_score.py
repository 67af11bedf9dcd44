"""Scores of a reconstructed graph: FedR's ERR and TRR, and what guessing would reach.

    ERR    entity reconstruction rate: the share of the target's entities whose row was given the right name
    RRR    the share of the target's triples whose relation was named rightly, whatever the names of the ends
    TRR    triple reconstruction rate: the share of the target's triples of which head, relation and tail are right

Triples are those of the target's train part. As in the paper, the linked pairs of rows are given (`reconstruction`),
and rates are of all entities and triples of the target, those included that the colluder has never heard of; "of
nameable" are the rates among those whose names the attacker has at all.

Chance is the larger of two figures: names drawn from the attacker's vocabulary, with the best single relation for all
triples (an attacker who ignores the rows can do that well); and the same attack on rows shuffled among positions.
Triples are no more independent of each other than the rows they are computed from, and are tested as so many.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.knowledge import UNKNOWN
from secure_kg.attacks.reconstruction import Reconstruction
from secure_kg.attacks.result import Rate
from secure_kg.attacks.truth import Truth
from secure_kg.attacks.uploads import Places

Flags = npt.NDArray[np.bool_]
Share = npt.NDArray[np.floating] | Flags


@dataclass(frozen=True, slots=True)
class Hits:
    """What a reconstruction has right: entities [entities]; relations and triples [triples]."""

    entities: Flags = field(repr=False)
    relations: Flags = field(repr=False)
    triples: Flags = field(repr=False)
    entity_nameable: Flags = field(repr=False)
    triple_nameable: Flags = field(repr=False)

    @classmethod
    def of(cls, guess: Reconstruction, truth: Truth, place_of: Places) -> "Hits":
        """`place_of` [entities]: under which number the attacker has the row of each entity."""
        graph, (heads, relations, tails) = truth.graph, truth.triples.T
        named = guess.entities.as_ids(graph.entities)[place_of]
        entity_right = named == np.arange(len(graph.entities))
        relation_right = guess.relations.as_ids(graph.relations) == relations
        triple_right = entity_right[heads] & relation_right & entity_right[tails]
        can_name, can_relate = guess.entities.knows(graph.entities), guess.relations.knows(graph.relations)
        nameable = can_name[heads] & can_relate[relations] & can_name[tails]
        return cls(entity_right, relation_right, triple_right, can_name, nameable)


def reconstruction_rates(
    guess: Reconstruction,
    truth: Truth,
    place_of: Places,
    shuffled: Sequence[Reconstruction],
    *,
    names_given: bool = False,
) -> dict[str, Rate]:
    """The rates above under their names.

    `shuffled`: the same attack on shuffled rows, once or more. `names_given`: the names do not come from the rows. Then
    chance has them too, and ERR says nothing about the rows.
    """
    hits, luck = Hits.of(guess, truth, place_of), [Hits.of(other, truth, place_of) for other in shuffled]
    names = max(len(guess.entities.vocabulary), 1)
    relations = truth.triples[:, 1]
    best = _best_relation(guess, truth)
    # An attacker that ignores the rows names each end with probability 1 / names and says `best` for every relation.
    name_chance = hits.entities if names_given else hits.entity_nameable / names
    blind_triples = name_chance[truth.triples[:, 0]] * (relations == best) * name_chance[truth.triples[:, 2]]

    lucky_entities = np.mean([one.entities for one in luck], axis=0)
    lucky_relations = np.mean([one.relations for one in luck], axis=0)
    lucky_triples = np.mean([one.triples for one in luck], axis=0)
    every_entity, every_triple = np.ones(len(hits.entities), np.bool_), np.ones(len(hits.triples), np.bool_)
    rows = len(truth.positions)

    def rate(right: Flags, lucky: Share, blind: Share, among: Flags, independent: int | None = None) -> Rate:
        chance = max(float(lucky[among].mean()), float(blind[among].mean())) if among.any() else 0.0
        return Rate(int(right[among].sum()), int(among.sum()), chance, independent)

    return {
        "ERR": rate(hits.entities, lucky_entities, name_chance, every_entity),
        "RRR": rate(hits.relations, lucky_relations, relations == best, every_triple, rows),
        "TRR": rate(hits.triples, lucky_triples, blind_triples, every_triple, rows),
        "ERR of nameable": rate(hits.entities, lucky_entities, name_chance, hits.entity_nameable),
        "TRR of nameable": rate(hits.triples, lucky_triples, blind_triples, hits.triple_nameable, rows),
    }


def _best_relation(guess: Reconstruction, truth: Truth) -> int:
    """The one answer that is right most often, among the relations the attacker can name; `UNKNOWN` if it has none."""
    known = guess.relations.knows(truth.graph.relations)
    number = np.bincount(truth.triples[:, 1], minlength=len(known)) * known
    return int(number.argmax()) if number.any() else UNKNOWN
