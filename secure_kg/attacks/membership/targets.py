"""Targets of membership attacks: triples whose membership is asked for, and the truth about them.

    canaries    random triples over names that attacker and victim share. A fair coin decides for each whether it is
                planted in the victim's train part. Nothing but training on it tells one from the other, so this is the
                primary measure.
    real        triples of the victim's train part against held-out ones of the same victim, matched by the degrees of
                head and tail: held-out triples are plausible, too, and differ from the others by chance alone.
    corrupted   members against members with another tail. Whoever predicts links well tells them apart without any
                access to the victim: read it beside the attacker alone.

Ids are the attacker's own: it asks only for names that it has.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.data.vocabulary import triple_keys
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator

KINDS: Final = ("canaries", "real", "corrupted")
_TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Targets:
    """One kind of targets: members of the victim's train part, others, and what the attacker knows to be no members."""

    kind: str
    members: TripleArray = field(repr=False)
    others: TripleArray = field(repr=False)
    known: TripleArray = field(repr=False)
    """Drawn by the attacker itself, or of its own held-out part: its threshold comes from these."""
    elsewhere: TripleArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64), repr=False)
    """Members of another client than the victim: for attribution."""


@dataclass(frozen=True, slots=True)
class Names:
    """Ids of another client's names at the attacker: -1 where the attacker does not have the name."""

    entities: npt.NDArray[np.int64] = field(repr=False)
    relations: npt.NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, other: ClientGraph, attacker: ClientGraph) -> "Names":
        return cls(_places(other.entities, attacker.entities), _places(other.relations, attacker.relations))

    def seen(self, triples: TripleArray) -> TripleArray:
        """Those of the other client's triples [n, 3] of which the attacker has all names, in the attacker's ids."""
        mapped = np.column_stack(
            (self.entities[triples[:, 0]], self.relations[triples[:, 1]], self.entities[triples[:, 2]])
        )
        keep = (mapped >= 0).all(axis=1) & (mapped[:, 0] != mapped[:, 2])
        seen: TripleArray = mapped[keep]
        return seen

    def back(self, triples: TripleArray) -> TripleArray:
        """The attacker's triples [n, 3] in the other client's ids; every name must be shared."""
        entity, relation = _inverse(self.entities), _inverse(self.relations)
        return np.column_stack((entity[triples[:, 0]], relation[triples[:, 1]], entity[triples[:, 2]]))


def plant_canaries(graphs: Sequence[ClientGraph], number: int, seed: int) -> tuple[list[ClientGraph], Targets]:
    """The graphs with canaries: at the victim, the second of them, and as many at the third, if there is one.

    `number`: how many fair coins are flipped twice over; about so many canaries are members, and so many are not.
    """
    attacker, victim, *more = graphs
    names = [Names.of(graph, attacker) for graph in (victim, *more[:1])]
    draw = generator(seed, "canaries")
    taken = np.concatenate([one.seen(np.concatenate((g.train, g.valid, g.test))) for one, g in
                            zip(names, (victim, *more[:1]), strict=True)]
                           + [attacker.train, attacker.valid, attacker.test])  # fmt: skip
    candidates = random_triples(attacker, names[:1], 2 * number, taken, draw)
    coin = draw.random(len(candidates)) < 0.5
    known = random_triples(attacker, names[:1], number, np.concatenate((taken, candidates)), draw)
    elsewhere = candidates[:0]
    planted = [attacker, with_triples(victim, names[0].back(candidates[coin])), *more]
    if more:
        elsewhere = random_triples(attacker, names, number, np.concatenate((taken, candidates, known)), draw)
        planted[2] = with_triples(more[0], names[1].back(elsewhere))
    return planted, Targets("canaries", candidates[coin], candidates[~coin], known, elsewhere)


def random_triples(
    attacker: ClientGraph, shared_with: Sequence[Names], number: int, taken: TripleArray, draw: np.random.Generator
) -> TripleArray:
    """Different triples [number, 3] over names that the attacker shares with all of these, none of them in `taken`."""
    entities, relations = _shared(shared_with)
    if len(entities) < 2 or not len(relations):
        raise UserError("attacker and victim share no names: choose another split (--by), clients or data set")
    sizes = len(attacker.entities), len(attacker.relations)
    found = np.zeros((0, 3), dtype=np.int64)
    for _ in range(_TRIES):
        drawn = np.column_stack((draw.choice(entities, number), draw.choice(relations, number),
                                 draw.choice(entities, number)))  # fmt: skip
        drawn = drawn[(drawn[:, 0] != drawn[:, 2]) & ~np.isin(triple_keys(drawn, *sizes), triple_keys(taken, *sizes))]
        found = np.concatenate((found, drawn))
        _, first = np.unique(triple_keys(found, *sizes), return_index=True)
        found = found[np.sort(first)][:number]
        if len(found) == number:
            return found
    raise UserError(f"--canaries: the names that clients share have no room for {number} more triples")


def real_targets(attacker: ClientGraph, victim: ClientGraph, trained: TripleArray, most: int, seed: int) -> Targets:
    """`victim`: its graph without canaries; `trained`: its train part with them, from which degrees are counted."""
    names, draw = Names.of(victim, attacker), generator(seed, "real targets")
    degree = np.bincount(trained[:, [0, 2]].ravel(), minlength=len(victim.entities))
    members, others = _visible(names, victim.train), _visible(names, np.concatenate((victim.valid, victim.test)))
    chosen = _matched(_classes(degree[members[:, [0, 2]]] - 1), _classes(degree[others[:, [0, 2]]]), draw)
    few = draw.permutation(len(chosen))[:most]
    if not len(few):
        raise UserError("the attacker has the names of no held-out triple of the victim; choose another split")
    known = np.concatenate((attacker.valid, attacker.test))
    shared = np.isin(known[:, [0, 2]], names.entities[names.entities >= 0]).all(axis=1)
    known = known[shared & np.isin(known[:, 1], names.relations)]
    kept = known[draw.permutation(len(known))[:most]]
    return Targets("real", names.seen(members[chosen[few, 0]]), names.seen(others[chosen[few, 1]]), kept)


def corrupted_targets(attacker: ClientGraph, victim: ClientGraph, real: Targets, seed: int) -> Targets:
    """The members of `real` against the same with another tail."""
    names, draw = Names.of(victim, attacker), generator(seed, "corrupted targets")
    entities, _ = _shared([names])
    false, known = real.members.copy(), real.members.copy()
    for triples in (false, known):
        triples[:, 2] = draw.choice(entities, len(triples))
    keys = triple_keys(names.seen(victim.train), len(attacker.entities), len(attacker.relations))
    wrong = ~np.isin(triple_keys(false, len(attacker.entities), len(attacker.relations)), keys)
    return Targets("corrupted", real.members, false[wrong & (false[:, 0] != false[:, 2])], known)


def with_triples(graph: ClientGraph, more: TripleArray) -> ClientGraph:
    """The graph with more triples in its train part. Every epoch draws its own order, so it does not matter where."""
    return dataclasses.replace(graph, train=np.ascontiguousarray(np.concatenate((graph.train, more))))


def _visible(names: Names, triples: TripleArray) -> TripleArray:
    """Those triples, in the other client's ids, of which the attacker has all names."""
    seen = (names.entities[triples[:, [0, 2]]] >= 0).all(axis=1) & (names.relations[triples[:, 1]] >= 0)
    visible: TripleArray = triples[seen & (triples[:, 0] != triples[:, 2])]
    return visible


def _classes(degrees: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Degrees [n, 2] of head and tail to a class [n]: the same number of binary digits of both."""
    digits = np.frexp(np.maximum(degrees, 0))[1].astype(np.int64)
    return digits[:, 0] * 64 + digits[:, 1]


def _matched(
    members: npt.NDArray[np.int64], others: npt.NDArray[np.int64], draw: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Pairs [n, 2] of a member and an other one of the same class, each in one pair at most."""
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for one in np.unique(others):
        first, second = (draw.permutation(np.flatnonzero(of == one)) for of in (members, others))
        number = min(len(first), len(second))
        pairs.append(np.column_stack((first[:number], second[:number])))
    return np.concatenate(pairs)


def _shared(names: Sequence[Names]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The attacker's ids of entities and relations that it shares with all of them."""
    entities, relations = names[0].entities, names[0].relations
    for one in names[1:]:
        entities, relations = np.intersect1d(entities, one.entities), np.intersect1d(relations, one.relations)
    return np.unique(entities[entities >= 0]), np.unique(relations[relations >= 0])


def _places(names: Sequence[str], among: Sequence[str]) -> npt.NDArray[np.int64]:
    at = {name: place for place, name in enumerate(among)}
    return np.array([at.get(name, -1) for name in names], dtype=np.int64)


def _inverse(places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    inverse = np.full(int(places.max(initial=-1)) + 1, -1, dtype=np.int64)
    inverse[places[places >= 0]] = np.flatnonzero(places >= 0)
    return inverse
