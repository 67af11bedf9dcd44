"""Models by name, built: the class of a kind is imported when it is asked for."""

from importlib import import_module

import torch

from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.shapes import model_kind


def model_class(name: str) -> type[EmbeddingModel]:
    """The class of the model of that name."""
    module, _, attribute = model_kind(name).class_path.partition(":")
    found: type[EmbeddingModel] = getattr(import_module(module), attribute)
    return found


def build_model(name: str, size: ModelSize, generator: torch.Generator) -> EmbeddingModel:
    """The model of that name with fresh rows, on the CPU."""
    return model_class(name)(size, generator)
