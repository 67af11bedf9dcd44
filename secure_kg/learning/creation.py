"""The trainer of a client, on the device that is its own."""

from typing import Protocol

from secure_kg.data.graph import ClientGraph
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.device import pick_device
from secure_kg.learning.trainer import LocalTrainer


class LearningSettings(Protocol):
    """The settings of a run that a trainer needs."""

    @property
    def training(self) -> TrainingConfig: ...

    @property
    def device(self) -> str: ...

    @property
    def seed(self) -> int: ...


def make_trainer(settings: LearningSettings, graph: ClientGraph, client: int, local_rank: int) -> LocalTrainer:
    """`local_rank`: the number of this process among those of its machine, which decides about the GPU."""
    device = pick_device(local_rank, settings.device)
    return LocalTrainer(graph, settings.training, device, settings.seed, client)
