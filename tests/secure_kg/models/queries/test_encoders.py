"""Every encoder: closed forms in numpy, any query of the general form, unions as the best of their parts."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch

from secure_kg.models.queries.encoder import conjunctions
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.models.queries.registry import first_operators
from secure_kg.models.queries.scoring import alike, pairs
from secure_kg.models.queries.shapes import ENCODERS, EncoderShape, Score, operator_shapes, operator_width
from secure_kg.queries.form import Anchor, Intersection, Projection, QueryError, Union
from secure_kg.queries.structures import STRUCTURES, WITH_NEGATION, Structure, as_row, columns

Array = npt.NDArray[np.float64]
ENTITIES, RELATIONS, DIM = 7, 3, 4
VARIANTS = [(name, False) for name in ENCODERS] + [(name, True) for name, kind in ENCODERS.items() if kind.varies]


def model_of(encoder: str, published: bool = False, score: Score = "usual") -> QueryModel:
    size = QueryModelSize(ENTITIES, RELATIONS, encoder, EncoderShape(DIM, 2, published), score)
    model = QueryModel(size, torch.Generator().manual_seed(1), torch.Generator().manual_seed(2))
    with torch.no_grad():  # biases and gains that are not 0 and 1
        model.operators += 0.1 * torch.randn(model.operators.shape, generator=torch.Generator().manual_seed(3))
    return model


def rows_of(structure: Structure, number: int = 3) -> torch.Tensor:
    draws = np.random.default_rng(5)
    return torch.from_numpy(draws.integers(0, min(ENTITIES, 2 * RELATIONS), (number, columns(structure))))


class Numpy:
    """The definitions once more, for one query, in double precision."""

    def __init__(self, model: QueryModel, published: bool) -> None:
        self.rows, self.published = model.rows.detach().double().numpy(), published
        flat, self.own = model.operators.detach().double().numpy(), {}
        for name, shape in operator_shapes(model.size.encoder, model.size.shape).items():
            self.own[name], flat = flat[: int(np.prod(shape))].reshape(shape), flat[int(np.prod(shape)) :]

    def linear(self, name: str, x: Array) -> Array:
        found: Array = x @ self.own[f"{name}.weight"].T + self.own.get(f"{name}.bias", 0.0)
        return found

    def norm(self, name: str, x: Array) -> Array:
        spread = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        found: Array = (x - x.mean(-1, keepdims=True)) / spread * self.own[f"{name}.gain"] + self.own[f"{name}.bias"]
        return found

    def attend(self, name: str, x: Array) -> Array:
        q, k, v = [self.linear(f"{name}.attention", x)] * 3 if self.published else np.split(
            self.linear(f"{name}.attention", x), 3, -1
        )  # fmt: skip
        return softmax(q @ k.T / np.sqrt(DIM)) @ v

    def block(self, name: str, x: Array) -> Array:
        x = self.norm(f"{name}.first", x + self.attend(name, x))
        return self.norm(f"{name}.second", x + self.linear(f"{name}.out", relu(self.linear(f"{name}.hidden", x))))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    found: Array = 1 / (1 + np.exp(-x))
    return found


def softmax(x: Array) -> Array:
    found: Array = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    return found


def gqe(of: Numpy, e: list[Array], r: list[Array]) -> Array:
    """The point of pi: two steps from the first anchor and one from the second."""
    parts = np.stack([e[0] + r[0] + r[1], e[1] + r[2]])
    hidden = relu(of.linear("hidden", parts))
    if of.published:
        return of.linear("mean", of.linear("out", hidden).mean(0))[None]
    found: Array = (softmax(of.linear("weights", hidden).T).T * parts).sum(0)[None]
    return found


def tree_lstm(of: Numpy, e: list[Array], r: list[Array]) -> Array:
    def gates(x: Array, h: Array) -> list[Array]:
        return np.split(of.linear("input", x) + of.linear("state", h), 4)

    def step(x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        i, o, u, f = gates(x, h)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(u)
        return sigmoid(o) * np.tanh(c), c

    one = step(r[1], *step(r[0], e[0], np.zeros(DIM)))
    parts = [one, step(r[2], e[1], np.zeros(DIM))]
    h = parts[0][0] + parts[1][0]
    i, o, u, _ = gates(of.own["intersection"], h)
    forget = [sigmoid(of.linear("forget_part", part) + of.linear("forget_sum", h)) for part, _ in parts]
    c = sigmoid(i) * np.tanh(u) + sum(f * part for f, (_, part) in zip(forget, parts, strict=True))
    found: Array = (sigmoid(o) * np.tanh(c))[None]
    return found


def q2p(of: Numpy, e: list[Array], r: list[Array]) -> Array:
    def project(x: Array, along: Array, higher: bool) -> Array:
        x = of.block("higher", x) if higher else x
        beside = np.broadcast_to(along, x.shape)
        z, g = np.split(sigmoid(of.linear("gates", np.hstack((x, beside)))), 2, -1)
        h = np.tanh(of.linear("candidate", np.hstack((x * g, beside))))
        x = of.norm("gated", (1 - z) * x + z * h)
        return of.norm("among", x + of.attend("among", x))

    first = project(project(e[0] + of.own["particles"], r[0], False), r[1], True)
    second = project(e[1] + of.own["particles"], r[2], False)
    return of.block("intersection.2", of.block("intersection.1", np.vstack((first, second))))


CLOSED_FORMS: dict[str, Callable[[Numpy, list[Array], list[Array]], Array]] = {
    "gqe": gqe,
    "q2p": q2p,
    "tree-lstm": tree_lstm,
}


@pytest.mark.parametrize(("encoder", "published"), VARIANTS)
def test_points_are_those_of_the_definition(encoder: str, published: bool) -> None:
    model = model_of(encoder, published)
    ids = torch.tensor([[2, 4, 1, 5, 3], [0, 0, 5, 6, 2]])
    found = model.points(STRUCTURES["pi"], ids).detach().numpy()
    own = Numpy(model, published)
    for query, (a, r, s, b, t) in zip(found, ids.tolist(), strict=True):
        relations = [own.rows[ENTITIES + label] for label in (r, s, t)]
        expected = CLOSED_FORMS[encoder](own, [own.rows[a], own.rows[b]], relations)
        np.testing.assert_allclose(query, expected, atol=1e-5)


@pytest.mark.parametrize(("encoder", "published"), VARIANTS)
def test_all_named_types_have_scores_or_are_refused_in_one_line(encoder: str, published: bool) -> None:
    model = model_of(encoder, published)
    for kind, structure in STRUCTURES.items():
        if kind in WITH_NEGATION and not ENCODERS[encoder].negates:
            with pytest.raises(QueryError, match="no definition of a negation"):
                model.scores(structure, rows_of(structure))
            continue
        scores = model.scores(structure, rows_of(structure))
        assert scores.shape == (3, ENTITIES)
        assert bool(scores.isfinite().all())


def test_a_negation_changes_the_points() -> None:
    model, ids = model_of("q2p"), rows_of(STRUCTURES["2i"])
    assert not torch.allclose(model.points(STRUCTURES["2i"], ids), model.points(STRUCTURES["2in"], ids))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_query_of_no_named_type_is_encoded_and_its_union_is_the_best_of_its_parts(encoder: str) -> None:
    links = [
        Projection(relation, Anchor(entity), inverse=bool(relation)) for relation, entity in ((0, 1), (1, 2), (2, 3))
    ]
    either = Union((Intersection((links[0], links[1])), Projection(2, Projection(0, links[2]))))
    structure, row = as_row(Projection(1, Intersection((either, links[1], links[2]))))
    model, ids = model_of(encoder), torch.tensor([row])
    parts = [model.scores(part, ids) for part in conjunctions(structure)]
    assert len(parts) == 2
    torch.testing.assert_close(model.scores(structure, ids), torch.maximum(*parts))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_order_of_an_intersections_parts_changes_no_score(encoder: str) -> None:
    model, ids = model_of(encoder), rows_of(STRUCTURES["3i"])
    turned = model.scores(STRUCTURES["3i"], ids[:, [4, 5, 0, 1, 2, 3]])
    torch.testing.assert_close(model.scores(STRUCTURES["3i"], ids), turned)


@pytest.mark.parametrize("score", ["dot", "squared", "l2"])
def test_both_routes_to_a_score_agree(score: Score) -> None:
    draws = torch.Generator().manual_seed(0)
    points, rows = torch.randn(5, 3, DIM, generator=draws), torch.randn(5, DIM, generator=draws)
    products = torch.einsum("bkd,md->bkm", points, rows)
    distances = (points[:, :, None] - rows).square().sum(-1)
    expected = {"dot": products, "squared": -distances, "l2": -distances.sqrt()}[score].amax(1)
    torch.testing.assert_close(pairs(points, rows, score), expected)
    torch.testing.assert_close(alike(points, rows, score), expected.diagonal())


@pytest.mark.parametrize(("encoder", "published"), VARIANTS)
def test_the_server_knows_how_many_operators_there_are(encoder: str, published: bool) -> None:
    shape = EncoderShape(DIM, 3, published)
    first = first_operators(encoder, shape, torch.Generator().manual_seed(0))
    assert len(first) == operator_width(encoder, shape)
    assert first[0] == 1.0  # the scale
    assert torch.equal(first, first_operators(encoder, shape, torch.Generator().manual_seed(0)))
