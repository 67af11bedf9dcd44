"""The server's membership attacks on a recorded run: real members against held-out triples of every other client.

The view is the transcript. A client on the server's side tells its positions, its triples (the auxiliary pairs) and its
relation rows. What clients hold serves to choose targets and to score, and for nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from secure_kg.attacks.membership.experiment import Outcome
from secure_kg.attacks.membership.measures import Measures, Scores, measure
from secure_kg.attacks.membership.plausibility import Tables, has_distances, require_known_model, standing
from secure_kg.attacks.membership.server_attacks import by_clusters, by_relations
from secure_kg.attacks.membership.server_view import ServerRows, rows_in_view
from secure_kg.attacks.membership.targets import Names, Targets, real_targets
from secure_kg.attacks.result import AttackResult
from secure_kg.attacks.truth import Truth
from secure_kg.attacks.uploads import read_view
from secure_kg.audit.view.read import AuditedRun, Observation
from secure_kg.data.graph import TripleArray
from secure_kg.federation.plan.run_plan import AGREEING_ROUND
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command

MOST_TARGETS: Final = 1000
"""Real members, and held-out triples, that are asked for at most."""
_MATERIAL: Final = 0.02
"""The least difference of an AUC from that of guessing that matters."""
_LARGE: Final = 3.0902323 / 1.959964
"""How much wider an interval is that luck leaves once in 1,000 cases than one that it leaves 1 in 40 times."""


def check_run(config: RunConfig) -> None:
    """`UserError` unless the run shares entity rows of a model that the attacks know."""
    if config.trained is not config.training or config.strategy != "fede":
        how = f"{command('launch.fede')} --transcript"
        raise UserError(f"membership attacks are on entity rows of embeddings: the run must be one of FedE ({how})")
    require_known_model(config.training)


def attack_recorded(
    run: AuditedRun, truth: Mapping[int, Truth], colluder: int, every: int | None, most: int
) -> list[tuple[int, Outcome]]:
    """All attacks on every client but the colluding one, each with the client's number.

    `every`: attack after so many rounds and after the last one; None: after the last one only. `most`: targets a kind.
    """
    config = run.config
    check_run(config)
    last = read_view(config, _seen(run)).round
    if last <= AGREEING_ROUND:
        raise UserError(f"{run.path}: its transcript has no round of training")
    rounds = {last, *range(every, last, every)} if every else {last}
    view = rows_in_view(config, rounds - {AGREEING_ROUND}, _seen(run))
    outcomes: list[tuple[int, Outcome]] = []
    for client, victim in sorted(truth.items()):
        if client == colluder:
            continue
        asked = real_targets(truth[colluder].graph, victim.graph, victim.graph.train, most, config.seed)
        for round in sorted(view.rounds):
            outcomes += [(client, one) for one in _on_victim(view, truth[colluder], client, asked, round)]
        outcomes.append((client, _white_box(config, truth[colluder], victim, asked, last)))
    return outcomes


def audit_results(outcomes: Sequence[tuple[int, Outcome]]) -> list[AttackResult]:
    """The mended attacks as an audit tells them, after the last round of each."""
    last = max((one.round for _, one in outcomes), default=0)
    return [
        _result(client, one) for client, one in outcomes if one.round == last and one.variant == "mended"
    ]


def _result(client: int, one: Outcome) -> AttackResult:
    measures = one.measures
    return AttackResult(
        f"membership-{one.view.replace(' ', '-')}",
        f"Membership of triples, from {_WORDS[one.view]}",
        f"client {client}",
        "positions, triples and relation rows of the colluding client; the targets",
        {"AUC": measures.auc, "TPR at 1 %": measures.tpr},
        {"AUC": 0.5, "TPR at 1 %": 0.01},
        beats_guessing(measures),
        f"Asked which of {measures.members} triples client {client} trains on and which of {measures.others} held-out "
        f"ones it does not, the server ranks a pair of both rightly in {measures.auc:.1%} of cases.",
        {"members": measures.members, "others": measures.others},
    )


def beats_guessing(measures: Measures) -> bool:
    """By more than luck brings once in 1,000 cases, and by enough to matter."""
    below = measures.auc - _LARGE * (measures.auc - measures.low)
    return below > 0.5 and measures.auc >= 0.5 + _MATERIAL


_WORDS: Final = {
    "upload": "the client's upload",
    "masked upload": "the client's masked upload",
    "means": "the means of all clients",
}


def _on_victim(view: ServerRows, colluder: Truth, client: int, asked: Targets, round: int) -> Iterable[Outcome]:
    training, places, own = view.config.training, colluder.positions, colluder.relations
    rows, table = view.upload_of(client, round, places), view.means.get(round)
    means = None if table is None else table[places]

    def told(variant: str, name: str, scores: Sequence[Scores]) -> Outcome:
        return Outcome("A_SI", variant, name, asked.kind, round, measure(*scores))

    if rows is not None:
        name = "masked upload" if view.is_masked(round) else "upload"
        if has_distances(training):
            held = np.flatnonzero(rows.any(axis=1))
            yield told("as printed", name, [by_clusters(rows, held, one, training) for one in _parts(asked)])
        scores = [by_relations(rows, own, colluder.triples, one, training) for one in _parts(asked)]
        yield told("mended", name, scores)
    if means is not None:
        scores = [by_relations(means, own, colluder.triples, one, training) for one in _parts(asked)]
        yield told("mended", "means", scores)


def _white_box(config: RunConfig, colluder: Truth, victim: Truth, asked: Targets, round: int) -> Outcome:
    """By the victim's model at its end: what no attack on its rows can beat by much."""
    names = Names.of(victim.graph, colluder.graph)
    entities = np.zeros((len(colluder.graph.entities), victim.entities.shape[1]), dtype=np.float32)
    relations = np.zeros((len(colluder.graph.relations), victim.relations.shape[1]), dtype=np.float32)
    entities[names.entities[names.entities >= 0]] = victim.entities[names.entities >= 0]
    relations[names.relations[names.relations >= 0]] = victim.relations[names.relations >= 0]
    scores = [standing(Tables(entities, relations), one, config.training) for one in _parts(asked)]
    return Outcome("white box", "", "the victim's model", asked.kind, round, measure(*scores))


def _parts(asked: Targets) -> tuple[TripleArray, TripleArray, TripleArray]:
    return asked.members, asked.others, asked.known


def _seen(run: AuditedRun) -> Iterable[Observation]:
    return chain.from_iterable(run.recordings)
