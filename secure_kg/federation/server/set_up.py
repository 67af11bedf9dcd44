"""Checks before a run begins, what its server says of it, and its outcome."""

from typing import Any

from protocols.foundation.errors import EncodingOverflow
from protocols.foundation.identifiers import RoundId
from protocols.sums.interface import Collected, SumLayout
from secure_kg.evaluation.metrics import Metrics
from secure_kg.federation.plan.early_stopping import EarlyStopping
from secure_kg.federation.plan.run_plan import AGREEING_ROUND, RunPlan
from secure_kg.federation.plan.twins import Result
from secure_kg.federation.server.shared_table import ReadableTable, SealedTable, SharedTable
from secure_kg.foundation.errors import UserError
from secure_kg.runs.outcome import ServerOutcome


def check_feasible(plan: RunPlan) -> None:
    """Refuse at once what could only fail later."""
    config, clients = plan.settings, len(plan.clients)
    drawn = len(plan.participants(AGREEING_ROUND))
    if config.min_participants > clients:
        raise UserError(f"--min-participants {config.min_participants}: there are only {clients} clients")
    if plan.aligned_block is not None and config.least_holders > drawn:
        raise UserError(config.too_few_drawn(drawn))
    try:
        SumLayout(1, 1, config.clip, 1, clients, config.ring_bits)
        for block in plan.blocks:
            plan.row_layout(block, 1)
    except EncodingOverflow as problem:
        raise UserError(f"--clip {config.clip:g}: {problem}") from None
    if plan.needs_keys:
        plan.parameters(clients)
    if plan.masks_sums:
        plan.parameters(drawn)


def setting(plan: RunPlan, table: SharedTable | None) -> str:
    """One line on what is run."""
    config, strategy = plan.settings, plan.strategy
    if strategy.pools and config.clients == 1:
        return f"{strategy.title}: one graph, nothing to pool"
    if strategy.pools:
        return f"{strategy.title}: the triples of {config.clients} clients in one place, without any privacy"
    rows = f"{table.union.size} shared {table.block.name} rows" if table is not None else "nothing shared"
    aligned = f", alignment {config.alignment}" if table is not None else ""
    return f"{strategy.title}: {len(plan.clients)} clients, {rows}{aligned}, aggregation {config.aggregation}"


def outcome(
    done: RoundId,
    stopping: EarlyStopping,
    metrics: type[Metrics],
    result: Result | None,
    table: SharedTable | None,
    **costs: Any,
) -> ServerOutcome:
    """What the server knows at the end. `result`: the sum of test results; `costs`: those of the ledger, and more."""
    test = metrics.of(result.total) if isinstance(result, Collected) else None
    return ServerOutcome(
        rounds=done,
        best_round=stopping.best_round,
        valid_mrr=stopping.best_mrr if test is not None else None,
        test=test,
        test_clients=len(result.contributors) if result is not None else 0,
        union_size=table.union.size if table is not None else 0,
        rows_kept_local=_rows_kept_local(table),
        **costs,
    )


def _rows_kept_local(table: SharedTable | None) -> int | None:
    """How many rows of the union were averaged in no round; None if the server cannot tell."""
    match table:
        case SealedTable():
            return None
        case ReadableTable():
            return table.never_averaged
    return 0
