"""A server that reads secret results from what clients say of them: whether they are the best so far.

In the first evaluation it adds a huge number to the count of triples and calls the result the best: clients then
compare with a figure of nearly zero. From then on it subtracts another known amount x from the total for each client,
who says yes if (R - x) / N > 0, where R is the sum of reciprocal ranks and N the number of triples: R > x. Each
evaluation narrows R down to one part in as many as there are answers; no later verdict is yes, so that clients go on
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
"""R is below it, as anybody who knows the dataset can tell."""
_HUGE: Final = 1 << 38
"""Added to the count of triples, which is the first of the counts."""
NEAR: Final = 1 / 64
"""A figure counts as read if it is known to lie within this share of what it may be."""


class ReadByComparisons(Cheat):
    """One threshold per client and evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = 0.0, MOST
        self._thresholds: dict[PartyId, float] = {}
        self._begun, self._first_verdicts = False, 0
        self.answers = 0

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        match message:
            case SumTotal(purpose="valid") if not self._begun:
                vector = message.vector.copy()
                vector[RankingMetrics.layout(CLIENTS).real_entries] += _HUGE
                return (structs.replace(message, vector=vector),)
            case SumTotal(purpose="valid"):
                if not self._thresholds:
                    step = (self.high - self.low) / (CLIENTS + 1)
                    self._thresholds = {PartyId(one): self.low + step * one for one in range(1, CLIENTS + 1)}
                codec, vector = RankingMetrics.layout(CLIENTS).codec, message.vector.copy()
                vector[:1] -= codec.encode(np.array([self._thresholds[to]])).vector
                return (structs.replace(message, vector=vector),)
            case Verdict():
                first, self._thresholds = not self._begun, {}
                self._first_verdicts += first
                self._begun = self._first_verdicts >= CLIENTS
                return (structs.replace(message, improved=first),)
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
    figures = [sum(one.reciprocal for one in each) for each in zip(*ranked, strict=False)]
    width = cheat.high - cheat.low
    within = any(cheat.low - width < figure < cheat.high + width for figure in figures)
    evidence = {"answers": cheat.answers, "known_within": width, "possible": MOST}
    return Played(stage, within and width <= NEAR * MOST, evidence)
