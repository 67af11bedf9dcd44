"""Check of totals: the asker is sent the sum of what the contributors have sent, and of no others.

Scores in clear are added up again. Scores under masks are opened again; the asker's masks stay on. Of encrypted scores
the masks are opened, the ciphertexts counted and the contributors compared: whether a total is the sum of its
ciphertexts nobody can tell who lacks the asker's key, because the server adds a fresh encryption of the correction.
"""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import ProtocolError
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.lookups.messages import NamesTotal
from protocols.scores.encrypted.messages import EncryptedScores, EncryptedTotal
from protocols.scores.layout import ScoreLayout
from protocols.scores.messages import PURPOSE, ScoresTotal
from protocols.scores.plain import ClearScores, leave_out_few_holders
from protocols.sums.totals import SumTotal
from secure_kg.audit.scores.checks import ScoreCheck
from secure_kg.audit.scores.session import ScoredSession
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.foundation.words import counted, named_clients

Vector = npt.NDArray[np.unsignedinteger]


class ScoreTotals(ScoreCheck):
    id: ClassVar[str] = "score-totals"
    question: ClassVar[str] = "Was the asker, or anybody else, sent another total than that of the contributors?"

    def __init__(self, session: ScoredSession) -> None:
        super().__init__(session)
        self._opened: dict[tuple[int, str], OpenedSum] = {}
        self._clear: dict[int, dict[int, Vector]] = {}
        self._ciphertexts: dict[int, int] = {}
        self._totals = self._encrypted = 0
        self._false = Evidence()

    def opened(self, total: OpenedSum) -> None:
        self._opened = {key: one for key, one in self._opened.items() if key[0] >= total.round}
        self._opened[total.round, total.purpose] = total

    def observe(self, observation: Observation) -> None:
        message, number = observation.message, observation.round
        if observation.direction == "received":
            match message:
                case ClearScores():
                    self._clear = {one: kept for one, kept in self._clear.items() if one >= number}
                    self._clear.setdefault(number, {}).setdefault(observation.peer, message.vector)
                case EncryptedScores():
                    self._ciphertexts[number] = len(message.ciphertexts)
            return
        match message:
            case ScoresTotal() | NamesTotal():
                self._to_asker(observation)
                self._compare(observation, message.contributors, message.vector)
            case EncryptedTotal():
                self._to_asker(observation)
                self._count(observation, message)
            case SumTotal(purpose=purpose) if purpose == HOLDERS:
                self._totals += 1
                self._require(observation, self._opened.get((number, HOLDERS)), message.contributors, message.vector)

    def _to_asker(self, observation: Observation) -> None:
        batch = self.session.batches.get(observation.round)
        if batch is not None and observation.peer != batch.terms.asker:
            self._false.add(f"{_where(observation)}: sent to client {observation.peer}, who has not asked")

    def _compare(self, observation: Observation, contributors: list[int], vector: Vector) -> None:
        self._totals += 1
        batch = self.session.batches.get(observation.round)
        if batch is not None and batch.backend.server_reads_scores:
            self._in_clear(observation, ScoreLayout(batch.terms), contributors, vector)
        else:
            self._require(observation, self._opened.get((observation.round, PURPOSE)), contributors, vector)

    def _in_clear(
        self, observation: Observation, layout: ScoreLayout, contributors: list[int], vector: Vector
    ) -> None:
        given = self._clear.get(observation.round, {})
        if len(vector) != layout.entries:  # nothing is computed that is larger than what was sent
            self._judge(observation, set(given), set(contributors), same=False)
            return
        total = layout.group.zeros(layout.entries)
        for one in given.values():
            if len(one) == layout.entries:
                layout.group.add_into(total, one)
        try:
            leave_out_few_holders(total, layout)
        except ProtocolError:
            self._false.add(f"{_where(observation)}: scorers have sent what cannot be added up")
            return
        self._judge(observation, set(given), set(contributors), np.array_equal(total, vector))

    def _require(
        self, observation: Observation, opened: OpenedSum | None, contributors: list[int], vector: Vector
    ) -> None:
        if opened is None or opened.vector is None:
            self._false.add(f"{_where(observation)}: a total of a sum that was not opened")
            return
        same = np.array_equal(opened.vector, vector)
        self._judge(observation, set(opened.contributors), set(contributors), same)

    def _count(self, observation: Observation, message: EncryptedTotal) -> None:
        self._encrypted += 1
        opened, expected = self._opened.get((observation.round, PURPOSE)), self._ciphertexts.get(observation.round)
        if opened is None or opened.vector is None:
            self._false.add(f"{_where(observation)}: a total whose masks were not opened")
            return
        same = len(message.ciphertexts) == expected
        self._judge(observation, set(opened.contributors), set(message.contributors), same)

    def _judge(self, observation: Observation, took_part: set[int], named: set[int], same: bool) -> None:
        if took_part != named:
            names = named_clients(took_part ^ named)
            self._false.add(f"{_where(observation)}: of other contributors than it says ({names})")
        elif not same:
            self._false.add(f"{_where(observation)}: not the sum of what its contributors have sent")

    def findings(self) -> list[Finding]:
        found = []
        if self._false:
            found.append(
                Finding(
                    "false-score-totals",
                    "high",
                    "Totals of scores or of holders are not what the contributors have sent",
                    self._false.told(),
                    "The auditor adds up what scorers sent, or opens it as the server did, and gets another total. "
                    "The asker notices a false total of masked scores and refuses it; one in clear it takes.",
                )
            )
        if self._encrypted:
            found.append(
                Finding(
                    "encrypted-totals-not-recomputed",
                    "info",
                    "Totals under the asker's key could not be computed again",
                    (counted(self._encrypted, "encrypted total"),),
                    "Their contributors and sizes were compared, and their masks opened. Whether their ciphertexts are "
                    "the sum of those that scorers sent, only the holder of the asker's key can tell. These backends "
                    "do not stand against a server that changes totals.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._totals

    def looked_at(self) -> str:
        return f"{counted(self._totals, 'total')} computed again, {self._encrypted:,} encrypted ones not"


def _where(observation: Observation) -> str:
    return f"round {observation.round}, {observation.purpose}"
