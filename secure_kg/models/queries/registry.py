"""Encoders by name, bound to their operators: the class of a kind is imported when it is asked for."""

import math
from importlib import import_module

import torch
from torch import Tensor

from secure_kg.models.queries.encoder import Encoder
from secure_kg.models.queries.shapes import EncoderShape, encoder_kind, operator_shapes

_FIRST_OFFSETS = 0.1


def bound_encoder(name: str, shape: EncoderShape, flat: Tensor) -> Encoder:
    """The encoder over a flat vector of operators. They are views: gradients reach the vector."""
    module, _, attribute = encoder_kind(name).class_path.partition(":")
    kind: type[Encoder] = getattr(import_module(module), attribute)
    shapes = operator_shapes(name, shape)
    parts = torch.split(flat, [math.prod(one) for one in shapes.values()])
    named = {key: part.view(size) for (key, size), part in zip(shapes.items(), parts, strict=True)}
    return kind(named, shape)


def first_operators(name: str, shape: EncoderShape, generator: torch.Generator) -> Tensor:
    """Fresh operators as a flat vector: weights uniform in ±1/√inputs, gains and the scale 1, biases 0."""
    parts = []
    for key, size in operator_shapes(name, shape).items():
        part = torch.zeros(size)
        if key == "scale" or key.endswith(".gain"):
            part.fill_(1.0)
        elif key == "particles":
            part.normal_(std=_FIRST_OFFSETS, generator=generator)
        elif not key.endswith(".bias"):
            bound = 1 / math.sqrt(size[-1])
            part.uniform_(-bound, bound, generator=generator)
        parts.append(part.view(-1))
    return torch.cat(parts)
