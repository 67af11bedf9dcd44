"""A step of a sum ends for all clients alike, and a sum is abandoned for a reason only.

A client trains between two steps of the sum of rows. A server that lets one client go on and tells the others that the
sum is over has that client train alone; one that gives sum after sum up has all clients train without ever reading what
they give. An honest server answers everybody who has answered it, and abandons a sum if a client refuses, or if too
few answer. It goes on without those who do not, and tells only those who did. And it goes on with every sum that it has
opened: one that reads a sum and then calls it abandoned has clients begin the next round at the same rows. It abandons
no sum that nobody has begun, except those that end together with another one of their round.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from protocols.foundation import wire
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.session.conversation import Abandon, Abort, Back, LeaveOut
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import Goodbye
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted

_NEXT: Final[dict[type[wire.Message], type[wire.Message]]] = {
    AdvertiseKeys: KeyDirectory,
    ShareKeys: EncryptedShares,
    MaskedInput: Survivors,
    SurvivorSignature: SignedSurvivors,
}
"""By what a client says in a sum: what it is told next."""
_ANSWERS: Final = AdvertiseKeys | ShareKeys | MaskedInput | SurvivorSignature | UnmaskShares
_REQUESTS: Final = KeyDirectory | EncryptedShares | Survivors | SignedSurvivors
_ENDS: Final = (LeaveOut, Abort, Goodbye)
"""What a client is told that was lost on the way, or with the whole session."""
Key = tuple[int, str]
"""Round and purpose."""


@dataclass(slots=True)
class _Step:
    """The step of a sum that is under way. The first begins without a request."""

    request: type[wire.Message] | None = None
    asked: set[int] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)


class AbandonedSums(Check):
    id = "sums-end-alike"
    question = "Was a sum ended for some of its clients only, or given up without a reason?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._plan = RunPlan(config, clients)
        self._rows = {HOLDERS, *(block.purpose for block in self._plan.blocks)}
        self._session = self._steps = 0
        self._owed: dict[int, tuple[Key, type[wire.Message]]] = {}
        """By client: in which sum it has said what, and was told nothing since."""
        self._told: dict[tuple[Key, type[wire.Message]], dict[int, type[wire.Message]]] = defaultdict(dict)
        """By sum and what clients said in it: what each was told next."""
        self._running: dict[Key, _Step] = {}
        self._away: set[int] = set()
        """Clients that were told that the others go on, until they say that they are back."""
        self._refused: set[int] = set()
        """Rounds in which a client refused something."""
        self._abandoned: set[Key] = set()
        self._begun: set[Key] = set()
        """Sums in which a client has said something."""
        self._beforehand: set[Key] = set()
        """Sums of results that the server has abandoned before that, as it must if it had nobody to ask."""
        self._opened: set[Key] = set()
        """Sums that the server could open from the answers it had, and that nobody had refused by then."""
        self._apart, self._at_will = Evidence(), Evidence()

    def begin_session(self) -> None:
        self._end()
        self._away = set()
        self._session += 1

    def opened(self, total: OpenedSum) -> None:
        if total.vector is not None and total.threshold and not total.abandoned:
            self._opened.add((total.round, total.purpose))

    def observe(self, observation: Observation) -> None:
        if observation.direction == "received":
            self._heard(observation)
        else:
            self._said(observation)

    def _heard(self, observation: Observation) -> None:
        message, peer, key = observation.message, observation.peer, (observation.round, observation.purpose)
        if isinstance(message, Abandon):
            self._refused.add(observation.round)
        if isinstance(message, Back):
            self._away.discard(peer)
        # What comes late is answered by nobody.
        if not isinstance(message, _ANSWERS | ClearInput) or peer in self._away:
            return
        if key not in self._begun and key in self._beforehand:
            self._at_will.add(f"{self._where(key)}: given up before it had begun")
        self._begun.add(key)
        if isinstance(message, ClearInput):
            return
        self._end(before=observation.round)
        if type(message) in _NEXT:
            self._owed[peer] = key, type(message)
        self._running.setdefault(key, _Step()).answered.add(peer)

    def _said(self, observation: Observation) -> None:
        message, peer, key = observation.message, observation.peer, (observation.round, observation.purpose)
        if isinstance(message, LeaveOut):
            self._away.add(peer)
        if peer in self._owed:
            self._told[self._owed.pop(peer)][peer] = type(message)
        if isinstance(message, Abandon):
            self._judge_abandoning(key, peer)
        if not isinstance(message, _REQUESTS):
            return
        step = self._running.setdefault(key, _Step())
        if step.request is not type(message):
            self._steps += 1
            self._running[key] = step = _Step(type(message))
        step.asked.add(peer)

    def _judge_abandoning(self, key: Key, peer: int) -> None:
        """A server tells those that the sum is over who are there, and so have answered."""
        where = self._where(key)
        if key in self._opened:
            if key not in self._abandoned:
                self._at_will.add(f"{where}: given up, though it was opened from the answers of its clients")
            self._abandoned.add(key)
            return
        if key[0] in self._refused:
            return
        if key[1] in self._rows and any(
            number == key[0] and purpose != key[1] and purpose in self._rows for number, purpose in self._abandoned
        ):
            return  # the sums of a round are abandoned together, and the first of them had its reason
        if key not in self._begun:
            self._judge_beforehand(key)
            return
        step = self._running.get(key)
        if step is None:
            return
        # In the last step all may have answered, and shares be false: else it would have been opened.
        unmasking = step.request is (SignedSurvivors if self.config.adversary == "active" else Survivors)
        if peer in step.asked - step.answered:
            self._at_will.add(f"{where}: given up without waiting for client {peer}")
        elif key not in self._abandoned and not unmasking and self._expected(key) <= step.answered:
            self._at_will.add(f"{where}: given up, though all had answered")
        self._abandoned.add(key)

    def _judge_beforehand(self, key: Key) -> None:
        """Rows are asked of those who are there, and so whoever is told that their sum is over has begun it."""
        if key[1] not in self._rows:
            self._beforehand.add(key)
        elif key not in self._abandoned:
            self._at_will.add(f"{self._where(key)}: given up before it had begun")
            self._abandoned.add(key)

    def _where(self, key: Key) -> str:
        return f"session {self._session}, round {key[0]}, {key[1]}"

    def _expected(self, key: Key) -> set[int]:
        return {int(party) for party in self._plan.expected(*key)}

    def _end(self, before: int | None = None) -> None:
        """Judge the sums of rounds that are over."""
        for said in [said for said in self._told if before is None or said[0][0] < before]:
            (number, purpose), answer = said
            told, due = self._told.pop(said), _NEXT[answer]
            went_on = sorted(party for party, kind in told.items() if kind is due)
            for party, kind in sorted(told.items()):
                if went_on and kind is not due and kind not in _ENDS:
                    self._apart.add(
                        f"session {self._session}, round {number}, {purpose}: client {party} had sent "
                        f"{answer.__name__} and was told {kind.__name__}, where client {went_on[0]} got {due.__name__}"
                    )
        if before is None:
            self._owed, self._running, self._refused, self._abandoned = {}, {}, set(), set()
            self._opened, self._begun, self._beforehand = set(), set(), set()
        else:
            self._running = {key: step for key, step in self._running.items() if key[0] >= before}

    def findings(self) -> list[Finding]:
        self._end()
        found = []
        if self._apart:
            found.append(
                Finding(
                    "trained-apart",
                    "high",
                    "Sums were ended for some of their clients only",
                    self._apart.told(),
                    "An honest server goes on with all clients that have answered, or with none. Clients train between "
                    "two steps of a sum: by ending it for the others, the server has single clients train alone, and "
                    "the next sum shows it how far they have come.",
                )
            )
        if self._at_will:
            found.append(
                Finding(
                    "given-up-at-will",
                    "high",
                    "The server gave sums up without a reason",
                    self._at_will.told(),
                    "No client had refused, and none was missing whom the server had waited for. Clients had trained "
                    "for these sums, and go on without having read one. Of a sum that was opened the server knows the "
                    "total, and clients begin the next round where they began this one: two such sums over different "
                    "clients, subtracted, show the part of those who are in one of them only.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._steps

    def looked_at(self) -> str:
        return f"{counted(self._steps, 'step')} of sums"
