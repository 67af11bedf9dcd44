"""Differentially private federations in threads, with noise whose secrets a test can give to a second run."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.privacy.run_config import PrivacyConfig
from secure_kg.runs.run_folder import RunFolder
from tests.support.federation_in_threads import Run, nations, run_federation, small_config

CLIENTS = 4
TRAINING = TrainingConfig(model="DistMult", dim=4, negatives=4)


def private_config(**changes: Any) -> RunConfig:
    """Names of settings of privacy may be among the changes."""
    privacy: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-5}
    privacy |= {name: changes.pop(name) for name in list(changes) if name in PrivacyConfig.__dataclass_fields__}
    defaults = {"strategy": "all-rows", "aggregation": "plain", "alignment": "plain", "clients": CLIENTS, "rounds": 4}
    return small_config(**{"training": TRAINING, **defaults, **changes}, privacy=PrivacyConfig(**privacy))


def private_learner(graph: ClientGraph, own: RunConfig, number: int) -> KgeLearner:
    made = RunPlan(own, CLIENTS).learner.make(own, graph, number, torch.device("cpu"))
    assert isinstance(made, KgeLearner)
    return made


def counting_config(**changes: Any) -> RunConfig:
    """One table of counts."""
    return private_config(**{"dp": "counts", "strategy": "fede", "rounds": 1, "dp_count_width": 64, **changes})


def counting_learner(graph: ClientGraph, own: RunConfig, number: int) -> Any:
    return RunPlan(own, CLIENTS).learner.make(own, graph, number, torch.device("cpu"))


def run_counting(config: RunConfig, path: Path, **more: Any) -> Run:
    """A run with given secrets."""
    give_secrets(path)
    return run_federation(config, graphs(), path, **{"trainer_of": counting_learner, **more})


def graphs() -> list[ClientGraph]:
    """Divided by relations, so that no two clients hold the same rows."""
    return nations(CLIENTS, by="relations")


def give_secrets(path: Path) -> None:
    """The same secrets of noise, and names of the run, in every run that a test compares."""
    for number in range(1, CLIENTS + 1):
        folder = RunFolder(path).client(number)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state.key").write_bytes(bytes([number]) * 32)
        (folder / "run.id").write_bytes(bytes([number]) * 16)


def run_private(config: RunConfig, path: Path, **more: Any) -> Run:
    """A run with given secrets."""
    give_secrets(path)
    return run_federation(config, graphs(), path, trainer_of=private_learner, **more)


def tables(run: Run) -> dict[int, np.ndarray[Any, Any]]:
    return {number: learner.export_block("entity and relation") for number, learner in run.trainers.items()}


def same(run: Run, other: Run) -> None:
    for number, rows in tables(run).items():
        np.testing.assert_array_equal(rows, tables(other)[number])
