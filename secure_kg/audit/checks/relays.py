"""Check of relayed messages: states, shares and signatures reach clients as their senders gave them.

Clients notice most of what is changed on the way, and no sum comes of it. The server has cheated all the same. Keys
have a check of their own (`keys`).
"""

from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    ShareKeys,
    SignedSurvivors,
    SurvivorSignature,
)
from protocols.transport.tap import frame_hash
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig

_Given = tuple[int, str, str, int, int]
"""Round, purpose, kind, by whom, for whom (0: for all)."""


class Relays(Check):
    id = "relayed-as-sent"
    question = "Did the server pass on anything else than clients gave it for each other?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._relayed = self._round = 0
        self._given: dict[_Given, str] = {}
        self._wrong = Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._round, self._given = 0, {}

    def observe(self, observation: Observation) -> None:
        message, peer = observation.message, observation.peer
        match message:
            case AdvertiseKeys():
                self._forget_before(observation.round)
                self._give(observation, "state", 0, message.state)
            case ShareKeys():
                self._give(observation, "state beside shares", 0, message.state)
                for to, sealed in message.sealed.items():
                    self._give(observation, "share", to, sealed)
            case SurvivorSignature():
                self._give(observation, "signature", 0, message.signature)
            case KeyDirectory():
                for owner, state in message.states.items():
                    self._compare(observation, "state", owner, 0, state)
            case EncryptedShares():
                for owner, state in message.states.items():
                    self._compare(observation, "state beside shares", owner, 0, state)
                for owner, sealed in message.sealed.items():
                    self._compare(observation, "share", owner, peer, sealed)
            case SignedSurvivors():
                for owner, signature in message.signatures.items():
                    self._compare(observation, "signature", owner, 0, signature)

    def _forget_before(self, number: int) -> None:
        if number > self._round:
            self._round = number
            self._given = {name: digest for name, digest in self._given.items() if name[0] >= number}

    def _give(self, observation: Observation, kind: str, to: int, content: bytes) -> None:
        name = observation.round, observation.purpose, kind, observation.peer, to
        self._given.setdefault(name, frame_hash(content))

    def _compare(self, observation: Observation, kind: str, owner: int, to: int, content: bytes) -> None:
        self._relayed += 1
        name = observation.round, observation.purpose, kind, owner, to
        if self._given.get(name) != frame_hash(content):
            self._wrong.add(
                f"session {self._session}, round {observation.round}, {observation.purpose}: client "
                f"{observation.peer} was sent a {kind} of client {owner} that client {owner} did not send"
            )

    def findings(self) -> list[Finding]:
        if not self._wrong:
            return []
        return [
            Finding(
                "relayed-otherwise",
                "high",
                "Clients were sent other things than the others had sent for them",
                self._wrong.told(),
                "By states clients know whether a sum holds what another one held, by shares they open it, by "
                "signatures they know who is in it. A server that changes them tries to have a sum opened that "
                "clients would not open.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._relayed

    def looked_at(self) -> str:
        return f"{self._relayed:,} states, shares and signatures that were passed on"
