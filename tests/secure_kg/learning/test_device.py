"""The device: a share of the GPUs, else one CPU thread."""

import pytest
import torch

from secure_kg.foundation.errors import UserError
from secure_kg.learning.device import pick_device


def with_gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_ranks_share_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 2)
    assert [pick_device(rank).index for rank in range(5)] == [0, 1, 0, 1, 0]
    assert pick_device(1, "cuda") == torch.device("cuda", 1)
    assert pick_device(1, "cpu") == torch.device("cpu")


def test_cpu_runs_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 0)
    assert pick_device(3) == torch.device("cpu")
    assert torch.get_num_threads() == 1


def test_wishes_that_cannot_be_met(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 0)
    with pytest.raises(UserError, match="no GPU"):
        pick_device(0, "cuda")
    with pytest.raises(UserError, match="auto, cpu or cuda"):
        pick_device(0, "tpu")
