"""The device: a share of the GPUs, else one CPU thread; GPUs repeat themselves; nobody else knows of devices."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from secure_kg.foundation.errors import SettingsError
from secure_kg.learning import device as devices
from secure_kg.learning.device import pick_device

ROOT = Path(__file__).parents[3]
OF_A_GPU = re.compile(
    r"torch\.cuda|pin_memory|synchronize|torch\.backends|use_deterministic|deterministic_debug|CUBLAS|\.cuda\(|"
    r'torch\.device\("cuda'
)


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = os.environ.pop(devices._WORKSPACE, None)
    yield
    devices.compute_freely()
    os.environ.pop(devices._WORKSPACE, None)
    if before is not None:
        os.environ[devices._WORKSPACE] = before


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_ranks_of_a_machine_share_its_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    assert [pick_device(rank).index for rank in range(5)] == [0, 1, 0, 1, 0]
    assert pick_device(1, "cuda") == torch.device("cuda", 1)
    assert pick_device(1, "cpu") == torch.device("cpu")


def test_without_a_gpu_a_rank_takes_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 0)
    assert pick_device(3) == torch.device("cpu")
    assert torch.get_num_threads() == 1
    assert not torch.are_deterministic_algorithms_enabled()  # the CPU repeats itself anyway
    assert devices._WORKSPACE not in os.environ


def test_what_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 0)
    with pytest.raises(SettingsError, match="no GPU"):
        pick_device(0, "cuda")
    with pytest.raises(SettingsError, match="auto, cpu or cuda"):
        pick_device(0, "tpu")


def test_a_gpu_repeats_itself_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 1)
    pick_device(0)
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    assert os.environ[devices._WORKSPACE] == ":4096:8"
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cudnn.allow_tf32
    assert torch.get_num_threads() == 1


def test_a_workspace_that_does_not_repeat_is_refused_and_a_small_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices._WORKSPACE, ":0:0")
    with pytest.raises(SettingsError, match=r"CUBLAS_WORKSPACE_CONFIG=:0:0: a GPU repeats its results with :4096:8"):
        devices.compute_alike()
    monkeypatch.setenv(devices._WORKSPACE, ":16:8")
    devices.compute_alike()
    assert os.environ[devices._WORKSPACE] == ":16:8"


def test_the_cpu_has_no_clock_or_peak_of_its_own_and_shares_memory() -> None:
    devices.synchronise(devices.CPU)
    devices.forget_peak(devices.CPU)
    assert devices.peak_megabytes(devices.CPU) is None
    ids = np.arange(3)
    tensor = devices.to_device(ids, devices.CPU)
    ids[0] = 7
    assert tensor.tolist() == [7, 1, 2]


def test_what_results_depend_on_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    here = devices.computed_on(devices.CPU)
    assert here == devices.computed_on(devices.CPU)
    for word in ("CPU", f"torch {torch.__version__}", f"numpy {np.__version__}", "numba"):
        assert word in here
    found = SimpleNamespace(name="Kind A", major=9, minor=0, total_memory=80 << 30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found)
    gpus(monkeypatch, 1)
    there = devices.computed_on(torch.device("cuda", 0))
    assert "GPU Kind A (9.0)" in there
    assert "CUDA" in there
    assert devices.gpus() == [devices.Gpu(0, "Kind A", "9.0", 80 << 10)]
    assert devices.gpus()[0].device == torch.device("cuda", 0)


def test_one_module_alone_knows_of_gpus() -> None:
    knowing = {
        path.relative_to(ROOT).as_posix()
        for folder in ("secure_kg", "launch", "protocols")
        for path in (ROOT / folder).rglob("*.py")
        if OF_A_GPU.search(path.read_text("utf-8"))
    }
    assert knowing == {"secure_kg/learning/device.py"}


@pytest.mark.parametrize("text", ["x.pin_memory()", "torch.cuda.is_available()", "x.cuda(0)", "torch.backends.cudnn"])
def test_what_only_that_module_may_say_is_recognised(text: str) -> None:
    assert OF_A_GPU.search(text)
