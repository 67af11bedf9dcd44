"""Every model: closed forms in numpy, three routes to one score, gradients. A model without a closed form fails."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.foundation.errors import UserError
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model, model_class
from secure_kg.models.rotate import _rotated, torch_rotated
from secure_kg.models.shapes import MODELS, entity_width, initial_range, relation_width
from secure_kg.models.transm import relation_weights

MARGIN = 7.0
Row = npt.NDArray[np.float64]


def as_complex(row: Row) -> npt.NDArray[np.complex128]:
    half = len(row) // 2
    return row[:half] + 1j * row[half:]


def transe(h: Row, r: Row, t: Row, size: ModelSize) -> float:
    return float(size.margin - sum(abs(h + r - t) ** size.norm) ** (1 / size.norm))


def rotate(h: Row, r: Row, t: Row, size: ModelSize) -> float:
    turn = np.exp(1j * math.pi * r / ((size.margin + 2) / size.dim))
    return float(size.margin - np.abs(as_complex(h) * turn - as_complex(t)).sum())


def distmult(h: Row, r: Row, t: Row, size: ModelSize) -> float:
    return float(h @ np.diag(r) @ t)


def complex_(h: Row, r: Row, t: Row, size: ModelSize) -> float:
    return float((as_complex(h) * as_complex(r) * as_complex(t).conj()).sum().real)


def transm(h: Row, r: Row, t: Row, size: ModelSize) -> float:
    distance = sum(abs(h + r[:-1] - t) ** size.norm) ** (1 / size.norm)
    return float(size.margin - r[-1] * distance)


def rescal(h: Row, r: Row, t: Row, size: ModelSize) -> float:
    return float(h @ r.reshape(size.dim, size.dim) @ t)


CLOSED_FORMS: dict[str, Callable[[Row, Row, Row, ModelSize], float]] = {
    "TransE": transe,
    "RotatE": rotate,
    "DistMult": distmult,
    "ComplEx": complex_,
    "TransM": transm,
    "RESCAL": rescal,
}
CASES = [(name, norm) for name in MODELS for norm in ((1, 2) if name in ("TransE", "TransM") else (1,))]


def test_every_model_has_a_class_and_a_closed_form() -> None:
    assert set(CLOSED_FORMS) == set(MODELS) == {model_class(name).name for name in MODELS}


def build(name: str, norm: int, entities: int, relations: int, dim: int, seed: int) -> EmbeddingModel:
    triples = np.random.default_rng(seed).integers(0, (entities, relations, entities), (3 * relations, 3))
    size = ModelSize(entities, relations, dim, MARGIN, norm, triples)
    return build_model(name, size, torch.Generator().manual_seed(seed)).double()


def relation_rows(model: EmbeddingModel) -> torch.Tensor:
    """All relations, as the score methods take them."""
    return model.relation_rows(torch.arange(model.size.relations), model.relation)


@pytest.mark.parametrize(("name", "norm"), CASES)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_all_routes_equal_the_closed_form(name: str, norm: int, batch: int, many: int, dim: int, seed: int) -> None:
    model = build(name, norm, many, batch, dim, seed)
    entity, relation = model.entity.detach(), relation_rows(model).detach()
    anchor = entity[torch.arange(batch) % many]
    closed = CLOSED_FORMS[name]

    def expect(h: torch.Tensor, r: torch.Tensor, t: torch.Tensor) -> float:
        return closed(h.numpy(), r.numpy(), t.numpy(), model.size)

    tails = torch.tensor([[expect(h, r, t) for t in entity] for h, r in zip(anchor, relation, strict=True)])
    heads = torch.tensor([[expect(h, r, t) for h in entity] for r, t in zip(relation, anchor, strict=True)])
    with torch.no_grad():
        torch.testing.assert_close(model.score(anchor[:, None], relation[:, None], entity), tails.double())
        torch.testing.assert_close(model.score_tails(anchor, relation, entity), tails.double())
        torch.testing.assert_close(model.score(entity, relation[:, None], anchor[:, None]), heads.double())
        torch.testing.assert_close(model.score_heads(entity, relation, anchor), heads.double())


@pytest.mark.parametrize(("name", "norm"), CASES)
def test_routes_have_the_same_gradients(name: str, norm: int) -> None:
    model = build(name, norm, 6, 4, 5, seed=3)
    anchor, relation, candidates = model.entity[:4], relation_rows(model), model.entity
    weights = torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def gradients(scores: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad((weights * scores).sum(), (model.entity, model.relation))

    pairs = [
        (model.score(anchor[:, None], relation[:, None], candidates), model.score_tails(anchor, relation, candidates)),
        (model.score(candidates, relation[:, None], anchor[:, None]), model.score_heads(candidates, relation, anchor)),
    ]
    for direct, batched in pairs:
        torch.testing.assert_close(gradients(direct), gradients(batched))


@pytest.mark.parametrize(("name", "norm"), [("TransE", 1), ("TransE", 2), ("RotatE", 1), ("TransM", 2)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])  # by torch, by the compiled loops
def test_gradient_is_finite_where_a_distance_is_zero(name: str, norm: int, dtype: torch.dtype) -> None:
    model = build(name, norm, 1, 1, 4, seed=0).to(dtype)
    with torch.no_grad():
        model.relation.zero_()  # h = t and no translation or rotation
    direct = model.score(model.entity, relation_rows(model), model.entity)
    batched = model.score_tails(model.entity, relation_rows(model), model.entity)
    (direct.sum() + batched.sum()).backward()  # type: ignore[no-untyped-call]
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert bool(parameter.grad.isfinite().all())


@pytest.mark.parametrize("name", MODELS)
def test_initial_rows(name: str) -> None:
    first, again, other = (build(name, 1, 30, 20, 8, seed) for seed in (1, 1, 2))
    assert first.entity.shape == (30, entity_width(name, 8))
    assert first.relation.shape == (20, relation_width(name, 8))
    bound = initial_range(MARGIN, 8)
    for table in (first.entity, first.relation):
        assert 0.9 * bound < float(table.detach().abs().max()) <= bound
    assert torch.equal(first.entity, again.entity)
    assert torch.equal(first.relation, again.relation)
    assert not torch.equal(first.entity, other.entity)


def test_unknown_model_names_the_choices() -> None:
    with pytest.raises(UserError, match="TransE, RotatE, DistMult, ComplEx, TransM, RESCAL"):
        build_model("TransX", ModelSize(1, 1, 1, 1.0), torch.Generator())


def test_transm_weights_follow_the_relations_mapping() -> None:
    """Relation 0 links one head to four tails, relation 1 is one to one, relation 2 has no training triple."""
    train = np.array([[0, 0, t] for t in (1, 2, 3, 4)] + [[h, 1, h + 1] for h in range(3)] + [[0, 0, 1]])
    weights = relation_weights(train, 3)
    assert weights == pytest.approx([1 / math.log(4 + 1), 1 / math.log(2), 1 / math.log(2)])


@pytest.mark.parametrize("name", ["TransE", "DistMult", "ComplEx", "RESCAL"])
def test_pykeen_gives_the_same_scores(name: str) -> None:
    """Up to the margin, which is ours alone. PyKEEN's RotatE takes another norm, and it has no TransM."""
    ours = build(name, 1, 9, 3, 6, seed=5).float()
    theirs = pykeen_model(ours)
    triples = torch.from_numpy(np.random.default_rng(0).integers(0, (9, 3, 9), (40, 3)))
    h, r, t = triples.t()
    with torch.no_grad():
        own = ours.score(ours.entity[h], relation_rows(ours)[r], ours.entity[t]) - ours.offset
        torch.testing.assert_close(own, theirs.score_hrt(triples)[:, 0], rtol=1e-4, atol=1e-5)
        tails = ours.score_tails(ours.entity[h], relation_rows(ours)[r], ours.entity) - ours.offset
        torch.testing.assert_close(tails, theirs.score_t(triples[:, :2]), rtol=1e-4, atol=1e-5)
        heads = ours.score_heads(ours.entity, relation_rows(ours)[r], ours.entity[t]) - ours.offset
        torch.testing.assert_close(heads, theirs.score_h(triples[:, 1:]), rtol=1e-4, atol=1e-5)


def pykeen_model(ours: EmbeddingModel) -> Any:
    """PyKEEN's model of the same name with the same rows."""
    from pykeen import models
    from pykeen.triples import CoreTriplesFactory

    size = ours.size
    factory = CoreTriplesFactory(torch.zeros(1, 3, dtype=torch.long), size.entities, size.relations)
    options = {"scoring_fct_norm": size.norm, "entity_constrainer": None} if ours.name == "TransE" else {}
    theirs = getattr(models, ours.name)(triples_factory=factory, embedding_dim=size.dim, **options)
    entity, relation = ours.entity.detach(), ours.relation.detach()
    with torch.no_grad():
        for representation, rows in (
            (theirs.entity_representations[0], entity),
            (theirs.relation_representations[0], relation),
        ):
            weight = next(representation.parameters())
            if ours.name == "ComplEx":  # real and imaginary parts alternate there
                rows = torch.stack(rows.chunk(2, dim=-1), dim=-1)
            weight.copy_(rows.reshape(weight.shape))
    return theirs


def test_a_turn_by_compiled_loops_is_that_of_torch() -> None:
    draws = torch.Generator().manual_seed(0)
    x, phase, g = (torch.randn(7, width, generator=draws) for width in (10, 5, 10))
    results = []
    for turn in (_rotated, torch_rotated):
        own = x.clone().requires_grad_(), phase.clone().requires_grad_()
        out = turn(*own)
        results.append((out.detach(), *torch.autograd.grad(out, own, g)))
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected)
