"""Models by name."""

import torch

from secure_kg.foundation.errors import UserError
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.complex import ComplEx
from secure_kg.models.distmult import DistMult
from secure_kg.models.rescal import RESCAL
from secure_kg.models.rotate import RotatE
from secure_kg.models.shapes import MODELS
from secure_kg.models.transe import TransE
from secure_kg.models.transm import TransM

CLASSES: dict[str, type[EmbeddingModel]] = {
    cls.name: cls for cls in (TransE, RotatE, DistMult, ComplEx, TransM, RESCAL)
}


def build_model(name: str, size: ModelSize, generator: torch.Generator) -> EmbeddingModel:
    """The model of that name with fresh rows, on the CPU."""
    if name not in CLASSES:
        raise UserError(f"unknown model; choose one of {', '.join(MODELS)}")
    return CLASSES[name](size, generator)
