"""When to stop: after `patience` evaluations without a better validation MRR (FedR, appendix B)."""

from dataclasses import dataclass


@dataclass(slots=True)
class EarlyStopping:
    patience: int
    best_mrr: float = -1.0
    best_round: int = 0
    checks_since_best: int = 0

    def judge(self, round_id: int, mrr: float) -> bool:
        """Take note of an evaluation; True if it is the best so far."""
        improved = mrr > self.best_mrr
        if improved:
            self.best_mrr, self.best_round, self.checks_since_best = mrr, round_id, 0
        else:
            self.checks_since_best += 1
        return improved

    @property
    def exhausted(self) -> bool:
        return self.checks_since_best >= self.patience
