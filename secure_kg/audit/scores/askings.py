"""Check of askings: what the asker has sealed for a scorer reaches that scorer, once, and nobody else asks.

Where a question decides the batches, the same is asked of announcements.
"""

from typing import ClassVar

from protocols.lookups.messages import NextStep
from protocols.scores.encrypted.messages import AskerKey
from protocols.scores.messages import AskScores, ScoresAsked
from protocols.scores.plain import ClearQueries
from protocols.transport.tap import frame_hash
from secure_kg.audit.scores.checks import ScoreCheck
from secure_kg.audit.scores.session import ScoredSession
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.foundation.words import counted


class Askings(ScoreCheck):
    id: ClassVar[str] = "askings-relayed"
    question: ClassVar[str] = "Was a scorer asked by anybody but the asker, in other words, twice, or not at all?"

    def __init__(self, session: ScoredSession) -> None:
        super().__init__(session)
        self._given: dict[tuple[int, int], str] = {}
        """By round and scorer: the hash of what the asker has sealed for it, or said to all."""
        self._keys: dict[int, bytes] = {}
        self._steps: dict[int, NextStep] = {}
        """By round: what the asker has announced."""
        self._told: dict[tuple[int, int], int] = {}
        self._busy: set[tuple[int, int]] = set()
        """Rounds and scorers: to whom the server has sent anything else of that round."""
        self._relayed = 0
        self._forged, self._repeated, self._withheld = Evidence(), Evidence(), Evidence()

    def observe(self, observation: Observation) -> None:
        if isinstance(observation.message, NextStep):
            self._announcement(observation, observation.message)
            return
        batch = self.session.batches.get(observation.round)
        if batch is None:
            return
        if observation.direction == "received":
            if observation.peer == batch.terms.asker:
                self._take(observation)
            elif isinstance(observation.message, AskScores | ClearQueries):
                self._forged.add(f"round {observation.round}: client {observation.peer} asks, and is not the asker")
            return
        if isinstance(observation.message, ScoresAsked | ClearQueries):
            self._compare(observation)
        elif isinstance(observation.message, AskerKey):
            self._relayed += 1
            if self._keys.get(observation.round) != observation.message.key:
                self._forged.add(
                    f"round {observation.round}: client {observation.peer} was sent a key that is not the asker's"
                )
        elif observation.purpose and observation.peer in batch.terms.scorers and not self.ends(observation):
            self._busy.add((observation.round, observation.peer))

    def _announcement(self, observation: Observation, step: NextStep) -> None:
        number = observation.round
        if observation.direction == "received":
            if observation.peer == self.session.record.announced_by:
                self._steps.setdefault(number, step)
            return
        self._relayed += 1
        if self._steps.get(number) != step:
            self._forged.add(f"round {number}: client {observation.peer} was sent an announcement of somebody else")

    def _take(self, observation: Observation) -> None:
        number, message = observation.round, observation.message
        match message:
            case AskScores(sealed=sealed):
                for party, entry in sealed.items():
                    self._given.setdefault((number, party), frame_hash(entry))
            case ClearQueries(queries=queries):
                for scorer in self.session.batches[number].terms.scorers:
                    self._given.setdefault((number, int(scorer)), frame_hash(queries))
            case AskerKey(key=key):
                self._keys.setdefault(number, key)

    def _compare(self, observation: Observation) -> None:
        self._relayed += 1
        where, message = (observation.round, observation.peer), observation.message
        content = message.sealed if isinstance(message, ScoresAsked) else getattr(message, "queries", b"")
        if self._given.get(where) != frame_hash(content):
            self._forged.add(
                f"round {observation.round}: client {observation.peer} was sent an asking that the asker did not send"
            )
        self._told[where] = self._told.get(where, 0) + 1
        if self._told[where] > 1:
            self._repeated.add(f"round {observation.round}: client {observation.peer} was asked again")

    def findings(self) -> list[Finding]:
        for number, party in sorted((self._busy & self._given.keys()) - self._told.keys()):
            self._withheld.add(f"round {number}: client {party} is in the batch, and was not sent what it was asked")
        found = []
        if self._forged:
            found.append(
                Finding(
                    "asking-forged",
                    "high",
                    "Scorers were sent askings, keys or announcements that are not the asker's",
                    self._forged.told(),
                    "Only the asker may ask: whoever else does wants scores for itself. Scorers open what the asker "
                    "has sealed for them in this round and nothing else, so they refuse; in clear they cannot tell.",
                )
            )
        if self._repeated:
            found.append(
                Finding(
                    "asking-repeated",
                    "high",
                    "Scorers were asked the same batch more than once",
                    self._repeated.told(),
                    "An honest server passes an asking on once. A second answer to one batch would put the same "
                    "scores into two sums.",
                )
            )
        if self._withheld:
            found.append(
                Finding(
                    "asking-withheld",
                    "high",
                    "Scorers took part in a batch without having been asked",
                    self._withheld.told(),
                    "The asker had sealed its queries for them, and the server did not pass them on.",
                )
            )
        self._withheld = Evidence()
        return found

    @property
    def seen(self) -> int:
        return self._relayed

    def looked_at(self) -> str:
        return f"{counted(self._relayed, 'asking')} and keys that were passed on"
