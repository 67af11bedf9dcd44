"""Clipped sums against autograd, one triple at a time, up to what grids cut off; the joint clip."""

from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from secure_kg.data.graph import Side
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.learning.loss import self_adversarial_loss
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model
from secure_kg.models.shapes import MODELS
from secure_kg.privacy.gradients.clipped_sums import (
    ClippedSums,
    PrivateGradients,
    models_with_gradients,
    touched_coordinates,
)

ENTITIES, RELATIONS, DIM = 7, 3, 3


def model_of(name: str, seed: int = 0, norm: int = 2, spread: float = 1.0) -> EmbeddingModel:
    generator = torch.Generator().manual_seed(seed)
    model = build_model(name, ModelSize(ENTITIES, RELATIONS, DIM, 2.0, norm), generator).double()
    with torch.no_grad():
        model.entity *= spread
    return model


def gradient_of_one(
    model: EmbeddingModel, triple: Tensor, negatives: Tensor, temperature: float, side: Side
) -> tuple[Tensor, Tensor]:
    """The two tables' gradients of one triple's loss, by autograd over the model's own scores."""
    h, r, t = triple
    rows = model.relation_rows(r[None], model.relation[r][None])
    head, tail, candidates = model.entity[h][None], model.entity[t][None], model.entity[negatives]
    scored = model.score_tails(head, rows, candidates) if side == "tail" else model.score_heads(candidates, rows, tail)
    own = (negatives == h) | (negatives == t)
    loss = self_adversarial_loss(model.score(head, rows, tail), scored, own[None], temperature)
    by_entity, by_relation = torch.autograd.grad(loss, (model.entity, model.relation))
    return by_entity, by_relation


def expected(
    model: EmbeddingModel, triples: Tensor, negatives: Tensor, clip: float, options: dict[str, Any]
) -> tuple[Tensor, Tensor, list[float]]:
    entity, relation = torch.zeros_like(model.entity), torch.zeros_like(model.relation)
    norms = []
    for triple in triples:
        one = gradient_of_one(model, triple, negatives, options["temperature"], options["side"])
        norm = float(torch.cat([part.reshape(-1) for part in one]).norm())
        scale = min(1.0, clip / max(norm, 1e-30))
        entity, relation = entity + scale * one[0], relation + scale * one[1]
        norms.append(norm)
    return entity.detach(), relation.detach(), norms


def require_close(found: ClippedSums, entity: Tensor, relation: Tensor) -> None:
    """To 2⁻¹⁰ of both tables together: rows are rounded to 2⁻¹⁸ of the largest value."""
    wanted = float(entity.square().sum() + relation.square().sum()) ** 0.5
    off = float((found.entity - entity).square().sum() + (found.relation - relation).square().sum()) ** 0.5
    assert off <= 2.0**-10 * wanted + 1e-12


entity_ids = st.integers(0, ENTITIES - 1)
TRIPLES = st.lists(st.tuples(entity_ids, st.integers(0, RELATIONS - 1), entity_ids), max_size=8)
CANDIDATES = st.lists(entity_ids, unique=True, max_size=ENTITIES)


@pytest.mark.parametrize("name", models_with_gradients())
@settings(max_examples=25, deadline=None)
@example([(1, 0, 1), (1, 0, 1)], [1], 0.05, "tail", 0)  # a self loop that is its own only candidate, twice
@example([(2, 1, 2), (0, 1, 2), (2, 1, 0)], [0, 2, 5], 0.05, "head", 0)
@example([], [0, 1], 1.0, "tail", 0)
@given(TRIPLES, CANDIDATES, st.sampled_from([1e-3, 0.3, 1e3]), st.sampled_from(["tail", "head"]), st.integers(0, 9))
def test_sums_are_those_of_autograd(
    name: str, triples: list[tuple[int, int, int]], candidates: list[int], clip: float, side: Side, seed: int
) -> None:
    model, batch = model_of(name, seed), torch.tensor(triples, dtype=torch.int64).reshape(-1, 3)
    negatives, temperature = torch.tensor(candidates, dtype=torch.int64), 0.7
    found = PrivateGradients(model, temperature).sums(batch, negatives, clip, side)
    entity, relation, norms = expected(model, batch, negatives, clip, {"temperature": temperature, "side": side})
    require_close(found, entity, relation)
    assert (found.clipped, found.count) == (sum(norm > clip for norm in norms), len(triples))


@pytest.mark.parametrize("norm", [1, 2])
def test_both_norms_of_translations(norm: int) -> None:
    model, batch, negatives = model_of("TransM", 3, norm), torch.tensor([[0, 0, 1], [2, 1, 2]]), torch.tensor([3, 2, 4])
    found = PrivateGradients(model).sums(batch, negatives, 0.2)
    entity, relation, _ = expected(model, batch, negatives, 0.2, {"temperature": 1.0, "side": "tail"})
    require_close(found, entity, relation)


@pytest.mark.parametrize("gap", [0.0, 1e-13, 1e-9, 1e-1])
def test_candidates_close_to_the_point(gap: float) -> None:
    """At distance zero the gradient is zero, and below the grid of rows a distance is as good as zero."""
    model, exact = model_of("TransE"), model_of("TransE")
    with torch.no_grad():
        for one, off in ((model, gap), (exact, gap if gap > 1e-6 else 0.0)):
            one.entity[3] = one.entity[0] + one.relation[1]
            one.entity[3, 0] += off
    batch, negatives = torch.tensor([[0, 1, 2], [0, 1, 3], [4, 1, 2]]), torch.tensor([3, 5, 6])
    found = PrivateGradients(model).sums(batch, negatives, 10.0)
    require_close(found, *expected(exact, batch, negatives, 10.0, {"temperature": 1.0, "side": "tail"})[:2])


@pytest.mark.parametrize("name", models_with_gradients())
@settings(max_examples=15, deadline=None)
@given(st.tuples(entity_ids, st.integers(0, RELATIONS - 1), entity_ids), CANDIDATES, st.integers(0, 99))
def test_one_triple_changes_the_sums_by_no_more_than_the_clip(
    name: str, triple: tuple[int, int, int], candidates: list[int], seed: int
) -> None:
    """In single precision, as in training, also where all rows nearly coincide far from zero."""
    for spread, place in ((1.0, 0.0), (1e-4, 0.0), (1e-5, 1.0)):
        model = model_of(name, seed, spread=spread).float()
        with torch.no_grad():
            model.entity += place
            model.relation *= 1.0 if place == 0 else spread
        found = PrivateGradients(model).sums(torch.tensor([triple]), torch.tensor(candidates, dtype=torch.int64), 1e-2)
        assert float(torch.cat((found.entity.reshape(-1), found.relation.reshape(-1))).norm()) <= 1e-2
        changed = int((found.entity != 0).sum() + (found.relation != 0).sum())
        assert changed <= touched_coordinates(model, len(candidates))


def test_the_largest_number_of_coordinates_is_reached() -> None:
    model = model_of("DistMult")
    found = PrivateGradients(model).sums(torch.tensor([[0, 0, 1]]), torch.tensor([2, 3, 4]), 1.0)
    assert int((found.entity != 0).sum() + (found.relation != 0).sum()) == touched_coordinates(model, 3) == 6 * DIM
    assert touched_coordinates(model, 1000) == (ENTITIES + 1) * DIM


def test_rows_of_the_ends_are_what_sums_add_up() -> None:
    """Of triples that share no row, without candidates."""
    model, batch, none = model_of("ComplEx"), torch.tensor([[0, 0, 1], [2, 1, 3]]), torch.empty(0, dtype=torch.int64)
    for side in ("tail", "head"):
        rows = PrivateGradients(model).end_rows(batch, none, side)
        found = PrivateGradients(model).sums(batch, none, 1e3, side)
        torch.testing.assert_close(found.entity[[0, 2]], rows.head, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(found.entity[[1, 3]], rows.tail, rtol=1e-3, atol=1e-3)


def test_sums_do_not_depend_on_how_triples_are_cut_into_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    model, generator = model_of("RESCAL"), torch.Generator().manual_seed(1)
    batch = torch.randint(0, RELATIONS, (11, 3), generator=generator)
    whole = PrivateGradients(model).sums(batch, torch.tensor([4, 5]), 0.1)
    monkeypatch.setattr("secure_kg.privacy.gradients.clipped_sums.CHUNK", 3)
    parts = PrivateGradients(model).sums(batch, torch.tensor([4, 5]), 0.1)
    assert torch.equal(whole.entity, parts.entity)
    assert torch.equal(whole.relation, parts.relation)
    assert whole.clipped == parts.clipped


def test_all_models_are_there() -> None:
    assert set(models_with_gradients()) == set(MODELS)


def test_a_model_without_gradients_gets_one_line() -> None:
    model = model_of("TransE")
    model.name = "TransX"
    with pytest.raises(UserError, match="TransX has no per-triple gradients"):
        PrivateGradients(model)


@pytest.mark.parametrize("clip", [0.0, -1.0, float("nan"), float("inf")])
def test_a_clip_that_bounds_nothing_is_refused(clip: float) -> None:
    with pytest.raises(UserError, match="clip"):
        PrivateGradients(model_of("TransE")).sums(torch.tensor([[0, 0, 1]]), torch.tensor([2]), clip)


def test_candidates_drawn_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="differ"):
        PrivateGradients(model_of("TransE")).sums(torch.tensor([[0, 0, 1]]), torch.tensor([2, 2]), 1.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2e4])
def test_a_diverged_model_is_noticed_whatever_the_triples_are(value: float) -> None:
    model = model_of("TransE")
    with torch.no_grad():
        model.entity[6, 0] = value
    with pytest.raises(TrainingDiverged):
        PrivateGradients(model).sums(torch.empty((0, 3), dtype=torch.int64), torch.tensor([2]), 1.0)
