"""Whole batches of queries as conversations over threads, for every backend alike, and what they must come to."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from protocols.foundation.errors import Aborted, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.registry import SCORES
from protocols.scores import batches
from protocols.scores.budget import Budget
from protocols.scores.interface import Answer, Scores, no_scores
from protocols.scores.plain import in_clear
from protocols.scores.ranking import Ranking, rank
from protocols.scores.terms import ScoreTerms
from protocols.session.conversation import MAX_REASON, Conversation, Failed
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.params import ThreatModel
from tests.support.group_keys import Kind
from tests.support.in_threads import PATIENCE, at_once, converse
from tests.support.sum_conversations import Stopped, credentials, everyone

TRUSTING = {
    "semi-honest": Kind(ThreatModel(0.0, 0.0), lambda me: None),
    "signed": Kind(ThreatModel(0.0, 0.0, "active"), credentials),
}
"""Of three clients two are left to score: nobody may be corrupt or drop out."""
BEARING = {
    "semi-honest": Kind(ThreatModel(0.0, 0.25), lambda me: None),
    "signed": Kind(ThreatModel(0.0, 0.25, "active"), credentials),
}
"""Of four scorers one may drop out."""


def terms_of(clients: int, positions: int, **more: Any) -> ScoreTerms:
    """Client 1 asks, unless `more` says otherwise."""
    given: dict[str, Any] = {"round": RoundId(1), "asker": PartyId(1), "table": b"table"} | more
    return ScoreTerms(clients=tuple(everyone(clients)), positions=positions, **given)


def some_scores(terms: ScoreTerms, seed: int = 0, share: float = 0.6) -> dict[PartyId, Scores]:
    """Random holdings and scores of all clients."""
    rng = np.random.default_rng(seed)
    made = {}
    for party in terms.clients:
        held = np.flatnonzero(rng.random(terms.positions) < share)
        values = rng.normal(0, 4, (terms.queries, len(held))).astype(np.float32)
        made[party] = Scores(held, np.clip(values, -terms.bound, terms.bound))
    return made


def expected(scores: Mapping[PartyId, Scores], terms: ScoreTerms) -> Ranking:
    """In clear, in one place."""
    return rank(in_clear(dict(scores), terms), frozenset(), terms)


@dataclass
class Batch:
    """What came of a run of batches."""

    answers: list[Answer] = field(default_factory=list)
    contributors: list[frozenset[PartyId]] = field(default_factory=list)
    dropouts: list[tuple[frozenset[PartyId], str]] = field(default_factory=list)
    problems: dict[PartyId, Exception] = field(default_factory=dict)
    """What each party that could not go on has raised."""

    def raised(self, party: PartyId) -> type[Exception] | None:
        return type(self.problems[party]) if party in self.problems else None


Batches: TypeAlias = Sequence[tuple[ScoreTerms, Mapping[PartyId, Scores]]]
Wrap: TypeAlias = Callable[[Conversation], Conversation]


def run_batches(
    backend: str,
    batches_: Batches,
    kind: Kind = TRUSTING["semi-honest"],
    patience: Patience | None = None,
    wrap: Mapping[PartyId, Wrap] | None = None,
    budgets: Mapping[PartyId, Budget] | None = None,
) -> Batch:
    """One session in which batches follow each other. Whatever is raised, raises.

    `wrap`: how a party's end is bent; `budgets`: of opened means.
    """
    result = hold_batches(backend, batches_, kind, patience, wrap, budgets)
    if result.problems:
        raise ExceptionGroup("parties failed", list(result.problems.values()))
    return result


def hold_batches(
    backend: str,
    batches_: Batches,
    kind: Kind = TRUSTING["semi-honest"],
    patience: Patience | None = None,
    wrap: Mapping[PartyId, Wrap] | None = None,
    budgets: Mapping[PartyId, Budget] | None = None,
    believes: Mapping[PartyId, Callable[[ScoreTerms], ScoreTerms]] | None = None,
) -> Batch:
    """The same, whatever becomes of it. As in a job, a client that cannot go on says so, and the server ends it all.

    `believes`: the terms of parties whose configuration is another one.
    """
    parties = tuple(sorted({party for terms, _ in batches_ for party in (*terms.clients, terms.asker)}))
    bundle, result, wraps = SCORES[backend], Batch(), wrap or {}

    def client_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        keys = ClientKeys.agree(at_once(conversation), kind.client(parties, me)) if bundle.needs_keys else None
        bent = wraps[me](conversation) if me in wraps else conversation
        client = bundle.client(keys, (budgets or {}).get(me))
        try:
            for public, scores in batches_:
                terms = believes[me](public) if believes and me in believes else public
                mine = scores.get(me, no_scores(terms))
                if terms.asker == me:
                    result.answers.append(batches.ask(client, at_once(bent), terms, b"queries", mine))
                elif me in terms.clients:
                    batches.score(client, at_once(bent), terms, lambda queries, mine=mine: mine)
        except Stopped:
            return
        except Exception as problem:
            result.problems[me] = problem
            if not isinstance(problem, SumAbandoned | Aborted):
                conversation.send(SERVER, Failed(str(problem)[:MAX_REASON]), RoundId(0))

    def server_part(conversation: Conversation) -> None:
        def note(who: Collection[PartyId], step: str) -> None:
            result.dropouts.append((frozenset(who), step))

        session = ServerSession(conversation, set(parties), patience or Patience.fixed(PATIENCE), note)
        keys = ServerKeys.agree(session, kind.server(parties)) if bundle.needs_keys else None
        bent = wraps[SERVER](conversation) if SERVER in wraps else conversation
        server = bundle.server(keys)
        try:
            for terms, _ in batches_:
                served = batches.serve(server, replace(session, conversation=bent), terms)
                result.contributors.append(served.contributors)
        except Exception as problem:
            result.problems[SERVER] = problem
            if not isinstance(problem, SumAbandoned):
                conversation.abort(parties, str(problem), RoundId(0))

    converse({SERVER: server_part, **dict.fromkeys(parties, client_part)})
    return result


def same_ranking(one: Ranking, other: Ranking) -> bool:
    return len(one.positions) == len(other.positions) and all(
        np.array_equal(a, b) for a, b in zip(one.positions, other.positions, strict=True)
    )
