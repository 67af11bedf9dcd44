"""Clients that refused a sum because of what others had sent them for it: who, which sum, and whose words.

Shares are sealed: an auditor can look into them as little as the server. It knows whether the server passed them on as
they were sent (`relays`). Where it did, the sender, the recipient or what the two have applied is to blame, and the
record does not say which.
"""

from protocols.session.control import RefuseShares
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted


class Disputed(Check):
    id = "words-taken"
    question = "Did a client refuse a sum because of what another had sent it?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._seen = 0
        self._refused = Evidence()
        self._pairs: dict[tuple[int, int], int] = {}
        """By who refused and whose words: how often."""

    def begin_session(self) -> None:
        self._session += 1

    def observe(self, observation: Observation) -> None:
        self._seen += observation.direction == "received"
        message = observation.message
        if observation.direction != "received" or not isinstance(message, RefuseShares):
            return
        for party in sorted({*message.of} & {*range(1, self.clients + 1)}):
            pair = observation.peer, party
            self._pairs[pair] = self._pairs.get(pair, 0) + 1
            self._refused.add(
                f"session {self._session}, round {observation.round}, {observation.purpose}: client "
                f"{observation.peer} did not take what client {party} had sent"
            )

    def ignored(self, observation: Observation) -> None:
        """The first refusal ends a sum. Those that come after it are as good."""
        self.observe(observation)

    def findings(self) -> list[Finding]:
        if not self._refused:
            return []
        often = "; ".join(
            f"client {by} of client {of}: {times}" for (by, of), times in sorted(self._pairs.items(), key=_most)
        )
        return [
            Finding(
                "shares-refused",
                "low",
                "Clients refused sums because of what others had sent them",
                self._refused.told(),
                f"These sums were abandoned, and nothing was opened by it ({often}). Shares that do not open may have "
                "been sealed so, be refused falsely, or belong to other rows than the recipient has; whether the "
                "server changed them on the way the finding relayed-otherwise says.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._seen

    def looked_at(self) -> str:
        return f"{self._seen:,} messages of clients, {counted(sum(self._pairs.values()), 'refusal')}"


def _most(pair: tuple[tuple[int, int], int]) -> tuple[int, tuple[int, int]]:
    return -pair[1], pair[0]
