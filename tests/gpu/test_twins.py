"""Learners, kernels, ranks and marks on a GPU are those of the CPU, and a device repeats itself to the last bit."""

import itertools
from collections.abc import Iterable
from typing import Any

import pytest
import torch

from benchmarks.gpu import twins
from benchmarks.gpu.cases import Case, learners
from benchmarks.gpu.twins import Compared, compare_again, compare_kernels, compare_learner
from secure_kg.learning.device import CPU
from secure_kg.learning.kge import KgeLearner
from secure_kg.models.geometry import BY_NORM
from secure_kg.models.networks.kinds import NETWORKS
from secure_kg.models.queries.shapes import ENCODERS
from secure_kg.models.shapes import MODELS

LEARNERS = learners()
of_learners = pytest.mark.parametrize("case", LEARNERS, ids=[case.name for case in LEARNERS])


def fails(compared: Iterable[Compared]) -> list[str]:
    return [f"{one.name}, {one.what}: {one.difference:g} > {one.allowed:g}" for one in compared if not one.holds]


def test_every_learner_of_the_registries_is_compared() -> None:
    assert [case.name for case in LEARNERS] == [*MODELS, *NETWORKS, *ENCODERS]


@of_learners
def test_one_step_is_that_of_the_cpu(case: Case, gpu: torch.device) -> None:
    compared = compare_learner(case, gpu)
    assert fails(compared) == []
    assert {"first parameters", "validation MRR", "loss"} < {one.what for one in compared}


@of_learners
def test_runs_repeat_and_resume_to_the_last_bit(case: Case, gpu: torch.device) -> None:
    assert fails(compare_again(case, gpu)) == []


def test_kernels_ranks_and_marks_are_those_of_the_cpu(gpu: torch.device) -> None:
    assert fails(compare_kernels(gpu)) == []


def test_a_learner_carries_its_state_to_the_cpu_and_back(gpu: torch.device) -> None:
    """Checkpoints lie on the CPU, whatever has written them."""
    there, here = LEARNERS[0].make(gpu), LEARNERS[0].make(CPU)
    there.train(1)
    here.load_state(there.state())
    assert here.digest() == there.digest()
    back = LEARNERS[0].make(gpu)
    back.load_state(here.state())
    back.train(2)
    there.train(2)
    assert back.digest() == there.digest()


# --- faults that must be found --------------------------------------------------------------------------------------


def test_a_kernel_that_is_a_little_wrong_is_found(gpu: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    geometry = type(BY_NORM[1])
    right = geometry.torch_pairs
    monkeypatch.setattr(geometry, "torch_pairs", lambda self, x, y: right(self, x, y) * 1.001)
    found = fails(compare_kernels(gpu))
    assert any(one.startswith("L1 distance, pairs") for one in found)
    assert any(one.startswith("TransE, ") for one in fails(compare_learner(LEARNERS[0], gpu)))


def test_sums_in_another_order_each_time_are_found(gpu: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an addition without an order does to a last bit."""
    right, calls = KgeLearner._step, itertools.count()

    def unordered(learner: KgeLearner, *given: Any) -> torch.Tensor:
        loss = right(learner, *given)
        with torch.no_grad():
            learner.model.relation[0, 0] += 1e-7 * next(calls)
        return loss

    monkeypatch.setattr(KgeLearner, "_step", unordered)
    assert len(fails(compare_again(LEARNERS[0], gpu))) == 2


def test_what_is_no_number_does_not_hold() -> None:
    assert not Compared("a", "b", float("nan"), 1.0, "c").holds
    assert twins._apart(torch.tensor([1.0]), torch.tensor([float("nan")])) == float("inf")
    assert twins._apart(torch.zeros(2), torch.zeros(2)) == 0
