"""The one place that picks the device."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.errors import UserError


def pick_device(local_rank: int, wanted: str = "auto") -> torch.device:
    """The device of the process with this rank on its machine: its share of the GPUs, else the CPU with one thread.

    `wanted` is "auto", "cpu" or "cuda". Several ranks share a machine, and one thread each is faster than all of them
    competing for every core; it also fixes the order of floating-point sums, so that runs repeat bit for bit.
    """
    if wanted not in ("auto", "cpu", "cuda"):
        raise UserError("--device must be auto, cpu or cuda")
    gpus = torch.cuda.device_count() if wanted != "cpu" and torch.cuda.is_available() else 0
    if wanted == "cuda" and gpus == 0:
        raise UserError("--device cuda: torch finds no GPU here")
    if gpus:
        return torch.device("cuda", local_rank % gpus)
    torch.set_num_threads(1)
    return torch.device("cpu")


def to_device(ids: npt.NDArray[np.int64], device: torch.device) -> Tensor:
    """A tensor of ids on the device. A GPU copies from pinned memory while the CPU goes on."""
    tensor = torch.from_numpy(ids)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Let this thread's CPU take numbers below 1e-38 for zero; it would need some hundred cycles for each of them.

    Gradients of negatives that nobody mistakes for true fall that low, and RotatE then trains ten times as slowly. The
    setting is a thread's, and whoever runs in it afterwards finds it as it was.
    """
    flushed_before = np.float32(1e-39) * np.float32(1) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(bool(flushed_before))
