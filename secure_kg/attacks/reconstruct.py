"""All reconstruction attacks on one target, from a view to scored results.

Here the view, what leaked, and the truth come together, in this order only: attack(view, knowledge) gives a guess,
score(guess, truth) a result. From the target's truth an attack gets nothing but what the paper credits it with (which
rows are linked; under FedR the entity rows without names), and every result says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from secure_kg.attacks.holdings import Holdings, holdings_by_position, holdings_in_view, holdings_rates
from secure_kg.attacks.knowledge import LeakedPairs, Naming
from secure_kg.attacks.open_pairs import rank_triples, ranked_rate
from secure_kg.attacks.reconstruction import (
    Reconstruction,
    names_by_position,
    names_by_similarity,
    names_in_view,
    reconstruct_fede,
    reconstruct_fedr,
)
from secure_kg.attacks.reconstruction_score import reconstruction_rates
from secure_kg.attacks.result import AttackResult, Rate, scores_of
from secure_kg.attacks.truth import Truth
from secure_kg.attacks.uploads import RowUpload, ServerView

RATIOS: Final = (0.3, 0.5, 1.0)
"""Leakage ratios of the paper's table 1."""
_MANY_ROWS: Final = 1000
_TIMES: Final = 10
_LINKED: Final = "which rows of the target are linked"


@dataclass(frozen=True, slots=True)
class _Attack:
    """What an attack is called and told as; the explanation has places for scores and the client's number."""

    id: str
    title: str
    knowledge: str
    explanation: str


def reconstruct_target(
    view: ServerView, colluder: Truth, target: Truth, seed: int, ratios: Sequence[float] = RATIOS
) -> list[AttackResult]:
    """Every reconstruction attack that applies to the view; none if the target uploaded nothing in its round."""
    upload = view.uploads.get(target.client)
    if upload is None:
        return []
    leaked = [colluder.pairs().part(ratio, seed) for ratio in ratios]
    whole = colluder.pairs()
    known = whole.entities if view.shared == "entity" else whole.relations
    results = [_holdings_result("holdings-by-position", holdings_by_position(upload, known), whole, target)]
    if view.names:
        results.append(_holdings_result("holdings-in-view", holdings_in_view(view, target.client), None, target))
    if view.shared == "relation":
        results += [against_fedr(upload, pairs, target, seed) for pairs in leaked]
        return [*results, relations_named(upload, whole, target)]
    results += [against_fede(view, upload, pairs, target, seed) for pairs in leaked]
    named = names_by_position(upload, known)
    results.append(triples_with_names(view, whole, target, seed, "triples-by-position", named))
    if view.names:
        named = names_in_view(view, target.client)
        results.append(triples_with_names(view, whole, target, seed, "triples-names-in-view", named))
    return [*results, without_pairs(view, upload, whole, target, seed)]


def against_fede(view: ServerView, upload: RowUpload, leaked: LeakedPairs, target: Truth, seed: int) -> AttackResult:
    """FedR's table 1."""
    pairs = target.positions[target.triples[:, [0, 2]]]

    def attack(on: RowUpload) -> Reconstruction:
        return reconstruct_fede(on, leaked, pairs, view.config.training)

    luck = [attack(other) for other in _shuffled(upload, seed)]
    rates = reconstruction_rates(attack(upload), target, target.positions, luck)
    described = _Attack(
        f"reconstruct-fede-{leaked.ratio:.0%}".rstrip("%"),
        f"Reconstruction of triples from entity rows, {leaked.ratio:.0%} leaked",
        f"{leaked.described()}; {_LINKED}",
        "The server gives names to the rows of client {client} by comparing them with those of the client that "
        "colludes, and computes relations from them: {ERR} of the entities and {TRR} of the triples are right.",
    )
    return _result(described, target, rates, ("ERR",))  # triples need both names: without those, right triples are luck


def against_fedr(upload: RowUpload, leaked: LeakedPairs, target: Truth, seed: int) -> AttackResult:
    """FedR's table 4.

    Names of entities come from what was leaked alone, whatever the server saw: chance, the same attack on shuffled
    relation rows, has the same ERR. So it is triples that judge the view.
    """
    rows, place_of = target.unnamed_entities(seed)
    pairs, relation_of_pair = place_of[target.triples[:, [0, 2]]], target.positions[target.triples[:, 1]]

    def attack(on: RowUpload) -> Reconstruction:
        return reconstruct_fedr(on, leaked, rows, pairs, relation_of_pair)

    luck = [attack(other) for other in _shuffled(upload, seed)]
    rates = reconstruction_rates(attack(upload), target, place_of, luck)
    described = _Attack(
        f"reconstruct-fedr-{leaked.ratio:.0%}".rstrip("%"),
        f"Reconstruction of triples from relation rows, {leaked.ratio:.0%} leaked",
        f"{leaked.described()}; all entity rows of the target, without names; {_LINKED} and by which relation row",
        "From relation rows, and entity rows that it would have to get elsewhere, the server names {RRR} of the "
        "relations and {TRR} of the triples of client {client} rightly.",
    )
    return _result(described, target, rates, ("TRR",))


def relations_named(upload: RowUpload, leaked: LeakedPairs, target: Truth) -> AttackResult:
    """Algorithm 2, lines 12 to 15 alone: which relation each uploaded row of the target belongs to."""
    names = names_by_similarity(upload.rows, upload.positions, leaked.relations)
    right = names.as_ids(target.graph.relations)[target.positions] == np.arange(len(target.graph.relations))
    can = names.knows(target.graph.relations)
    rates = {
        "relations": Rate(int(right.sum()), len(right), float(can.mean()) / max(len(names.vocabulary), 1)),
    }
    described = _Attack(
        "relations-by-similarity",
        "Names of relation rows",
        leaked.described(),
        "By comparing rows the server names {relations} of the relations of client {client} (chance: "
        "{chance relations}).",
    )
    return _result(described, target, rates, ("relations",), {"relations": len(right)})


def triples_with_names(
    view: ServerView, leaked: LeakedPairs, target: Truth, seed: int, id: str, names: Naming
) -> AttackResult:
    """The attack of table 1 where names need not be guessed. Chance has the names, too."""
    upload = view.uploads[target.client]
    pairs = target.positions[target.triples[:, [0, 2]]]

    def attack(on: RowUpload) -> Reconstruction:
        return reconstruct_fede(on, leaked, pairs, view.config.training, names)

    luck = [attack(other) for other in _shuffled(upload, seed)]
    rates = reconstruction_rates(attack(upload), target, target.positions, luck, names_given=True)
    source = "names that clients sent in clear" if id.endswith("in-view") else "its positions in the union"
    described = _Attack(
        id,
        "Triples from entity rows whose names are known",
        f"{source}; {leaked.described()}; {_LINKED}",
        "With names that need not be guessed the server computes relations of client {client} from its rows: {TRR} of "
        "the triples are right (chance: {chance TRR}).",
    )
    return _result(described, target, rates, ("TRR",))


def without_pairs(view: ServerView, upload: RowUpload, leaked: LeakedPairs, target: Truth, seed: int) -> AttackResult:
    """The stricter figure: nobody says which rows are linked."""
    ranked = rank_triples(upload, leaked, len(target.triples), view.config.training, seed)
    names = names_by_similarity(upload.rows, upload.positions, leaked.entities)
    described = _Attack(
        "reconstruct-fede-open-pairs",
        "Reconstruction of triples without knowing which entities are linked",
        f"{leaked.described()}; how many triples the target has",
        "Told nothing about links, the server lists the triples that the rows of client {client} make likeliest: "
        "{precision} of them are triples of the client (chance: {chance precision}).",
    )
    rates = {"precision": ranked_rate(ranked, names, target)}
    sizes = {"candidates": ranked.candidates, "listed": len(ranked.triples)}
    return _result(described, target, rates, ("precision",), sizes)


def _holdings_result(id: str, guess: Holdings, leaked: LeakedPairs | None, target: Truth) -> AttackResult:
    rates = holdings_rates(guess, target)
    described = _Attack(
        id,
        "Names that a client holds",
        "nothing but the view" if leaked is None else f"names and positions of client {leaked.client}",
        "The server names {ERR} of what client {client} holds without looking at any row; {precision} of what it "
        "names is right (chance: {chance precision}).",
    )
    return _result(described, target, rates, ("precision",))


def _shuffled(upload: RowUpload, seed: int) -> list[RowUpload]:
    """Uploads to measure chance by. One of many rows is enough; of few rows one alone depends on luck itself."""
    times = 1 if len(upload.positions) >= _MANY_ROWS else _TIMES
    return [upload.shuffled(seed + time) for time in range(times)]


def _result(
    attack: _Attack,
    target: Truth,
    rates: Mapping[str, Rate],
    judged_by: Sequence[str],
    more_sizes: Mapping[str, int] | None = None,
) -> AttackResult:
    scores, chance = scores_of(rates)
    texts = {name: f"{value:.2%}" for name, value in scores.items()}
    texts |= {f"chance {name}": f"{value:.2%}" for name, value in chance.items()}
    sizes = {"entities": len(target.graph.entities), "triples": len(target.triples), **(more_sizes or {})}
    return AttackResult(
        attack.id,
        attack.title,
        f"client {target.client}",
        attack.knowledge,
        scores,
        chance,
        any(rates[name].beats_chance for name in judged_by),
        attack.explanation.format_map({**texts, "client": target.client}),
        sizes,
    )
