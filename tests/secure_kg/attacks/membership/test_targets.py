"""Targets: canaries are fair and new, real ones are matched by degree, and ids find their names again."""

import numpy as np
import pytest

from secure_kg.attacks.membership.targets import (
    Names,
    corrupted_targets,
    plant_canaries,
    real_targets,
)
from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.foundation.errors import UserError

GRAPHS = partition(load_source("umls"), 3, "entities", 0)


def named(graph: ClientGraph, triples: TripleArray) -> set[tuple[str, str, str]]:
    return {(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in triples.tolist()}


def test_canaries_are_planted_where_they_are_said_to_be_and_nowhere_else() -> None:
    planted, canaries = plant_canaries(GRAPHS, 60, seed=1)
    attacker = GRAPHS[0]
    trained = [named(graph, graph.train) for graph in planted]
    before = set().union(*(named(graph, graph.part(part)) for graph in GRAPHS for part in ("train", "valid", "test")))
    members, others, elsewhere, known = (
        named(attacker, one) for one in (canaries.members, canaries.others, canaries.elsewhere, canaries.known)
    )
    assert members <= trained[1]
    assert not members & (trained[0] | trained[2] | before)
    assert elsewhere <= trained[2]
    assert not elsewhere & (trained[0] | trained[1] | before)
    assert not (others | known) & (trained[0] | trained[1] | trained[2] | before)
    assert len(members) + len(others) == 120
    assert 40 <= len(members) <= 80  # a fair coin
    assert len(elsewhere) == len(known) == 60
    assert planted[0] is attacker
    assert len(planted[1].train) == len(GRAPHS[1].train) + len(members)


def test_real_targets_have_the_same_degrees_and_are_the_victims() -> None:
    attacker, victim = GRAPHS[:2]
    real = real_targets(attacker, victim, victim.train, 200, seed=0)
    assert named(attacker, real.members) <= named(victim, victim.train)
    assert named(attacker, real.others) <= named(victim, np.concatenate((victim.valid, victim.test)))
    assert len(real.members) == len(real.others) <= 200
    names, degree = Names.of(victim, attacker), np.bincount(victim.train[:, [0, 2]].ravel())
    means = []
    for triples, own in ((real.members, 1), (real.others, 0)):
        digits = np.frexp(degree[names.back(triples)[:, [0, 2]]] - own)[1]
        means.append(np.sort(digits, axis=0).mean(axis=0))
    assert means[0] == pytest.approx(means[1])


def test_corrupted_targets_differ_in_the_tail_alone() -> None:
    attacker, victim = GRAPHS[:2]
    real = real_targets(attacker, victim, victim.train, 200, seed=0)
    false = corrupted_targets(attacker, victim, real, seed=0)
    assert np.array_equal(false.members, real.members)
    pairs = {(h, r) for h, r, _ in real.members.tolist()}
    assert all((h, r) in pairs for h, r, _ in false.others.tolist())
    assert not named(attacker, false.others) & named(victim, victim.train)


def test_clients_without_common_names_are_refused_in_one_line() -> None:
    first = ClientGraph(("a", "b"), ("r",), np.array([(0, 0, 1)]), *(np.zeros((0, 3), np.int64),) * 2)
    second = ClientGraph(("c", "d"), ("s",), np.array([(0, 0, 1)]), *(np.zeros((0, 3), np.int64),) * 2)
    with pytest.raises(UserError, match="share no names"):
        plant_canaries([first, second], 10, seed=0)
    with pytest.raises(UserError, match="no held-out triple"):
        real_targets(first, second, second.train, 10, seed=0)
