"""Membership attacks on a federation that is staged for them: who gets how much, round by round.

Every attack of DP-FLames (section 3) as printed and mended, on three kinds of targets, between two bounds: the attacker
alone (its own model, trained on its own triples without the federation) below, and the white box (the victim's own rows
of entities and relations) above. Attacks get a view and named knowledge; targets' truth enters only the measures.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch

from secure_kg.attacks.membership import client_attacks, server_attacks
from secure_kg.attacks.membership.bounds import Bounds, bounds_of
from secure_kg.attacks.membership.measures import Measures, Scores, measure
from secure_kg.attacks.membership.plausibility import Tables, has_distances, require_known_model, standing
from secure_kg.attacks.membership.staged import ATTACKER, BYSTANDER, VICTIM, stage
from secure_kg.attacks.membership.targets import (
    KINDS,
    Targets,
    corrupted_targets,
    plant_canaries,
    real_targets,
)
from secure_kg.attacks.membership.views import Views
from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.federation.plan.run_plan import AGREEING_ROUND
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.progress import tracked
from secure_kg.foundation.seeds import generator
from secure_kg.learning.kge import KgeLearner

ATTRIBUTION: Final = "attribution"
"""Members of the victim against members of the bystander, all over names that all three hold: whose is a triple?"""
FEW_HOLDERS: Final = "attribution, few holders"
"""The same where the bystander lacks an end of the victim's triple."""
_ALONE: Final = 20
"""Rounds of the attacker alone, beside a private federation."""
Attack = Callable[[TripleArray], Scores]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How an experiment goes, beside the settings of its federation."""

    rounds: int = 20
    """Of honest training; rounds of A_CIA come after these."""
    every: int = 5
    """Attack after every so many rounds, and after the last."""
    canaries: int = 500
    """About so many are planted, and so many are not."""
    targets: int = 1000
    """At most so many real members, and so many held-out triples."""
    groups: int = 4
    """A_CIA takes a group of the targets at a time, and two rounds for each."""
    active: tuple[str, ...] = ("canaries",)
    """Kinds of targets that A_CIA is tried on."""

    def __post_init__(self) -> None:
        for name, least in (("rounds", 2), ("every", 1), ("canaries", 10), ("targets", 10), ("groups", 1)):
            if getattr(self, name) < least:
                raise UserError(f"--{name} must be at least {least}")
        if not set(self.active) <= set(KINDS):
            raise UserError(f"--active: targets are {', '.join(KINDS)}")

    @property
    def attacked(self) -> tuple[int, ...]:
        """The rounds after which passive attacks are tried. In the first one nothing is trained."""
        return tuple(sorted({self.rounds, *range(self.every, self.rounds + 1, self.every)} - {AGREEING_ROUND}))

    @property
    def all_rounds(self) -> int:
        return self.rounds + 2 * self.groups * len(self.active)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One attack on one kind of targets after one round."""

    attack: str
    """`A_SI`, `A_CIP`, `A_CIA`, `white box` or `attacker alone`."""
    variant: str
    """`as printed`, `mended`; empty for the bounds."""
    view: str
    """What the attacker looks at."""
    kind: str
    round: int
    measures: Measures


@dataclass(frozen=True, slots=True)
class Findings:
    """What an experiment has shown."""

    outcomes: tuple[Outcome, ...]
    holders_told: float | None
    """The share of its shared rows of which the attacker tells the number of holders rightly; None: it is no secret."""
    bounds: Bounds | None = None
    """What differential privacy promises; None: nothing does."""


def run_experiment(
    config: RunConfig,
    graphs: Sequence[ClientGraph],
    plan: Plan,
    path: Path,
    report: Callable[[str], None] = lambda line: None,
) -> Findings:
    """`config`: of the federation; its rounds must be `plan.all_rounds`. `graphs`: of clients 1, 2, ...: the first
    attacks the second. `path`: a new folder for the federation's files."""
    require_known_model(config.training)
    if len(graphs) < 2:
        raise UserError("--clients must be at least 2: one attacks another")
    if config.rounds != plan.all_rounds or config.strategy != "fede":
        raise ValueError("the federation must share entities, for as many rounds as the plan has")
    planted, canaries = plant_canaries(graphs, plan.canaries, config.seed)
    attacker, victim = graphs[ATTACKER - 1], graphs[VICTIM - 1]
    real = real_targets(attacker, victim, planted[VICTIM - 1].train, plan.targets, config.seed)
    targets = {"canaries": canaries, "real": real}
    targets["corrupted"] = corrupted_targets(attacker, victim, real, config.seed)
    groups = _groups(plan, targets, config.seed)
    rounds = {AGREEING_ROUND, *plan.attacked, *(round + later for round, _, _ in groups for later in (0, 1))}
    reversals = {round: np.unique(asked[:, 2]) for round, _, asked in groups}
    report(f"federation of {len(graphs)} clients, {plan.all_rounds} rounds")
    staged = stage(config, planted, frozenset(rounds), reversals, path, report)
    report("the attacker alone")
    alone = _alone(config, attacker, plan.attacked)
    views = Views(config, graphs, staged)
    outcomes = [one for round in plan.attacked for one in _passive(views, alone[round], targets, round)]
    outcomes += [one for round in plan.attacked for one in _attribution(views, canaries, round)]
    outcomes += _active(views, groups, targets)
    return Findings(tuple(outcomes), views.holders_told(), bounds_of(config, len(graphs)))


def _passive(views: Views, alone: Tables, targets: dict[str, Targets], round: int) -> Iterator[Outcome]:
    for attack, variant, view, score in _attacks(views, alone, round):
        for kind, asked in targets.items():
            measured = measure(score(asked.members), score(asked.others), score(asked.known))
            yield Outcome(attack, variant, view, kind, round, measured)


def _attacks(views: Views, alone: Tables, round: int) -> Iterator[tuple[str, str, str, Attack]]:
    training, own = views.training, views.own(round)
    yield "attacker alone", "", "its own triples", lambda asked: standing(alone, asked, training)
    means, others = views.means(round), views.others(round)
    yield (
        "A_CIP",
        "as printed",
        "means",
        lambda asked: client_attacks.passive_as_printed(own, means, views.clients, asked, training),
    )
    yield "A_CIP", "mended", "means", lambda asked: client_attacks.passive(own, others, asked, training)
    if (rows := views.upload(VICTIM, round)) is not None:
        view = "masked upload" if views.staged.server.is_masked(round) else "upload"
        if has_distances(training):
            held = np.flatnonzero(rows.any(axis=1))
            yield "A_SI", "as printed", view, lambda asked: server_attacks.by_clusters(rows, held, asked, training)
        yield "A_SI", "mended", view, lambda asked: views.by_server(rows, asked, round)
    if (table := views.server_means(round)) is not None:
        yield "A_SI", "mended", "means", lambda asked: views.by_server(table, asked, round)
    white = views.white_box(round)
    yield "white box", "", "the victim's model", lambda asked: standing(white, asked, training)


def _attribution(views: Views, canaries: Targets, round: int) -> Iterator[Outcome]:
    """Canaries of the bystander are over names that all hold. So are those of the victim, in the first kind; in the
    second they have an end that the bystander does not hold, so that a mean leaves out whoever it is not of."""
    if not len(canaries.elsewhere):
        return
    both = views.at_bystander(canaries.members)
    for kind, mine in ((ATTRIBUTION, canaries.members[both]), (FEW_HOLDERS, canaries.members[~both])):
        if len(mine):
            yield from _attributed(views, kind, mine, canaries.elsewhere, round)


def _attributed(views: Views, kind: str, mine: TripleArray, theirs: TripleArray, round: int) -> Iterator[Outcome]:
    def told(attack: str, view: str, score: Attack) -> Outcome:
        return Outcome(attack, "mended", view, kind, round, measure(score(mine), score(theirs)))

    first, second = (views.upload(client, round) for client in (VICTIM, BYSTANDER))
    if first is not None and second is not None:
        view = "masked uploads" if views.staged.server.is_masked(round) else "uploads"
        yield told(
            "A_SI", view, lambda asked: views.by_upload(first, asked, round) - views.by_upload(second, asked, round)
        )
    if (table := views.server_means(round)) is not None:
        yield told("A_SI", "means", lambda asked: views.by_server(table, asked, round))
    own, others = views.own(round), views.others(round)
    yield told("A_CIP", "means", lambda asked: client_attacks.passive(own, others, asked, views.training))


Group = tuple[int, str, TripleArray]
"""The round in which rows are reversed, the kind of targets, and the triples [n, 3]."""


def _groups(plan: Plan, targets: dict[str, Targets], seed: int) -> list[Group]:
    """For each kind its members, others and known non-members together, divided at random."""
    groups: list[Group] = []
    for kind in plan.active:
        one = targets[kind]
        asked = np.concatenate((one.members, one.others, one.known))
        order = generator(seed, "groups of A_CIA", kind).permutation(len(asked))
        for part in np.array_split(order, plan.groups):
            groups.append((plan.rounds + 1 + 2 * len(groups), kind, asked[part]))
    return groups


def _active(views: Views, groups: Sequence[Group], targets: dict[str, Targets]) -> Iterator[Outcome]:
    found: dict[tuple[str, str], dict[bytes, float]] = {}
    last = {kind: round + 1 for round, kind, _ in groups}
    for round, kind, asked in groups:
        sent, means, others = views.own(round), views.means(round + 1), views.others(round + 1)
        scores = {
            "as printed": client_attacks.active_as_printed(sent, means, asked, views.training),
            "mended": client_attacks.active(sent, others, asked, views.training),
        }
        for variant, values in scores.items():
            pairs = zip((row.tobytes() for row in asked), values.tolist(), strict=True)
            found.setdefault((kind, variant), {}).update(pairs)
    for (kind, variant), by_triple in found.items():
        parts = (targets[kind].members, targets[kind].others, targets[kind].known)
        score = [np.array([by_triple[row.tobytes()] for row in part], dtype=np.float64) for part in parts]
        yield Outcome("A_CIA", variant, "means", kind, last[kind], measure(*score))


def _alone(config: RunConfig, graph: ClientGraph, rounds: Sequence[int]) -> dict[int, Tables]:
    """The attacker's own model after as much training, by round, without the federation.

    A private federation takes one step in a round, and many rounds: there, training in clear ends earlier.
    """
    learner = KgeLearner(graph, config.training, torch.device("cpu"), config.seed, ATTACKER)
    tables: dict[int, Tables] = {}
    for round in tracked(range(AGREEING_ROUND + 1, max(rounds) + 1), "the attacker alone, rounds"):
        if config.privacy is None or round <= _ALONE:
            learner.train(round)
        if round in rounds:
            tables[round] = Tables(learner.export_block("entity"), learner.export_block("relation"))
    return tables


