"""A private federation in one process, with all sums as configured, and the ranks of its test triples."""

import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.private.arms import Sites
from protocols.transport.base import Transport
from protocols.transport.in_threads import run_in_process
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.evaluation.sums import RankingSums
from secure_kg.federation.client.site import Equipment, PreparedSite
from secure_kg.federation.client.take_part import Participation, take_part
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer
from secure_kg.learning.kge import KgeLearner
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.run_folder import RunFolder


def run(config: RunConfig) -> tuple[RankingSums, float]:
    """Ranks of a federation's test tails, all clients' triples left out, and the MRR with each one's own left out."""
    torch.set_num_threads(1)
    clients = config.clients or 0
    graphs = partition(load_source(config.dataset), clients, config.by, config.seed)
    learners: dict[int, KgeLearner] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder.create(Path(scratch) / "run", config)

        def serve(transport: Transport) -> ServerOutcome:
            return FederationServer(config, transport, folder, lambda line: None).run()

        def client(number: int, graph: ClientGraph) -> Any:
            def equip() -> Equipment:
                made: Any = RunPlan(config, clients).learner.make(config, graph, number, torch.device("cpu"))
                learners[number] = made
                return Equipment(made)

            def part(transport: Transport) -> Participation:
                return take_part(config, transport, clients, PreparedSite(folder.client(number), equip))

            return part

        parts = {number: client(number, graph) for number, graph in enumerate(graphs, start=1)}
        ended = run_in_process(serve, parts)  # type: ignore[arg-type]
        ended.server.result()
    own = [learners[number].evaluate("test") for number in sorted(learners)]
    models = [learners[number].model for number in sorted(learners)]
    headline = sum(one.headline * one.examples for one in own) / sum(one.examples for one in own)
    return Sites(graphs).judged_by_own(models, "test"), headline
