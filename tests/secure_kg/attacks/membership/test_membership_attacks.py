"""Attacks on rows that leak by construction, and on rows that say nothing; plausibility against models' own scores."""

import functools

import numpy as np
import pytest
import torch

from secure_kg.attacks.membership import client_attacks, server_attacks
from secure_kg.attacks.membership.measures import measure
from secure_kg.attacks.membership.plausibility import Tables, plausibility, require_known_model
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.base import ModelSize
from secure_kg.models.registry import build_model
from secure_kg.models.shapes import entity_width, initial_range, relation_width

MODELS = ["TransE", "RotatE", "DistMult", "ComplEx"]
ENTITIES, RELATIONS, MEMBERS = 300, 4, 150


def training_of(model: str, **more: int) -> TrainingConfig:
    return TrainingConfig(model=model, dim=24, **more)  # type: ignore[arg-type]


def rows(number: int, width: int, seed: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    return np.random.default_rng(seed).normal(size=(number, width)).astype(np.float32)


@functools.cache
def leaking(model: str) -> tuple[TrainingConfig, Tables, "np.ndarray[tuple[int, int], np.dtype[np.int64]]"]:
    """Tables of a model that has trained on 300 triples, tails of which are nobody's heads: half of them auxiliary."""
    training = training_of(model)
    size = ModelSize(2 * ENTITIES, RELATIONS, training.dim, training.margin)
    built = build_model(model, size, torch.Generator().manual_seed(0))
    heads = np.arange(ENTITIES)
    triples = np.column_stack((heads, heads % RELATIONS, ENTITIES + heads)).astype(np.int64)
    optimiser = torch.optim.Adam(built.parameters(), 0.05)
    h, r, t = torch.from_numpy(triples).t()
    for _ in range(60):
        false = torch.from_numpy(np.random.default_rng(1).permutation(ENTITIES)) + ENTITIES
        good = built.score(built.entity[h], built.relation[r], built.entity[t])
        bad = built.score(built.entity[h], built.relation[r], built.entity[false])
        loss = torch.nn.functional.softplus(bad - good + 1.0).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return training, Tables(built.entity.detach().numpy(), built.relation.detach().numpy()), triples


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("model", MODELS)
def test_plausibility_is_the_models_score_but_for_its_margin(model: str, norm: int) -> None:
    training = training_of(model, norm=norm)
    built = build_model(model, ModelSize(9, 3, 24, training.margin, norm), torch.Generator().manual_seed(3))
    triples = np.array([(0, 0, 1), (2, 1, 3), (4, 2, 5)])
    h, r, t = torch.from_numpy(triples).t()
    own = built.score(built.entity[h], built.relation[r], built.entity[t]).detach().numpy() - built.offset
    tables = Tables(built.entity.detach().numpy(), built.relation.detach().numpy())
    assert plausibility(tables, triples, training) == pytest.approx(own, rel=1e-4, abs=1e-4)


def test_a_model_of_matrices_is_refused() -> None:
    with pytest.raises(UserError, match="RESCAL"):
        require_known_model(TrainingConfig(model="RESCAL", dim=8))


@pytest.mark.parametrize("model", MODELS)
def test_the_server_finds_a_planted_leak_and_none_in_random_rows(model: str) -> None:
    training, tables, triples = leaking(model)
    auxiliary, members = triples[:MEMBERS], triples[MEMBERS:]
    others = members.copy()
    others[:, 2] = np.roll(others[:, 2], RELATIONS)
    found = [server_attacks.by_estimated_relations(tables.entities, auxiliary, one, training)
             for one in (members, others)]  # fmt: skip
    assert measure(*found).auc > 0.85
    noise = rows(*tables.entities.shape, seed=5)
    nothing = [server_attacks.by_estimated_relations(noise, auxiliary, one, training) for one in (members, others)]
    assert abs(measure(*nothing).auc - 0.5) < 0.12


@pytest.mark.parametrize("model", MODELS)
def test_a_client_finds_what_only_the_others_have_learned(model: str) -> None:
    training, tables, triples = leaking(model)
    own = Tables(rows(*tables.entities.shape, seed=6), tables.relations)
    means = (own.entities + tables.entities) / 2
    others = triples.copy()
    others[:, 2] = np.roll(others[:, 2], RELATIONS)
    rest = client_attacks.others_mean(own.entities, means, 2)
    assert rest == pytest.approx(tables.entities, abs=1e-4)
    assert measure(*(client_attacks.passive(own, rest, one, training) for one in (triples, others))).auc > 0.9
    alone = [plausibility(own, one, training) for one in (triples, others)]
    assert abs(measure(*alone).auc - 0.5) < 0.12


def test_as_printed_the_passive_ratio_of_distances_stands_the_wrong_way_round() -> None:
    training, tables, triples = leaking("TransE")
    own = Tables(rows(*tables.entities.shape, seed=6), tables.relations)
    others = triples.copy()
    others[:, 2] = np.roll(others[:, 2], RELATIONS)
    means = (own.entities + tables.entities) / 2
    scores = [client_attacks.passive_as_printed(own, means, 2, one, training) for one in (triples, others)]
    assert measure(*scores).auc < 0.3


@pytest.mark.parametrize("model", MODELS)
def test_rows_that_are_pulled_back_give_a_member_away(model: str) -> None:
    training, tables, triples = leaking(model)
    sent = Tables(client_attacks.reverse(tables.entities, triples[:, 2]), tables.relations)
    assert np.array_equal(sent.entities[triples[:, 2]], -tables.entities[triples[:, 2]])
    assert np.array_equal(sent.entities[:ENTITIES], tables.entities[:ENTITIES])
    members, others = triples[:MEMBERS], triples[MEMBERS:]
    later = sent.entities.copy()
    later[members[:, 2]] = tables.entities[members[:, 2]]  # as if trained on again
    assert measure(*(client_attacks.active(sent, later, one, training) for one in (members, others))).auc > 0.8


def test_clusters_find_pairs_whose_difference_is_a_relation() -> None:
    """As printed: half of the entities lie around two points, so pairs of these differ by one of a few vectors."""
    training, draw = training_of("TransE"), np.random.default_rng(4)
    near = np.repeat(draw.normal(size=(2, 24)) * 8, 40, axis=0) + draw.normal(scale=0.05, size=(80, 24))
    scattered = draw.normal(size=(80, 24)) * 8
    table = np.concatenate((near, scattered)).astype(np.float32)
    asked = np.full(40, 9)  # of ten relations: twenty clusters
    linked = np.column_stack((np.arange(40), asked, 40 + np.arange(40)))
    others = np.column_stack((80 + np.arange(40), asked, 120 + np.arange(40)))
    score = [server_attacks.by_clusters(table, np.arange(160), one, training) for one in (linked, others)]
    assert measure(*score).auc > 0.9
    with pytest.raises(UserError, match="TransE and RotatE"):
        server_attacks.by_clusters(table, np.arange(160), linked, training_of("DistMult"))


@pytest.mark.parametrize("clients", [3, 5])
def test_first_means_tell_how_many_hold_a_row(clients: int) -> None:
    """A client is told of no count beyond the bound, and computes it from what it is sent."""
    width, span = entity_width("TransE", 64), initial_range(10.0, 64)
    draw = np.random.default_rng(0)
    first = draw.uniform(-span, span, size=(clients, 400, width)).astype(np.float32)
    true = draw.integers(2, clients + 1, size=400)
    taking_part = np.arange(clients)[:, None] < true
    means = (first * taking_part[..., None]).sum(axis=0) / true[:, None]
    told = client_attacks.holders_by_first_means(first[0], means.astype(np.float32), span, clients)
    assert (told == true).mean() > (0.98 if clients == 3 else 0.65)
    unshared = client_attacks.holders_by_first_means(first[0], np.zeros_like(first[0]), span, clients)
    assert (unshared == 1).all()


def test_estimated_relations_are_the_relations() -> None:
    training = training_of("RotatE")
    heads = rows(50, 48, 1)
    phases = np.random.default_rng(2).uniform(-0.9, 0.9, size=(1, relation_width("RotatE", 24))) * (12 / 24)
    turn = np.exp(1j * phases * np.pi / initial_range(10.0, 24))
    turned = (heads[:, :24] + 1j * heads[:, 24:]) * turn
    table = np.concatenate((heads, np.concatenate((turned.real, turned.imag), axis=1))).astype(np.float32)
    pairs = np.column_stack((np.arange(50), np.zeros(50, int), 50 + np.arange(50)))
    assert server_attacks.estimated_relations(table, pairs, 1, training) == pytest.approx(phases, abs=1e-4)
