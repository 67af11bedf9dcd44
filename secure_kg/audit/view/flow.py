"""Flow of bytes past the server, by round and kind, and one upload as a picture."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput
from secure_kg.audit.records.parts import BothWays, Traffic
from secure_kg.audit.view.read import Observation

PICTURE_SIDE: Final = 96


@dataclass(slots=True)
class Flow:
    messages: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    by_round: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    by_kind: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    upload: npt.NDArray[np.unsignedinteger] | None = None
    """The rows of one client in the last round, as the server received them: the first entries."""
    upload_of: tuple[int, int, str] = (0, 0, "")
    """Client, round, message type."""

    def observe(self, observation: Observation) -> None:
        self.messages += 1
        way = 0 if observation.direction == "received" else 1
        if way == 0:
            self.bytes_up += observation.size
        else:
            self.bytes_down += observation.size
        self.by_round[observation.round][way] += observation.size
        self.by_kind[observation.kind][way] += observation.size
        message = observation.message
        if isinstance(message, MaskedInput | ClearInput) and message.purpose == "rows":
            party, number, _ = self.upload_of
            if observation.round > number or observation.peer < party:
                self.upload = message.vector[: PICTURE_SIDE * PICTURE_SIDE].copy()
                self.upload_of = observation.peer, observation.round, observation.kind

    def record(self) -> Traffic:
        return Traffic(
            messages=self.messages,
            bytes_up=self.bytes_up,
            bytes_down=self.bytes_down,
            bytes_by_round={str(number): BothWays(up=up, down=down) for number, (up, down) in self.by_round.items()},
            bytes_by_kind={kind: BothWays(up=up, down=down) for kind, (up, down) in self.by_kind.items()},
        )
