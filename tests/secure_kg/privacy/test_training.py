"""Private training in one place: it learns, noise costs, the filter stops it, and nothing private steers it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.models.transm import TransM, relation_weights
from secure_kg.privacy.accounting.accountant import Budget, PrivacyFilter, Release, noise_for
from secure_kg.privacy.gradients.clipped_sums import models_with_gradients
from secure_kg.privacy.mechanisms.flames import Flames
from secure_kg.privacy.mechanisms.no_noise import NoNoise
from secure_kg.privacy.mechanisms.sgd import Sgd
from secure_kg.privacy.training import AdaptiveNoise, PrivateTraining, private_model, tail_mrr
from secure_kg.privacy.training_config import PrivateTrainingConfig
from tests.support.fixed_gaussian import InsecureSeededNoise

GROUPS, MEMBERS = 4, 6


def block_graph() -> ClientGraph:
    """Relation 0 links members of a group, relation 1 those of one group to those of the next; each twelfth is held."""
    entities = GROUPS * MEMBERS
    triples = [
        (head, step, tail)
        for head in range(entities)
        for step in range(2)
        for tail in range(entities)
        if (head // MEMBERS + step) % GROUPS == tail // MEMBERS and head != tail
    ]
    order = np.random.default_rng(0).permutation(np.array(triples))
    held = len(order) // 12
    names = tuple(f"e{place:02}" for place in range(entities))
    return ClientGraph(names, ("r0", "r1"), order[2 * held :], order[:held], order[held : 2 * held])


GRAPH = block_graph()
CONFIG = PrivateTrainingConfig(model="ComplEx", dim=8, negatives=16, clip=1.0, steps=60, step=0.05, margin=2.0)


def mrr(model: torch.nn.Module, part: TripleArray = GRAPH.test) -> float:
    return tail_mrr(FilteredRanking(GRAPH, torch.device("cpu")), model, part)  # type: ignore[arg-type]


class Purse:
    """A filter with room for so many releases."""

    def __init__(self, room: int) -> None:
        self.room, self.spent = room, list[Release]()

    def may(self, release: Release) -> bool:
        return len(self.spent) < self.room

    def spend(self, release: Release) -> None:
        assert self.may(release)
        self.spent.append(release)


def test_it_learns_and_noise_costs() -> None:
    exact = mrr(PrivateTraining(GRAPH, CONFIG, 0).run(NoNoise()).model)
    little, much = (
        mrr(PrivateTraining(GRAPH, CONFIG, 0, InsecureSeededNoise()).run(Sgd(noise)).model) for noise in (0.5, 100.0)
    )
    untrained = mrr(private_model(CONFIG, (len(GRAPH.entities), 2), 0))
    assert exact > 0.8 > 0.5 > untrained
    assert little > exact - 0.2
    assert much < exact - 0.3


@pytest.mark.parametrize("model", models_with_gradients())
def test_every_model_trains(model: str) -> None:
    config = replace(CONFIG, model=model, corrupt="both", margin=4.0)
    trained = PrivateTraining(GRAPH, config, 0, InsecureSeededNoise()).run(Sgd(0.1))
    assert trained.steps == 60
    assert mrr(trained.model) > mrr(private_model(config, (len(GRAPH.entities), 2), 0)) + 0.04


def test_it_stops_when_the_budget_is_spent() -> None:
    purse = Purse(7)
    trained = PrivateTraining(GRAPH, CONFIG, 0, InsecureSeededNoise()).run(Sgd(2.0), purse)
    assert trained.steps == 7
    assert purse.spent == [Release(2.0)] * 7
    before = PrivateTraining(GRAPH, CONFIG, 0).model.entity.detach().clone()
    assert torch.equal(PrivateTraining(GRAPH, CONFIG, 0).run(Sgd(2.0), Purse(0)).model.entity, before)


def test_the_accountant_s_noise_lasts_for_all_steps_and_no_more() -> None:
    budget, config = Budget(8.0, 1e-5), replace(CONFIG, steps=12)
    noise = noise_for(budget, 12)
    training = PrivateTraining(GRAPH, config, 0, InsecureSeededNoise())
    assert training.run(Sgd(noise), PrivacyFilter(budget)).steps == 12
    longer = PrivateTraining(GRAPH, replace(config, steps=20), 0, InsecureSeededNoise())
    assert longer.run(Sgd(noise), PrivacyFilter(budget)).steps == 12


def test_samples_are_not_drawn_from_the_public_seed() -> None:
    """The same seed and noise give the same full-batch run, and another run with samples."""
    runs = [
        PrivateTraining(GRAPH, replace(CONFIG, steps=3, sampling=rate), 0, InsecureSeededNoise()).run(Sgd(1.0, rate))
        for rate in (1.0, 1.0, 0.3, 0.3)
    ]
    tables = [run.model.entity for run in runs]
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[2], tables[3])


def test_by_default_noise_is_not_drawn_from_the_public_seed() -> None:
    tables = [PrivateTraining(GRAPH, replace(CONFIG, steps=1), 0).run(Sgd(1.0)).model.entity for _ in range(2)]
    assert not torch.equal(*tables)


def test_noise_falls_where_training_stalls_and_the_filter_counts_it() -> None:
    purse = Purse(1000)
    adaptive = AdaptiveNoise(GRAPH.valid, every=5, least_gain=2.0, factor=0.5)  # a gain that cannot be
    trained = PrivateTraining(GRAPH, replace(CONFIG, steps=12), 0, InsecureSeededNoise()).run(Sgd(4.0), purse, adaptive)
    assert [release.noise for release in purse.spent] == [4.0] * 5 + [2.0] * 5 + [1.0] * 2
    assert trained.mechanism == Sgd(1.0)
    never = AdaptiveNoise(GRAPH.valid, every=5, least_gain=-2.0)
    training = PrivateTraining(GRAPH, replace(CONFIG, steps=12), 0, InsecureSeededNoise())
    assert training.run(Sgd(4.0), Purse(1000), never).mechanism == Sgd(4.0)


def test_what_cannot_be_accounted_for_is_refused() -> None:
    adaptive = AdaptiveNoise(GRAPH.valid)
    flames = Flames(1.0, 1.0, 1.0, (1, 3), 1e-6)
    for run, problem in (
        (lambda training: training.run(NoNoise(), Purse(1)), "mechanism with noise"),
        (lambda training: training.run(Sgd(1.0, 0.5)), "same sampling rate"),
        (lambda training: training.run(Sgd(1.0), None, adaptive), "needs a privacy filter"),
        (lambda training: training.run(flames, Purse(9), adaptive), "fixed steps"),
    ):
        with pytest.raises(UserError, match=problem):
            run(PrivateTraining(GRAPH, CONFIG, 0))


def test_divergence_gets_one_line() -> None:
    with pytest.raises(TrainingDiverged, match="smaller step"):
        PrivateTraining(GRAPH, replace(CONFIG, step=1e6), 0, InsecureSeededNoise()).run(Sgd(1.0))


def test_weights_of_transm_come_from_public_triples_only() -> None:
    config = replace(CONFIG, model="TransM")
    private = PrivateTraining(GRAPH, config, 0).model
    public = PrivateTraining(GRAPH, config, 0, public=GRAPH.valid).model
    assert isinstance(private, TransM)
    assert isinstance(public, TransM)
    assert private.weight.tolist() == [1.0, 1.0]
    assert public.weight.tolist() == relation_weights(GRAPH.valid, 2).tolist()


def test_candidates_do_not_depend_on_the_triples() -> None:
    """A run over no triples has the same candidates, so that its rows get the same noise as those of any other run."""
    none = np.empty((0, 3), dtype=np.int64)
    empty = replace(GRAPH, train=none)
    asked = []
    for graph in (GRAPH, empty):
        source = InsecureSeededNoise()
        PrivateTraining(graph, replace(CONFIG, steps=4), 0, source).run(Flames(1.0, 1.0, 1.0, (90, 99), 1e-6))
        asked.append(source.asked)
    assert asked[0] == asked[1]


def test_steps_fall_linearly() -> None:
    config = PrivateTrainingConfig(steps=11, step=2.0, last_step=0.1)
    assert [config.step_at(number) for number in (0, 5, 10)] == pytest.approx([2.0, 1.1, 0.2])
    assert PrivateTrainingConfig(steps=1, step=2.0).step_at(0) == 2.0


@pytest.mark.parametrize(
    "wrong",
    [{"steps": 0}, {"clip": 0.0}, {"step": float("nan")}, {"last_step": 0.0}, {"sampling": 0.0}, {"model": "X"}],
)
def test_settings_that_make_no_sense_get_one_line(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError) as problem:
        PrivateTrainingConfig(**wrong)  # type: ignore[arg-type]
    assert "\n" not in str(problem.value)
