"""What parties as processes do in `test_processes.py`."""

import os
from typing import Any

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerLost, PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.base import Transport

LARGE = 3 * 2**20
"""Far beyond what a pipe holds."""


def _soon() -> Deadline:
    return Deadline.after(20.0)


def send_large(transport: Transport) -> Any:
    """Everybody to everybody before anybody reads: sizes and senders."""
    for peer in transport.peers:
        transport.send(peer, bytes([transport.party]) * LARGE)
    frames = transport.gather(transport.peers, _soon())
    return {str(peer): [len(frame), bytes(frame)[0]] for peer, frame in frames.items()}


def hear_too_much(transport: Transport) -> Any:
    try:
        transport.receive([PartyId(1)], _soon(), limit=100)
    except PeerMisbehaved:
        return "refused"
    return "taken"


def send_too_much(transport: Transport) -> Any:
    transport.send(SERVER, bytes(101))


def wait_for_the_dead(transport: Transport) -> Any:
    try:
        transport.receive([PartyId(1)], _soon())
    except PeerLost as problem:
        return list(problem.parties)
    return None


def die(transport: Transport) -> Any:
    os._exit(3)


def wait_in_vain(transport: Transport) -> Any:
    """The server's part: from whom it hears at first, and then, when all of them wait for it."""
    heard = [sorted(transport.gather(transport.peers, deadline)) for deadline in (_soon(), Deadline.after(0.05))]
    for peer in transport.peers:
        transport.send(peer, b"go")
    return heard


def wait_for_the_server(transport: Transport) -> Any:
    transport.send(SERVER, b"here")
    return bytes(transport.receive([SERVER], _soon())[1]).decode()


def fail(transport: Transport) -> Any:
    raise ValueError("a reason")


def hang(transport: Transport) -> Any:
    transport.receive(transport.peers, Deadline.after(60.0))
