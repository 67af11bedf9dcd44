"""Traffic counters: messages, bytes and waiting time per round, phase, peer and direction, counted in one place."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.foundation.spent import Spent

Direction = Literal["sent", "received"]


@dataclass(frozen=True, slots=True)
class TrafficKey:
    round: RoundId
    phase: str
    peer: PartyId
    direction: Direction


@dataclass(slots=True)
class TrafficCount:
    messages: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Traffic:
    """A party's own count of what it sent and received; serialized bytes, headers included."""

    counts: dict[TrafficKey, TrafficCount] = field(default_factory=lambda: defaultdict(TrafficCount))
    sending: Spent = field(default_factory=Spent)
    waiting: Spent = field(default_factory=Spent)

    @property
    def send_seconds(self) -> float:
        return self.sending.seconds

    @property
    def wait_seconds(self) -> float:
        return self.waiting.seconds

    def add(self, key: TrafficKey, size: int) -> None:
        count = self.counts[key]
        count.messages += 1
        count.bytes += size

    def total(
        self,
        direction: Direction,
        *,
        peer: PartyId | None = None,
        round_id: RoundId | None = None,
        phase: str | None = None,
    ) -> TrafficCount:
        """The sum over everything that matches."""
        chosen: Iterable[TrafficCount] = (
            count
            for key, count in self.counts.items()
            if key.direction == direction
            and (peer is None or key.peer == peer)
            and (round_id is None or key.round == round_id)
            and (phase is None or key.phase == phase)
        )
        total = TrafficCount()
        for count in chosen:
            total.messages += count.messages
            total.bytes += count.bytes
        return total
