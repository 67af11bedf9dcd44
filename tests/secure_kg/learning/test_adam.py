"""The optimiser is torch's Adam to the last bit, without the import of torch's compiler."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from secure_kg.learning.adam import Adam

ROOT = Path(__file__).parents[3]
ONE_ROUND = """
import sys
import pytest
import torch
from secure_kg.data.partition import load_client
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner

graph = load_client("nations", 2, 1, "triples", 0)
learner = KgeLearner(graph, TrainingConfig(dim=4), torch.device("cpu"), 0, 1)
learner.train(1)
learner.evaluate("valid")
learner.state()
print([name for name in ("torch._dynamo", "sympy", "sklearn", "pykeen") if name in sys.modules])
"""


def test_steps_are_those_of_torch() -> None:
    draws = torch.Generator().manual_seed(0)
    shapes = ((7, 3), (2, 5))
    ours = [torch.nn.Parameter(torch.randn(*shape, generator=draws)) for shape in shapes]
    theirs = [torch.nn.Parameter(parameter.detach().clone()) for parameter in ours]
    optimiser, reference = Adam(ours, 0.01), torch.optim.Adam(theirs, lr=0.01, fused=True)
    for step in range(20):
        optimiser.rate = reference.param_groups[0]["lr"] = 0.01 * 0.9**step
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape, generator=draws)
            other.grad = one.grad.clone()
        optimiser.step()
        reference.step()
        for one, other in zip(ours, theirs, strict=True):
            assert torch.equal(one, other)
            assert optimiser.state[one].keys() == reference.state[other].keys()
            assert all(torch.equal(optimiser.state[one][key], value) for key, value in reference.state[other].items())


@pytest.mark.long
def test_a_clients_round_imports_no_compiler_of_torch() -> None:
    """What a client's process imports, every client of every job pays for."""
    done = subprocess.run([sys.executable, "-c", ONE_ROUND], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_gradient_that_lies_transposed_in_memory_meets_its_own_numbers() -> None:
    start, gradient = torch.zeros(3, 5), torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).t()
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    ours.grad, theirs.grad = gradient, gradient.contiguous()
    for parameter in (ours, theirs):
        Adam([parameter], 0.1).step()
    assert not gradient.is_contiguous()
    assert torch.equal(ours, theirs)
