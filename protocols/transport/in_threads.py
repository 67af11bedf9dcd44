"""Parties as threads of one process: a server, its clients, and what became of each.

For simulations and tests. Each party gets its own end of an in-process network and does what it would do as a process
of its own; frames are copied, so that no party shares memory with another. Nothing is protected: whoever runs this
reads all clients' data.

A client that raises is a dropout to the others, as one whose process has died. Clients that wait for a server that has
ended get `PeerLost` at once; among processes they would be ended with the job.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork

T = TypeVar("T")
S = TypeVar("S")
C = TypeVar("C")
Endpoint: TypeAlias = Callable[[InProcessNetwork, PartyId], Transport]

_FOR_EVER: Final = threading.TIMEOUT_MAX


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """How a party ended: with a value, with an error, or, if it had no time left, with neither."""

    values: tuple[T, ...] = ()
    error: BaseException | None = None

    @property
    def hangs(self) -> bool:
        """Whether its thread is still running."""
        return not self.values and self.error is None

    def result(self) -> T:
        """What the party returned; raises what it raised."""
        if self.error is not None:
            raise self.error
        if not self.values:
            raise TimeoutError("the party has not ended in time")
        return self.values[0]


@dataclass(frozen=True, slots=True)
class Federation(Generic[S, C]):
    """How all parties ended."""

    server: Ended[S]
    clients: dict[PartyId, Ended[C]]


def endpoint(network: InProcessNetwork, party: PartyId) -> Transport:
    """The usual end of `party`."""
    return network.endpoint(party)


def run_in_process(
    serve: Callable[[Transport], S],
    take_part: Mapping[PartyId, Callable[[Transport], C]],
    *,
    endpoint: Endpoint = endpoint,
    seconds: float = _FOR_EVER,
) -> Federation[S, C]:
    """Run the server and one client for each entry of `take_part` until all have ended.

    `seconds`: how long to wait for each party in turn. `endpoint`: makes the transports, in the party's own thread.
    """
    network = InProcessNetwork(len(take_part))
    server = Party(SERVER, serve, network, endpoint)
    clients = {number: Party(number, part, network, endpoint) for number, part in take_part.items()}
    server.start()
    for client in clients.values():
        client.start()
    return Federation(server.ended(seconds), {number: client.ended(seconds) for number, client in clients.items()})


class Party(threading.Thread, Generic[T]):
    """The thread of one party."""

    def __init__(
        self, number: PartyId, part: Callable[[Transport], T], network: InProcessNetwork, endpoint: Endpoint
    ) -> None:
        super().__init__(name=f"party {number}", daemon=True)
        self._number, self._part, self._network, self._endpoint = number, part, network, endpoint
        self._ended: Ended[T] = Ended()
        self.over = threading.Event()
        """Set at the end. Wait for it instead of `join`, which takes a thread for ended if Ctrl-C interrupts it."""

    def run(self) -> None:
        try:
            with self._endpoint(self._network, self._number) as transport:
                value = self._part(transport)
            self._ended = Ended((value,))
        except BaseException as problem:  # told to the caller, who must not wait for a thread that is gone
            self._ended = Ended(error=problem)
        finally:
            if self._number == SERVER:
                self._network.end(SERVER)
            self.over.set()

    def ended(self, seconds: float) -> Ended[T]:
        self.over.wait(min(seconds, threading.TIMEOUT_MAX))
        return self._ended
