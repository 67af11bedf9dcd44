"""Similarity of two points: the second half of every score. Larger is more alike; distances count negatively.

A model maps (head, relation) to a point and compares it with tails, or (relation, tail) with heads. So there are four
geometries for all models, each with a route for rows that belong together, a route for every pair of two sets, and a
count of the candidates that beat an answer. On the CPU in float32 the pairs and the counts of distances are compiled
loops (`secure_kg.kernels`); elsewhere, and as the check on those, they are torch.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.kernels import distances, ranks
from secure_kg.kernels.known import Known


@dataclass(frozen=True, slots=True)
class Answers:
    """The true answers [b] of queries, and where the answers that are known anyway stand in `known`: CSR ranges."""

    truth: Tensor
    starts: Tensor
    counts: Tensor
    known: Tensor

    def arrays(self) -> tuple[npt.NDArray[np.int64], Known]:
        """As kernels take them."""
        return self.truth.numpy(), Known(self.starts.numpy(), self.counts.numpy(), self.known.numpy())


Counts: TypeAlias = tuple[Tensor, Tensor]
"""Candidates that beat the answer [b] and that tie with it [b], the known ones left out."""


class NotFinite(ArithmeticError):
    """A distance is beyond what a float holds, so there is nothing to rank."""


class Geometry(ABC):
    """Similarity of points."""

    @abstractmethod
    def alike(self, x: Tensor, y: Tensor) -> Tensor:
        """x, y [..., width], broadcast together, to [...]."""

    @abstractmethod
    def pairs(self, x: Tensor, y: Tensor) -> Tensor:
        """x [..., b, width], y [..., m, width] to [..., b, m]; what stands before must be the same."""

    def fused_counts(self, x: Tensor, y: Tensor, answers: Answers) -> Counts | None:
        """Without writing similarities down; None where there is no such route. `NotFinite` where answers overflow."""
        return None


class Dot(Geometry):
    """x · y."""

    def alike(self, x: Tensor, y: Tensor) -> Tensor:
        return (x * y).sum(-1)

    def pairs(self, x: Tensor, y: Tensor) -> Tensor:
        return x @ y.transpose(-1, -2)


class _Distance(Geometry):
    """What the distances share: compiled loops where they can run."""

    count: Callable[..., bool]
    parts = 1
    """Into how many parts a row falls; of complex rows, real and imaginary parts."""

    def pairs(self, x: Tensor, y: Tensor) -> Tensor:
        return -(self.fused_pairs(x, y) if on_cpu(x, y) else self.torch_pairs(x, y))

    @abstractmethod
    def fused_pairs(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances [..., b, m] by a compiled loop."""

    @abstractmethod
    def torch_pairs(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances [..., b, m] by torch, on any device and in any precision."""

    def fused_counts(self, x: Tensor, y: Tensor, answers: Answers) -> Counts | None:
        if not on_cpu(x, y):
            return None
        better, equal = (torch.empty(len(x), dtype=torch.int64) for _ in range(2))
        rows = (ranks.chunked(_array(points), self.parts) for points in (x, y))
        if not self.count(*rows, *answers.arrays(), better.numpy(), equal.numpy()):
            raise NotFinite
        return better, equal


class L1(_Distance):
    """−Σ |x − y|."""

    count = staticmethod(ranks.count_l1)

    def alike(self, x: Tensor, y: Tensor) -> Tensor:
        return -(x - y).abs().sum(-1)

    def fused_pairs(self, x: Tensor, y: Tensor) -> Tensor:
        return _apply(_FusedL1, x, y)

    def torch_pairs(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cdist(x, y, p=1.0)


class L2(_Distance):
    """−‖x − y‖."""

    count = staticmethod(ranks.count_l2)

    def alike(self, x: Tensor, y: Tensor) -> Tensor:
        distance: Tensor = torch.linalg.vector_norm(x - y, dim=-1)  # its gradient is zero at zero
        return -distance

    def fused_pairs(self, x: Tensor, y: Tensor) -> Tensor:
        return _apply(_FusedL2, x, y)

    def torch_pairs(self, x: Tensor, y: Tensor) -> Tensor:
        # The matmul form cancels for close rows and would disagree with `alike`.
        return torch.cdist(x, y, p=2.0, compute_mode="donot_use_mm_for_euclid_dist")


class ComplexL1(_Distance):
    """−Σ |x − y| over complex coordinates; rows hold real parts, then imaginary parts."""

    count = staticmethod(ranks.count_complex_l1)
    parts = 2

    def alike(self, x: Tensor, y: Tensor) -> Tensor:
        re, im = (x - y).chunk(2, dim=-1)
        # The floor, far below rounding, gives a gradient of zero at zero. hypot has none there; vector_norm is slow.
        return -(re * re + im * im).clamp(min=1.2e-38).sqrt().sum(-1)

    def fused_pairs(self, x: Tensor, y: Tensor) -> Tensor:
        return _apply(_FusedComplexL1, x, y)

    def torch_pairs(self, x: Tensor, y: Tensor) -> Tensor:
        return _apply(_TorchComplexL1, x, y)


DOT: Final = Dot()
BY_NORM: Final[dict[int, Geometry]] = {1: L1(), 2: L2()}
COMPLEX_L1: Final = ComplexL1()


def on_cpu(x: Tensor, y: Tensor) -> bool:
    """Whether the compiled loops take these."""
    return x.device.type == y.device.type == "cpu" and x.dtype == y.dtype == torch.float32


def _array(x: Tensor) -> "np.ndarray[Any, np.dtype[np.float32]]":
    return x.detach().contiguous().numpy()


def _grouped(x: Tensor) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """[..., b, width] as [groups, b, width]; what is written to it is written to x, if that is contiguous."""
    return _array(x).reshape(-1, *x.shape[-2:])


def _apply(function: Any, x: Tensor, y: Tensor) -> Tensor:
    result: Tensor = function.apply(x, y)
    return result


class _Fused(torch.autograd.Function):
    """A compiled distance and its compiled gradient."""

    distance: Callable[..., None]
    gradient: Callable[..., None]

    @classmethod
    def forward(cls, ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        out = x.new_empty(*x.shape[:-1], y.shape[-2])
        cls.distance(_grouped(x), _grouped(y), _grouped(out))
        return out

    @classmethod
    def backward(cls, ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        x_grad, y_grad = torch.zeros(x.shape), torch.zeros(y.shape)
        cls.gradient(*(_grouped(tensor) for tensor in (x, y, gradients[0], x_grad, y_grad)))
        return x_grad, y_grad


class _FusedL1(_Fused):
    distance = staticmethod(distances.l1)
    gradient = staticmethod(distances.l1_gradient)


class _FusedL2(_Fused):
    distance = staticmethod(distances.l2)
    gradient = staticmethod(distances.l2_gradient)


class _FusedComplexL1(_Fused):
    distance = staticmethod(distances.complex_l1)
    gradient = staticmethod(distances.complex_l1_gradient)


class _TorchComplexL1(torch.autograd.Function):
    """Blocks of coordinates, recomputed in the backward pass: memory for `_IN_BLOCK` numbers instead of [b, m, dim]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        total = x.new_zeros(*x.shape[:-1], y.shape[-2])
        for block in _blocks(x, y):
            re, im = _difference(x, y, block)
            total += re.mul_(re).addcmul_(im, im).sqrt_().sum(-1)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (gradient,) = gradients
        x, y = ctx.saved_tensors
        x_grad, y_grad = torch.empty_like(x), torch.empty_like(y)
        for block in _blocks(x, y):
            re, im = _difference(x, y, block)
            # The floor only matters where the modulus is zero; there the differences, and so the gradients, are zero.
            weight = (re * re).addcmul_(im, im).clamp_(min=1e-30).rsqrt_().mul_(gradient[..., None])
            for columns, part in zip(_halves(x, block), (re.mul_(weight), im.mul_(weight)), strict=True):
                x_grad[..., columns] = part.sum(-2)
                y_grad[..., columns] = part.sum(-3)
        return x_grad, y_grad.neg_()


_IN_BLOCK: Final = 1 << 24
"""Numbers in one intermediate: large enough to keep a GPU busy, and 64 MB."""


def _blocks(x: Tensor, y: Tensor) -> Iterator[slice]:
    """Ranges of complex coordinates."""
    pairs = math.prod(x.shape[:-1]) * y.shape[-2]
    dim, size = x.shape[-1] // 2, max(1, _IN_BLOCK // max(1, pairs))
    return (slice(start, min(start + size, dim)) for start in range(0, dim, size))


def _halves(x: Tensor, block: slice) -> tuple[slice, slice]:
    """Where real and imaginary parts of a block stand in a row."""
    dim = x.shape[-1] // 2
    return block, slice(block.start + dim, block.stop + dim)


def _difference(x: Tensor, y: Tensor, block: slice) -> tuple[Tensor, Tensor]:
    """Real and imaginary parts of x − y for every pair and every coordinate of a block, [..., b, m, size] each."""
    re, im = (x[..., :, None, half] - y[..., None, :, half] for half in _halves(x, block))
    return re, im
