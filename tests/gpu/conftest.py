"""Devices under test: every GPU that torch finds, and a pretended one everywhere.

On a pretended GPU (`benchmarks.gpu.pretended`) the same tests run by the routes of a GPU, with values in the memory of
the CPU. So their logic is tried on machines without a GPU; those on a real one are skipped there for one reason.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from benchmarks.gpu.pretended import PretendedGpu
from secure_kg.learning import device as devices

NONE = "torch finds no GPU on this machine; the same tests run on a pretended one"
FOUND = devices.gpus()


@pytest.fixture(
    params=[
        "pretended",
        *(str(one.device) for one in FOUND),
        *([] if FOUND else [pytest.param("cuda:0", marks=pytest.mark.skip(reason=NONE))]),
    ]
)
def gpu(request: Any) -> Iterator[torch.device]:
    """The device; sums on it repeat."""
    if request.param == "pretended":
        with PretendedGpu() as pretended:
            yield pretended.device
        return
    devices.compute_alike()
    yield torch.device(request.param)
    devices.compute_freely()
