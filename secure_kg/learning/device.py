"""The one place that picks the device."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.foundation.errors import SettingsError


def pick_device(local_rank: int, wanted: str = "auto") -> torch.device:
    """The device of the process with this rank on its machine: its share of the GPUs, else the CPU with one thread.

    `wanted` is "auto", "cpu" or "cuda". Several ranks share a machine, and one thread each is faster than all of them
    competing for every core; it also fixes the order of floating-point sums, so that runs repeat bit for bit.
    """
    if wanted not in ("auto", "cpu", "cuda"):
        raise SettingsError("--device must be auto, cpu or cuda")
    gpus = torch.cuda.device_count() if wanted != "cpu" and torch.cuda.is_available() else 0
    if wanted == "cuda" and gpus == 0:
        raise SettingsError("--device cuda: torch finds no GPU here")
    if gpus:
        return torch.device("cuda", local_rank % gpus)
    torch.set_num_threads(1)
    return torch.device("cpu")


def to_device(ids: npt.NDArray[np.int64], device: torch.device) -> Tensor:
    """A tensor of ids on the device. A GPU copies from pinned memory while the CPU goes on."""
    tensor = torch.from_numpy(ids)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
