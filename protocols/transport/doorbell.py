"""A doorbell: who has sent something to a process on the same host wakes it, so that it need not look so often.

MPI has no way to sleep until a message arrives. A rank therefore has a Unix datagram socket with a random name in the
abstract namespace (Linux), tells its peers the name over MPI, and sleeps on it; whoever has sent it a message rings.
Nothing depends on it: where there are no such sockets, between hosts, and if a ring is lost, a rank looks from time to
time as it would without.

A ring carries the number of who rings and no more. Everybody on the host may ring, and say that it was another: all
that it does is to have the rank look for messages once.
"""

import contextlib
import secrets
import select
import socket
import struct
import time
from typing import Final, Self

from protocols.foundation.identifiers import PartyId

_RING: Final = struct.Struct("<I")
_MOST_AT_ONCE: Final = 64
_PREFIX: Final = b"\0secure-kg-"
NAME_BYTES: Final = len(_PREFIX) + 32


class Doorbell:
    """`name` is empty if this host has no such sockets: then it is a plain sleep, and nobody rings."""

    def __init__(self, party: PartyId) -> None:
        self.name = b""
        self._ring = _RING.pack(party)
        self._socket: socket.socket | None = None
        try:
            bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        except (AttributeError, OSError):
            return
        name = _PREFIX + secrets.token_hex(16).encode()
        try:
            bell.bind(name)
        except OSError:
            bell.close()
            return
        self._socket, self.name = bell, name

    def ring(self, name: bytes) -> bool:
        """Wake the process whose doorbell has this name. False if there is none on this host."""
        if self._socket is None or len(name) != NAME_BYTES or not name.startswith(_PREFIX):
            return False
        try:
            self._socket.sendto(self._ring, name)
        except BlockingIOError:  # it has rings enough to wake up
            return True
        except OSError:
            return False
        return True

    def sleep(self, seconds: float) -> set[PartyId]:
        """Until somebody rings, or so long; who has rung."""
        if self._socket is None:
            time.sleep(seconds)
            return set()
        rung = set[PartyId]()
        if select.select([self._socket], [], [], seconds)[0]:  # `poll` knows whole milliseconds only
            with contextlib.suppress(OSError):
                for _ in range(_MOST_AT_ONCE):
                    ring = self._socket.recv(_RING.size + 1)
                    if len(ring) == _RING.size:
                        rung.add(PartyId(_RING.unpack(ring)[0]))
        return rung

    def close(self) -> None:
        """Nobody can ring from now on. Idempotent."""
        if self._socket is not None:
            self._socket.close()
            self._socket, self.name = None, b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
