"""A finished run of `launch.fedcqa` as an experiment reads it: everybody's graph and model, joined into one.

Nobody in a federation can do this. It is what protected answers are compared with.
"""

from pathlib import Path

from benchmarks.judging.judged_by import JudgedBy
from secure_kg.data.client_data import load_graphs
from secure_kg.data.pooling import Pool, pool
from secure_kg.evaluation.cross_graph import can_cross, cross_graph_queries, joined
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.queries.clients import QueryClients
from secure_kg.queries.retrieval.files import load_model
from secure_kg.queries.retrieval.run_terms import query_settings
from secure_kg.queries.sampling import Evaluation
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder, read_config


class JoinedRun:
    """`UserError` for a run that has not come to its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = RunFolder(folder)
        self.config: RunConfig = read_config(folder)
        self.queries = query_settings(self.config)
        summary = self.folder.summary()
        if summary is None:
            raise UserError(f"{folder}: the run has not come to its end")
        self.summary: Summary = summary
        self.pool: Pool = pool(load_graphs(self.config, self.config.clients, usual=1))

    def model(self) -> QueryModel:
        """`DataError` if the clients share no operators."""
        whole = self.pool.graph
        models = [self._model(number) for number in range(1, len(self.pool.members) + 1)]
        return joined(self.pool.members, models, len(whole.entities), len(whole.relations))

    def cross_graph_kinds(self) -> list[str]:
        """Those types among the run's own that can cross."""
        return [kind for kind in self.queries.tested if can_cross(kind)]

    def cross_graph_queries(self, by: JudgedBy) -> list[Evaluation]:
        clients = QueryClients.of_pool(self.pool)
        return cross_graph_queries(clients, by.part, self.cross_graph_kinds(), by.queries, by.seed)

    def _model(self, number: int) -> QueryModel:
        graph, settings = self.pool.members[number - 1].graph, self.queries
        size = QueryModelSize(
            len(graph.entities), len(graph.relations), settings.encoder, settings.shape, settings.score
        )
        return load_model(self.folder.client(number), size)
