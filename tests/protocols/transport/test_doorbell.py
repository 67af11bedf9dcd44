"""Doorbells: who rings is heard and ends a sleep; a name that is none, or of nobody, does no harm."""

import socket
import threading
import time

import pytest

from protocols.foundation.identifiers import PartyId
from protocols.transport.doorbell import NAME_BYTES, Doorbell

ONE, TWO, THREE = PartyId(1), PartyId(2), PartyId(3)
LONG = 60.0
"""Nobody sleeps so long here: a ring that is not heard would be noticed by the test's own time limit."""


def test_rings_end_a_sleep_and_say_whose_they_are() -> None:
    with Doorbell(ONE) as mine, Doorbell(TWO) as second, Doorbell(THREE) as third:
        assert second.ring(mine.name)
        assert third.ring(mine.name)
        assert mine.sleep(LONG) == {TWO, THREE}
        assert mine.sleep(0.0) == set()


def test_a_ring_from_another_thread_ends_a_sleep_under_way() -> None:
    with Doorbell(ONE) as mine, Doorbell(TWO) as other:

        def later() -> None:
            time.sleep(0.05)
            other.ring(mine.name)

        thread = threading.Thread(target=later)
        thread.start()
        assert mine.sleep(LONG) == {TWO}
        thread.join()


def test_rings_beyond_what_the_socket_holds_block_nobody() -> None:
    with Doorbell(ONE) as mine, Doorbell(TWO) as other:
        assert all(other.ring(mine.name) for _ in range(2000))
        assert mine.sleep(LONG) == {TWO}


def test_a_bell_that_is_gone_cannot_be_rung() -> None:
    with Doorbell(ONE) as mine, Doorbell(TWO) as other:
        name = other.name
        other.close()
        other.close()
        assert not mine.ring(name)
        assert not other.ring(mine.name)
        assert other.sleep(0.0) == set()


@pytest.mark.parametrize("name", [b"", b"/tmp/somebody.socket", b"\0" + b"x" * (NAME_BYTES - 1), b"\0secure-kg-", b"x"])
def test_a_name_of_another_form_is_not_rung(name: bytes) -> None:
    with Doorbell(ONE) as mine:
        assert not mine.ring(name)


def test_what_is_no_ring_wakes_and_names_nobody() -> None:
    with Doorbell(ONE) as mine, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        for sent in (b"", b"123", b"12345", b"x" * 4096):
            stranger.sendto(sent, mine.name)
            assert mine.sleep(LONG) == set()


def test_where_there_are_no_such_sockets_it_is_a_plain_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> socket.socket:
        raise OSError("not here")

    with Doorbell(TWO) as other:
        monkeypatch.setattr(socket, "socket", none)
        with Doorbell(ONE) as mine:
            assert mine.name == b""
            assert not mine.ring(other.name)
            assert mine.sleep(0.001) == set()
