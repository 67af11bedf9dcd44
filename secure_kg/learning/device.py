"""The one place that knows devices: which one a process gets, copies to it, how it computes, its clock and memory.

A run repeats rounds when it is resumed, and a secure run ends as its plain twin does, to the last bit. So whatever
computes must compute the same again. One thread fixes the order of sums on the CPU. On a GPU torch takes kernels that
add in a fixed order, and raises where it has none (`compute_alike`). There is no switch for that: clients open the sum
of a repeated round only if it is the same number again. docs/engine.md says what it costs and what it cannot promise.
"""

import os
import platform
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.foundation.errors import SettingsError

CPU: Final = torch.device("cpu")
_WORKSPACE: Final = "CUBLAS_WORKSPACE_CONFIG"
_REPEATABLE: Final = (":4096:8", ":16:8")
"""Workspaces with which cuBLAS repeats its results; the first is the faster one."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as torch sees it."""

    number: int
    name: str
    capability: str
    megabytes: int

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.number)


def gpus() -> list[Gpu]:
    """All that torch can use here."""
    if not torch.cuda.is_available():
        return []
    found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    return [
        Gpu(number, one.name, f"{one.major}.{one.minor}", one.total_memory >> 20) for number, one in enumerate(found)
    ]


def pick_device(local_rank: int, wanted: str = "auto") -> torch.device:
    """The device of the process with this rank on its machine: its share of the GPUs, else the CPU with one thread.

    `wanted` is "auto", "cpu" or "cuda". Several ranks share a machine, and one thread each is faster than all of them
    competing for every core; it also fixes the order of floating-point sums, so that runs repeat bit for bit. A client
    on a GPU has sums on the CPU, too.
    """
    if wanted not in ("auto", "cpu", "cuda"):
        raise SettingsError("--device must be auto, cpu or cuda")
    number = torch.cuda.device_count() if wanted != "cpu" and torch.cuda.is_available() else 0
    if wanted == "cuda" and number == 0:
        raise SettingsError("--device cuda: torch finds no GPU here")
    torch.set_num_threads(1)
    if number:
        compute_alike()
        return torch.device("cuda", local_rank % number)
    return CPU


def compute_alike() -> None:
    """Let GPUs of this process compute the same again; before anything is computed on one."""
    if (given := os.environ.setdefault(_WORKSPACE, _REPEATABLE[0])) not in _REPEATABLE:
        raise SettingsError(f"{_WORKSPACE}={given}: a GPU repeats its results with {' or '.join(_REPEATABLE)} only")
    # The same as use_deterministic_algorithms(True), which would import torch's compiler: a second in every process.
    torch.set_deterministic_debug_mode("error")
    torch.backends.cudnn.benchmark = False  # would choose kernels by their time
    torch.set_float32_matmul_precision("highest")  # no TF32, whose products have ten bits
    torch.backends.cudnn.allow_tf32 = False


def compute_freely() -> None:
    """Take `compute_alike` back: for measurements of what it costs."""
    torch.set_deterministic_debug_mode("default")


def to_device(values: npt.NDArray[Any], device: torch.device) -> Tensor:
    """An array as a tensor on the device; on the CPU it shares its memory. A GPU copies from pinned memory while the
    CPU goes on."""
    tensor = torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def synchronise(device: torch.device) -> None:
    """Wait until all that was asked of the device is done: a GPU is behind, and a clock must not be."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def forget_peak(device: torch.device) -> None:
    """Begin to measure `peak_megabytes`."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_megabytes(device: torch.device) -> float | None:
    """Of tensors on a GPU, since `forget_peak`; None on the CPU, where the process's own peak counts."""
    return torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else None


def computed_on(device: torch.device) -> str:
    """What last bits of results depend on beside data and settings, in words: hardware and libraries."""
    libraries = [f"torch {torch.__version__}", f"numpy {np.__version__}"]
    if device.type == "cuda":
        found = torch.cuda.get_device_properties(device)
        libraries += [f"CUDA {torch.version.cuda}", f"cuDNN {_cudnn()}"]
        return ", ".join([f"GPU {found.name} ({found.major}.{found.minor})", *libraries])
    import numba
    from llvmlite import binding  # kernels are compiled for the processor they run on

    libraries.append(f"numba {numba.__version__}")
    processor = f"CPU {platform.machine()} {binding.get_host_cpu_name()} {torch.backends.cpu.get_cpu_capability()}"
    return ", ".join([processor, *libraries])


def _cudnn() -> int | None:
    version: int | None = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    return version
