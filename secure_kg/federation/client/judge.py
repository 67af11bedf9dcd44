"""A client's own reading of the federation's results, where the server cannot read them."""

from pathlib import Path

from secure_kg.evaluation.metrics import Metrics
from secure_kg.federation.plan.early_stopping import EarlyStopping
from secure_kg.federation.plan.messages import Judged
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.runs import federation_record
from secure_kg.runs.records.checkpoints import BestEvaluation, JudgeRecord


class Judge:
    """Says which evaluation is the best so far, and keeps the figures in the client's own folder."""

    def __init__(self, plan: RunPlan, folder: Path) -> None:
        self._stopping = EarlyStopping(plan.settings.patience)
        self._plan, self._folder = plan, folder
        self._evaluations = 0
        self._newest_mrr = -1.0

    def read(self, round_id: int, metrics: Metrics) -> Judged:
        """Take note of an evaluation. The server's `Verdict` decides which is the best: others may have seen more."""
        federation_record.append_evaluation(self._folder, round_id, metrics)
        self._evaluations += 1
        self._newest_mrr = metrics.headline
        return Judged(self._stopping.would_improve(self._newest_mrr), self._evaluations)

    def take_verdict(self, round_id: int, improved: bool) -> None:
        self._stopping.note(round_id, improved, self._newest_mrr)

    def may_end(self, done: int, *, resumed: bool) -> bool:
        """Whether training may be over after round `done`: it was the last one, or early stopping may be due.

        This client may have missed verdicts, so that every evaluation since the best one that it knows of counts as
        worse. In a `resumed` run an earlier session may have had fewer rounds, and its last one an evaluation.
        """
        settings, best = self._plan.settings, self._stopping.best_round
        done = min(done, settings.rounds)  # a server may name any round
        since = sum(self._plan.evaluation_due(number) for number in range(best + 1, done + 1))
        return done >= settings.rounds or max(since, self._stopping.checks_since_best) + resumed >= settings.patience

    def write_result(self, test: Metrics, clients: int, rows_averaged: int) -> None:
        best, seen = self._stopping.best_mrr, self._evaluations
        federation_record.write_result(self._folder, test, clients, best, rows_averaged, seen)

    def record(self) -> JudgeRecord:
        """For a checkpoint."""
        stopping = self._stopping
        best = BestEvaluation(stopping.best_mrr, stopping.best_round, stopping.checks_since_best)
        return JudgeRecord(best, self._evaluations)

    def restore(self, record: JudgeRecord, done: int) -> None:
        """Go on from a checkpoint of round `done`."""
        federation_record.forget_evaluations_after(self._folder, done)
        best = record.best
        self._stopping.best_mrr, self._stopping.best_round = best.mrr, best.round
        self._stopping.checks_since_best = best.checks_since
        self._evaluations = record.evaluations
