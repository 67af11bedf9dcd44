"""The pretended GPU refuses what a real one would, and computes everything else as the CPU does."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from benchmarks.gpu.pretended import REFUSED, PretendedGpu, operations


@pytest.fixture
def pretended() -> Iterator[torch.device]:
    with PretendedGpu() as gpu:
        yield gpu.device


def there(pretended: torch.device, *values: float) -> Tensor:
    return torch.tensor(values).to(pretended)


def test_tensors_say_where_they_are(pretended: torch.device) -> None:
    x = there(pretended, 1.0, 2.0)
    for made in (x, x * 2, x[:1], torch.zeros(2, device=pretended), torch.arange(3, device=pretended), x.new_zeros(2)):
        assert made.device == torch.device("cuda", 0)
        assert made.is_cuda
    for back in (x.cpu(), x.to("cpu"), x.to("cpu", torch.float64), torch.zeros(2)):
        assert back.device.type == "cpu"
        back.numpy()
    assert float(x.sum()) == 3.0
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda x: x + torch.ones(2), "on the CPU together"),
        (lambda x: x.index_select(0, torch.tensor([0])), "on the CPU together"),
        (lambda x: x.numpy(), "use .cpu"),
        (lambda x: x.pin_memory(), "only memory of the CPU is pinned"),
        (lambda x: x.cumsum(0), "deterministic"),
        (lambda x: torch.histc(x, 2), "deterministic"),
        (lambda x: x.median(0), "deterministic"),
    ],
)
def test_mistakes_are_errors(pretended: torch.device, mistake: Callable[[Tensor], object], words: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=words):
        mistake(there(pretended, 1.0, 2.0))


def test_what_a_gpu_allows_is_computed(pretended: torch.device) -> None:
    x = there(pretended, 3.0, 4.0).requires_grad_()
    y = there(pretended, 1.0, 0.0)
    y.copy_(torch.tensor([2.0, 0.0]))
    loss = (x * y).sum() + x.cpu().square().sum()
    (gradient,) = torch.autograd.grad(loss, x)
    assert gradient.device.type == "cuda"
    assert gradient.tolist() == [8.0, 8.0]
    assert torch.cumsum(torch.arange(3, device=pretended), 0).tolist() == [0, 1, 3]
    used = operations()
    assert used is not None
    assert "aten.mul.Tensor" in used


def test_outside_of_it_nothing_is_pretended() -> None:
    swapped = torch.__future__.get_swap_module_params_on_conversion()
    with PretendedGpu():
        assert operations() == set()
    assert operations() is None
    assert torch.__future__.get_swap_module_params_on_conversion() is swapped


def test_torch_says_itself_that_the_refused_have_no_repeatable_kernel() -> None:
    said = torch.use_deterministic_algorithms.__doc__ or ""
    _, _, throwing = said.partition("will throw a")
    for name in REFUSED:
        plain = name.removeprefix("aten.").split(".")[0].strip("_")
        word = {"nll_loss_forward": "NLLLoss", "nll_loss2d_forward": "NLLLoss", "ctc_loss_backward": "CTCLoss",
                "embedding_bag_dense_backward": "EmbeddingBag", "grid_sampler_2d_backward": "grid_sample",
                "reflection_pad1d_backward": "ReflectionPad1d",
                "reflection_pad2d_backward": "ReflectionPad2d"}.get(plain, plain)  # fmt: skip
        assert word in throwing, name
