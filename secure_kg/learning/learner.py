"""The interface of a client's learner: it trains, exports and loads blocks of its parameters, and evaluates itself.

A federation knows nothing else of what is learned. Which blocks are shared, and how their sums and those of results are
laid out, is public and stands in `secure_kg.federation.plan.learners`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, Part
from secure_kg.evaluation.metrics import Metrics
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.query_config import QueryConfig
from secure_kg.models.networks.config import NetworkConfig

Rows = npt.NDArray[np.float32]
"""Rows of a block [n, width]."""
Contributed: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64]
"""Rows as they go into a sum [n, width]."""


@dataclass(frozen=True, slots=True)
class TrainStats:
    """One round of local training: mean loss per example, examples seen (with repetition), optimiser steps."""

    loss: float
    triples: int
    steps: int


class NoiseKeys(Protocol):
    """Keys of a client's own noise, by state and input, so that the same input has the same noise again."""

    def begin(self, state: bytes, /) -> None:
        """A step begins at parameters with this digest. All keys that follow are bound to it."""
        ...

    def key_of(self, round_id: int, purpose: str, content: bytes, /) -> bytes:
        """Of the noise on an input with this digest. It may refuse: every other input is a further release."""
        ...

    def stream(self, round_id: int, content: bytes, /) -> Callable[[int], bytes]:
        """Secret bytes for choices of a round that depend on `content` alone."""
        ...


class Learner(ABC):
    """One client's local model and its training data."""

    graph: ClientGraph

    @abstractmethod
    def train(self, round: int) -> TrainStats:
        """Local epochs of one round. Randomness comes from the round's number, so that a resumed round repeats it."""

    @abstractmethod
    def block_names(self, block: str) -> tuple[str, ...]:
        """Names of the rows of an aligned block, in the order of `export_block`."""

    @abstractmethod
    def export_block(self, block: str) -> Rows:
        """A copy of a block [n, width]; n is 1 for a block that is not aligned."""

    def entrust(self, keys: NoiseKeys) -> None:  # noqa: B027  most learners have no use for it
        """Take the keys of this client's noise, for a learner that adds some. Called once in a session."""

    def contributed_block(self, block: str) -> Contributed:
        """What this client adds to the sum of a block: its rows as they are, unless a learner says otherwise."""
        return self.export_block(block)

    @abstractmethod
    def load_block(self, block: str, rows: Rows) -> None:
        """Replace a block by rows [n, width] that arrived from outside."""

    @abstractmethod
    def evaluate(self, part: Part, trained: TrainStats | None = None) -> Metrics:
        """Results on one part of the data. `trained`: training whose loss is to be told, too."""

    def told_results(self, part: Part, own: Metrics) -> Metrics:
        """What this client adds to the federation's sum of results on a part: by default its own results."""
        return own

    @abstractmethod
    def digest(self) -> bytes:
        """SHA-256 of all parameters: the same if and only if the parameters are."""

    @abstractmethod
    def parameters_state(self) -> dict[str, Tensor]:
        """Copies of all parameters, on the CPU: enough to evaluate, and to go back to the best round."""

    @abstractmethod
    def load_parameters(self, state: dict[str, Tensor]) -> None:
        """Take all parameters back from `parameters_state`."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Parameters and optimiser state, flat, contiguous and on the CPU: training goes on from it bit for bit."""

    @abstractmethod
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue where `state` was taken."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """Sizes of the client's data, for its own result file."""


class Settings(Protocol):
    """What a learner is told of its run."""

    @property
    def training(self) -> TrainingConfig: ...

    @property
    def queries(self) -> QueryConfig | None: ...

    @property
    def network(self) -> NetworkConfig | None: ...

    @property
    def seed(self) -> int: ...


class Factory(Protocol):
    """Makes a client's learner; `LearnerKind.factory` names one."""

    def __call__(self, settings: Settings, graph: ClientGraph, client: int, device: torch.device) -> Learner: ...
