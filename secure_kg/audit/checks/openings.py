"""Of each client one secret is opened, never both; and no vector counts whose masks are open.

A client's upload lies under pairwise masks and a mask of its own. For a client that dropped out the server is given the
first, for one that survived the second. With both it reads the upload. So nobody may be called dropped to some and
surviving to others, and a vector that comes after its sender was called dropped must not be used.
"""

from protocols.sums.secagg.messages import MaskedInput, Survivors, UnmaskShares
from protocols.sums.totals import SumTotal
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted

Key = tuple[int, int, str]
"""Session, round, purpose."""


class BothShares(Check):
    id = "both-shares"
    question = "Did the server ask for, or get, both secrets of a client?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._answers = 0
        self._dropped: dict[Key, set[int]] = {}
        self._mask_keys: dict[tuple[Key, int], set[int]] = {}
        self._seeds: dict[tuple[Key, int], set[int]] = {}

    def begin_session(self) -> None:
        self._session += 1

    def observe(self, observation: Observation) -> None:
        key, message = (self._session, observation.round, observation.purpose), observation.message
        match message:
            case Survivors():
                self._dropped.setdefault(key, set()).update(message.dropped)
            case UnmaskShares():
                self._answers += 1
                for owner in message.mask_key_shares:
                    self._mask_keys.setdefault((key, owner), set()).add(observation.peer)
                for owner in message.seed_shares:
                    self._seeds.setdefault((key, owner), set()).add(observation.peer)

    def findings(self) -> list[Finding]:
        both = Evidence()
        for (key, owner), helpers in sorted(self._mask_keys.items()):
            others = self._seeds.get((key, owner), set())
            if others:
                both.add(
                    f"round {key[1]}, {key[2]}: of client {owner} {len(helpers)} shares of its mask key "
                    f"and {len(others)} of its self-mask seed"
                )
        if not both:
            return []
        return [
            Finding(
                "both-shares",
                "high",
                "Shares of both secrets of one client were given to the server",
                both.told(),
                "With enough shares of each the server removes all masks from this client's upload and reads it. "
                "A server gets there by telling some clients that the other one dropped out, and others that it "
                "survived. Use --adversary active: clients then compare signed lists before they answer.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._answers

    def looked_at(self) -> str:
        return f"{counted(self._answers, 'answer')} in the unmasking step"


class LateVectors(Check):
    id = "vector-after-opening"
    question = "Was a vector taken whose sender's keys were open already?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._inputs = 0
        self._dropped: dict[Key, set[int]] = {}
        self._late: dict[Key, set[int]] = {}
        self._seeds: dict[Key, set[int]] = {}
        self._counted: dict[Key, set[int]] = {}

    def begin_session(self) -> None:
        self._session += 1

    def observe(self, observation: Observation) -> None:
        key, message = (self._session, observation.round, observation.purpose), observation.message
        match message:
            case Survivors():
                self._dropped.setdefault(key, set()).update(message.dropped)
            case MaskedInput():
                self._take(key, observation.peer)
            case UnmaskShares():
                self._seeds.setdefault(key, set()).update(message.seed_shares)
            case SumTotal():
                of = self._session, message.of_round, message.purpose
                self._counted.setdefault(of, set()).update(message.contributors)

    def ignored(self, observation: Observation) -> None:
        """A vector that an honest server drops is there all the same."""
        if isinstance(observation.message, MaskedInput) and observation.direction == "received":
            self._take((self._session, observation.round, observation.purpose), observation.peer)

    def _take(self, key: Key, peer: int) -> None:
        self._inputs += 1
        if peer in self._dropped.get(key, set()):
            self._late.setdefault(key, set()).add(peer)

    def findings(self) -> list[Finding]:
        used, harmless = Evidence(), Evidence()
        for key, parties in sorted(self._late.items()):
            for party in sorted(parties):
                line = f"round {key[1]}, {key[2]}: client {party} was called dropped, and then its vector came"
                opened = party in self._seeds.get(key, set()) or party in self._counted.get(key, set())
                (used if opened else harmless).add(line)
        found = []
        if used:
            found.append(
                Finding(
                    "vector-after-opening",
                    "high",
                    "A vector was used after the keys of its sender had been opened",
                    used.told(),
                    "The pairwise masks of these uploads were open when they came, and their own masks were opened as "
                    "well: the server can read them one by one.",
                )
            )
        if harmless:
            found.append(
                Finding(
                    "late-vector",
                    "info",
                    "Vectors came after their senders had been called dropped, and were not used",
                    harmless.told(),
                    "Such an upload still lies under its sender's own mask, whose seed was not opened.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._inputs

    def looked_at(self) -> str:
        dropped = sum(map(len, self._dropped.values()))
        return f"{counted(self._inputs, 'masked upload')}, {counted(dropped, 'dropout')} in sums"
