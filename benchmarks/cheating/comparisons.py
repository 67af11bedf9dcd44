"""A server that reads secret results from what clients say of them: whether they are the best so far.

It subtracts another known amount x from the total for each client. To begin with a client takes -1 for the best, so it
says yes if (R - x) / N > -1, where R is the sum of reciprocal ranks and N the number of triples: R + N > x. Each
evaluation narrows R + N down to one part in as many as there are answers; no verdict is ever yes, so that clients go on
comparing with the same figure.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.stage import CLIENTS, SMALL, Stage, stage_config
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId
from protocols.sums.totals import SumTotal
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.plan.messages import Judged, Verdict

EVALUATIONS: Final = 6
MOST: Final = 4096.0
"""R + N is below it, as anybody who knows the dataset can tell."""
NEAR: Final = 1 / 64
"""A figure counts as read if it is known to lie within this share of what it may be."""


class ReadByComparisons(Cheat):
    """One threshold per client and evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = 0.0, MOST
        self._thresholds: dict[PartyId, float] = {}
        self.answers = 0

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        match message:
            case SumTotal(purpose="valid"):
                if not self._thresholds:
                    step = (self.high - self.low) / (CLIENTS + 1)
                    self._thresholds = {PartyId(one): self.low + step * one for one in range(1, CLIENTS + 1)}
                codec, vector = RankingMetrics.layout(CLIENTS).codec, message.vector.copy()
                vector[:1] -= codec.encode(np.array([self._thresholds[to]])).vector
                return (structs.replace(message, vector=vector),)
            case Verdict():
                self._thresholds = {}
                return (structs.replace(message, improved=False),)
        return (message,)

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        if isinstance(message, Judged) and sender in self._thresholds:
            self.answers += 1
            if message.improved:
                self.low = max(self.low, self._thresholds[sender])
            else:
                self.high = min(self.high, self._thresholds[sender])
        return message


def read_by_comparisons(path: Path) -> Played:
    """The model hardly changes, so that all evaluations are of nearly the same figure."""
    slow = replace(SMALL, lr=0.0005)
    often = {"rounds": EVALUATIONS, "eval_every": 1, "checkpoint_every": 0, "patience": EVALUATIONS}
    stage, cheat = Stage(path, stage_config(aggregation="secret", training=slow, **often)), ReadByComparisons()
    stage.perform(cheat)
    ranked = [trainer.ranked.get(("valid", "tail"), []) for trainer in stage.last.trainers.values()]
    figures = [sum(one.reciprocal + one.count for one in each) for each in zip(*ranked, strict=False)]
    width = cheat.high - cheat.low
    within = any(cheat.low - width < figure < cheat.high + width for figure in figures)
    evidence = {"answers": cheat.answers, "known_within": width, "possible": MOST}
    return Played(stage, within and width <= NEAR * MOST, evidence)
