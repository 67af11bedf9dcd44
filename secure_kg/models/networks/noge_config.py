"""Settings of NoGE (Nguyen et al., WSDM 2022) as FedR uses it; free of torch, since a server reads them too."""

import math
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, get_args

from secure_kg.foundation.errors import UserError
from secure_kg.models.networks.config import NetworkConfig

MeansLoaded = Literal["every-round", "for-evaluation"]
"""When the means of shared rows come into a client's model."""
Moments = Literal["anew", "kept"]
"""What Adam knows at the start of a round: nothing, or its moments of the last one."""

_ROWS: Final = 4096
_CHOICES: Final = {"means_loaded": get_args(MeansLoaded), "moments": get_args(Moments)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NogeConfig(NetworkConfig):
    """Defaults are those of the paper's code and FedR's appendix B."""

    model: str = "NoGE"
    dropout: float = 0.5  # of what tails are compared with
    label_smoothing: float = 0.1
    max_norm: float = 0.5  # of a step's gradient
    means_loaded: MeansLoaded = "every-round"
    moments: Moments = "anew"

    positive: ClassVar[tuple[str, ...]] = ("lr", "max_norm")
    shares: ClassVar[tuple[str, ...]] = ("dropout", "label_smoothing")

    def __post_init__(self) -> None:
        NetworkConfig.__post_init__(self)
        if self.dim % 4:
            raise UserError("--dim must be a multiple of 4 for NoGE: a row is a vector of quaternions")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UserError(f"--{name.replace('_', '-')} must be one of {', '.join(choices)}")

    @property
    def span(self) -> float:
        """As Xavier's rule has it for a table of so many rows: the real number is the client's secret.

        The encoder normalises each coordinate, so the size of first rows decides no more than how far the first steps
        take them.
        """
        return math.sqrt(6.0 / (_ROWS + self.dim))
