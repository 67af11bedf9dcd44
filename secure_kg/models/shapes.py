"""Widths and initial range of embedding rows, by model name; free of torch, since the server needs nothing more.

RotatE and ComplEx live in the complex plane: a row of complex dimension `dim` is stored as real parts, then imaginary
parts. A RotatE relation is a rotation of modulus one, so only its `dim` phases are stored. A RESCAL relation is a
matrix, stored row by row.
"""

from secure_kg.foundation.errors import UserError

MODELS = ("TransE", "RotatE", "DistMult", "ComplEx", "TransM", "RESCAL")

_WIDTHS = {  # of entities and relations; times dim
    "TransE": (1, 1),
    "RotatE": (2, 1),
    "DistMult": (1, 1),
    "ComplEx": (2, 2),
    "TransM": (1, 1),
}


def _widths(model: str, dim: int) -> tuple[int, int]:
    if model == "RESCAL":
        return dim, dim * dim
    if model not in _WIDTHS:
        raise UserError(f"unknown model; choose one of {', '.join(MODELS)}")
    entity, relation = _WIDTHS[model]
    return entity * dim, relation * dim


def entity_width(model: str, dim: int) -> int:
    """Numbers per entity row."""
    return _widths(model, dim)[0]


def relation_width(model: str, dim: int) -> int:
    """Numbers per relation row."""
    return _widths(model, dim)[1]


def initial_range(margin: float, dim: int) -> float:
    """Rows start uniform in ±(margin + 2) / dim: the rule of RotatE and FedE, with their epsilon of 2."""
    return (margin + 2.0) / dim
