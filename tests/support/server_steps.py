"""A server of one masked sum, brought to any of its steps."""

from protocols.foundation.identifiers import PartyId
from protocols.primitives.group import GroupVector
from protocols.sums.secagg.messages import (
    MaskedInput,
)
from protocols.sums.secagg.server import Step
from tests.support.secagg_sessions import (
    PURPOSE,
    Federation,
    Sum,
    complete,
    everyone,
)

EVERYONE = everyone(4)
ONE, TWO, THREE, FOUR = EVERYONE
PARAMETERS = complete(4, 3)


def masked_by_two(begun: Sum, vector: GroupVector) -> MaskedInput:
    """A vector of client 2, which says that it has masked it with everybody else."""
    return MaskedInput(PURPOSE, vector, begun.terms.peers_digest(TWO, [ONE, THREE, FOUR]))


def begun_at(step: Step, signed: bool = True, silent_at: dict[PartyId, Step] | None = None) -> Sum:
    return Federation(EVERYONE, signed=signed).begin(PARAMETERS).until(step, silent_at)


def finish(begun: Sum, done: PartyId | None = None) -> None:
    """The rest of the sum, in which nobody answers twice; it must be exact."""
    for party in sorted(begun.server.missing - {done}):
        begun.server.receive(party, begun.answer(party))
    begun.inbox = begun.server.close()
    assert begun.until(Step.DONE).server.total().tolist() == begun.exact(EVERYONE)
    assert begun.server.survivors == set(EVERYONE)
