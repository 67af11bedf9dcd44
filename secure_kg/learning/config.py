"""Settings of local training; free of torch, since a server reads them too."""

import math
from dataclasses import dataclass
from typing import Literal

from secure_kg.foundation.errors import UserError
from secure_kg.models.shapes import MODELS

MAX_DIM = 2**16
MAX_MATRIX_DIM = 512  # of RESCAL, whose relations have the square of it
_MOST_MARGIN = 1e6  # initial rows grow with it, and beyond it numbers would overflow


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Settings of local training; the defaults are those of FedR (Zhang et al., EMNLP 2022, appendix B)."""

    model: str = "TransE"
    dim: int = 128
    negatives: int = 256  # for each triple
    share_negatives: int = 128  # at most so many triples of a batch share theirs
    margin: float = 10.0
    temperature: float = 1.0  # of self-adversarial weighting
    lr: float = 1e-3
    lr_decay: float = 1.0  # factor from one round to the next
    batch_size: int = 512
    local_epochs: int = 3
    corrupt: Literal["tail", "both"] = "tail"  # "both": batches alternate between corrupted tails and heads
    norm: Literal[1, 2] = 1  # p of TransE and TransM
    eval_megabytes: int = 64  # of scores held at a time when ranking

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise UserError(f"--model must be one of {', '.join(MODELS)}")
        for name in ("dim", "negatives", "share_negatives", "batch_size", "local_epochs", "eval_megabytes"):
            if getattr(self, name) < 1:
                raise UserError(f"{_flag(name)} must be at least 1")
        if self.dim > MAX_DIM:
            raise UserError(f"--dim must be at most {MAX_DIM}")
        if MODELS[self.model].has_matrices and self.dim > MAX_MATRIX_DIM:
            raise UserError(f"--dim must be at most {MAX_MATRIX_DIM} for {self.model}: a relation is a matrix")
        for name in ("margin", "lr"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise UserError(f"{_flag(name)} must be a positive number")
        if self.margin > _MOST_MARGIN:
            raise UserError(f"--margin must be at most {_MOST_MARGIN:g}")
        if not 0 < self.lr_decay <= 1:
            raise UserError("--lr-decay must lie above 0 and at most at 1")
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise UserError("--temperature must not be negative")
        if self.corrupt not in ("tail", "both"):
            raise UserError("--corrupt must be 'tail' or 'both'")
        if self.norm not in (1, 2):
            raise UserError("--norm must be 1 or 2")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
