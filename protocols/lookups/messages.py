"""The message of a lookup that no other protocol has."""

from typing import Any

import numpy as np

from protocols.foundation import wire
from protocols.scores.messages import require_contributors
from protocols.session.conversation import MAX_PURPOSE


@wire.message(0x0471, wire.MAX_FRAME_BYTES)
class NamesTotal(wire.Message, frozen=True):
    """Server to asker: the sum of what the contributors have written, under the asker's masks."""

    purpose: str
    contributors: list[int]
    """In ascending order."""
    vector: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        require_contributors(self.contributors)
        wire.require_array(self.vector, "<u8", ndim=1)
