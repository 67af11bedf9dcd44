"""A constant sparse matrix of rows of entries, and its product with dense rows, which has a gradient."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from secure_kg.kernels.sparse import times_rows

Numbers = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class SparseMatrix(nn.Module):
    """A square matrix [n, n] by its entries, sorted by row. It is no part of a network's state: the graph makes it.

    It takes 12 bytes an entry and 8 a row, and its transpose, which gradients need, as much again.
    """

    def __init__(self, size: int, rows: Ids, columns: Ids, values: Numbers) -> None:
        super().__init__()
        self.size = size
        self.there = _Entries(size, rows, columns, values)
        self.back = _Entries(size, columns, rows, values)

    def forward(self, dense: Tensor) -> Tensor:
        """dense [n, width] -> [n, width]."""
        product: Tensor = _Product.apply(dense, self.there, self.back)  # type: ignore[no-untyped-call]
        return product

    def dense(self) -> Tensor:
        """All of it [n, n], for tests and for small graphs."""
        return self.there.times(torch.eye(self.size, device=self.there.values.device))


class _Entries(nn.Module):
    """Entries in the order of rows, then of columns."""

    starts: Tensor
    columns: Tensor
    values: Tensor

    def __init__(self, size: int, rows: Ids, columns: Ids, values: Numbers) -> None:
        super().__init__()
        order = np.lexsort((columns, rows))
        starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=size))))
        kept = {"starts": starts, "columns": columns[order], "values": values[order].astype(np.float32)}
        for name, array in kept.items():
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(array)), persistent=False)

    def times(self, dense: Tensor) -> Tensor:
        dense = dense.contiguous()
        if dense.device.type != "cpu":
            return torch_times(self.starts, self.columns, self.values, dense)
        out = torch.empty(len(self.starts) - 1, dense.shape[1])
        starts, columns, values = (one.numpy() for one in (self.starts, self.columns, self.values))
        times_rows(starts, columns, values, dense.detach().numpy(), out.numpy())
        return out


def torch_times(starts: Tensor, columns: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """The same on any device."""
    rows = torch.repeat_interleave(torch.arange(len(starts) - 1, device=dense.device), starts.diff())
    out = torch.zeros(len(starts) - 1, dense.shape[1], device=dense.device)
    return out.index_add_(0, rows, values[:, None] * dense[columns])


class _Product(torch.autograd.Function):
    """The gradient of a product is one with the transpose."""

    @staticmethod
    def forward(context: Any, dense: Tensor, there: _Entries, back: _Entries) -> Tensor:
        context.back = back
        return there.times(dense)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return context.back.times(gradient), None, None
