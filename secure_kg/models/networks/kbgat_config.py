"""Settings of KB-GAT (Nathani et al., ACL 2019) as FedR uses it; free of torch, since a server reads them too."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from secure_kg.foundation.errors import UserError
from secure_kg.models.networks.config import NetworkConfig

FinalRows = Literal["whole", "last-batch"]
"""What becomes of the encoder's rows: those of the whole graph, or what the public code takes for them."""

_MOST_HEADS = 16
_MOST_FILTERS = 2**12


@dataclass(frozen=True, slots=True, kw_only=True)
class KbgatConfig(NetworkConfig):
    """Defaults are those of FedR, appendix D, and of its public code."""

    model: str = "KBGAT"
    dim: int = 50
    lr: float = 1e-3
    batch_size: int = 512
    local_epochs: int = 500  # of the encoder
    heads: int = 1
    margin: float = 5.0
    negatives: int = 2  # of the encoder, for each triple: heads and tails in turn
    attention_dropout: float = 0.3  # and between the layers
    weight_decay: float = 5e-6
    two_hop: int = 1024
    final_rows: FinalRows = "whole"
    filters: int = 50
    decoder_epochs: int = 150
    decoder_batch_size: int = 128
    decoder_negatives: int = 40  # half of them heads
    decoder_halving: int = 25
    decoder_weight_decay: float = 1e-5

    counted: ClassVar[tuple[str, ...]] = (
        *NetworkConfig.counted,
        *("heads", "negatives", "filters"),
        *("decoder_epochs", "decoder_batch_size", "decoder_negatives", "decoder_halving"),
    )
    positive: ClassVar[tuple[str, ...]] = ("lr", "margin")
    shares: ClassVar[tuple[str, ...]] = ("attention_dropout", "weight_decay", "decoder_weight_decay")

    def __post_init__(self) -> None:
        NetworkConfig.__post_init__(self)
        if self.heads > _MOST_HEADS:
            raise UserError(f"--heads must be at most {_MOST_HEADS}")
        if self.filters > _MOST_FILTERS:  # settings may be a file of somebody else's, and a decoder is made by them
            raise UserError(f"--filters must be at most {_MOST_FILTERS}")
        for name in ("negatives", "decoder_negatives"):
            if getattr(self, name) % 2:
                raise UserError(f"--{name.replace('_', '-')} must be even for KBGAT: half of them are heads")
        if self.two_hop < 0:
            raise UserError("--two-hop must not be negative")
        if self.final_rows not in get_args(FinalRows):
            raise UserError(f"--final-rows must be one of {', '.join(get_args(FinalRows))}")

    @property
    def span(self) -> float:
        """Rows of entities are set to length one before the first step, so only their direction matters."""
        return 1.0
