"""The queries that a client is judged by: drawn once from its own graph, each with an answer that training cannot see.

Validation queries have answers that the train triples alone do not give, test queries answers that train and validation
triples do not give. They depend on the graph, the seed and the client's number, so that all strategies are judged by
the same ones.
"""

from typing import Final

from secure_kg.data.graph import ClientGraph, Part
from secure_kg.data.triples import PARTS
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.seeds import seed_sequence
from secure_kg.learning.query_config import QueryConfig
from secure_kg.queries.edges import Stages
from secure_kg.queries.sampling import Evaluation, Sampler, hard_queries

_HALVINGS: Final = 12


class QueryEvaluations:
    """One client's queries by part, drawn when they are first asked for."""

    def __init__(self, graph: ClientGraph, config: QueryConfig, seed: int, client: int) -> None:
        parts = [graph.part(part) for part in PARTS]
        self.stages = Stages.of(parts, len(graph.entities), len(graph.relations))
        self._config, self._seed, self._client = config, seed, client
        self._drawn: dict[Part, list[Evaluation]] = {}

    def of(self, part: Part) -> list[Evaluation]:
        """By type. A type of which the graph has no query is left out."""
        if part not in self._drawn:
            found = [self._some(part, kind) for kind in self._config.tested]
            self._drawn[part] = [one for one in found if one is not None]
        return self._drawn[part]

    def number(self, part: Part) -> int:
        return sum(len(one.rows) for one in self.of(part))

    def _some(self, part: Part, kind: str) -> Evaluation | None:
        """As many as are asked for; where a small graph has not so many, half as many, or a quarter."""
        stages, number = self.stages, self._config.eval_queries
        graphs = {"train": (stages.train, stages.train), "valid": (stages.train, stages.valid)}
        smaller, larger = graphs.get(part, (stages.valid, stages.test))
        for halving in range(_HALVINGS):
            stream = seed_sequence(self._seed, "evaluation", self._client, part, kind)
            if not (wanted := number >> halving):
                break
            try:
                return hard_queries(Sampler(larger, stream), kind, wanted, smaller, larger)
            except DataError:
                continue
        return None
