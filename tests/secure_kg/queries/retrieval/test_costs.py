"""Bytes of announcements and lookups counted in closed form are those that travel in a question, to the byte."""

from collections import defaultdict

import pytest

from protocols.costs.lookup_bytes import announcement
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.lookups import steps
from protocols.lookups.messages import TABLE_BYTES, NextStep
from protocols.session.conversation import Conversation
from protocols.transport.base import Transport
from secure_kg.queries.retrieval.costs import lookup_of, sent_bytes
from secure_kg.queries.retrieval.terms import Kind, PlannedStep, PublicTerms
from tests.support.retrieval import DIM, UNION, World, answers, ask

QUESTION = '?x : cures(?y, ?x) & has("e01", ?y) | owns("e05", ?x)'
_SUMMED = ("advertise keys/", "share keys/", "masked input/", "unmasking/")


class Ends:
    """Every party's end of the wire."""

    def __init__(self, parties: int) -> None:
        self.of: dict[PartyId, Transport] = {}
        self.bends = dict.fromkeys(range(parties), self._kept)

    def _kept(self, conversation: Conversation) -> Conversation:
        self.of[conversation.transport.party] = conversation.transport
        return conversation

    def sent(self, sender: PartyId, to: PartyId, step: int) -> dict[str, int]:
        """By phase, in the step of this number."""
        first = steps.round_of(step)
        counts: dict[str, int] = defaultdict(int)
        for key, count in self.of[sender].traffic.counts.items():
            if key.direction == "sent" and key.peer == to and first <= key.round < first + steps.ROUNDS:
                counts[key.phase] += count.bytes
        return counts


@pytest.mark.parametrize("encoder", ["gqe", "q2p"])
def test_of_every_lookup_of_a_question(encoder: str) -> None:
    world, ends = World(encoder, clients=4), Ends(5)
    session = ask(world, QUESTION, asker=PartyId(2), backend="masked", bends=ends.bends)
    answers(session)
    retrieved = session.outcomes[0].retrieved
    assert retrieved is not None
    clients = tuple(PartyId(number) for number in range(1, 5))
    public = PublicTerms(
        clients=clients,
        asker=PartyId(2),
        union=UNION,
        dim=DIM,
        score=world.whole.size.compares,
        clip=16.0,
        backend="masked",
        top=5,
        least=1,
    )
    seen: set[Kind] = set()
    for number, asked in enumerate(retrieved.steps):
        step = public.planned(number, NextStep(asked.kind, list(asked.sizes), bytes(TABLE_BYTES)))
        seen |= {step.kind} if compared(public, step, number, ends, announced=number > 0) else set()
        assert asked.sent == sent_bytes(public, step, signed=False)
    assert seen == {Kind.ENTITIES, Kind.PROJECTIONS, Kind.NAMES}


def compared(public: PublicTerms, step: PlannedStep, number: int, ends: Ends, *, announced: bool) -> bool:
    """Whether it was a lookup; then all parties have sent what was counted."""
    lookup = lookup_of(step, signed=False, announced=announced)
    if lookup is None:
        assert sent_bytes(public, step, signed=False) is None
        return False
    said = announcement(step.kind.value, step.sizes, TABLE_BYTES)
    for party in public.clients:
        asks = party == public.asker
        assert ends.sent(party, SERVER, number) == lookup.up(party) | (said if asks else {})
        whole = ends.sent(SERVER, party, number)
        down = {phase: size for phase, size in whole.items() if not phase.startswith(_SUMMED)}
        assert down == lookup.down(party) | ({} if asks else said)
    counted = sent_bytes(public, step, signed=False, announced=announced)
    assert counted is not None
    assert counted.asker == sum(ends.sent(public.asker, SERVER, number).values())
    assert counted.another == sum(ends.sent(step.terms.scorers[0], SERVER, number).values())
    return True
