"""A client that is gone in the middle of a run, at a chosen message."""

from collections.abc import Callable

from protocols.foundation.identifiers import PartyId
from protocols.foundation.wire import Frame
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from tests.support.federation_in_threads import Vanished

VICTIM = 2


class DyingTransport(InProcessTransport):
    """Delivers so many messages; at the next one its party is gone."""

    def __init__(self, network: InProcessNetwork, party: PartyId, messages: int) -> None:
        super().__init__(network, party, [PartyId(0)])
        self._left = messages

    def _post(self, to: PartyId, frame: Frame) -> None:
        if self._left == 0:
            raise Vanished
        self._left -= 1
        super()._post(to, frame)


def dying_after(messages: int) -> Callable[[InProcessNetwork, int], Transport]:
    def transport(network: InProcessNetwork, number: int) -> Transport:
        party = PartyId(number)
        return DyingTransport(network, party, messages) if number == VICTIM else network.endpoint(party)

    return transport
