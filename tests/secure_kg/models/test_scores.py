"""Every model: closed forms in numpy, three routes to one score, gradients. A model without a closed form fails."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.errors import UserError
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import CLASSES, build_model
from secure_kg.models.rotate import complex_l1
from secure_kg.models.shapes import MODELS, entity_width, initial_range, relation_width

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


CLOSED_FORMS: dict[str, Callable[[Row, Row, Row, ModelSize], float]] = {
    "TransE": transe,
    "RotatE": rotate,
    "DistMult": distmult,
    "ComplEx": complex_,
}
CASES = [(name, norm) for name in MODELS for norm in ((1, 2) if name == "TransE" else (1,))]


def test_every_model_has_a_class_and_a_closed_form() -> None:
    assert set(CLOSED_FORMS) == set(CLASSES) == set(MODELS)


def build(name: str, norm: int, entities: int, relations: int, dim: int, seed: int) -> EmbeddingModel:
    size = ModelSize(entities, relations, dim, MARGIN, norm)
    return build_model(name, size, torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize(("name", "norm"), CASES)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_all_routes_equal_the_closed_form(name: str, norm: int, batch: int, many: int, dim: int, seed: int) -> None:
    model = build(name, norm, many, batch, dim, seed)
    entity, relation = model.entity.detach(), model.relation.detach()
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
    anchor, relation, candidates = model.entity[:4], model.relation, model.entity
    weights = torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def gradients(scores: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad((weights * scores).sum(), (model.entity, model.relation))

    pairs = [
        (model.score(anchor[:, None], relation[:, None], candidates), model.score_tails(anchor, relation, candidates)),
        (model.score(candidates, relation[:, None], anchor[:, None]), model.score_heads(candidates, relation, anchor)),
    ]
    for direct, batched in pairs:
        torch.testing.assert_close(gradients(direct), gradients(batched))


def test_complex_l1_gradient_by_finite_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    y = torch.randn(5, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(complex_l1, (x, y))


@pytest.mark.parametrize("name", ["TransE", "RotatE"])
def test_gradient_is_finite_where_a_distance_is_zero(name: str) -> None:
    model = build(name, 1, 1, 1, 4, seed=0)
    with torch.no_grad():
        model.relation.zero_()  # h = t and no translation or rotation
    direct = model.score(model.entity, model.relation, model.entity)
    batched = model.score_tails(model.entity, model.relation, model.entity)
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
    with pytest.raises(UserError, match="TransE, RotatE, DistMult, ComplEx"):
        build_model("TransX", ModelSize(1, 1, 1, 1.0), torch.Generator())
