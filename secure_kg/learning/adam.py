"""Adam (Kingma and Ba, ICLR 2015) over fixed parameters that keep their gradients; with `decay` AdamW.

`torch.optim.Adam` imports torch's compiler and sympy when it is made: a second of processor time in every client's
process, for nothing that eager code uses. This calls the function that its `step` ends in, so that the bits are the
same; tests hold the two together.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8  # torch's defaults, and the paper's


class Adam:
    """One optimiser. `rate` may change between steps; `state` has step, exp_avg and exp_avg_sq by parameter."""

    def __init__(self, parameters: Iterable[torch.nn.Parameter], rate: float, decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.rate, self.decay = rate, decay
        self.state: dict[torch.nn.Parameter, dict[str, Tensor]] = {}

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradients that are there."""
        states = [self.state_of(parameter) for parameter in self.parameters]
        if self.decay:  # apart from the gradient (Loshchilov and Hutter, ICLR 2019)
            for parameter in self.parameters:
                parameter.mul_(1 - self.rate * self.decay)
        adam(
            list(self.parameters),
            # The fused loop goes over memory: a gradient that lies there transposed would meet the wrong numbers.
            [gradient_of(parameter).contiguous() for parameter in self.parameters],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            amsgrad=False,
            beta1=_BETA1,
            beta2=_BETA2,
            lr=self.rate,
            weight_decay=0.0,
            eps=_EPS,
            maximize=False,
        )

    def state_of(self, parameter: torch.nn.Parameter) -> dict[str, Tensor]:
        """Of a parameter; zeros before its first step."""
        if parameter not in self.state:
            self.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self.state[parameter]


def gradient_of(parameter: torch.nn.Parameter) -> Tensor:
    """The gradient of a parameter, which an optimiser step takes for granted."""
    if parameter.grad is None:
        raise RuntimeError("the optimiser's gradients are kept")
    return parameter.grad
