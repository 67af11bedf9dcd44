"""Attacks on a run's view, by the server and one client on its side, scored against what the clients really hold."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.differencing import counts_by_differencing
from secure_kg.attacks.interpolation import Interpolation
from secure_kg.attacks.reconstruct import reconstruct_target
from secure_kg.attacks.result import AttackResult
from secure_kg.attacks.single_holder import OpenedRows, lone_rows, score_lone_holders
from secure_kg.attacks.truth import Truth
from secure_kg.attacks.uploads import read_view
from secure_kg.audit.checks.participation import participation_of
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import AuditedRun
from secure_kg.federation.plan.row_sum import row_contribution
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.foundation.errors import UserError


class ReadSums:
    """What the server read of sums: the number of validation triples in each evaluation, and counts of rows."""

    def __init__(self) -> None:
        self._valid: list[tuple[frozenset[int], int]] = []
        self._rows: list[OpenedRows] = []
        self._interpolation = Interpolation()

    def take(self, total: OpenedSum) -> None:
        if total.layout is None or total.vector is None:
            return
        if total.purpose == "valid":
            self._valid.append((total.contributors, int(total.layout.decode(total.vector).counts[0])))
        if total.purpose == "rows":
            opened = total.layout.decode(total.vector)
            rows = OpenedRows(total.contributors, opened.real.reshape(len(opened.counts), -1), opened.counts)
            if not total.abandoned:  # else the next round begins elsewhere
                self._interpolation.take(total.round, rows)
            if self._rows:  # of earlier rounds, which only tell whose a row is, the counts are enough
                last = self._rows[-1]
                self._rows[-1] = OpenedRows(last.contributors, np.zeros((0, 0)), last.counts)
            self._rows.append(rows)

    def attacks(
        self, clients: int, held: Mapping[int, npt.NDArray[np.int64]], valid: Mapping[int, int]
    ) -> list[AttackResult]:
        """`held`: the positions each client holds; `valid`: how many validation triples it has."""
        results = []
        if self._rows:
            results.append(score_lone_holders(lone_rows(self._rows), held))
        if len({members for members, _ in self._valid}) > 1:  # else there is nothing to subtract
            participation = participation_of([members for members, _ in self._valid], clients)
            totals = np.array([[count] for _, count in self._valid], dtype=np.int64)
            truth = {client - 1: np.array([count], dtype=np.int64) for client, count in valid.items()}
            results.append(counts_by_differencing(participation, totals, truth))
        if (interpolated := self._interpolation.result()) is not None:
            results.append(interpolated)
        return results


def attack_run(
    run: AuditedRun,
    truth: Mapping[int, Truth],
    colluder: int,
    leaks: Sequence[float],
    sums: ReadSums,
    progress: Callable[[str], None] = lambda _: None,
) -> list[AttackResult]:
    """Everything that can be tried on this run, against every client but the one that colludes."""
    view = read_view(run.config, chain.from_iterable(run.recordings))
    results: list[AttackResult] = []
    for client, target in sorted(truth.items()):
        if client != colluder:
            progress(f"attacks on client {client}")
            results += reconstruct_target(view, truth[colluder], target, run.config.seed, leaks)
    held = {client: one.positions for client, one in truth.items()}
    valid = {client: len(one.graph.valid) for client, one in truth.items()}
    return [*results, *sums.attacks(run.clients, held, valid)]


def clear_upload(run: AuditedRun, truth: Truth, entries: int) -> npt.NDArray[np.unsignedinteger]:
    """The first entries of what this client would have sent in clear: its rows at their positions, in fixed point."""
    rows = truth.entities if truth.shared == "entity" else truth.relations
    plan = RunPlan(run.config, run.clients)
    if plan.aligned_block is None:
        raise UserError("nothing was shared in this run")
    layout = plan.row_layout(plan.aligned_block, truth.union_size)
    return layout.encode(row_contribution(rows, truth.positions, truth.union_size)).vector[:entries]
