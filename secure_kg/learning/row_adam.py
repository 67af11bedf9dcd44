"""Adam over tables of which a batch holds a few rows, on the CPU: the others are moved when they are next read.

`begin` looks some steps ahead, `settle` leaves tables and moments as if every step had moved every row. In between,
only rows that `catch_up` was asked for are to be read.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from secure_kg.kernels import adam as kernels
from secure_kg.learning.adam import Adam, gradient_of

Touched = tuple[torch.nn.Parameter, Tensor]
"""A table, and the ids of those of its rows that a batch holds; an id may stand there more than once."""


class RowAdam:
    """Moves the parameters of an `Adam`, all of them tables, along gradients that are zero elsewhere."""

    def __init__(self, optimiser: Adam) -> None:
        self._optimiser = optimiser
        self._tables: dict[torch.nn.Parameter, kernels.Table] = {}
        self._steps = kernels.Steps(0, *(np.empty(0, dtype=np.float32) for _ in range(2)))
        self._made = 0

    def begin(self, steps: int) -> None:
        """Get ready for so many steps at the optimiser's rate."""
        states = [self._optimiser.state_of(parameter) for parameter in self._optimiser.parameters]
        self._made = int(states[0]["step"])
        numbers = np.arange(self._made + 1, self._made + steps + 1, dtype=np.float64)
        sizes = -self._optimiser.rate / (1 - kernels.BETA1**numbers)
        corrections = 1 / np.sqrt(1 - kernels.BETA2**numbers)
        self._steps = kernels.Steps(self._made, sizes.astype(np.float32), corrections.astype(np.float32))
        self._tables = {
            parameter: kernels.Table(
                parameter.detach().numpy(),
                state["exp_avg"].numpy(),
                state["exp_avg_sq"].numpy(),
                gradient_of(parameter).numpy(),
                np.full(len(parameter), self._made, dtype=np.int64),
            )
            for parameter, state in zip(self._optimiser.parameters, states, strict=True)
        }

    def catch_up(self, touched: Sequence[Touched]) -> None:
        """Make these rows what they are after the steps so far; their gradients are zero then, for the next one."""
        for parameter, ids in touched:
            kernels.catch_up(self._tables[parameter], ids.numpy(), self._steps, self._made)

    def step(self) -> None:
        """One step along the gradients, of rows that were caught up before."""
        self._made += 1

    def settle(self) -> None:
        """All rows as they are after the steps so far; nothing is left for later."""
        for parameter, table in self._tables.items():
            kernels.catch_up(table, np.arange(len(parameter)), self._steps, self._made)
            self._optimiser.state_of(parameter)["step"].fill_(self._made)
