"""Steps on queries: the loss is a softmax over all entities, or an unbiased estimate of it, and training lowers it."""

import itertools
from typing import get_args

import numpy as np
import pytest
import torch

from secure_kg.foundation.seeds import seed_sequence
from secure_kg.learning.adam import Adam
from secure_kg.learning.query_config import Answers
from secure_kg.learning.query_loss import sampled_softmax
from secure_kg.learning.query_steps import QuerySteps, draw_negatives, drawn_from
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.models.queries.shapes import ENCODERS, EncoderShape
from secure_kg.queries.edges import QueryGraph
from secure_kg.queries.sampling import Drawn, Sampler
from secure_kg.queries.structures import STRUCTURES, columns

ENTITIES, RELATIONS = 6, 2
ALL = np.arange(ENTITIES, dtype=np.int32)


def drawn(kind: str, number: int = 5) -> Drawn:
    draws = np.random.default_rng(len(kind))
    rows = draws.integers(0, 2 * RELATIONS, (number, columns(STRUCTURES[kind]))).astype(np.int32)
    return Drawn(kind, rows, draws.integers(0, ENTITIES, number).astype(np.int32))


def steps_of(encoder: str) -> tuple[QueryModel, QuerySteps]:
    size = QueryModelSize(ENTITIES, RELATIONS, encoder, EncoderShape(8, 2))
    model = QueryModel(size, torch.Generator().manual_seed(0), torch.Generator().manual_seed(1))
    return model, QuerySteps(model, Adam(model.parameters(), 0.01))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_with_all_entities_as_negatives_it_is_the_cross_entropy_of_all_types_in_one_batch(encoder: str) -> None:
    model, steps = steps_of(encoder)
    batch = [drawn("1p"), drawn("2i", 3), drawn("up", 4)]
    losses = []
    for one in batch:
        scores = model.scores(STRUCTURES[one.kind], torch.from_numpy(one.rows.astype(np.int64)))
        answers = torch.from_numpy(one.answers.astype(np.int64))
        losses.append(torch.nn.functional.cross_entropy(model.operators[0] * scores, answers, reduction="sum"))
    expected = torch.stack(losses).sum() / 12
    found = steps.loss(batch, ALL[::-1])
    torch.testing.assert_close(found, expected)
    parameters = model.rows, model.operators
    torch.testing.assert_close(torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters))


def test_the_sum_over_the_others_is_estimated_without_bias() -> None:
    scores, answer = torch.tensor([0.3, -1.0, 2.0, 0.7, -0.2]), 2
    others = scores.exp().sum() - scores[answer].exp()
    estimates = []
    for chosen in itertools.combinations(range(5), 3):
        ids = torch.tensor(chosen)
        loss = sampled_softmax(scores[None, answer], scores[None, ids], (ids == answer)[None], 5)
        estimates.append((loss.exp() - 1) * scores[answer].exp())
    # Draws with the answer have two others, draws without it three: each kind by itself has no bias.
    with_answer = [answer in chosen for chosen in itertools.combinations(range(5), 3)]
    for kind in (True, False):
        mean = torch.stack([one for one, has in zip(estimates, with_answer, strict=True) if has is kind]).mean()
        torch.testing.assert_close(mean, others)


def test_a_graph_of_one_entity_has_no_loss() -> None:
    one = torch.zeros(2, 1, requires_grad=True)
    loss = sampled_softmax(one[:, 0], one, torch.ones(2, 1, dtype=torch.bool), 1)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert bool(one.grad is not None and one.grad.isfinite().all())


@pytest.mark.parametrize("encoder", ENCODERS)
def test_steps_lower_the_loss(encoder: str) -> None:
    _, steps = steps_of(encoder)
    batch = [drawn(kind) for kind in ("1p", "2p", "2i", "ip")]
    first = steps.step(batch, ALL)
    for _ in range(30):
        last = steps.step(batch, ALL)
    assert last < 0.8 * first


def test_negatives_are_different_entities() -> None:
    found = draw_negatives(np.random.default_rng(0), 50, 20)
    assert len(set(found.tolist())) == 20
    assert sorted(draw_negatives(np.random.default_rng(0), 5, 20).tolist()) == [0, 1, 2, 3, 4]


def test_answers_are_drawn_as_often_as_they_have_edges() -> None:
    star = np.array([[0, 0, tail] for tail in range(1, 10)])
    graph = QueryGraph.of(star, 10, 1)
    shares = [
        float(np.mean(Sampler(drawn_from(graph, how), seed_sequence(0, "draws")).draw("1p", 4000).answers == 0))
        for how in get_args(Answers)
    ]
    assert shares == pytest.approx([9 / 18, 1 / 10], abs=0.03)


def test_weight_decay_is_that_of_adamw() -> None:
    draws = torch.Generator().manual_seed(0)
    ours = torch.nn.Parameter(torch.randn(7, 3, generator=draws))
    theirs = torch.nn.Parameter(ours.detach().clone())
    optimiser, reference = Adam([ours], 0.01, 0.1), torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.1)
    for _ in range(5):
        ours.grad = torch.randn(ours.shape, generator=draws)
        theirs.grad = ours.grad.clone()
        optimiser.step()
        reference.step()
    torch.testing.assert_close(ours, theirs)
