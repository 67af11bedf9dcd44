"""Parameters of a model and the state of its optimiser, as learners save, load and commit to them."""

import hashlib

import numpy as np
import torch
from torch import Tensor, nn

from secure_kg.learning.adam import Adam


def copied(model: nn.Module) -> dict[str, Tensor]:
    """Copies of all parameters, on the CPU."""
    return {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()}


def load_copied(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Take all parameters back from `copied`."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(state[name])


def digest_of(model: nn.Module) -> bytes:
    """SHA-256 of all parameters: the same if and only if the parameters are."""
    state = hashlib.sha256()
    for name, parameter in model.named_parameters():
        values = parameter.detach().cpu().numpy()
        state.update(f"{name}/{values.shape}/".encode())
        state.update(np.ascontiguousarray(values, dtype="<f4").tobytes())
    return state.digest()


def state_of(model: nn.Module, optimiser: Adam) -> dict[str, Tensor]:
    """Parameters and the optimiser's state, flat, contiguous and on the CPU."""
    moments = {
        f"{name}.{key}": value.detach().cpu().clone()
        for name, parameter in model.named_parameters()
        for key, value in optimiser.state.get(parameter, {}).items()
    }
    return copied(model) | moments


def load_state_of(model: nn.Module, optimiser: Adam, state: dict[str, Tensor]) -> None:
    """Continue where `state_of` was taken."""
    load_copied(model, state)
    optimiser.state.clear()
    for name, parameter in model.named_parameters():
        prefix = f"{name}."
        saved = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        if saved:  # nothing before the first step
            optimiser.state[parameter] = {k: v.to(parameter.device, copy=True) for k, v in saved.items()}
