"""The upper bound on the same round loop: a server and one client, who holds everybody's triples, in one process.

Rounds, evaluations, early stopping, checkpoints and files are thereby those of every other strategy. Nothing is
protected: whoever runs this reads all clients' data.
"""

import dataclasses
import threading
from typing import Any, Final

from protocols.foundation.errors import Aborted, ProtocolError
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.in_process import InProcessNetwork
from secure_kg.data.soundness import faults
from secure_kg.evaluation.metric_names import named_metrics
from secure_kg.federation.client.client import FederationClient
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer, Report
from secure_kg.foundation.errors import UserError
from secure_kg.learning.pooled import PooledTrainer
from secure_kg.runs import checkpoint
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.run_folder import RunFolder, read_json, write_json

_NEVER: Final = 1e9  # seconds
_SECONDS_TO_END: Final = 30.0


def run_pooled(config: RunConfig, trainer: PooledTrainer, folder: RunFolder, report: Report) -> ServerOutcome:
    """The whole run. What fails in the client's thread is raised here."""
    # The two are one process: silence is a long step and never an absence, so nobody is ever left out.
    patient = dataclasses.replace(config, deadline=_NEVER, grace=_NEVER)
    network, failures = InProcessNetwork(1), list[Exception]()

    def take_part() -> None:
        client = FederationClient(patient, network.endpoint(PartyId(1)), clients=1)
        try:
            client.greet()
            client.run(trainer, folder.pool)
        except Aborted:
            pass  # the server has failed, and says why itself
        except Exception as problem:
            failures.append(problem)
            client.say_failed("the trainer failed")  # wakes the server; the reason itself is in `failures`

    thread = threading.Thread(target=take_part, name="pool", daemon=True)
    thread.start()
    try:
        with network.endpoint(SERVER) as transport:
            outcome = FederationServer(patient, transport, folder, report).run()
    except (UserError, ProtocolError):
        if failures:
            raise failures[0] from None
        raise
    thread.join(_SECONDS_TO_END)  # it has said that its files are written
    _write_members(trainer, folder)
    return _of_members(outcome, len(trainer.pool.members))


def _write_members(trainer: PooledTrainer, folder: RunFolder) -> None:
    """For each client of the pool what it would have had in a federation: its result, and its rows of the model."""
    pool = read_json(folder.pool / "result.json")
    times = {name: pool[name] for name in ("seconds", "cpu_seconds", "peak_memory_mb")}  # they cannot be told apart
    held, pooled = sum(len(member.graph.train) for member in trainer.pool.members), trainer.graph
    sizes = {"entities": len(pooled.entities), "relations": len(pooled.relations), "train_triples": len(pooled.train)}
    repeated = {"repeated_train_triples": held - len(pooled.train)}
    elsewhere = {"test_triples_trained_elsewhere": trainer.pool.trained_elsewhere}
    write_json(folder.pool / "pool.json", sizes | repeated | elsewhere)
    tails, heads = trainer.last("test", "tail"), trainer.last("test", "head")
    for number, (member, tail, head) in enumerate(zip(trainer.pool.members, tails, heads, strict=True), start=1):
        own, graph = folder.client(number), member.graph
        rows = {name: p.detach().cpu().numpy() for name, p in trainer.view(member).named_parameters()}
        checkpoint.save_arrays(own / "model.safetensors", rows, {})
        figures = {**tail.metrics(), "both_sides": (tail + head).metrics()}
        result: dict[str, Any] = {
            "client": number,
            **figures,
            "metrics": named_metrics(figures),
            "split_faults": faults(graph).counts(),
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            "train_triples": len(graph.train),
            "valid_triples": len(graph.valid),
            "test_triples": len(graph.test),
            **dict.fromkeys(("rows_averaged", "rows_kept_local", "clipped_values", "late_messages"), 0),
            "max_fixed_point_error": 0.0,
            **times,
            **dict.fromkeys(("messages_sent", "messages_received"), 0),
        }
        write_json(own / "result.json", result)


def _of_members(outcome: ServerOutcome, members: int) -> ServerOutcome:
    """Counted in clients whose data are in the pool. They sent no message: their triples were there already."""
    none = dict.fromkeys(range(1, members + 1), 0)
    return dataclasses.replace(outcome, test_clients=members, bytes_up=none, bytes_down=none)
