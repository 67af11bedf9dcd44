"""Masked sums of a score session, computed again from its transcript: counts of holders, and scores under masks.

Of encrypted scores the masks alone are added up again. Their uploads are ciphertexts, which stand for vectors of zeros
here, as they do at the server: what is opened is the correction.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from protocols.alignment.psu.attempts import Attempt
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.lookups.messages import NamesTotal
from protocols.registry import SECRETLY_COUNTED
from protocols.scores.counting import count_task
from protocols.scores.encrypted.messages import EncryptedScores, EncryptedTotal
from protocols.scores.messages import PURPOSE, BatchServed, ScoresTotal
from protocols.sums.secagg.messages import MaskedInput
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.vectors import parameters_for
from protocols.sums.terms import Layout, SumTerms
from secure_kg.audit.scores.session import ScoredSession
from secure_kg.audit.view.attending import Known
from secure_kg.audit.view.opening import Opening
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.run_plan import PlannedSum, PublicState

_NEXT = ScoresTotal | EncryptedTotal | NamesTotal | BatchServed


@dataclass(frozen=True)
class ScorePlan:
    """The sums of a session by their round and purpose; a `secure_kg.audit.view.sum_plan.SumPlan`."""

    session: ScoredSession

    @property
    def blocks(self) -> tuple[Block, ...]:
        """No rows are shared."""
        return ()

    def terms_of(self, round_id: int, purpose: str) -> SumTerms[Layout]:
        """`ProtocolError` if the session has no such sum."""
        batch = self.session.batches.get(round_id)
        if batch is not None and purpose == HOLDERS and batch.counts_holders and SECRETLY_COUNTED.masked_terms:
            return SECRETLY_COUNTED.masked_terms(count_task(batch.terms))
        if batch is not None and purpose == PURPOSE and batch.backend.masked_terms is not None:
            return batch.backend.masked_terms(batch.terms)
        raise ProtocolError(f"no batch of round {round_id} has a masked sum '{purpose}'")

    def sum_of(self, round_id: int, purpose: str, public: PublicState) -> PlannedSum:
        return PlannedSum(self.terms_of(round_id, purpose))

    def parameters(self, participants: int) -> SumParameters:
        record = self.session.record
        return parameters_for(participants, len(record.parties), self.session.model, record.min_survivors)

    def union_attempt(self, number: int, public: PublicState) -> Attempt:
        raise ProtocolError("a session of score queries has no union")


class ScoreOpening(Opening):
    """`Opening` for a session of score queries."""

    def __init__(
        self,
        session: ScoredSession,
        identities: Mapping[PartyId, bytes] | None = None,
        known: Known | None = None,
    ) -> None:
        """`known`: what the server's program went by."""
        plan = ScorePlan(session)
        super().__init__(session.config, len(session.record.parties), None, identities, plan, known)
        self._greeting = session.greeting
        self._now(session=session.number)

    def _goes_on(self, observation: Observation) -> bool:
        sent = observation.direction == "sent"
        return sent and (isinstance(observation.message, _NEXT) or super()._goes_on(observation))


def as_masked(observation: Observation, plan: ScorePlan) -> Observation:
    """An upload of encrypted scores as what the masked sum beside it takes; everything else as it is."""
    message = observation.message
    if not isinstance(message, EncryptedScores):
        return observation
    try:
        layout = plan.terms_of(observation.round, observation.purpose).layout
    except ProtocolError:
        return observation
    zeros = layout.group.zeros(layout.entries)
    return replace(observation, message=MaskedInput(message.purpose, zeros, message.peers))
