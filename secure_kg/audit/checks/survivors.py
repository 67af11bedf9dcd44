"""Check of survivors: everybody is told the same set, and nobody is missing from it who has answered.

A client that is called dropped to some and surviving to others has both its secrets asked for. A client that is left
out of a sum at the server's will makes two sums differ by it alone. Clients may refuse to open either; the server has
cheated all the same.
"""

from dataclasses import dataclass, field

from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    Survivors,
)
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted

Key = tuple[int, str]
"""Round and purpose."""


@dataclass(slots=True)
class _Sum:
    answered: dict[str, set[int]] = field(default_factory=dict)
    """By step: who had answered when the server went on to the next one."""
    taken: dict[str, set[int]] = field(default_factory=dict)
    """By step: who is in what the server sent then. Of inputs: everybody but those who are called dropped."""
    peers: dict[int, set[int]] = field(default_factory=dict)
    """By client: whose shares it was sent."""
    dropped: dict[int, list[set[int]]] = field(default_factory=dict)
    """By client: whom it was told to have dropped out, each time it was told."""


class OneStory(Check):
    id = "one-set-of-survivors"
    question = "Were clients told different stories of who is in a sum, or left out though they had answered?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._lists = 0
        self._running: dict[Key, _Sum] = {}
        self._different, self._ignored = Evidence(), Evidence()

    def begin_session(self) -> None:
        self._end()
        self._session += 1

    def observe(self, observation: Observation) -> None:
        peer, key = observation.peer, (observation.round, observation.purpose)
        message = observation.message
        match message:
            case AdvertiseKeys():
                self._end(before=observation.round)
                self._answer(key, "keys", peer)
            case ShareKeys():
                self._answer(key, "shares", peer)
            case MaskedInput():
                self._answer(key, "input", peer)
            case KeyDirectory():
                self._sum(key).taken.setdefault("keys", set()).update({peer, *message.mask_keys})
            case EncryptedShares():
                self._sum(key).taken.setdefault("shares", set()).update({peer, *message.sealed})
                self._sum(key).peers[peer] = set(message.sealed)
            case Survivors():
                self._lists += 1
                running = self._sum(key)
                running.taken.setdefault("input", running.answered.get("input", set()).copy())
                running.taken["input"] -= set(message.dropped)
                running.dropped.setdefault(peer, []).append(set(message.dropped))

    def opened(self, total: OpenedSum) -> None:
        where = f"session {self._session}, round {total.round}, {total.purpose}"
        for one in total.withheld:
            self._ignored.add(f"{where}: client {one.of} had sent its {one.what}, and client {one.to} did not get them")

    def _sum(self, key: Key) -> _Sum:
        return self._running.setdefault(key, _Sum())

    def _answer(self, key: Key, step: str, peer: int) -> None:
        running = self._sum(key)
        if step not in running.taken:  # what comes later is late
            running.answered.setdefault(step, set()).add(peer)

    def _end(self, before: int | None = None) -> None:
        """Judge the sums of rounds that are over."""
        for key in [key for key in self._running if before is None or key[0] < before]:
            self._judge(key, self._running.pop(key))

    def _judge(self, key: Key, running: _Sum) -> None:
        where = f"session {self._session}, round {key[0]}, {key[1]}"
        for step, taken in running.taken.items():
            for party in sorted(running.answered.get(step, set()) - taken):
                self._ignored.add(f"{where}: client {party} had sent its {step}, and was left out")
        named = {party for lists in running.dropped.values() for one in lists for party in one}
        for party, lists in sorted(running.dropped.items()):
            expected = named & running.peers.get(party, named)
            for one in lists:
                if one != expected:
                    self._different.add(
                        f"{where}: client {party} was told that {_names(one)} dropped out, others that "
                        f"{_names(expected - one)} did, too"
                    )

    def findings(self) -> list[Finding]:
        self._end()
        found = []
        if self._different:
            found.append(
                Finding(
                    "different-survivors",
                    "high",
                    "Clients of one sum were told different stories of who dropped out",
                    self._different.told(),
                    "Of a client that dropped out the pairwise masks are opened, of a survivor its own mask. A server "
                    "that calls a client both asks for both, and with both it reads that client's upload.",
                )
            )
        if self._ignored:
            found.append(
                Finding(
                    "answers-ignored",
                    "high",
                    "Clients were left out of sums, or kept from others, though they had answered",
                    self._ignored.told(),
                    "These are no dropouts: the server had their answers when it went on without them. By choosing who "
                    "is in a sum, it makes sums that differ by single clients. By choosing whom a client is shown, it "
                    "makes that client's masks rest on few others.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._lists

    def looked_at(self) -> str:
        return f"{counted(self._lists, 'list')} of survivors"


def _names(parties: set[int]) -> str:
    if not parties:
        return "nobody"
    return ("clients " if len(parties) > 1 else "client ") + ", ".join(str(party) for party in sorted(parties))
