"""The plain sum and the masked sum run the same conversations: same totals, same ends when somebody misbehaves."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from in_threads import SHORT, converse, meeting, soon
from sum_conversations import PLAIN, PURPOSE, SECAGG, TWINS, Twin, everyone, layout_for, random_inputs, sum_up

from protocols import wire
from protocols.conversation import Conversation, Failed
from protocols.errors import (
    DeadlineExpired,
    EncodingOverflow,
    PeerFailed,
    PeerMisbehaved,
    ProtocolError,
    UnexpectedMessage,
)
from protocols.identifiers import SERVER, PartyId, RoundId
from protocols.secagg.messages import AdvertiseKeys
from protocols.sums import Contribution, SumClient, SumLayout, Total
from protocols.transport.deadline import Deadline

CLIENTS = everyone(3)
ONE, TWO, THREE = CLIENTS
LAYOUT = layout_for(3)
FIRST = RoundId(1)
both = pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)


def exact(inputs: dict[PartyId, Contribution]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    real = np.sum([given.real.astype(np.float64) for given in inputs.values()], axis=0)
    return real, np.sum([given.counts for given in inputs.values()], axis=0)


# --- totals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ring_bits", [32, 64])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_the_twins_agree_to_the_bit_and_with_the_truth_within_half_a_unit_per_client(
    count: int, ring_bits: int
) -> None:
    clients, layout = everyone(count), layout_for(count, ring_bits)
    rounds = [random_inputs(layout, clients, seed) for seed in range(3)]
    (plain, _), (masked, reports) = sum_up(PLAIN, layout, clients, rounds), sum_up(SECAGG, layout, clients, rounds)
    for clear, hidden, inputs in zip(plain, masked, rounds, strict=True):
        real, counts = exact(inputs)
        assert np.array_equal(clear.real, hidden.real)
        assert np.abs(hidden.real - real).max() <= count * layout.codec.unit / 2
        assert np.array_equal(clear.counts, counts)
        assert np.array_equal(hidden.counts, counts)
    for party in clients:
        for inputs, report in zip(rounds, reports[party], strict=True):
            assert report.clipped == 0
            lost = np.abs(layout.codec.decode(layout.codec.encode(inputs[party].real).vector) - inputs[party].real)
            assert report.max_error == lost.max() <= layout.codec.unit / 2


@both
def test_the_narrow_ring_does_round(twin: Twin) -> None:
    """Without this the test above would not notice a codec that loses nothing because it was never used."""
    layout = layout_for(3, 32, real=2000)
    inputs = random_inputs(layout, CLIENTS)
    (masked,), _ = sum_up(twin, layout, CLIENTS, [inputs])
    assert np.abs(masked.real - exact(inputs)[0]).max() > 0


@both
def test_every_set_of_participants_has_its_sum(twin: Twin) -> None:
    subsets = [list(chosen) for size in (2, 3) for chosen in combinations(CLIENTS, size)]
    rounds = [random_inputs(LAYOUT, chosen, seed) for seed, chosen in enumerate(subsets)]
    totals, _ = sum_up(twin, LAYOUT, CLIENTS, rounds)
    for total, inputs in zip(totals, rounds, strict=True):
        real, counts = exact(inputs)
        assert np.abs(total.real - real).max() <= len(inputs) * LAYOUT.codec.unit / 2
        assert np.array_equal(total.counts, counts)


@both
@pytest.mark.parametrize(("real", "counts"), [(0, 0), (0, 3), (3, 0)])
def test_a_part_may_be_empty(twin: Twin, real: int, counts: int) -> None:
    layout = layout_for(3, real=real, counts=counts)
    inputs = random_inputs(layout, CLIENTS)
    (total,), _ = sum_up(twin, layout, CLIENTS, [inputs])
    assert (total.real.shape, total.counts.shape) == ((real,), (counts,))
    assert np.allclose(total.real, exact(inputs)[0])
    assert np.array_equal(total.counts, exact(inputs)[1])


@both
def test_values_beyond_the_bound_are_clipped_and_counted(twin: Twin) -> None:
    layout = layout_for(2, real=3, counts=0)
    counts = np.zeros(0, dtype=np.int64)
    rounds = [{ONE: Contribution(np.array([9.0, -1e308, 1.0]), counts), TWO: Contribution(np.zeros(3), counts)}]
    (total,), reports = sum_up(twin, layout, [ONE, TWO], rounds)
    assert total.real.tolist() == [4.0, -4.0, 1.0]
    assert [reports[ONE][0].clipped, reports[TWO][0].clipped] == [2, 0]


@both
@pytest.mark.parametrize("ring_bits", [32, 64])
def test_an_input_is_as_wide_as_its_ring(twin: Twin, ring_bits: int) -> None:
    """So that a comparison of the twins' traffic compares like with like."""
    layout = layout_for(3, ring_bits, real=1000, counts=1000)
    inputs = random_inputs(layout, CLIENTS)

    def serve(conversation: Conversation) -> list[int]:
        server = twin.server(CLIENTS)
        server.setup(conversation, soon())
        server.collect(conversation, FIRST, PURPOSE, CLIENTS, layout, soon())
        traffic = conversation.transport.traffic
        return [
            traffic.total("received", peer=peer, round_id=FIRST, phase=f"input/{PURPOSE}").bytes for peer in CLIENTS
        ]

    def take_part(conversation: Conversation) -> None:
        client, me = twin.client(CLIENTS), conversation.transport.party
        client.setup(conversation, soon())
        client.contribute(conversation, FIRST, PURPOSE, CLIENTS, layout, inputs[me])

    payload = 2000 * ring_bits // 8
    for received in converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))[SERVER]:
        assert payload < received < payload + 100


@both
def test_contributions_are_left_as_they_were(twin: Twin) -> None:
    inputs = random_inputs(LAYOUT, CLIENTS)
    before = {party: (given.real.copy(), given.counts.copy()) for party, given in inputs.items()}
    sum_up(twin, LAYOUT, CLIENTS, [inputs])
    for party, given in inputs.items():
        assert np.array_equal(given.real, before[party][0])
        assert np.array_equal(given.counts, before[party][1])


@both
@pytest.mark.parametrize("ring_bits", [32, 64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_never_leave(twin: Twin, ring_bits: int, bad: float) -> None:
    layout = layout_for(2, ring_bits, real=1, counts=0)
    wrong = Contribution(np.array([bad]), np.zeros(0, dtype=np.int64))
    refused(twin, layout, wrong, "not finite")


def refused(twin: Twin, layout: SumLayout, wrong: Contribution, problem: str) -> None:
    def serve(conversation: Conversation) -> None:
        twin.server([ONE, TWO]).setup(conversation, soon())

    def take_part(conversation: Conversation) -> None:
        client = twin.client([ONE, TWO])
        client.setup(conversation, soon())
        before = conversation.transport.traffic.total("sent")
        with pytest.raises(EncodingOverflow, match=problem):
            client.contribute(conversation, FIRST, PURPOSE, [ONE, TWO], layout, wrong)
        assert conversation.transport.traffic.total("sent") == before

    converse({SERVER: serve, ONE: take_part, TWO: take_part})


# --- what goes wrong ------------------------------------------------------------------------------------------------

Act = Callable[[Conversation, SumClient], object]


def stage(twin: Twin, act: Act, problem: type[ProtocolError], match: str) -> None:
    """Clients 1 and 2 contribute as they should, client 3 does `act`; the server's sum must end in `problem`."""
    inputs = random_inputs(LAYOUT, CLIENTS)
    all_have_acted = meeting(4)

    def serve(conversation: Conversation) -> None:
        server = twin.server(CLIENTS)
        server.setup(conversation, soon())
        all_have_acted()
        with pytest.raises(problem, match=match):
            server.collect(conversation, FIRST, PURPOSE, CLIENTS, LAYOUT, Deadline.after(SHORT))

    def take_part(conversation: Conversation) -> None:
        client, me = twin.client(CLIENTS), conversation.transport.party
        client.setup(conversation, soon())
        if me == THREE:
            act(conversation, client)
        else:
            client.contribute(conversation, FIRST, PURPOSE, CLIENTS, LAYOUT, inputs[me])
        all_have_acted()

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


def contributing(round_id: int, purpose: str = PURPOSE, layout: SumLayout = LAYOUT) -> Act:
    given = random_inputs(layout, CLIENTS)[THREE]
    return lambda conversation, client: client.contribute(
        conversation, RoundId(round_id), purpose, CLIENTS, layout, given
    )


def saying(message: wire.Message) -> Act:
    return lambda conversation, client: conversation.send(SERVER, message, FIRST)


@both
def test_the_stage_itself_lets_a_sum_succeed(twin: Twin) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        stage(twin, contributing(1), ProtocolError, "anything")


@both
def test_a_silent_client_is_named(twin: Twin) -> None:
    stage(twin, lambda conversation, client: None, DeadlineExpired, "^client 3 did not answer in time")


@both
def test_malformed_bytes_are_misbehaviour(twin: Twin) -> None:
    def garble(conversation: Conversation, client: SumClient) -> None:
        conversation.transport.send(SERVER, b"not a frame")

    stage(twin, garble, PeerMisbehaved, "client 3 sent a malformed message")


@both
def test_a_client_that_fails_is_named(twin: Twin) -> None:
    stage(twin, saying(Failed("no space left")), PeerFailed, "client 3: no space left")


@both
def test_a_message_of_another_kind_is_unexpected(twin: Twin) -> None:
    stage(twin, saying(AdvertiseKeys(bytes(32))), UnexpectedMessage, "client 3 sent AdvertiseKeys")


@both
def test_a_message_of_a_later_round_is_refused(twin: Twin) -> None:
    stage(twin, contributing(2), UnexpectedMessage, "client 3 .* of round 2 where .* of round 1 was due")


@both
def test_an_input_to_another_sum_is_refused(twin: Twin) -> None:
    stage(twin, contributing(1, purpose="metrics"), PeerMisbehaved, "client 3 contributed")


@both
@pytest.mark.parametrize("other", [layout_for(3, real=19), layout_for(3, real=21), layout_for(3, counts=0)])
def test_an_input_of_another_length_is_refused(twin: Twin, other: SumLayout) -> None:
    stage(twin, contributing(1, layout=other), PeerMisbehaved, "client 3 contributed")


@both
def test_a_late_input_is_dropped_and_counted_and_the_next_sum_is_exact(twin: Twin) -> None:
    """Client 2 misses round 1; its input arrives before that of round 2."""
    rounds = [random_inputs(LAYOUT, CLIENTS, seed) for seed in (1, 2)]
    first_is_due, first_is_over = meeting(4), meeting(4)

    def serve(conversation: Conversation) -> Total:
        server = twin.server(CLIENTS)
        server.setup(conversation, soon())
        first_is_due()
        with pytest.raises(DeadlineExpired, match=r"^client 2 did not answer"):
            server.collect(conversation, FIRST, PURPOSE, CLIENTS, LAYOUT, Deadline.after(SHORT))
        assert conversation.late_messages == 0
        first_is_over()
        total = server.collect(conversation, RoundId(2), PURPOSE, CLIENTS, LAYOUT, soon())
        assert conversation.late_messages == 1
        return total

    def take_part(conversation: Conversation) -> None:
        client, me = twin.client(CLIENTS), conversation.transport.party
        client.setup(conversation, soon())
        if me == TWO:
            first_is_due()
            first_is_over()
        client.contribute(conversation, FIRST, PURPOSE, CLIENTS, LAYOUT, rounds[0][me])
        if me != TWO:
            first_is_due()
            first_is_over()
        client.contribute(conversation, RoundId(2), PURPOSE, CLIENTS, LAYOUT, rounds[1][me])

    total = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))[SERVER]
    real, counts = exact(rounds[1])
    assert np.abs(total.real - real).max() <= 3 * LAYOUT.codec.unit / 2
    assert np.array_equal(total.counts, counts)
