"""Servers that have one client tell its training loss where no other does: the sum of losses is its own then."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.cheating import apart
from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import NOTHING, Spoils, compared, sums_read, total_of
from benchmarks.cheating.stage import CLIENTS, VICTIM, Session, Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Abandon
from protocols.sums.secagg.messages import SignedSurvivors
from protocols.sums.secagg.server import Step
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.plan import twins
from secure_kg.federation.server.server import FederationServer

PASSED_OVER: Final = 2
"""The evaluation that nobody is asked for."""
TOLD_ALONE: Final = 4
"""The round whose loss is the victim's alone."""
EXCUSE: Final = "too few clients have signed"


class _PassesOver(apart.EndsAtTheKeys):
    """Has the victim train alone, and asks for no evaluation while the others have a loss to tell."""

    def _evaluate(self, round_id: RoundId) -> None:
        if round_id != PASSED_OVER:
            super()._evaluate(round_id)


class TrainedForLoss(apart.TrainedAlone):
    server = _PassesOver


class _EndsAtTheSignatures(FederationServer):
    """Gives one sum of rows up when all have signed who is in it."""

    def _add_up_blocks(self, round_id: RoundId) -> dict[str, twins.Result]:
        if round_id != TOLD_ALONE:
            return super()._add_up_blocks(round_id)
        people, table = self._people, self._table
        if table is None or self._keys is None:
            raise RuntimeError("nothing is shared under masks")
        vectors, terms = self._keys.vectors, self._plan.rows(round_id, table.block, table.union)
        vectors.prepare(people.session, terms)
        running = vectors._running[terms.key]
        while running.step is not Step.UNMASKING:
            vectors._step(running, people.session, terms)
        self._sums._abandon(terms, "rows", SumAbandoned(EXCUSE), ())
        return {}


class SignaturesForOne(Cheat):
    """All train and give their inputs. The victim alone is sent the signatures, and so helps to open the sum."""

    server = _EndsAtTheSignatures

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if self.round == TOLD_ALONE and to != VICTIM:
            if isinstance(message, SignedSurvivors) and message.purpose == "rows":
                return (Abandon("rows", EXCUSE),)
            if isinstance(message, Abandon):
                return ()
        return (message,)


def trained_for_loss(path: Path) -> Played:
    stage = Stage(path, stage_config(rounds=TOLD_ALONE, eval_every=2, checkpoint_every=0))
    return _played(stage, stage.perform(TrainedForLoss()), TOLD_ALONE)


def signatures_for_one(path: Path) -> Played:
    stage = Stage(path, stage_config(rounds=TOLD_ALONE + 2, eval_every=1))
    return _played(stage, stage.perform(SignaturesForOne()), TOLD_ALONE)


def _played(stage: Stage, session: Session, round_id: int) -> Played:
    spoils = _loss_of_victim(stage, session, round_id)
    return Played(stage, spoils.got, spoils.record())


def _loss_of_victim(stage: Stage, session: Session, round_id: int) -> Spoils:
    """The sum of losses as it is against the victim's, and the triples it is of. A guess: it is a fifth of all."""
    stats, read = session.trainers[VICTIM].losses.get(round_id), total_of(sums_read(stage, session), "valid", round_id)
    if stats is None or read is None:
        return NOTHING
    metrics, triples = RankingMetrics.of(read[0]), sum(len(graph.train) for graph in stage.graphs) / CLIENTS
    told = np.array([metrics.loss_sum, float(metrics.loss_triples)])
    all_losses = [one.losses.get(PASSED_OVER) for one in session.trainers.values()]
    mean = sum(one.loss for one in all_losses if one is not None) / CLIENTS
    return compared(told, np.array([stats.loss * stats.triples, stats.triples]), np.array([mean * triples, triples]))
