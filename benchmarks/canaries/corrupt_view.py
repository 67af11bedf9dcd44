"""What the server and one corrupt client make of a private federation: evidence for each canary of an honest client.

They see the mean of every round, and take off what they know: the contributions of all clients but for the canaries,
and the corrupt client's own share of the noise. What is left is the noised sum of the victim's canaries, with shares of
honest clients alone. That is what the statement of a run promises epsilon for. Under FedE they see the victim's
relation rows after every round as well, as the statement has it: whoever sees models, also after every round.

Evidence is as of training in one place (`watching`): ⟨y, g⟩ − |g|² / 2 over the canary's own rows, summed over rounds.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import torch
from torch import Tensor

from benchmarks.canaries.audited import AuditedPath, Observed
from benchmarks.canaries.bounds import auc_bound
from benchmarks.canaries.cases import COUNTS, FEDERATED, SessionCase
from benchmarks.canaries.planting import Planted
from benchmarks.canaries.sessions import BYSTANDER, CLIENTS, CORRUPT, VICTIM, Session, run_session
from benchmarks.canaries.trainings import Plan
from secure_kg.federation.plan.count_plan import bucket
from secure_kg.federation.plan.private_plan import PrivatePlan
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.config import TrainingConfig
from secure_kg.privacy.accounting.releases import Release, Releases
from secure_kg.privacy.run_config import PrivacyConfig

Observe: TypeAlias = Callable[[SessionCase, int], Observed]
_TIMES: Final = 2
"""More canaries than elsewhere: a session costs the same, and shares that are too small are the finest fault of all."""
_WIDTH: Final = 16
"""Buckets for relations, of the table of counts."""
_NOTHING: Final = 1e-4
"""More than means in single precision are off by, and far less than noise is wide."""


def federated(plan: Plan) -> AuditedPath:
    """Clipped sums of gradients in shares of noise."""
    plan = replace(plan, canaries=_TIMES * plan.canaries)

    def observe(case: SessionCase, run: int) -> Observed:
        config, planted = _config(plan, case.strategy, run), plan.planted(run)
        session = run_session(config, planted, case)
        return _trained(_private(config), session, planted)

    config = _config(plan, "all-rows", 0)
    return _path("federated", plan, config, FEDERATED, observe)


def counts(plan: Plan) -> AuditedPath:
    """One table of counts, in shares of noise."""

    def observe(case: SessionCase, run: int) -> Observed:
        config, planted = _counting(plan, run), plan.planted(run)
        return _counted(run_session(config, planted, case), planted)

    return _path("counts", plan, _counting(plan, 0), COUNTS, observe)


def _path(name: str, plan: Plan, config: RunConfig, cases: tuple[SessionCase, ...], observe: Observe) -> AuditedPath:
    releases = promised(config)
    settings = plan.settings | {"clients": CLIENTS, "corrupt": 1, "sums": config.aggregation, "steps": releases[0][1]}
    return AuditedPath(name, releases, auc_bound(releases), cases, observe, settings)


def promised(config: RunConfig) -> Releases:
    """What the run's statement says of itself."""
    statement = _private(config).statement(single_read=False)
    return [(Release(statement.noise, statement.sampling), statement.steps)]


def _private(config: RunConfig) -> PrivatePlan:
    private = RunPlan(config, CLIENTS).private
    if private is None:
        raise ValueError("a run with --dp")
    return private


def _config(plan: Plan, strategy: str, run: int) -> RunConfig:
    config = plan.config
    privacy = PrivacyConfig(
        epsilon=plan.budget.epsilon,
        delta=plan.budget.delta,
        dp_clip=config.clip,
        dp_step=config.step,
        dp_last_step=config.last_step,
    )
    return RunConfig(
        strategy=strategy,
        aggregation="secagg",
        alignment="plain",  # names are public here
        clients=CLIENTS,
        rounds=config.steps + 1,  # nothing is trained in the first one
        checkpoint_every=config.steps + 1,
        max_corrupt=1 / CLIENTS,
        max_dropout=0.0,
        ring_bits=64,
        transcript=False,
        seed=plan.seed + run,
        training=TrainingConfig(model=config.model, dim=config.dim, negatives=config.negatives),
        privacy=privacy,
    )


def _counting(plan: Plan, run: int) -> RunConfig:
    usual, budget = _config(plan, "fede", run), plan.budget
    privacy = PrivacyConfig(dp="counts", epsilon=budget.epsilon, delta=budget.delta, dp_count_width=_WIDTH)
    return replace(usual, rounds=1, checkpoint_every=1, privacy=privacy)


def _trained(private: PrivatePlan, session: Session, planted: Planted) -> Observed:
    evidence = torch.zeros(len(planted.canaries), dtype=torch.float64)
    residuals = []
    for round in range(private.first_round, private.rounds + 1):
        entity, relation, noise = _seen(private, session, round)
        evidence += _told(session, planted, round, (entity, relation))
        # A relation row that stays as it was, to the last bit, has neither a gradient nor noise.
        evidence[(relation[planted.canaries[:, 1]] == 0).all(1)] = -torch.inf
        residuals.append(noise)
    return Observed(evidence.numpy(), planted.inside, residuals)


def _seen(private: PrivatePlan, session: Session, round: int) -> tuple[Tensor, Tensor, Tensor]:
    """The victim's noised sums of both tables in one round, and, for the auditor, the noise of honest clients."""
    before, after = (_at(session, CORRUPT, number) for number in (round, round + 1))
    step, clients = private.step_at(round), private.clients
    shared = [place for place, name in enumerate(("entity", "relation")) if private.is_shared(name)]
    base, mean = (np.concatenate([tables[place] for place in shared]).astype(np.float64) for tables in (before, after))
    given = {number: kept.contributed[round] for number, kept in session.kept.items()}
    left = clients * mean - given[BYSTANDER] - given[CORRUPT] - session.noise[round]
    sums = torch.from_numpy((base - left) / (step * clients))
    if len(shared) == 2:
        entity, relation = sums[: len(before[0])], sums[len(before[0]) :]
    else:
        entity = sums
        own, moved = (torch.from_numpy(_at(session, VICTIM, number)[1]).double() for number in (round, round + 1))
        relation = (own - moved) / step
    return entity, relation, torch.from_numpy(left - given[VICTIM]).reshape(-1)


def _at(session: Session, client: int, round: int) -> tuple[Rows, Rows]:
    """Both tables as a round begins, or as the run has ended."""
    return session.kept[client].before.get(round, session.last[client])


def _told(session: Session, planted: Planted, round: int, seen: tuple[Tensor, Tensor]) -> Tensor:
    """The evidence of one round. Rows of the victim's candidates are left aside: all its triples touch them."""
    *added, candidates = session.kept[VICTIM].would_add[round]
    aside = torch.zeros(len(added[0]), dtype=torch.bool)
    aside[candidates] = True
    head, kind, tail = torch.from_numpy(planted.canaries).t()
    told = torch.zeros(len(head), dtype=torch.float64)
    for table, ids in ((0, head), (0, tail), (1, kind)):
        y, g = seen[table][ids], added[table][ids]
        row = (y * g).sum(1) - g.square().sum(1) / 2
        told += row.masked_fill(aside[ids], 0.0) if table == 0 else row
    return told


def _counted(session: Session, planted: Planted) -> Observed:
    """A canary adds one to the cell of its tail and its relation, which is no other triple's."""
    given = {number: kept.contributed[1] for number, kept in session.kept.items()}
    mean = session.last[CORRUPT][0].astype(np.float64)
    left = CLIENTS * mean - given[BYSTANDER] - given[CORRUPT] - session.noise[1]
    columns = [bucket(planted.graph.relations[kind], _WIDTH) for kind in planted.canaries[:, 1]]
    evidence = left[planted.canaries[:, 2], columns]
    evidence[np.abs(evidence) < _NOTHING] = -np.inf  # a cell that nobody has counted in, nor noised
    return Observed(evidence, planted.inside, [torch.from_numpy(left - given[VICTIM]).reshape(-1)])
