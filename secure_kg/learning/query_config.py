"""Settings of training on logical queries; free of torch, since a server reads them too."""

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

from secure_kg.foundation.errors import UserError
from secure_kg.models.queries.shapes import EncoderShape, Score, encoder_kind, operator_width
from secure_kg.queries.form import Negation, walk
from secure_kg.queries.structures import EIGHT, STRUCTURES

MAX_DIM: Final = 4096
MAX_PARTICLES: Final = 64
TRAINED: Final = ("1p", "2p", "2i", "3i", "ip", "pi")
"""Types with a union are left out: a union is the best of its parts, which are trained as types of their own."""


Weights = Literal["equal", "triples"]
"""A client's operators count in the mean like any other's, or as often as it has train triples."""
Answers = Literal["edges", "entities"]
"""An entity is drawn as the answer of a training query as often as it has edges, or as often as any other."""


_CHOICES: Final = {"score": get_args(Score), "answers": get_args(Answers), "operator_weights": get_args(Weights)}


@dataclass(frozen=True, slots=True)
class QueryConfig:
    """Settings of local training on queries, and of the queries that it is judged by."""

    encoder: str = "gqe"
    dim: int = 64
    score: Score = "usual"
    particles: int = 2  # of Query2Particles
    published: bool = False
    train_types: str = ",".join(TRAINED)
    test_types: str = ",".join(EIGHT)
    answers: Answers = "edges"  # how those of training queries are drawn
    batch_size: int = 512  # queries of each type in a step
    local_steps: int = 50  # in a round
    negatives: int = 512  # entities that all queries of a step share
    lr: float = 0.01
    lr_decay: float = 1.0  # factor from one round to the next
    weight_decay: float = 0.0
    step: float = 1.0  # of shared rows, on the way from the last mean to the next
    operator_weights: Weights = "equal"
    eval_queries: int = 100  # of each type, per client and part
    eval_megabytes: int = 64  # of scores held at a time when ranking

    def __post_init__(self) -> None:
        kind = encoder_kind(self.encoder)
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UserError(f"{_flag(name)} must be one of {', '.join(choices)}")
        if self.published and not kind.varies:
            raise UserError(f"--published: the public code has no other {kind.title}")
        for name in (
            *("dim", "particles", "batch_size", "local_steps"),
            *("negatives", "eval_queries", "eval_megabytes"),
        ):
            if getattr(self, name) < 1:
                raise UserError(f"{_flag(name)} must be at least 1")
        for name, most in (("dim", MAX_DIM), ("particles", MAX_PARTICLES)):
            if getattr(self, name) > most:
                raise UserError(f"{_flag(name)} must be at most {most}")
        for name in ("lr", "step"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise UserError(f"{_flag(name)} must be a positive number")
        if not 0 < self.lr_decay <= 1:
            raise UserError("--lr-decay must lie above 0 and at most at 1")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise UserError("--weight-decay must not be negative")
        for name in ("train_types", "test_types"):
            self._check_types(name)

    def _check_types(self, name: str) -> None:
        kinds = _listed(getattr(self, name))
        if not kinds or len(set(kinds)) < len(kinds):
            raise UserError(f"{_flag(name)} must name different types, with commas between them")
        for one in kinds:
            if one not in STRUCTURES:
                raise UserError(f"{_flag(name)} must be some of {', '.join(STRUCTURES)}")
            if not encoder_kind(self.encoder).negates and _negates(one):
                title = encoder_kind(self.encoder).title
                raise UserError(f"{_flag(name)} {one}: {title} has no definition of a negation; --encoder q2p has")

    @property
    def shape(self) -> EncoderShape:
        return EncoderShape(self.dim, self.particles, self.published)

    @property
    def operators(self) -> int:
        """Numbers in the shared block of operators: its vector, and behind it the weight if there is one."""
        return operator_width(self.encoder, self.shape) + self.weighted

    @property
    def weighted(self) -> bool:
        """Whether clients' operators have weights."""
        return self.operator_weights != "equal"

    @property
    def trained(self) -> tuple[str, ...]:
        return _listed(self.train_types)

    @property
    def tested(self) -> tuple[str, ...]:
        return _listed(self.test_types)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _negates(kind: str) -> bool:
    return any(isinstance(node, Negation) for node in walk(STRUCTURES[kind]))


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
