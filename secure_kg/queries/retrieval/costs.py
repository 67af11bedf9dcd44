"""Bytes that a step of a question makes clients send, in closed form; of lookups and announcements."""

from dataclasses import dataclass

from protocols.costs.lookup_bytes import NameLookup, VectorLookup, announcement
from protocols.foundation.identifiers import PartyId
from protocols.lookups.messages import TABLE_BYTES
from secure_kg.queries.retrieval.requests import CELL_BYTES, bytes_of_step
from secure_kg.queries.retrieval.terms import Kind, PlannedStep, PublicTerms


@dataclass(frozen=True, slots=True)
class SentBytes:
    """If nobody drops out. `another`: what each other client sends."""

    asker: int
    another: int


def lookup_of(step: PlannedStep, *, signed: bool, announced: bool) -> VectorLookup | NameLookup | None:
    """None for a step that scores."""
    if step.kind is Kind.NAMES:
        return NameLookup(step.terms, signed, announced)
    if step.vectors is None:
        return None
    each = CELL_BYTES if step.kind is Kind.ENTITIES else bytes_of_step(step.vectors.width)
    return VectorLookup(step.vectors, each * step.vectors.vectors, signed, announced)


def sent_bytes(public: PublicTerms, step: PlannedStep, *, signed: bool, announced: bool = True) -> SentBytes | None:
    """None for a step that scores. `announced`: whether sums of the model were opened before, as only others know."""
    lookup = lookup_of(step, signed=signed, announced=announced)
    if lookup is None:
        return None
    said = sum(announcement(step.kind.value, step.sizes, TABLE_BYTES).values())
    return SentBytes(said + _sum(lookup, public.asker), _sum(lookup, step.terms.scorers[0]))


def _sum(lookup: VectorLookup | NameLookup, party: PartyId) -> int:
    return sum(lookup.up(party).values())
