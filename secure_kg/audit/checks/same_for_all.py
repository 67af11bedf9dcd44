"""What the server sends to all must be the same for all: rows, unions, sums, settings.

A server that gives one client a model of its own learns from that client's answer alone.
"""

from protocols.plain.union import ClearUnion
from protocols.psu.attempts import UnionPlaces
from protocols.totals import SumTotal
from protocols.transport.tap import frame_hash
from secure_kg.audit.checks.base import Check
from secure_kg.audit.findings import Evidence, Finding
from secure_kg.audit.read import Observation
from secure_kg.federation.config import RunConfig
from secure_kg.federation.messages import SharedRows

_BODY = 32
"""Bytes of a frame's header, which names the round in which something was sent again."""


class SameForAll(Check):
    id = "one-global-model"
    question = "Did clients get different versions of what is meant for all?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._sent = 0
        self._first: dict[tuple[int, str], tuple[str, int]] = {}
        self._different = Evidence()

    def begin_session(self) -> None:
        self._session += 1

    def observe(self, observation: Observation) -> None:
        if observation.direction != "sent":
            return
        match observation.message:
            case SharedRows(averaged=averaged):
                what = f"rows after round {int(averaged.max(initial=0))}"
            case SumTotal(purpose=purpose, of_round=of_round):
                what = f"sum of {purpose} of round {of_round}"
            case UnionPlaces(purpose=purpose):
                what = f"places of {purpose}"
            case ClearUnion():
                what = "the union"
            case _:
                return
        self._sent += 1
        digest = frame_hash(observation.frame[_BODY:])
        first, party = self._first.setdefault((self._session, what), (digest, observation.peer))
        if first != digest:
            self._different.add(f"{what}: client {party} got {first[:12]}, client {observation.peer} got {digest[:12]}")

    def findings(self) -> list[Finding]:
        if not self._different:
            return []
        return [
            Finding(
                "different-global-models",
                "high",
                "Clients were sent different versions of what is meant for all",
                self._different.told(),
                "A client that trains from rows made for it alone tells the server more about its own data than the "
                "mean of many would. (In our protocols such clients cannot add up; the sum is lost, not the secret.)",
            )
        ]

    @property
    def seen(self) -> int:
        return self._sent

    def looked_at(self) -> str:
        return f"{self._sent:,} messages, {len(self._first):,} versions expected to be the same for all"
