"""Kinds of embedding models by name: widths of their rows, and where clients find the class. Free of torch.

The server needs nothing more of a model. RotatE and ComplEx live in the complex plane: a row of complex dimension `dim`
is stored as real parts, then imaginary parts. A RotatE relation is a rotation of modulus one, so only its `dim` phases
are stored. A RESCAL relation is a matrix, stored row by row.
"""

from dataclasses import dataclass
from typing import Final, Literal

from secure_kg.foundation.errors import UserError

Relation = Literal["translation", "rotation", "product", "complex product", "matrix", "none"]
"""How a relation acts on a head in the score; `none`: not at all."""


@dataclass(frozen=True, slots=True)
class ModelKind:
    """One kind of model."""

    name: str
    class_path: str
    """`module:class`, imported by clients only."""
    relation: Relation
    """Attacks invert it."""
    unweighted: str | None = None
    """The model with the same score but for weights that only the client knows, if there are such."""

    @property
    def has_matrices(self) -> bool:
        """Whether a relation takes the square of the dimension."""
        return self.relation == "matrix"

    def widths(self, dim: int) -> tuple[int, int]:
        """Numbers per entity row and per relation row."""
        entity = 2 * dim if self.relation in ("rotation", "complex product") else dim
        match self.relation:
            case "matrix":
                return entity, dim * dim
            case "complex product":
                return entity, 2 * dim
            case _:
                return entity, dim


MODELS: Final[dict[str, ModelKind]] = {
    kind.name: kind
    for kind in (
        ModelKind("TransE", "secure_kg.models.transe:TransE", "translation"),
        ModelKind("RotatE", "secure_kg.models.rotate:RotatE", "rotation"),
        ModelKind("DistMult", "secure_kg.models.distmult:DistMult", "product"),
        ModelKind("ComplEx", "secure_kg.models.complex:ComplEx", "complex product"),
        ModelKind("TransM", "secure_kg.models.transm:TransM", "translation", unweighted="TransE"),
        ModelKind("RESCAL", "secure_kg.models.rescal:RESCAL", "matrix"),
    )
}


def model_kind(name: str) -> ModelKind:
    """`UserError` names the choices."""
    if name not in MODELS:
        raise UserError(f"unknown model; choose one of {', '.join(MODELS)}")
    return MODELS[name]


def entity_width(model: str, dim: int) -> int:
    """Numbers per entity row."""
    return model_kind(model).widths(dim)[0]


def relation_width(model: str, dim: int) -> int:
    """Numbers per relation row."""
    return model_kind(model).widths(dim)[1]


def initial_range(margin: float, dim: int) -> float:
    """Rows start uniform in ±(margin + 2) / dim: the rule of RotatE and FedE, with their epsilon of 2."""
    return (margin + 2.0) / dim
