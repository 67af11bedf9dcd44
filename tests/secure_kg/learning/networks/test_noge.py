"""The learner of NoGE: its examples, its loss in closed form, one step against plain autograd, and what it saves."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.foundation.seeds import generator
from secure_kg.learning.networks.learner import make_learner
from secure_kg.learning.networks.noge import NogeLearner, Pairs, SmoothedLoss, clip_into
from secure_kg.models.networks.noge_config import NogeConfig
from tests.support.federation_in_threads import nations

SMALL = NogeConfig(dim=16, batch_size=64, local_epochs=1)
CPU = torch.device("cpu")


def learner(graph: ClientGraph | None = None, **changes: Any) -> NogeLearner:
    config = RunConfig(dataset="nations", network=dataclasses.replace(SMALL, **changes))
    made = make_learner(config, graph or nations(3)[0], 1, CPU)
    assert isinstance(made, NogeLearner)
    return made


TRIPLES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 6)), min_size=1)


@given(TRIPLES, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_pairs_have_their_tails_once_whatever_the_order(numbers: list[tuple[int, int, int]], draw: Any) -> None:
    pairs = Pairs(np.array(numbers, dtype=np.int64), 4)
    chosen = np.array(draw.sample(range(len(pairs.keys)), draw.randint(1, len(pairs.keys))))
    heads, relations, rows, tails = pairs.batch(chosen)
    found = sorted((int(heads[row]), int(relations[row]), int(tail)) for row, tail in zip(rows, tails, strict=True))
    asked = set(zip(heads.tolist(), relations.tolist(), strict=True))
    assert found == sorted(one for one in set(numbers) if one[:2] in asked)
    assert len(pairs.keys) == len({one[:2] for one in numbers})


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("number", [1, 127, 128, 300])
def test_loss_and_gradients_are_those_of_torch(number: int, smoothing: float) -> None:
    """Over several blocks of points, one of them without an answer."""
    ours = SmoothedLoss(smoothing)
    for entities in (9, 40):  # the room for scores is made anew
        points, rows = (torch.randn(size, 8).requires_grad_() for size in (number, entities))
        targets = (torch.rand(number, entities) < 0.2).float()
        targets[129:256] = 0
        answers = targets.nonzero(as_tuple=True)
        if smoothing:
            targets = (1 - smoothing) * targets + 1 / entities
        expected = torch.nn.functional.binary_cross_entropy_with_logits(points @ rows.t(), targets)
        slopes = torch.autograd.grad(expected, (points, rows))
        loss, *found = ours.of(points.detach(), rows.detach(), (answers[0], answers[1]))
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        for one, slope in zip(found, slopes, strict=True):
            torch.testing.assert_close(one, slope, rtol=1e-4, atol=1e-7)


def test_gradients_are_cut_together_as_torch_cuts_them() -> None:
    for size in (0.01, 10.0):
        ours = [torch.nn.Parameter(torch.zeros(4, 3)), torch.nn.Parameter(torch.zeros(5))]
        gradients = tuple(torch.randn(one.shape) * size for one in ours)
        theirs = [torch.nn.Parameter(torch.zeros_like(one)) for one in ours]
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_(theirs, 0.5)
        clip_into(ours, gradients, 0.5)
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one.grad, other.grad)


def test_one_step_is_that_of_plain_autograd() -> None:
    """torch's own loss, clipping and optimiser on dense targets."""
    graph = nations(3)[0]
    one = learner(graph, batch_size=10**6, dropout=0.0)
    twin = learner(graph, batch_size=10**6, dropout=0.0).network
    assert isinstance(one, NogeLearner)
    shuffled = generator(0, "order", 1, 1).permutation(len(one._pairs.keys))
    heads, relations, rows, tails = (torch.from_numpy(part) for part in one._pairs.batch(shuffled))
    targets = torch.zeros(len(heads), len(graph.entities))
    targets[rows, tails] = 1.0
    points, tables = twin.compared(heads, relations, torch.Generator())  # type: ignore[operator]
    scores = points @ tables.t()
    targets = 0.9 * targets + 1 / len(graph.entities)
    loss = torch.nn.BCELoss()(torch.sigmoid(scores), targets)
    optimiser = torch.optim.Adam(twin.parameters(), lr=0.01)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
    optimiser.step()

    stats = one.train(1)
    assert (stats.steps, stats.triples) == (1, len(heads))
    assert stats.loss == pytest.approx(loss.item(), rel=1e-5)
    for name, parameter in twin.named_parameters():
        moved = one.network.state_dict()[name] - parameter.detach()
        assert float(moved.abs().max()) < 2e-4, name  # a step is 0.01 long, whatever the gradient's size


def test_training_lowers_the_loss_and_ranks_better_than_chance() -> None:
    one = learner(local_epochs=5)
    before = one.evaluate("train").headline
    losses = [one.train(round).loss for round in range(1, 9)]
    assert losses[-1] < 0.8 * losses[0]
    assert one.evaluate("train").headline > 1.4 * before


def test_a_round_repeats_from_its_number_and_a_saved_state_bit_for_bit() -> None:
    one, other = learner(), learner()
    one.train(1)
    one.train(2)
    other.load_state({name: value.clone() for name, value in one.state().items()})
    assert other.digest() == one.digest()
    assert other.evaluate("valid") == one.evaluate("valid")
    one.train(3)
    other.train(3)
    assert other.digest() == one.digest()


def test_kept_moments_are_saved_and_new_ones_forget_the_last_round() -> None:
    digests = {}
    for moments in ("anew", "kept"):
        one, other = learner(moments=moments), learner(moments=moments)
        one.train(1)
        other.load_state(one.state())
        one.train(2)
        other.train(2)
        assert one.digest() == other.digest()
        forgetful = learner(moments=moments)
        forgetful.train(1)
        state = forgetful.state()
        forgetful.load_state({name: value for name, value in state.items() if not name.startswith("optimiser/")})
        forgetful.train(2)
        assert (forgetful.digest() == one.digest()) == (moments == "anew")
        digests[moments] = one.digest()
    assert digests["anew"] != digests["kept"]


def test_the_digest_sees_every_value_that_scores_depend_on() -> None:
    one = learner()
    seen = {one.digest()}
    for value in one.network.state_dict().values():
        with torch.no_grad():
            value.view(-1)[0] += 0.5
        seen.add(one.digest())
    assert len(seen) == 1 + len(one.network.state_dict())
    assert {"running_mean", "running_var"} <= one.network.state_dict().keys()


def test_what_is_saved_scores_triples_without_the_graph() -> None:
    one = learner()
    one.train(1)
    saved, nodes = one.parameters_state(), one.nodes()
    assert torch.equal(saved["encoded.entity"], nodes.entity)
    assert torch.equal(saved["encoded.relation"], nodes.relation)


def test_blocks_are_the_rows_that_go_in() -> None:
    one = learner()
    graph, both = one.graph, one.export_block("entity and relation")
    assert both.shape == (len(graph.entities) + len(graph.relations), 16)
    one.load_block("entity and relation", both[::-1].copy())
    np.testing.assert_array_equal(one.export_block("entity"), both[::-1][: len(graph.entities)])
    assert one.block_names("relation") == graph.relations
    with pytest.raises(ValueError, match="no block"):
        one.export_block("operators")
    with pytest.raises(ValueError, match="must have shape"):
        one.load_block("relation", both)


def test_means_for_an_evaluation_do_not_reach_training_unless_they_were_evaluated() -> None:
    def trained(means_loaded: str, *, evaluated: bool) -> bytes:
        one = learner(means_loaded=means_loaded)
        one.train(1)
        one.load_block("relation", one.export_block("relation") + np.float32(0.5))
        if evaluated:
            one.evaluate("valid")
        one.train(2)
        return one.digest()

    every = trained("every-round", evaluated=False)
    assert every == trained("every-round", evaluated=True)
    assert trained("for-evaluation", evaluated=True) == every
    never = learner()
    never.train(1)
    never.train(2)
    assert trained("for-evaluation", evaluated=False) == never.digest() != every


def test_own_rows_that_wait_for_training_are_saved_with_the_state() -> None:
    one, other = learner(means_loaded="for-evaluation"), learner(means_loaded="for-evaluation")
    one.train(1)
    one.load_block("relation", one.export_block("relation") + np.float32(0.5))
    other.load_state(one.state())
    one.train(2)
    other.train(2)
    assert one.digest() == other.digest()


def test_training_that_diverges_says_so() -> None:
    one = learner()
    with torch.no_grad():
        one.network.entity.fill_(float("nan"))
    with pytest.raises(TrainingDiverged, match="round 4"):
        one.train(4)


def test_settings_of_another_network_are_no_settings_of_this_one() -> None:
    config = RunConfig(dataset="nations")
    with pytest.raises(ValueError, match="without a graph network"):
        make_learner(config, nations(3)[0], 1, CPU)
