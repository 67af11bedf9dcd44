"""Early stopping: after `patience` evaluations without a better headline figure (FedR, appendix B: validation MRR)."""

from dataclasses import dataclass


@dataclass(slots=True)
class EarlyStopping:
    patience: int
    best_mrr: float = -1.0
    best_round: int = 0
    checks_since_best: int = 0

    def judge(self, round_id: int, mrr: float) -> bool:
        """Take note of an evaluation; True if it is the best so far."""
        improved = self.would_improve(mrr)
        self.note(round_id, improved, mrr)
        return improved

    def note(self, round_id: int, improved: bool, mrr: float = -1.0) -> None:
        """Take note of somebody else's judgement, perhaps without being told the figure."""
        if improved:
            self.best_mrr, self.best_round, self.checks_since_best = mrr, round_id, 0
        else:
            self.checks_since_best += 1

    def would_improve(self, mrr: float) -> bool:
        return self.best_round == 0 or mrr > self.best_mrr

    @property
    def so_far(self) -> tuple[float, int, int]:
        """For a checkpoint: the fields after `patience`."""
        return self.best_mrr, self.best_round, self.checks_since_best

    @property
    def exhausted(self) -> bool:
        return self.checks_since_best >= self.patience
