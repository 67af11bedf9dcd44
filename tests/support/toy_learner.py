"""A second kind of learner, in one file: it averages numbers, shares two blocks, and has metrics of its own.

Every client knows some entities by name and holds one hidden number for each. It learns a row [value, weight] per
entity, which is aligned and shared, and one dense vector of three numbers, which is shared without any alignment.
"""

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from protocols.sums.interface import Contribution, SumLayout, Total
from secure_kg.data.graph import ClientGraph, Part
from secure_kg.evaluation.metrics import Metrics
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.learners import LearnerKind
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES, Strategy
from secure_kg.learning.learner import Learner, Rows, Settings, TrainStats

WIDTH, DENSE = 2, 3
NAME = "toy"


@dataclass(frozen=True, slots=True)
class Errors(Metrics):
    """Squared errors of the values, over examples."""

    headline_name: ClassVar[str] = "negative error"
    squared: float
    count: int

    @classmethod
    def layout(cls, parties: int) -> SumLayout:
        return SumLayout(1, 1, bound=2.0**20, max_count=2**20, parties=parties, ring_bits=64)

    def contribution(self) -> Contribution:
        return Contribution(np.array([self.squared]), np.array([self.count]))

    @classmethod
    def of(cls, total: Total) -> Self:
        return cls(float(total.real[0]), int(total.counts[0]))

    @property
    def headline(self) -> float:
        return -self.squared / max(self.count, 1)

    @property
    def examples(self) -> int:
        return self.count

    @property
    def loss(self) -> float:
        return 0.0

    def figures(self) -> dict[str, Any]:
        return {"error": self.squared / max(self.count, 1)}

    def evaluation(self) -> dict[str, Any]:
        return {"valid": self.figures()}

    @classmethod
    def described(cls, figures: dict[str, Any]) -> dict[str, Any]:
        return {"error": "mean squared error of the values"}


class ToyLearner(Learner):
    """Moves every row half-way to the client's own number, and the dense vector by the client's own amount."""

    def __init__(self, graph: ClientGraph, client: int) -> None:
        self.graph, self._client = graph, client
        self._truth = np.array([len(name) + client / 8 for name in graph.entities], dtype=np.float32)
        self._values = {
            "entity": torch.zeros(len(graph.entities), WIDTH),
            "dense": torch.zeros(1, DENSE),
        }

    def train(self, round: int) -> TrainStats:
        entity = self._values["entity"]
        entity[:, 0] += (torch.from_numpy(self._truth) - entity[:, 0]) / 2
        self._values["dense"] += self._client / 16
        return TrainStats(0.0, len(self.graph.entities), 1)

    def block_names(self, block: str) -> tuple[str, ...]:
        return self.graph.entities

    def export_block(self, block: str) -> Rows:
        return self._values[block].numpy().copy()

    def load_block(self, block: str, rows: Rows) -> None:
        self._values[block].copy_(torch.from_numpy(np.ascontiguousarray(rows)))

    def evaluate(self, part: Part, trained: TrainStats | None = None) -> Errors:
        errors = self._values["entity"][:, 0].numpy() - self._truth
        return Errors(float(np.square(errors).sum()), len(errors))

    def digest(self) -> bytes:
        return hashlib.sha256(b"".join(value.numpy().tobytes() for value in self._values.values())).digest()

    def parameters_state(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self._values.items()}

    def load_parameters(self, state: dict[str, Tensor]) -> None:
        for name, value in self._values.items():
            value.copy_(state[name])

    def state(self) -> dict[str, Tensor]:
        return self.parameters_state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.load_parameters(state)

    def about(self) -> dict[str, Any]:
        return {"entities": len(self.graph.entities)}


def blocks(settings: RunConfig, strategy: Strategy) -> tuple[Block, ...]:
    """Rows by the run's own aggregation; the dense vector by sums that the server reads, if the run's are masked."""
    readable = "plain" if settings.aggregation == "plain" else "secagg"
    return (
        Block("entity", WIDTH, settings.aggregation, aligned=True, span=0.5),
        Block("dense", DENSE, readable, aligned=False),
    )


def make(settings: Settings, graph: ClientGraph, client: int, device: torch.device) -> ToyLearner:
    return ToyLearner(graph, client)


KIND = LearnerKind(f"{__name__}:make", blocks, Errors)
STRATEGY = Strategy(NAME, "Toy", "entity rows and a dense row", "entity", learner=KIND)


def register(kind: LearnerKind = KIND) -> None:
    """The line that makes it a strategy like any other."""
    STRATEGIES[NAME] = dataclasses.replace(STRATEGY, learner=kind)
