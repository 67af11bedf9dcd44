"""Sizes of messages are exact, or bounds that are met; and no party takes a frame that its tasks do not call for."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from protocols.alignment.psu.attempts import UnionPlaces, union_places_bytes
from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.session.conversation import Conversation, Failed
from protocols.session.patience import Patience
from protocols.sums.interface import SumLayout
from protocols.sums.plain import ClearInput, PlainSumServer, clear_input_bytes
from protocols.sums.secagg.messages import MaskedInput, masked_input_bytes
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal, sum_total_bytes
from protocols.transport.in_process import InProcessNetwork
from secure_kg.federation.plan.messages import SharedRows, shared_rows_bytes
from tests.support.in_threads import SESSION, at_server, soon

ONE = PartyId(1)
LAST_ROUND = RoundId(2**32 - 1)
LENGTHS = [0, 1, 2, 29, 30, 31, 61, 62, 63, 250, 8188, 8189, 8190, 16379, 16380, 16381, 70000]


def size_of(message: wire.Message) -> int:
    return len(wire.encode(message, SESSION, LAST_ROUND))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("dtype", "width"), [("<u4", 4), ("<u8", 8)])
def test_inputs_have_exactly_these_sizes(length: int, dtype: str, width: int) -> None:
    vector = np.zeros(length, dtype=dtype)
    for purpose in ("p" * 31, "p" * 32, "rows"):
        assert masked_input_bytes(purpose, length, width) == size_of(MaskedInput(purpose, vector, bytes(32)))
        assert clear_input_bytes(purpose, length, width) == size_of(ClearInput(purpose, vector))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("clients", [1, 15, 16, 127, 300])
def test_totals_have_at_most_these_sizes(length: int, clients: int) -> None:
    parties = [PartyId(number) for number in range(1, clients + 1)]
    vector, most = np.zeros(length, dtype="<u8"), sum_total_bytes("rows", length, 8, parties)
    assert size_of(SumTotal.of(RoundId(2**40), "rows", parties, vector)) == most
    assert size_of(SumTotal.of(RoundId(1), "rows", parties[:1], vector)) <= most


@pytest.mark.parametrize("cells", LENGTHS[1:])
def test_places_and_rows(cells: int) -> None:
    places = UnionPlaces("union/0", 5, np.zeros(cells, dtype="<u4"))
    assert size_of(places) == union_places_bytes("union/0", cells) - 8  # a size of one byte in place of nine
    for width in (1, 3, 64):
        rows = SharedRows(np.zeros((cells, width), dtype="<f4"), np.zeros(cells, dtype="<u4"))
        assert size_of(rows) == shared_rows_bytes(cells, width)


# --- what a conversation takes ----------------------------------------------------------------------------------------


def ends() -> tuple[Conversation, Conversation]:
    network = InProcessNetwork(2)
    return Conversation(network.endpoint(SERVER), SESSION), Conversation(network.endpoint(ONE), SESSION)


def masked(entries: int) -> MaskedInput:
    return MaskedInput("rows", np.zeros(entries, dtype="<u4"), bytes(32))


MANY = wire.SMALL_FRAME_BYTES // 4


def test_a_frame_that_no_task_calls_for_is_refused_unread() -> None:
    server, client = ends()
    client.send(SERVER, masked(MANY), SETUP)
    tracemalloc.start()
    with pytest.raises(PeerMisbehaved, match=r"^client 1 sent 4,194,\d+ bytes where 4,194,304 are due at most$"):
        server.receive(ONE, MaskedInput, SETUP, soon())
    assert tracemalloc.get_traced_memory()[1] < 1 << 16
    tracemalloc.stop()


WAYS: dict[str, Callable[[Conversation], object]] = {
    "receive": lambda server: server.receive(ONE, MaskedInput, SETUP, soon()),
    "receive_any": lambda server: server.receive_any(ONE, SETUP, soon()),
    "gather_each": lambda server: [*server.gather_each([ONE], MaskedInput, SETUP, Patience.fixed(20.0), "step")],
    "came_back": lambda server: server.came_back(ONE),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_receive_has_the_limit(way: str) -> None:
    server, client = ends()
    client.send(SERVER, masked(MANY), SETUP)
    with pytest.raises(PeerMisbehaved, match="are due at most"):
        WAYS[way](server)


def test_what_a_task_calls_for_is_taken_to_the_byte() -> None:
    server, client = ends()
    server.admit(masked_input_bytes("rows", MANY, 4))
    client.send(SERVER, masked(MANY), SETUP)
    assert len(server.receive(ONE, MaskedInput, SETUP, soon()).vector) == MANY
    client.send(SERVER, masked(MANY + 1), SETUP)
    with pytest.raises(PeerMisbehaved, match="are due at most"):
        server.receive(ONE, MaskedInput, SETUP, soon())


def test_the_limit_does_not_fall_and_has_an_end() -> None:
    """A frame of an earlier, larger sum is late."""
    server, client = ends()
    server.admit(masked_input_bytes("rows", MANY, 4))
    server.admit(masked_input_bytes("rows", 1, 4))
    client.send(SERVER, masked(MANY), SETUP)
    client.send(SERVER, masked(1), RoundId(1))
    assert len(server.receive(ONE, MaskedInput, RoundId(1), soon()).vector) == 1
    assert server.late_messages == 1
    server.admit(1 << 60)
    assert server._largest == wire.MAX_FRAME_BYTES


def test_a_sum_in_clear_admits_its_own_inputs_only() -> None:
    server, _ = ends()
    layout = SumLayout(MANY, MANY, 1.0, 1, 2, 32)
    task = SumTerms(RoundId(1), "rows", (ONE, PartyId(2)), layout)
    PlainSumServer().prepare(
        at_server(server, task.participants, Patience.fixed(1.0), lambda parties, step: None), task
    )
    assert server._largest == clear_input_bytes("rows", 2 * MANY, 4)


def test_a_small_message_needs_no_task() -> None:
    server, client = ends()
    client.send(SERVER, Failed("nothing"), SETUP)
    _, frame = server.transport.receive([ONE], Deadline.after(1.0), 100)
    assert len(frame) < 100
