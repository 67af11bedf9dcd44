"""A client's files in a run: its part of a checkpoint, and its result."""

from typing import Any

import numpy as np
import torch

from protocols.foundation.identifiers import RoundId
from secure_kg.evaluation.metrics import Metrics
from secure_kg.federation.client.context import ClientContext, Losses
from secure_kg.federation.client.own_count import OwnCount
from secure_kg.federation.client.result_exchange import ResultExchange
from secure_kg.federation.plan.messages import Welcome
from secure_kg.foundation.errors import UserError
from secure_kg.learning.learner import TrainStats
from secure_kg.runs import checkpoint
from secure_kg.runs.peak_memory import peak_memory_mb
from secure_kg.runs.records.checkpoints import ClientCheckpoint
from secure_kg.runs.records.client_result import ClientResult
from secure_kg.runs.run_folder import write_json
from secure_kg.runs.stopwatch import Stopwatch


def save(context: ClientContext, results: ResultExchange, count: OwnCount, round_id: RoundId) -> None:
    """Write this client's part of a checkpoint."""
    model = {f"model/{name}": value for name, value in context.learner.state().items()}
    best = {f"best/{name}": value for name, value in results.best.items()}
    times = _times(context)
    record = ClientCheckpoint(
        seconds=times.seconds,
        cpu_seconds=times.cpu_seconds,
        clipped=context.losses.clipped,
        max_error=context.losses.max_error,
        loss=(results.last.loss, results.last.triples, results.last.steps),
        judge=results.judge.record(),
        count=count.record(),
        best_round=results.best_round,
        trained=results.trained.hex(),
    )
    shared = {name: array for rows in context.shared for name, array in rows.state().items()}
    checkpoint.save_part(context.folder, round_id, _numpy(model | best) | shared, record.to_json())


def restore(context: ClientContext, results: ResultExchange, count: OwnCount, welcome: Welcome) -> None:
    """Go on from the checkpoint that the server names. A client that was a dropout then goes on from its last one."""
    part: int | None = welcome.rounds_done
    absent = context.party not in welcome.saved_by
    if absent:
        part = checkpoint.latest_before(context.folder, welcome.rounds_done)
    if part is None:
        return
    arrays, read = checkpoint.load_part(context.folder, part)
    path = checkpoint.part_path(context.folder, part)
    record = ClientCheckpoint.from_json(read, path)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    fits = context.learner.parameters_state()
    if any(f"model/{name}" not in tensors or tensors[f"model/{name}"].shape != p.shape for name, p in fits.items()):
        raise UserError(f"{path}: the checkpoint does not fit this client: its data have changed")
    context.learner.load_state(_below(tensors, "model/"))
    results.best, results.best_round = _below(tensors, "best/"), record.best_round
    context.watch = Stopwatch(record.seconds, record.cpu_seconds)
    context.losses = Losses(record.clipped, record.max_error)
    results.last = TrainStats(*record.loss)
    results.trained = bytes.fromhex(record.trained) if record.trained is not None else context.learner.digest()
    results.judge.restore(record.judge, welcome.rounds_done)
    count.restore(record.count)
    if not absent:  # one that was absent takes the whole tables anew
        for rows in context.shared:
            rows.load_state(arrays)


def write_result(context: ClientContext, count: OwnCount, metrics: Metrics) -> None:
    """Write the client's own model and result."""
    model = _numpy(context.learner.parameters_state())
    checkpoint.save_arrays(context.folder / "model.safetensors", model, {})
    write_json(context.folder / "result.json", _result(context, count, metrics).to_json())


def _result(context: ClientContext, count: OwnCount, metrics: Metrics) -> ClientResult:
    traffic, times, figures = context.conversation.transport.traffic, _times(context), metrics.figures()
    held = sum(len(rows.positions.own) for rows in context.shared)
    averaged = sum(rows.averaged_of_own for rows in context.shared)
    return ClientResult(
        client=context.party,
        figures=figures,
        metrics=metrics.described(figures),
        about=context.learner.about(),
        rows_averaged=averaged,
        rows_kept_local=held - averaged,
        refused_evaluations=count.refused,
        clipped_values=context.losses.clipped,
        max_fixed_point_error=context.losses.max_error,
        seconds=times.seconds,
        cpu_seconds=times.cpu_seconds,
        peak_memory_mb=peak_memory_mb(),
        late_messages=context.conversation.late_messages,
        messages_sent=traffic.total("sent").messages,
        messages_received=traffic.total("received").messages,
    )


def _times(context: ClientContext) -> Stopwatch:
    """Of all sessions of the run."""
    watch = context.watch.with_traffic(context.conversation.transport.traffic)
    watch.add("holders", context.holders.spent)
    return watch


def _numpy(tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray[Any, Any]]:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def _below(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
