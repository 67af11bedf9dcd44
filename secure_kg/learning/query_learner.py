"""The learner of logical queries: draws its own from its graph, trains an encoder on them, and is judged by hard ones.

Blocks (FedCQA, algorithm 2, with relation rows by their holders):

    entity and relation   rows of entities and of relations, each relation with a row for its inverse; or one of the two
    operators             the encoder's networks as one flat row, the same at every client in the beginning
"""

import math
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, Part
from secure_kg.data.soundness import about_graph
from secure_kg.evaluation.query_metrics import QueryMetrics
from secure_kg.evaluation.query_ranking import rank_queries
from secure_kg.foundation.errors import DataError, TrainingDiverged
from secure_kg.foundation.seeds import generator, seed_sequence, torch_seed
from secure_kg.learning import weighted_operators as weighted
from secure_kg.learning.adam import Adam
from secure_kg.learning.learner import Learner, Rows, Settings, TrainStats
from secure_kg.learning.parameters import copied, digest_of, load_copied, load_state_of, state_of
from secure_kg.learning.query_config import QueryConfig
from secure_kg.learning.query_evaluations import QueryEvaluations
from secure_kg.learning.query_steps import QuerySteps, draw_negatives, drawn_from
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.queries.edges import QueryGraph
from secure_kg.queries.sampling import Sampler

ENTITIES: Final = "entity"
RELATIONS: Final = "relation"
BOTH: Final = "entity and relation"
OPERATORS: Final = "operators"


class QueryLearner(Learner):
    """Trains on queries within one client's graph."""

    def __init__(self, graph: ClientGraph, config: QueryConfig, device: torch.device, seed: int, client: int) -> None:
        self.graph, self.config = graph, config
        self._device, self._seed, self._client = device, seed, client
        size = QueryModelSize(len(graph.entities), len(graph.relations), config.encoder, config.shape, config.score)
        # Operators begin alike at all clients: a mean of different networks is none.
        streams = ("initial rows", client), ("initial operators",)
        generators = (torch.Generator().manual_seed(torch_seed(seed, *purpose)) for purpose in streams)
        self.model = QueryModel(size, *generators).to(device)
        self._optimiser = Adam(self.model.parameters(), config.lr, config.weight_decay)
        self._steps = QuerySteps(self.model, self._optimiser)
        self.evaluations = QueryEvaluations(graph, config, seed, client)
        self._drawn_from = drawn_from(self.evaluations.stages.train, config.answers)
        self._kinds = _drawable(self._drawn_from, config)
        self._began: Rows | None = None
        """All rows as the round's training has found them, until other rows are loaded."""

    def train(self, round: int) -> TrainStats:
        """`local_steps` steps on fresh queries; raises `TrainingDiverged` if anything stops being finite."""
        config, model = self.config, self.model
        self._optimiser.rate = config.lr * config.lr_decay ** max(0, round - 1)
        sampler = Sampler(self._drawn_from, seed_sequence(self._seed, "queries", self._client, round))
        draws = generator(self._seed, "negatives of queries", self._client, round)
        self._began = self._all_rows()
        loss = 0.0
        for _ in range(config.local_steps):
            drawn = [sampler.draw(kind, config.batch_size) for kind in self._kinds]
            loss += self._steps.step(drawn, draw_negatives(draws, model.size.entities, config.negatives))
        if not (math.isfinite(loss) and all(bool(one.isfinite().all()) for one in model.parameters())):
            raise TrainingDiverged(
                f"client {self._client}: training is not finite in round {round}; a smaller --lr may help"
            )
        queries = config.local_steps * config.batch_size * len(self._kinds)
        return TrainStats(loss / config.local_steps, queries, config.local_steps)

    def block_names(self, block: str) -> tuple[str, ...]:
        """Names of rows; an entity and a relation of the same name are different rows."""
        entities = [f"entity {name}" for name in self.graph.entities]
        relations = [f"{way} {name}" for name in self.graph.relations for way in ("relation", "inverse of")]
        return tuple([*entities, *relations][self._places(block)])

    def export_block(self, block: str) -> Rows:
        if block == OPERATORS:
            return weighted.exported(self._operators(), self.config.weighted)
        return self._all_rows()[self._places(block)]

    def contributed_block(self, block: str) -> Rows:
        """Rows with `step` times the way that this round's training has taken them.

        A mean over holders shrinks what each of them has learned, the more so the more of them there are. The step is
        taken before the sum: so what a client applies is the mean and depends on nothing else, and values are clipped
        and counted as always. Operators go as they are, or times their weight and with it.
        """
        if block == OPERATORS and self.config.weighted:
            return weighted.contributed(self._operators(), len(self.graph.train))
        rows = self.export_block(block)
        if block == OPERATORS or self._began is None or self.config.step == 1:
            return rows
        began = self._began[self._places(block)]
        return began + np.float32(self.config.step) * (rows - began)

    def load_block(self, block: str, rows: Rows) -> None:
        """Replace a block by rows [n, width] that arrived from outside. Adam's moments stay."""
        if block == OPERATORS and self.config.weighted:
            rows = weighted.mean_of(rows)
        values = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32))
        with torch.no_grad():
            target = self.model.operators[None] if block == OPERATORS else self.model.rows[self._places(block)]
            if values.shape != target.shape:
                raise ValueError(f"{block} rows must have shape {tuple(target.shape)}, not {rows.shape}")
            target.copy_(values)
        if block != OPERATORS:
            self._began = None

    def evaluate(self, part: Part, trained: TrainStats | None = None) -> QueryMetrics:
        found = self.rank(part)
        if trained is None:
            return found
        return QueryMetrics(found.types, loss_sum=trained.loss * trained.triples, loss_queries=trained.triples)

    def rank(self, part: Part) -> QueryMetrics:
        """Filtered ranking of the hard answers of the client's own queries."""
        return rank_queries(self.model, self.evaluations.of(part), self.config.eval_megabytes)

    def about(self) -> dict[str, Any]:
        return about_graph(self.graph) | {"test_queries": self.evaluations.number("test")}

    def parameters_state(self) -> dict[str, Tensor]:
        return copied(self.model)

    def load_parameters(self, state: dict[str, Tensor]) -> None:
        load_copied(self.model, state)

    def digest(self) -> bytes:
        return digest_of(self.model)

    def state(self) -> dict[str, Tensor]:
        return state_of(self.model, self._optimiser)

    def load_state(self, state: dict[str, Tensor]) -> None:
        load_state_of(self.model, self._optimiser, state)
        self._began = None

    def _operators(self) -> Rows:
        return self.model.operators.detach().cpu().numpy()[None].copy()

    def _all_rows(self) -> Rows:
        return self.model.rows.detach().cpu().numpy().copy()

    def _places(self, block: str) -> slice:
        """Of the rows of an aligned block in the model's table."""
        first = len(self.graph.entities)
        places = {ENTITIES: slice(0, first), RELATIONS: slice(first, None), BOTH: slice(None)}
        if block not in places:
            raise ValueError(f"a model of queries has no block '{block}'")
        return places[block]


def _drawable(graph: QueryGraph, config: QueryConfig) -> tuple[str, ...]:
    """The types of training queries that a graph has; a small one need not have all."""
    found = []
    for kind in config.trained:
        try:
            Sampler(graph, seed_sequence(0, "is there a query")).draw(kind, 1)
        except DataError:
            continue
        found.append(kind)
    if not found:
        raise DataError(f"no query of type {', '.join(config.trained)} in the train part of the graph")
    return tuple(found)


def make_learner(settings: Settings, graph: ClientGraph, client: int, device: torch.device) -> QueryLearner:
    """A client's learner, by the settings of its run."""
    return QueryLearner(graph, settings.queries or QueryConfig(), device, settings.seed, client)
