"""A federation whose clients train on GPUs: secure sums, their plain twin and a resumed run end with the same bits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.gpu.pretended import PretendedGpu
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.kge import KgeLearner
from tests.support.federation_in_threads import Run, nations, relation_rows, run_federation, small_config

pytestmark = pytest.mark.long


class OnGpu:
    """Makes clients' learners on a device. Every client is a thread, and what is pretended is of one thread."""

    def __init__(self, device: torch.device, *, pretended: bool, stop_after: int | None = None) -> None:
        self._device, self._pretended, self._stop_after = device, pretended, stop_after

    def __call__(self, graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        if self._pretended:
            PretendedGpu().__enter__()  # until the client's thread ends
        learner = KgeLearner(graph, config.training, self._device, config.seed, number)
        assert learner.model.entity.device.type == "cuda"
        train = learner.train

        def until(round: int) -> Any:
            if self._stop_after is not None and round > self._stop_after:
                raise UserError("power cut")
            return train(round)

        learner.train = until  # type: ignore[method-assign]
        return learner


def same(one: Run, other: Run) -> None:
    assert one.done().test == other.done().test
    for number, rows in relation_rows(one).items():
        np.testing.assert_array_equal(rows, relation_rows(other)[number])


def test_secure_plain_and_resumed_runs_end_alike(gpu: torch.device, tmp_path: Path, request: Any) -> None:
    pretended = "pretended" in request.node.callspec.id
    secure, plain = small_config(), small_config(aggregation="plain", alignment="plain")
    on_gpu = OnGpu(gpu, pretended=pretended)
    runs = [
        run_federation(config, nations(2), tmp_path / config.aggregation, trainer_of=on_gpu)
        for config in (secure, plain)
    ]
    same(*runs)
    cut = OnGpu(gpu, pretended=pretended, stop_after=2)
    assert run_federation(secure, nations(2), tmp_path / "cut", trainer_of=cut).server_error is not None
    resumed = run_federation(secure, nations(2), tmp_path / "cut", resume=True, trainer_of=on_gpu)
    assert resumed.done().abandoned_sums == []
    same(runs[0], resumed)
