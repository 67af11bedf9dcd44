"""Pooled training as a job of one process. Imported by `launch.entire` once its options are read: it brings torch."""

import traceback
from pathlib import Path

from launch.options import DEFAULT_RANKS, Plan, for_clients, new_run_path
from launch.results import show_results
from launch.trainer import load_graph
from protocols.foundation.errors import ProtocolError
from secure_kg.data.folders import client_folder
from secure_kg.data.graph import ClientGraph
from secure_kg.data.pooling import pool
from secure_kg.data.sources import FederatedSource, load_source
from secure_kg.data.triples import part_file
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.pooled import run_pooled
from secure_kg.foundation.console import say
from secure_kg.foundation.errors import UserError
from secure_kg.learning.device import pick_device
from secure_kg.learning.pooled import PooledTrainer
from secure_kg.report.page import run_report
from secure_kg.runs.run_folder import RunFolder, locked
from secure_kg.runs.summary import summarise


def run_job(plan: Plan, clients: int | None) -> int:
    """Load, train, write, show. `clients`: how many clients' data, or None for what there is."""
    if clients is not None:
        plan = for_clients(plan, clients)
    graphs = load_graphs(plan.config, plan.config.clients)
    plan = for_clients(plan, len(graphs))
    config, device = plan.config, pick_device(0, plan.config.device)
    everything = pool(graphs)
    if everything.trained_elsewhere and len(graphs) > 1:
        say(f"{everything.trained_elsewhere} of the clients' test triples stand in the pooled train part")
    trainer = PooledTrainer(everything, config.training, device, config.seed)
    out = plan.out if plan.out is not None else new_run_path(config)
    if not plan.resume:
        RunFolder.make(out)
    with locked(out):
        folder = RunFolder.reopen(out, config) if plan.resume else RunFolder.create(out, config)
        try:
            outcome = run_pooled(config, trainer, folder, say)
        except (UserError, ProtocolError) as problem:
            folder.discard_if_unused()
            raise UserError(str(problem)) from None
        except Exception as problem:  # a fault of ours: the user gets one line, we get the trace
            log = folder.pool / "error.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("".join(traceback.format_exception(problem)), encoding="utf-8")
            raise UserError(f"internal error ({type(problem).__name__}); the details are in {log}") from None
        summary = summarise(config, outcome, folder)
        folder.write_report(run_report(summary, folder.all_metrics(), folder.settings()))
        folder.write_summary(summary)
    show_results(summary, out)
    return 0


def load_graphs(config: RunConfig, clients: int | None) -> list[ClientGraph]:
    """What clients 1, 2, ... of a federation would read or derive, each in its own way; None: of all there are."""
    known = _number_of_clients(config)
    if config.client_data is not None and known == 1 and clients not in (None, 1):
        raise UserError(f"--client-data {config.client_data}: holds the data of one client, not of {clients}")
    number = clients if clients is not None else known
    return [load_graph(config, number, client) for client in range(1, number + 1)]


def _number_of_clients(config: RunConfig) -> int:
    if config.client_data is not None:
        root, found = Path(config.client_data), 1
        if root.is_dir() and part_file(root, "train") is None:
            while client_folder(root, found + 1).is_dir():
                found += 1
        return found
    if Path(config.dataset).suffix.lower() == ".npz":
        source = load_source(config.dataset)
        return len(source.clients) if isinstance(source, FederatedSource) else 1
    return 1 if str(config.by) == "whole" else DEFAULT_RANKS - 1  # whole: one graph, nothing to pool
