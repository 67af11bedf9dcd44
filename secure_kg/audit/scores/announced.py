"""Check of announcements: in a session of questions every recorded batch is the one that the asker has announced.

Which batches there were is the server's own word, and all other checks go by it. A server that writes down another
kind or another size would have them look for something else. So the announcements of the transcript are put through
the program by which all parties make their terms. Settings that the record does not name are those of its own batches:
one set of settings has to explain all of them.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

import msgspec

from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.lookup_registry import EXACT, LOOKUPS, NAMES, VECTORS
from protocols.lookups import steps
from protocols.lookups.messages import NextStep
from secure_kg.audit.scores.checks import ScoreCheck
from secure_kg.audit.scores.session import ScoredSession
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.foundation.words import counted
from secure_kg.models.queries.shapes import Score
from secure_kg.queries.retrieval.rules import Exact
from secure_kg.queries.retrieval.terms import PublicTerms
from secure_kg.runs.records.scores import ScoreBatch, ScoreSession

_SCORES: Final[tuple[Score, ...]] = ("l2", "squared", "dot")
"""As public terms name them: by what they are, not as usual."""
_ANY: Final = "topk"
"""The backend of a session that came to no scores."""


class AnnouncedBatches(ScoreCheck):
    id: ClassVar[str] = "batches-announced"
    question: ClassVar[str] = "Does the record list other batches than the asker has announced?"

    def __init__(self, session: ScoredSession) -> None:
        super().__init__(session)
        self._given: dict[int, NextStep] = {}
        """By number of the step: what the asker has said."""
        self._relayed: set[int] = set()
        """Steps of which the server has told anybody."""

    def observe(self, observation: Observation) -> None:
        message, (number, inside) = observation.message, divmod(observation.round - 1, steps.ROUNDS)
        if not isinstance(message, NextStep) or self._asker is None or inside or number < 0:
            return
        if observation.direction == "sent":
            self._relayed.add(number)
        elif observation.peer == self._asker:
            self._given.setdefault(number, message)

    def findings(self) -> list[Finding]:
        if self._asker is None:
            return []
        return [*self._of_batches(), *self._of_steps()]

    def _of_batches(self) -> Iterator[Finding]:
        silent, other = Evidence(), Evidence()
        explained = _explained(self.session.record, self._given)
        for number, batch in enumerate(self.session.record.batches):
            where = f"round {batch.round}, {batch.backend}"
            if number not in self._given:
                silent.add(f"{where}: step {number + 1} was not announced")
            elif number not in explained:
                other.add(f"{where}: announced was '{self._given[number].kind}' of {self._given[number].sizes}")
        if silent:
            yield Finding(
                "batches-not-announced",
                "high" if self.session.record.transcript is not None else "medium",
                "The record lists batches that the asker has not announced",
                silent.told(),
                "A server writes a batch down when it has passed its announcement on. The transcript of a server that "
                "was ended by force may lack the last one; otherwise the list is not that of this session.",
            )
        if other:
            yield Finding(
                "batches-not-as-announced",
                "high",
                "The record lists other batches than the asker has announced",
                other.told(),
                "All parties make the terms of a batch from its announcement and one set of settings. What is listed "
                "here does not follow from it, so that other checks have looked for batches that there were not.",
            )

    def _of_steps(self) -> Iterator[Finding]:
        """The asker says at last that there is no more. Anything else that comes last was refused, or broken off."""
        listed = len(self.session.record.batches)
        beyond = sorted(
            number
            for number in self._relayed
            if number >= listed and (number not in self._given or self._given[number].kind != steps.END)
        )
        if not beyond:
            return
        went_on = any(number > listed for number in self._relayed)
        yield Finding(
            "announced-without-a-batch",
            "high" if went_on else "medium",
            "Steps were announced, and the record lists no batches of them",
            tuple(f"round {steps.round_of(number)}: step {number + 1}" for number in beyond[:5]),
            "The session went on after such a step, so that the server has left batches out of its list."
            if went_on
            else "The server ended the session there. It does so if an asker announces a step outside of the "
            "session's settings, which this record does not hold.",
        )

    @property
    def _asker(self) -> int | None:
        return self.session.record.announced_by

    @property
    def seen(self) -> int:
        return len(self._given)

    def looked_at(self) -> str:
        if self._asker is None:
            return "all parties knew the batches of this session beforehand"
        return f"{counted(len(self._given), 'announcement')}, {len(self.session.record.batches):,} recorded batches"


def _explained(record: ScoreSession, given: dict[int, NextStep]) -> set[int]:
    """Numbers of the batches that follow from their announcements, under the settings that explain most of them."""
    best = set[int]()
    for public in _settings(record):
        bound = next((batch.bound for batch in record.batches if batch.backend == VECTORS), 0.0)
        found = {
            number
            for number, batch in enumerate(record.batches)
            if number in given and _batch_of(public, number, given[number], bound) == batch
        }
        best = max(best, found, key=len)
    return best


def _batch_of(public: PublicTerms, number: int, announced: NextStep, bound: float) -> ScoreBatch | None:
    """`bound`: of vectors, which is a setting of the run."""
    try:
        batch = public.planned(number, announced).batch
    except (ValueError, OverflowError, ProtocolError):
        return None
    return msgspec.structs.replace(batch, bound=bound) if batch.backend == VECTORS else batch


def _settings(record: ScoreSession) -> Iterator[PublicTerms]:
    """What the session may have been held under: one for each way in which models compare."""
    scored = next((batch for batch in record.batches if batch.backend not in LOOKUPS), None)
    exact = next((batch for batch in record.batches if batch.backend == EXACT), None)
    union = scored or exact
    named = [batch.positions for batch in record.batches if batch.backend == NAMES]
    for score in _SCORES:
        yield PublicTerms(
            clients=tuple(PartyId(party) for party in record.parties),
            asker=PartyId(record.announced_by or 0),
            union=union.positions if union is not None else 1,
            dim=record.dimensions,
            score=score,
            clip=1.0,
            backend=scored.backend if scored is not None else _ANY,
            top=scored.top if scored is not None else max(named, default=1),
            least=scored.least if scored is not None else 1,
            hidden=scored is not None and scored.hidden is not None,
            exact=Exact.BESIDE if exact is not None else Exact.NO,
        )
