"""The upper bound on the same round loop: a server and one client, who holds everybody's triples, in one process.

Rounds, evaluations, early stopping, checkpoints and files are thereby those of every other strategy. Nothing is
protected: whoever runs this reads all clients' data.
"""

import dataclasses
from typing import Final

from protocols.foundation.errors import Aborted, PeerLost
from protocols.foundation.identifiers import PartyId
from protocols.transport.base import Transport
from protocols.transport.in_threads import run_in_process
from secure_kg.data.soundness import about_graph
from secure_kg.federation.client.site import Equipment, PreparedSite
from secure_kg.federation.client.take_part import Participation, take_part
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer, Report
from secure_kg.foundation.errors import InternalError
from secure_kg.learning.pooled import PooledLearner
from secure_kg.runs import checkpoint
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.records.client_result import ClientResult
from secure_kg.runs.run_folder import RunFolder, read_record, write_json

_NEVER: Final = 1e9  # seconds


def run_pooled(config: RunConfig, trainer: PooledLearner, folder: RunFolder, report: Report) -> ServerOutcome:
    """The whole run. What fails in the client's thread is raised here."""
    # The two are one process: no answer means a long step, so nobody is ever a dropout.
    patient = dataclasses.replace(config, deadline=_NEVER, grace=_NEVER)

    def serve(transport: Transport) -> ServerOutcome:
        return FederationServer(patient, transport, folder, report).run()

    def train(transport: Transport) -> Participation:
        site = PreparedSite(folder.pool, lambda: Equipment(trainer))
        return take_part(patient, transport, 1, site)

    ended = run_in_process(serve, {PartyId(1): train})
    problem = ended.clients[PartyId(1)].error
    if isinstance(problem, InternalError):
        problem = problem.__cause__
    # After Aborted or PeerLost it is the server that has failed; after anything else it only heard of it.
    if ended.server.error is not None and problem is not None and not isinstance(problem, Aborted | PeerLost):
        raise problem
    outcome = ended.server.result()
    _write_members(trainer, folder)
    return _of_members(outcome, len(trainer.pool.members))


def _write_members(trainer: PooledLearner, folder: RunFolder) -> None:
    """For each client of the pool what it would have had in a federation: its result, and its rows of the model."""
    pool = read_record(folder.pool / "result.json", ClientResult)
    held, pooled = sum(len(member.graph.train) for member in trainer.pool.members), trainer.graph
    sizes = {"entities": len(pooled.entities), "relations": len(pooled.relations), "train_triples": len(pooled.train)}
    repeated = {"repeated_train_triples": held - len(pooled.train)}
    elsewhere = {"test_triples_trained_elsewhere": trainer.pool.trained_elsewhere}
    write_json(folder.pool / "pool.json", sizes | repeated | elsewhere)
    results = trainer.member_results("test")
    for number, (member, found) in enumerate(zip(trainer.pool.members, results, strict=True), start=1):
        own = folder.client(number)
        checkpoint.save_arrays(own / "model.safetensors", trainer.member_tables(member), {})
        figures = found.figures()
        result = ClientResult(
            client=number,
            figures=figures,
            metrics=found.described(figures),
            about=about_graph(member.graph) | ({"test_queries": found.examples} if found.over_queries else {}),
            seconds=pool.seconds,  # times and memory of single clients cannot be told apart
            cpu_seconds=pool.cpu_seconds,
            peak_memory_mb=pool.peak_memory_mb,
        )
        write_json(own / "result.json", result.to_json())


def _of_members(outcome: ServerOutcome, members: int) -> ServerOutcome:
    """Counted in clients whose data are in the pool. They sent no message: their triples were there already."""
    none = dict.fromkeys(range(1, members + 1), 0)
    return dataclasses.replace(outcome, test_clients=members, bytes_up=none, bytes_down=none)
