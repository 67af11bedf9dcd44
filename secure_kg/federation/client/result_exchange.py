"""A client's results in the federation's sums: validation results when due, test results at the end.

What a client tells of its results follows from its own count (`own_count`) and never from the server's word: one
evaluation per trained round, and test results of its copy of the best round once per session.

A client that has not trained between two evaluations has the same secret in both, whatever tables the server has sent
in between. So validation results are committed to by the parameters as they were last trained (`trained`), which go
with the parameters into a checkpoint and back: a server that chooses the checkpoint chooses no other commitment.
"""

import dataclasses

import torch

from protocols.foundation.digests import digest
from protocols.foundation.identifiers import SERVER, RoundId
from protocols.session.conversation import Abandon
from protocols.sums.interface import SumLayout
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal, TotalReader
from secure_kg.data.graph import Part
from secure_kg.evaluation.metrics import Metrics
from secure_kg.federation.client.context import ClientContext
from secure_kg.federation.client.judge import Judge
from secure_kg.federation.client.own_count import OwnCount
from secure_kg.learning.learner import TrainStats


class ResultExchange:
    """`last`: the last training whose rows were added up. `best`: its copy of the best round's parameters."""

    def __init__(self, context: ClientContext, count: OwnCount) -> None:
        self._context, self._count = context, count
        self.judge = Judge(context.plan, context.folder)
        self.last = self._latest = self._before = TrainStats(0.0, 0, 0)
        self._added_before = 0
        self.trained = context.learner.digest()
        """Digest of the parameters as this client has last trained them, before any table came in between."""
        self.best: dict[str, torch.Tensor] = {}
        self.best_round = 0

    @property
    def _aggregation(self) -> str:
        return self._context.plan.settings.aggregation

    def evaluate(self, round_id: RoundId) -> None:
        """Validation results into their sum, if they are due by this client's own count."""
        context, count = self._context, self._count
        if not count.may_evaluate(round_id):
            count.refused += 1
            reason = "this client has not trained since its last evaluation, or in a sum of which it knows no end"
            context.conversation.send(SERVER, Abandon("valid", reason), round_id)
            return
        # A loss that was told before is not told again: over other clients it would be the same secret once more.
        told = self.last if count.tells_loss(round_id) else None
        # Where a client sees its neighbours only, which are others in every sum, no commitment is opened twice.
        basis = self.trained if context.plan.sees_survivors else context.learner.digest()
        terms = self._terms(round_id, "valid", basis, told)
        count.evaluated(round_id)
        context.prepare(self._aggregation, terms)
        context.contribute(self._aggregation, terms, self.measure("valid", told).contribution())
        if (reader := context.reader(self._aggregation)) is not None:
            federation, _ = self._read(reader, terms)
            context.conversation.send(SERVER, self.judge.read(round_id, federation), round_id)

    def note_training(self, stats: TrainStats) -> None:
        """Called after a round's local epochs. A training without a step leaves the parameters as they were."""
        self._latest = stats
        if stats.steps:
            self.trained = self._context.learner.digest()

    def added(self, round_id: RoundId) -> None:
        """Called once this client has helped to open a sum of what it has trained: its loss may be told."""
        if self._count.added == round_id:
            return
        self._before, self._added_before = self.last, self._count.added
        self.last, self._count.added = self._latest, int(round_id)

    def in_vain(self, round_id: RoundId) -> None:
        """The twin in clear hears of it only now where the secure one would not have helped to open the sum."""
        if self._count.added == round_id:
            self.last, self._count.added = self._before, self._added_before

    def take_verdict(self, round_id: RoundId, improved: bool) -> None:
        """Keep a copy of the parameters if the evaluation was the best so far."""
        if improved:
            self.best, self.best_round = self._context.learner.parameters_state(), int(round_id)
        self.judge.take_verdict(round_id, improved)

    def measure(self, part: Part, trained: TrainStats | None = None) -> Metrics:
        """This client's own results. `trained`: training whose loss is to be told, too."""
        with self._context.watch.measure("evaluate"):
            return self._context.plan.metrics.taken_from(self._context.learner.evaluate(part, trained))

    def sum_test(self, round_id: RoundId, best_round: int, own: Metrics) -> None:
        """Test results into their sum, which is bound to the round of the best copy: all are of the same one."""
        context = self._context
        if best_round != self.best_round:
            reason = f"this client's best copy is of round {self.best_round}"
            context.conversation.send(SERVER, Abandon("test", reason), round_id)
            return
        terms = self._terms(round_id, "test", context.learner.digest(), best=best_round)
        context.prepare(self._aggregation, terms)
        told = context.plan.metrics.taken_from(context.learner.told_results("test", own))
        context.contribute(self._aggregation, terms, told.contribution())
        if (reader := context.reader(self._aggregation)) is not None:
            test, clients = self._read(reader, terms)
            averaged = context.shared[0].averaged_in_union if context.shared else 0
            self.judge.write_result(test, clients, averaged)

    def _terms(
        self, round_id: RoundId, part: Part, parameters: bytes, told: TrainStats | None = None, best: int = 0
    ) -> SumTerms[SumLayout]:
        """The sum of results on `part`, of the copy of round `best` if there is one.

        `parameters`: digest of what this client's results depend on. `told`: training whose loss is told, too.
        """
        context = self._context
        if len(context.learner.graph.part(part)) or (told is not None and told.triples):
            state = context.states.of_results(parameters, part)
        else:
            state = context.states.of_nothing(f"results/{part}", round_id)
        model = digest(context.model, best.to_bytes(8, "little"))
        return dataclasses.replace(context.plan.results(round_id, part), model=model, state=state)

    def _read(self, reader: TotalReader, terms: SumTerms[SumLayout]) -> tuple[Metrics, int]:
        """The federation's results, which the server has added up for the clients, and of how many clients they are."""
        context = self._context
        total = context.step().receive(SumTotal, *terms.key)
        return context.plan.metrics.of(reader.open(terms, total)), len(total.contributors)
