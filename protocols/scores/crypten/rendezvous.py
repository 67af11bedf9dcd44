"""What the processes of a group bring along: a seat, keys, and an address to meet at.

Traffic stays on the loopback interface, unless `GLOO_SOCKET_IFNAME` names another one, as everywhere in torch.
Nothing on it is encrypted or authenticated.

This module imports torch in `process_group` only, which the server's process does not call.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

INTERFACE: Final = "GLOO_SOCKET_IFNAME"
LOOPBACK: Final = "lo"
STALL: Final = 60.0
"""Seconds after which a rank that waits for another one gives the group up."""
_SIOCGIFADDR: Final = 0x8915


@dataclass(frozen=True, slots=True)
class Seat:
    """One process's place in a group: ranks 0 to `computing` - 1 compute, the last one deals."""

    rank: int
    computing: int
    host: str
    port: int
    stall: float = STALL

    @property
    def dealer(self) -> int:
        """The rank of the dealer."""
        return self.computing


@dataclass(frozen=True, slots=True)
class RankKeys:
    """What a computing rank draws from: streams shared with its neighbours in the ring of ranks, with nobody, and with
    the dealer.
    """

    previous: bytes = field(repr=False)
    following: bytes = field(repr=False)
    local: bytes = field(repr=False)
    dealer: bytes = field(repr=False)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("keys are not serialised")


def interface() -> str:
    """The network interface of all groups of this process."""
    return os.environ.get(INTERFACE, LOOPBACK)


def address_of(name: str) -> str:
    """The IPv4 address of an interface of this machine; `ValueError` if it has none."""
    import fcntl

    if not 0 < len(name.encode()) < 16:
        raise ValueError(f"no network interface is named '{name}'")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            found = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()))
        except OSError:
            raise ValueError(f"the network interface '{name}' has no IPv4 address") from None
    return socket.inet_ntoa(found[20:24])


def one_line(problem: BaseException) -> str:
    """The first sentence of an error of gloo, without its place in a source file."""
    first = (str(problem).splitlines() or [type(problem).__name__])[0]
    plain = first.partition("] ")[2] if first.startswith("[") else first
    return plain.partition(". ")[0]


def listen() -> socket.socket:
    """A socket on a free port of the interface; nothing else of this machine's addresses is bound."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind((address_of(interface()), 0))
        listener.listen(64)
    except OSError:
        listener.close()
        raise
    return listener


@contextmanager
def process_group(seat: Seat, listener: socket.socket | None = None) -> Iterator[None]:
    """This process's part of a group of `computing` + 1. `RuntimeError` if they do not meet, or part in between.

    `listener`: the first rank's socket on the seat's port.
    """
    import torch.distributed as dist

    if dist.is_initialized():
        raise RuntimeError("this process is in a process group already: CrypTen computes with one party per process")
    patience = timedelta(seconds=seat.stall)
    outer = os.environ.get(INTERFACE)
    os.environ[INTERFACE] = interface()
    try:
        handle = listener.detach() if listener is not None else None
        store = dist.TCPStore(  # type: ignore[attr-defined]
            seat.host,
            seat.port,
            seat.computing + 1,
            is_master=handle is not None,
            timeout=patience,
            wait_for_workers=False,
            master_listen_fd=handle,
        )
        try:
            dist.init_process_group(
                "gloo", store=store, rank=seat.rank, world_size=seat.computing + 1, timeout=patience
            )
            yield
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
    finally:
        os.environ.pop(INTERFACE)
        if outer is not None:
            os.environ[INTERFACE] = outer
