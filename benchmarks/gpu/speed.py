"""Triples per second of training on a device, by model, with repeatable sums and without.

Seconds of a GPU are the clock's. Those of the CPU are the processor's, of one thread: others may be using the machine.
"""

import time
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from secure_kg.data.graph import ClientGraph
from secure_kg.learning import device as devices
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner

ENTITIES, RELATIONS = 14541, 237
"""As many as FB15k-237 has."""
DIM: Final = 128
NEGATIVES: Final = 256


@dataclass(frozen=True, slots=True)
class Speed:
    """One model on one device."""

    model: str
    device: str
    repeatable: bool
    triples_per_second: float
    peak_megabytes: float | None
    """Of tensors on a GPU."""


def drawn_graph(triples: int) -> ClientGraph:
    """A graph of that many triples, drawn uniformly: speed depends on numbers alone."""
    rng = np.random.default_rng(0)
    train = np.column_stack([rng.integers(0, top, triples) for top in (ENTITIES, RELATIONS, ENTITIES)])
    entities, relations = (tuple(f"{kind}{number:05d}" for number in range(top)) for kind, top in
                           (("e", ENTITIES), ("r", RELATIONS)))  # fmt: skip
    return ClientGraph(entities, relations, train, train[:1], train[:1])


def measure(model: str, device: torch.device, triples: int, *, repeatable: bool = True) -> Speed:
    """The second of two rounds over the triples: the first one compiles, or finds memory."""
    config = TrainingConfig(model=model, dim=DIM, negatives=NEGATIVES, local_epochs=1)
    learner = KgeLearner(drawn_graph(triples), config, device, 0, 1)
    if device.type == "cuda":
        (devices.compute_alike if repeatable else devices.compute_freely)()
    try:
        learner.train(1)
        devices.synchronise(device)
        devices.forget_peak(device)
        clock = time.process_time if device.type == "cpu" else time.perf_counter
        began = clock()
        stats = learner.train(2)
        devices.synchronise(device)
        seconds = clock() - began
    finally:
        if device.type == "cuda":
            devices.compute_alike()
    return Speed(model, str(device), repeatable, stats.triples / seconds, devices.peak_megabytes(device))
