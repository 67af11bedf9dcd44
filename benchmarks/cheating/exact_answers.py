"""A server that cheats in exact answers: the same question again, over all clients but one."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.score_stage import (
    ASKER,
    CLIENTS,
    POSITIONS,
    SEMI_HONEST,
    VICTIM,
    Asked,
    ScoreStage,
)
from protocols.exact.circuit import Sets, in_clear
from protocols.exact.client import ExactClient
from protocols.exact.formula import ATOM, BOTH, Formula
from protocols.exact.server import ExactServer
from protocols.exact.terms import exact_terms
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.lookup_registry import EXACT
from protocols.scores.batches import ATTEMPTS
from protocols.scores.interface import Answer, ScoreClient, ScoreQueries, Scores, ScoringReport
from protocols.scores.ranking import Ranking
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.dealing import Seed
from protocols.scores.topk.messages import SelectionRelay
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys

SECOND: Final = 1
"""The answer that is attacked."""
_FORMULA: Final = Formula((ATOM, ATOM, BOTH))
_RARE: Final = 1.0
"""Scores above it stand for stored answers of an atom."""


def _terms_of(number: int) -> ScoreTerms:
    return exact_terms(RoundId(1 + ATTEMPTS * number), CLIENTS, ASKER, POSITIONS, _FORMULA.atoms, b"union")


class ExactScores(ScoreClient):
    """Exact answers as a stage takes them: a client's sets are made of its scores."""

    def __init__(self, keys: ClientKeys) -> None:
        self._client = ExactClient(keys.vectors)

    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        found = self._client.ask(session, terms, _FORMULA, queries, _sets(own))
        return Answer(Ranking((found,), frozenset(map(int, terms.scorers))), ScoringReport())

    def score(self, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
        self._client.give(session, terms, lambda atoms: _sets(scoring(atoms)))
        return ScoringReport()


def _sets(scores: Scores) -> Sets:
    found = np.zeros((_FORMULA.atoms, POSITIONS), dtype=np.bool_)
    found[:, scores.held] = scores.values > _RARE
    return found


class WithoutClient(Cheat):
    """From the second answer on nothing of the victim reaches the others."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if not isinstance(message, SelectionRelay) or self.round < _terms_of(SECOND).round:
            return (message,)
        kept = {
            name: {party: one for party, one in getattr(message, name).items() if party != VICTIM}
            for name in ("to_all", "to_one")
        }
        return (structs.replace(message, **kept),)


class DealingToTheOthers(ExactServer):
    """From the second answer on its randomness fits without the victim's share, so that the others' shares do."""

    def _deal_seeds(self, session: ServerSession, terms: ScoreTerms) -> dict[PartyId, Seed]:
        drawn = super()._deal_seeds(session, terms)
        return {
            party: seed for party, seed in drawn.items() if terms.round < _terms_of(SECOND).round or party != VICTIM
        }


def without_client(path: Path) -> Played:
    """Judged by whether the asker reads the same question's answer over all but the victim: the rest is its own."""
    asked = [Asked.of(_terms_of(number), b"atoms") for number in range(2)]
    stage = ScoreStage(path, EXACT, asked, SEMI_HONEST, clients=ExactScores)
    stage.perform(WithoutClient(), lambda keys: DealingToTheOthers())
    sets = {party: _sets(own) for party, own in asked[SECOND].scores.items()}
    others = [own for party, own in sets.items() if party != VICTIM]
    without = np.flatnonzero(in_clear(_FORMULA, others)).tolist()
    everybody = np.flatnonzero(in_clear(_FORMULA, list(sets.values()))).tolist()
    read = stage.answers[SECOND].positions[0].tolist() if SECOND in stage.answers else None
    told = {"answers": len(stage.answers), "only_the_victims": len(set(everybody) - set(without))}
    return Played(stage, read == without != everybody, told)
