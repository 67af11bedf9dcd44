"""Every mechanism: where noise falls, how much, what it costs, and what one triple can change."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.foundation.errors import UserError
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model
from secure_kg.privacy.accounting.releases import Release, joint
from secure_kg.privacy.draws.noise import Grid, SecretNoise
from secure_kg.privacy.gradients.clipped_sums import PrivateGradients, touched_coordinates
from secure_kg.privacy.mechanisms.adafest import AdaFest, contributions
from secure_kg.privacy.mechanisms.counts import Counts, counted
from secure_kg.privacy.mechanisms.flames import Flames
from secure_kg.privacy.mechanisms.flames_printed import FlamesAsPrintedUnsound
from secure_kg.privacy.mechanisms.interface import Mechanism, PrivateStep
from secure_kg.privacy.mechanisms.no_noise import NoNoise
from secure_kg.privacy.mechanisms.sgd import Sgd
from tests.support.fixed_gaussian import InsecureNoNoise, InsecureSeededNoise

ENTITIES, CLIP = 40, 0.5
CANDIDATES = torch.arange(30, 35)


def model_of(entities: int = ENTITIES) -> EmbeddingModel:
    return build_model("DistMult", ModelSize(entities, 4, 6, 10.0), torch.Generator().manual_seed(0))


def step_of(triples: torch.Tensor) -> PrivateStep:
    model = model_of()
    sums = PrivateGradients(model).sums(triples, CANDIDATES, CLIP)
    return PrivateStep(triples, sums, CANDIDATES, Grid(CLIP, touched_coordinates(model, len(CANDIDATES))))


TRIPLES = torch.tensor([[0, 0, 1], [0, 1, 2], [3, 2, 3], [0, 0, 2]] * 5)
SOUND: list[Mechanism] = [
    Sgd(2.0, 0.5),
    AdaFest(3.0, 2.0, 4.0, 0.5),
    Flames(3.0, 3.0, 2.0, (1, 10), 1e-6, 0.5),
]


def test_without_noise_every_row_is_released() -> None:
    step = step_of(TRIPLES)
    found = NoNoise().privatise(step, SecretNoise())
    assert torch.equal(found.entity, step.sums.entity)
    assert NoNoise().releases() == ()


def test_noise_falls_on_all_rows() -> None:
    source = InsecureSeededNoise()
    found = Sgd(2.0).privatise(step_of(TRIPLES), source)
    assert bool((found.entity != 0).all())
    assert bool((found.relation != 0).all())
    assert found.rows == ENTITIES
    assert {sigma for sigma, _ in source.asked} == {step_of(TRIPLES).grid.sigma(2.0)}


@pytest.mark.parametrize("mechanism", SOUND)
def test_noise_on_released_sums_has_the_deviation_that_is_accounted_for(mechanism: Mechanism) -> None:
    step = step_of(TRIPLES)
    residues = []
    for _ in range(30):
        found = mechanism.privatise(step, SecretNoise())
        residues.append((found.relation - step.sums.relation).reshape(-1))
        residues.append((found.entity - step.sums.entity)[CANDIDATES].reshape(-1))
    deviation = float(torch.cat(residues).std())
    assert deviation == pytest.approx(2.0 * CLIP, rel=0.15)  # of 1,620 draws: eight deviations


@pytest.mark.parametrize("mechanism", SOUND[1:])
def test_rows_that_are_not_chosen_show_nothing(mechanism: Mechanism) -> None:
    found = mechanism.privatise(step_of(TRIPLES), InsecureNoNoise())
    chosen = (found.entity != 0).any(1)
    assert bool(chosen[CANDIDATES].all())
    assert found.rows < ENTITIES
    # Rows that no triple touches are not chosen when nothing is noised.
    assert not bool(chosen[4:30].any())


def test_costs() -> None:
    assert Sgd(2.0, 0.5).releases() == (Release(2.0, 0.5),)
    assert AdaFest(3.0, 2.0, 4.0, 0.5).releases() == (Release(joint(3.0, 2.0), 0.5),)
    flames = Flames(3.0, 3.0, 2.0, (1, 10), 1e-6, 0.5)
    assert flames.releases() == (Release(joint(3.0, 3.0, 2.0), 0.5),)
    assert flames.delta == 1e-6
    assert [mechanism.delta for mechanism in SOUND[:2]] == [0.0, 0.0]


@pytest.mark.parametrize("mechanism", [AdaFest.of_total(5.0, 3.0, 0.1), Flames.of_total(5.0, (2, 4), 1e-6, 0.1)])
def test_parts_together_cost_what_was_asked_for(mechanism: Mechanism) -> None:
    (release,) = mechanism.releases()
    assert release.noise == pytest.approx(5.0)
    assert release.sampling == 0.1


@pytest.mark.parametrize("mechanism", SOUND)
def test_scaling_scales_the_cost(mechanism: Mechanism) -> None:
    assert mechanism.scaled(0.5).releases()[0].noise == pytest.approx(mechanism.releases()[0].noise / 2)


# --- adafest --------------------------------------------------------------------------------------------------------


@given(st.integers(0, ENTITIES - 1), st.integers(0, ENTITIES - 1))
def test_a_triple_contributes_one_to_the_counts_in_l2(head: int, tail: int) -> None:
    assert float(contributions(torch.tensor([[head, 0, tail]]), ENTITIES).norm()) == pytest.approx(1.0)


def test_rows_with_many_triples_are_chosen() -> None:
    # Row 0 has 15 ends, rows 1, 2 and the self loop 3 have 5, 10 and 5 triples.
    counts = contributions(TRIPLES, ENTITIES)
    assert counts[:4].tolist() == pytest.approx([15 / 2**0.5, 5 / 2**0.5, 10 / 2**0.5, 5.0])
    found = AdaFest(1.0, 1.0, 4.9).privatise(step_of(TRIPLES), InsecureNoNoise())
    assert (found.entity != 0).any(1)[:4].tolist() == [True, False, True, True]
    assert found.rows == 3 + len(CANDIDATES)


# --- flames ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 9)] * 3), max_size=12), st.tuples(*[st.integers(0, 9)] * 3))
def test_gaps_change_by_no_more_than_twice_the_clip(
    triples: list[tuple[int, int, int]], one: tuple[int, int, int]
) -> None:
    """One gap, and all gaps together in L2."""
    model = model_of(10)
    empty = torch.empty(0, dtype=torch.int64)
    gaps = []
    for batch in (triples, [*triples, one]):
        ids = torch.tensor(batch, dtype=torch.int64).reshape(-1, 3) % torch.tensor([10, 4, 10])
        norms = PrivateGradients(model).sums(ids, empty, CLIP).entity.norm(dim=1).sort(descending=True).values
        gaps.append(norms[:-1] - norms[1:])
    assert float((gaps[1] - gaps[0]).norm()) <= 2 * CLIP + 1e-9


def test_a_gap_changes_by_more_than_one_clip() -> None:
    """So one clip, as printed, is not its sensitivity: a triple raises one of two equal norms and lowers the other."""
    one = torch.tensor([[3.0, 0.0], [3.0, 0.0]])
    after = one + torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    gaps = [abs(float(rows[0].norm() - rows[1].norm())) for rows in (one, after)]
    assert gaps == [0.0, 2.0]


def test_a_clear_gap_passes_and_a_small_one_does_not() -> None:
    many = torch.tensor([[0, 0, 1]] * 2000)
    flames = Flames(1.0, 1.0, 1.0, (2, 10), 1e-6)
    found = flames.privatise(step_of(many), SecretNoise())
    assert found.rows == 2 + len(CANDIDATES)
    assert flames.privatise(step_of(many[:2]), SecretNoise()).rows == len(CANDIDATES)


def test_the_test_lets_an_unstable_choice_through_no_more_often_than_delta() -> None:
    flames, clip = Flames(1.0, 1.0, 1.0, (1, 2), 0.05), 1.0
    gap = torch.full((20_000,), 2 * clip)
    passed = Grid(2 * clip, 1).noised(gap, 1.0, SecretNoise()) > flames.passing_gap(clip)
    assert 0.03 < float(passed.double().mean()) < 0.05 + 6 * math.sqrt(0.05 * 0.95 / len(gap))


def test_without_ranks_to_choose_from_nothing_is_chosen() -> None:
    found = Flames(1.0, 1.0, 1.0, (1000, 2000), 1e-6).privatise(step_of(TRIPLES), SecretNoise())
    assert found.rows == len(CANDIDATES)


# --- flames as printed ----------------------------------------------------------------------------------------------


def test_as_printed_has_no_account() -> None:
    with pytest.raises(UserError, match="no sound"):
        FlamesAsPrintedUnsound().releases()


def test_as_printed_the_test_passes_only_for_gaps_that_no_batch_has() -> None:
    printed, random = FlamesAsPrintedUnsound(batch=4), np.random.default_rng(0)
    rows = torch.zeros(20, 3)
    rows[:4, 0] = 0.8
    assert all(printed.privatise(rows, random)[1].rows is None for _ in range(200))
    rows[:4, 0] = 50.0
    noised, choice = printed.privatise(rows, random)
    assert choice.rows is not None
    assert (choice.rank, choice.gap) == (4, 50.0)
    assert int((noised != 0).any(1).sum()) == 4


def test_as_printed_rows_are_clipped_twice() -> None:
    printed = FlamesAsPrintedUnsound(clip=0.02, row_clip=0.005)
    sums = printed.row_sums(PrivateGradients(model_of()), torch.tensor([[0, 0, 1]]), ENTITIES)
    assert sums.norm(dim=1)[:2].tolist() == pytest.approx([0.005, 0.005], rel=1e-4)


# --- counts ---------------------------------------------------------------------------------------------------------


def test_counts_under_noise() -> None:
    triples = torch.tensor([[0, 1, 2], [5, 1, 2], [0, 0, 3]])
    exact = counted(triples, 2, 4)
    assert exact.tolist() == [[0, 0, 0, 1], [0, 0, 2, 0]]
    found = Counts(0.1, 2.0).privatise(exact, InsecureNoNoise())
    assert found.scores(triples, "tail").tolist() == [[0, 0, 2, 0], [0, 0, 2, 0], [0, 0, 0, 1]]
    assert Counts(0.1).releases() == (Release(0.1, 1.0),)
    with pytest.raises(UserError, match="tails"):
        found.scores(triples, "head")


def test_small_counts_fall_below_the_threshold() -> None:
    noised = Counts(1.0, 3.0).privatise(torch.zeros(100, 300), SecretNoise()).table
    assert 0 < int((noised != 0).sum()) < 100  # one cell in 741 has noise above three deviations: 40 of these
    assert float(noised[noised != 0].min()) >= 3.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sgd(0.0),
        lambda: AdaFest(1.0, 0.0, 1.0),
        lambda: AdaFest(1.0, 1.0, math.nan),
        lambda: AdaFest.of_total(1.0, 1.0, share=1.0),
        lambda: Flames(1.0, 1.0, 1.0, (0, 3), 1e-6),
        lambda: Flames(1.0, 1.0, 1.0, (1, 3), 0.0),
        lambda: FlamesAsPrintedUnsound(batch=0),
        lambda: Counts(1.0, -1.0),
    ],
)
def test_settings_that_make_no_sense_get_one_line(make: object) -> None:
    assert callable(make)
    with pytest.raises(UserError) as problem:
        make()
    assert "\n" not in str(problem.value)
