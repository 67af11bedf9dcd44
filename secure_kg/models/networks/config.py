"""Settings that all graph networks have; free of torch, since a server reads them too."""

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from secure_kg.foundation.errors import UserError

_MAX_DIM: Final = 2**16
_COUNTS: Final = ("dim", "batch_size", "local_epochs", "eval_megabytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Settings of local training. A network has a class over this one, with its own defaults and settings."""

    model: str = ""
    dim: int = 128
    lr: float = 0.01
    lr_decay: float = 1.0  # factor from one round to the next
    batch_size: int = 1024
    local_epochs: int = 3
    eval_megabytes: int = 64  # of scores held at a time when ranking

    counted: ClassVar[tuple[str, ...]] = _COUNTS
    """Settings that are whole numbers from 1 on."""
    positive: ClassVar[tuple[str, ...]] = ("lr",)
    """Settings that are positive numbers."""
    shares: ClassVar[tuple[str, ...]] = ()
    """Settings that lie from 0 on and below 1."""

    def __post_init__(self) -> None:
        for name in self.counted:
            if getattr(self, name) < 1:
                raise UserError(f"{_flag(name)} must be at least 1")
        if self.dim > _MAX_DIM:
            raise UserError(f"--dim must be at most {_MAX_DIM}")
        for name in self.positive:
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise UserError(f"{_flag(name)} must be a positive number")
        if not 0 < self.lr_decay <= 1:
            raise UserError("--lr-decay must lie above 0 and at most at 1")
        for name in self.shares:
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{_flag(name)} must be at least 0 and below 1")

    @property
    def widths(self) -> tuple[int, int]:
        """Numbers per row that goes in, of an entity and of a relation."""
        return self.dim, self.dim

    @property
    def encoded_widths(self) -> tuple[int, int]:
        """Numbers per row that comes out."""
        return self.dim, self.dim

    @property
    def span(self) -> float:
        """Rows that go in start uniform in ± this, which is public: it depends on no client's graph."""
        raise NotImplementedError


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
