"""Pooled training as a job of one process. Imported by `launch.entire` once its options are read: it brings torch."""

from launch.hosts.job import DEFAULT_RANKS, Plan, for_clients, new_run_path
from launch.telling import told_by, told_to
from protocols.foundation.errors import ProtocolError
from secure_kg.data.client_data import load_graphs
from secure_kg.data.pooling import pool
from secure_kg.federation.plan.strategies import learner_of
from secure_kg.federation.pooled import run_pooled
from secure_kg.federation.server.serve import run_in_folder
from secure_kg.foundation.errors import InternalError, UserError
from secure_kg.learning.device import pick_device
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.run_folder import RunFolder


def run_job(plan: Plan, clients: int | None) -> int:
    """Load, train, write, show. `clients`: how many clients' data, or None for what there is."""
    if clients is not None:
        plan = for_clients(plan, clients)
    graphs = load_graphs(plan.config, plan.config.clients, DEFAULT_RANKS - 1)
    plan = for_clients(plan, len(graphs))
    config, device, say = plan.config, pick_device(0, plan.config.device), told_to(plan.json)
    everything = pool(graphs)
    if everything.trained_elsewhere and len(graphs) > 1:
        say(f"{everything.trained_elsewhere} of the clients' test triples stand in the pooled train part")
    trainer = learner_of(config).make_pooled(config, everything, device)

    def work(folder: RunFolder) -> ServerOutcome:
        try:
            return run_pooled(config, trainer, folder, say)
        except (UserError, ProtocolError, InternalError):
            raise
        except Exception as problem:
            raise InternalError.recorded(problem, folder.pool / "error.log") from problem

    out = plan.out if plan.out is not None else new_run_path(config)
    try:
        summary = run_in_folder(config, out, resume=plan.resume, work=work)
    except (ProtocolError, InternalError) as problem:
        raise UserError(str(problem)) from None
    told_by(plan.json)(summary, out)
    return 0
