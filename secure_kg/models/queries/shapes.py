"""Kinds of query encoders by name, and the shapes of their operators; free of torch, since a server reads them too.

Operators are what an encoder has besides the rows of entities and relations: its networks for projections and
intersections. They are stored as one flat vector, in the order of `operator_shapes`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from secure_kg.foundation.errors import UserError

Score = Literal["usual", "l2", "squared", "dot"]
"""How points are compared with entities. `squared` and `dot` are polynomials, as rankings of hidden queries need."""
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """What decides how many operators an encoder has."""

    dim: int
    particles: int = 1
    """Points of one entity; for encoders of one point it has no meaning."""
    published: bool = False
    """As the public code of FedCQA computes it, where that differs from the papers."""


@dataclass(frozen=True, slots=True)
class EncoderKind:
    """One kind of encoder."""

    name: str
    title: str
    class_path: str
    """`module:class`, imported by clients only."""
    score: Score
    """The usual one."""
    shapes: Callable[[EncoderShape], Shapes]
    negates: bool = False
    """Whether there is a definition of its negation."""
    varies: bool = False
    """Whether the public code computes something else."""


def _linear(name: str, out: int, into: int) -> Shapes:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _norm(name: str, dim: int) -> Shapes:
    return {f"{name}.gain": (dim,), f"{name}.bias": (dim,)}


def _attention_block(name: str, shape: EncoderShape) -> Shapes:
    """Self-attention, norm, a network of two layers with a residual, norm."""
    dim = shape.dim
    return {
        **_linear(f"{name}.attention", dim if shape.published else 3 * dim, dim),
        **_norm(f"{name}.first", dim),
        **_linear(f"{name}.hidden", dim, dim),
        **_linear(f"{name}.out", dim, dim),
        **_norm(f"{name}.second", dim),
    }


def _gqe(shape: EncoderShape) -> Shapes:
    dim = shape.dim
    if shape.published:
        half = max(1, dim // 2)
        return {**_linear("hidden", half, dim), **_linear("out", dim, half), **_linear("mean", dim, dim)}
    return {**_linear("hidden", dim, dim), **_linear("weights", dim, dim)}


def _q2p(shape: EncoderShape) -> Shapes:
    dim = shape.dim
    return {
        "particles": (shape.particles, dim),
        **_linear("gates", 2 * dim, 2 * dim),
        **_linear("candidate", dim, 2 * dim),
        **_norm("gated", dim),
        **_linear("among.attention", dim if shape.published else 3 * dim, dim),
        **_norm("among", dim),
        **_attention_block("higher", shape),
        **_attention_block("intersection.1", shape),
        **_attention_block("intersection.2", shape),
        **_attention_block("complement", shape),
    }


def _tree_lstm(shape: EncoderShape) -> Shapes:
    dim = shape.dim
    return {
        "intersection": (dim,),
        **_linear("input", 4 * dim, dim),
        "state.weight": (4 * dim, dim),
        **_linear("forget_part", dim, dim),
        "forget_sum.weight": (dim, dim),
    }


ENCODERS: Final[dict[str, EncoderKind]] = {
    kind.name: kind
    for kind in (
        EncoderKind("gqe", "GQE", "secure_kg.models.queries.gqe:GQE", "l2", _gqe, varies=True),
        EncoderKind(
            "q2p", "Query2Particles", "secure_kg.models.queries.q2p:Q2P", "dot", _q2p, negates=True, varies=True
        ),
        EncoderKind("tree-lstm", "tree-LSTM", "secure_kg.models.queries.tree_lstm:TreeLSTM", "dot", _tree_lstm),
    )
}


def encoder_kind(name: str) -> EncoderKind:
    """`UserError` names the choices."""
    if name not in ENCODERS:
        raise UserError(f"--encoder must be one of {', '.join(ENCODERS)}")
    return ENCODERS[name]


def operator_shapes(name: str, shape: EncoderShape) -> Shapes:
    """All operators in the order of the flat vector. The factor of all scores comes first."""
    return {"scale": (1,), **encoder_kind(name).shapes(shape)}


def operator_width(name: str, shape: EncoderShape) -> int:
    """Numbers in the flat vector."""
    return sum(math.prod(one) for one in operator_shapes(name, shape).values())


def initial_span(dim: int) -> float:
    """Rows start uniform in ± this: half as long as a unit vector, whatever the dimension."""
    return 0.5 * math.sqrt(3 / dim)
