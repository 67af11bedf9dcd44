"""The clip of private gradients against rounding: states that a hostile server may send, batches of every shape."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from secure_kg.foundation.errors import UserError
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model
from secure_kg.models.transm import TransM
from secure_kg.privacy.gradients.clipped_sums import ClippedSums, PrivateGradients
from secure_kg.privacy.gradients.exact_sums import ExactSum
from secure_kg.privacy.gradients.strict import row_dots
from secure_kg.privacy.gradients.weighing import Loss, by_positive, weigh

CASES = [("TransE", 1), ("TransE", 2), ("TransM", 2), ("DistMult", 2), ("ComplEx", 2), ("RotatE", 2), ("RESCAL", 2)]
ENTITIES, CANDIDATES = 40, 16
SMALLEST, LARGEST = 2.0**-149, 1e4


def model_of(name: str, dim: int, norm: int = 2, entities: int = ENTITIES) -> EmbeddingModel:
    model = build_model(name, ModelSize(entities, 4, dim, 10.0, norm), torch.Generator().manual_seed(0))
    if isinstance(model, TransM):
        model.weight.fill_(1.0)
    return model


def hostile(name: str, norm: int, dim: int, size: float, kind: str) -> EmbeddingModel:
    """Rows up to `size`: uniform; nearly all the same; or with scores that vanish, if it were not for rounding."""
    model, random = model_of(name, dim, norm), torch.Generator().manual_seed(5)
    with torch.no_grad():
        for table in (model.entity, model.relation):
            values = torch.rand(table.shape, generator=random) * 2 - 1
            if kind == "alike":
                values = 1 - values.abs() * 2e-6
            elif kind == "cancelling" and table.shape[1] % 2 == 0:
                half = values.abs()[:, : table.shape[1] // 2]
                signs = torch.ones(len(table), 1)
                signs[:CANDIDATES] = -1.0 if table is model.entity else 1.0
                values = torch.cat((half, half * signs), dim=1)
            table.copy_(values * size)
    return model


def length(entity: Tensor, relation: Tensor) -> float:
    """In L2, by a sum that is rounded once."""
    return math.sqrt(math.fsum(x * x for table in (entity, relation) for x in table.flatten().tolist()))


def triples_of(number: int, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    ends = torch.randint(0, ENTITIES, (number, 2), generator=random)
    return torch.stack((ends[:, 0], torch.randint(0, 4, (number,), generator=random), ends[:, 1]), dim=1)


def sums(model: EmbeddingModel, triples: Tensor, clip: float = 0.3) -> ClippedSums:
    return PrivateGradients(model).sums(triples, torch.arange(CANDIDATES), clip)


@pytest.mark.parametrize(("name", "dim", "candidates"), [("TransE", 16, 4), ("TransM", 64, 16), ("TransE", 256, 64)])
@pytest.mark.parametrize("size", [SMALLEST, 2.6e-23, 1e-15])
def test_squares_that_underflow_make_no_gradient_longer(name: str, dim: int, candidates: int, size: float) -> None:
    """In single precision distances of such rows come out too small, and a unit vector eleven times too long."""
    model = model_of(name, dim, entities=candidates + 3)
    with torch.no_grad():
        model.entity.zero_()
        model.relation.zero_()
        row = torch.full((dim,), size)
        row[0] *= 1.5
        signs = 1 - 2 * (torch.arange(candidates) % 2)
        model.entity[:candidates] = row * signs[:, None]
    one = torch.tensor([[candidates, 0, candidates + 1]])
    for clip in (0.3, 0.03):
        found = PrivateGradients(model).sums(one, torch.arange(candidates), clip)
        wanted = min(clip, candidates**-0.5)  # equal weights of all candidates, whose pulls on the point cancel
        assert 0.99 * wanted < length(found.entity, found.relation) <= clip


@pytest.mark.parametrize(("name", "norm"), CASES)
@pytest.mark.parametrize("kind", ["uniform", "alike", "cancelling"])
@pytest.mark.parametrize("size", [1e-20, 0.3, 16.0, LARGEST])
def test_one_triple_more_moves_nothing_but_its_own_part(name: str, norm: int, kind: str, size: float) -> None:
    """To the last bit: whether a batch is so small that libraries take other loops, or just fills a chunk."""
    model, clip = hostile(name, norm, 8, size, kind), 0.3
    for number, first in itertools.product((0, 1, 3, 7, 64, 1023), (True, False)):
        more = triples_of(number + 1)
        one, rest = (more[:1], more[1:]) if first else (more[-1:], more[:-1])
        a, b, c = (sums(model, batch, clip) for batch in (more, rest, one))
        assert torch.equal(a.entity - b.entity, c.entity)
        assert torch.equal(a.relation - b.relation, c.relation)
        assert length(c.entity, c.relation) <= clip


@pytest.mark.parametrize(("dim", "size"), [(32, 4.0), (256, 40.0), (256, 100.0)])
def test_scores_that_cancel_at_the_number_of_rows_where_libraries_change_loops(dim: int, size: float) -> None:
    model = hostile("DistMult", 2, dim, size, "cancelling")
    for number in (3, 4, 7, 11):
        more = triples_of(number + 1, number)
        a, b, c = (sums(model, batch) for batch in (more, more[:-1], more[-1:]))
        assert torch.equal(a.entity - b.entity, c.entity)
        assert torch.equal(a.relation - b.relation, c.relation)


@pytest.mark.parametrize(("name", "norm"), CASES)
def test_the_order_of_triples_changes_no_bit(name: str, norm: int) -> None:
    model, batch = hostile(name, norm, 8, 4.0, "uniform"), triples_of(2500)
    turned = sums(model, batch[torch.randperm(len(batch), generator=torch.Generator().manual_seed(1))])
    whole = sums(model, batch)
    assert torch.equal(whole.entity, turned.entity)
    assert torch.equal(whole.relation, turned.relation)


VALUES = st.one_of(
    st.floats(-LARGEST, LARGEST, width=32),
    st.sampled_from([0.0, SMALLEST, -SMALLEST, 2.0**-126, 1e-23, -2.6e-23, 1.0, 1.0 + 2**-23, LARGEST, -LARGEST]),
)


@pytest.mark.parametrize(("name", "norm"), CASES)
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_no_state_makes_a_triple_longer_than_the_clip(name: str, norm: int, data: st.DataObject) -> None:
    model = model_of(name, 2, norm, entities=5)
    with torch.no_grad():
        for table in (model.entity, model.relation):
            values = data.draw(st.lists(VALUES, min_size=table.numel(), max_size=table.numel()))
            table.copy_(torch.tensor(values).reshape(table.shape))
    clip = data.draw(st.sampled_from([1e-9, 0.03, 0.3, 1.0, 3.0, 1e6]))
    one = torch.tensor([data.draw(st.sampled_from([(0, 1, 1), (0, 0, 0), (3, 2, 4), (4, 3, 2)]))])
    for side in ("tail", "head"):
        found = PrivateGradients(model, 0.5).sums(one, torch.arange(4), clip, side)
        assert length(found.entity, found.relation) <= clip


def test_chunks_add_up_without_rounding() -> None:
    random = np.random.default_rng(0)
    parts = random.integers(-(2**53), 2**53, size=(3000, 2, 3))
    table = ExactSum(torch.Size((2, 3)), 2.0**-60)
    for part in parts:
        table.add(torch.from_numpy(part.astype(np.float64) * 2.0**-60))
    wanted = parts.astype(object).sum(0)
    assert np.array_equal(table.total().numpy() * 2.0**60, wanted.astype(np.float64))


def test_loops_fuse_no_operations() -> None:
    """A product that is not rounded before it is added would leave a rest."""
    x = np.zeros((1, 17))
    y = np.zeros((1, 17))
    x[0, 0], y[0, 0] = 1 + 2.0**-30, 1 + 2.0**-30
    x[0, 8], y[0, 8] = -1.0, x[0, 0] * y[0, 0]
    out = np.empty(1)
    row_dots(x, y, out)
    assert out[0] == 0.0


def test_a_row_of_weights_is_the_same_in_any_company() -> None:
    random = np.random.default_rng(1)
    scores, width = random.normal(0, 20, (37, 19)), 19

    def weighed(rows: slice) -> np.ndarray:
        some = scores[rows].copy()
        own = np.full((len(some), 2), -1)
        weigh(some, Loss(0.7, 2.0, np.ones(len(some)), own), 2.0**-22, np.empty(len(some)))
        return some

    whole = weighed(slice(None))
    assert all(np.array_equal(weighed(slice(i, i + 1))[0], whole[i]) for i in range(len(scores)))
    odds = np.exp(0.7 * (scores - scores.max(1, keepdims=True)))
    wanted = odds / odds.sum(1, keepdims=True) / (1 + np.exp(-(scores + 2.0)))
    assert np.abs(whole - wanted).max() < 2.0**-21
    assert whole.shape[1] == width


def test_gradients_by_answers() -> None:
    similar = np.array([-800.0, -3.0, 0.0, 5.0, 800.0])
    wanted = [-1.0, *(-1 / (1 + np.exp(similar[1:-1] + 1))), 0.0]
    by_positive(similar, Loss(1.0, 1.0, np.ones(5), np.full((5, 2), -1)))
    np.testing.assert_allclose(similar, wanted, rtol=1e-7, atol=1e-300)


def test_rows_that_the_proof_does_not_cover_are_refused() -> None:
    with pytest.raises(UserError, match="8192"):
        sums(model_of("DistMult", 8193), triples_of(1))
    model = model_of("TransM", 4)
    assert isinstance(model, TransM)
    model.weight.fill_(-1.0)
    with pytest.raises(ValueError, match="negative"):
        sums(model, triples_of(1))
