"""Errors that MPI reports when a connection between hosts breaks cost the peer behind it, and no other."""

from typing import Any

import pytest
from mpi4py import MPI

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerLost
from protocols.foundation.identifiers import PartyId
from protocols.transport.mpi import MpiTransport


class Sent:
    def Test(self) -> bool:
        return True


class BrokenWorld:
    """A server's communicator: client 2 was on a host that is gone, and looking for messages fails."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 3

    def Isend(self, frame: Any, dest: int, tag: int) -> Sent:
        if tag == 1:
            self.sent.append(dest)
        if dest == 2:
            raise MPI.Exception(MPI.ERR_OTHER)
        return Sent()

    def Improbe(self, **_: Any) -> None:
        raise MPI.Exception(MPI.ERR_OTHER)


def test_a_send_that_fails_at_once_is_a_lost_peer_and_is_not_tried_again() -> None:
    world: Any = BrokenWorld()
    transport = MpiTransport(world)
    for _ in range(2):
        with pytest.raises(PeerLost) as lost:
            transport._post(PartyId(2), bytearray(b"frame"))
        assert lost.value.parties == (2,)
    transport._post(PartyId(1), bytearray(b"frame"))
    assert world.sent == [1]


def test_an_error_while_messages_are_looked_for_is_silence() -> None:
    world: Any = BrokenWorld()
    assert MpiTransport(world)._take([PartyId(1), PartyId(2)], Deadline.after(0.05)) is None
