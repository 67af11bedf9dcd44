"""The plain sum: what the server sees is the inputs themselves, in as many bytes as the masked ones."""

import numpy as np
import pytest
from in_threads import SESSION
from sum_conversations import PURPOSE, SECAGG, everyone, layout_for, random_inputs, sum_up

from protocols import wire
from protocols.conversation import Conversation
from protocols.identifiers import SERVER, PartyId, RoundId
from protocols.plain.sums import ClearInput, PlainSumClient, PlainSumServer
from protocols.sums import Contribution, ContributionReport
from protocols.transport.deadline import Deadline
from protocols.transport.in_process import InProcessNetwork

ONE, TWO = everyone(2)
PAST = Deadline(0.0)


def test_a_contribution_travels_in_clear_and_costs_no_encoding() -> None:
    network = InProcessNetwork(2)
    server, client = (Conversation(network.endpoint(party), SESSION) for party in (SERVER, ONE))
    layout = layout_for(2)
    given = random_inputs(layout, [ONE])[ONE]
    summing = PlainSumClient()
    summing.setup(client, PAST)
    assert summing.contribute(client, RoundId(1), PURPOSE, [ONE, TWO], layout, given) == ContributionReport()
    message = server.receive(ONE, ClearInput, RoundId(1), PAST)
    assert message.purpose == PURPOSE
    assert np.array_equal(message.real, given.real)
    assert np.array_equal(message.counts, given.counts)
    label = {"peer": SERVER, "round_id": RoundId(1), "phase": f"input/{PURPOSE}"}
    assert client.transport.traffic.total("sent", **label).messages == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("ring_bits", [32, 64])
def test_the_twins_send_arrays_of_the_same_width(ring_bits: int) -> None:
    layout = layout_for(2, ring_bits, real=1000, counts=1000)
    given = random_inputs(layout, [ONE])[ONE]
    network = InProcessNetwork(2)
    client = Conversation(network.endpoint(ONE), SESSION)
    PlainSumClient().contribute(client, RoundId(1), PURPOSE, [ONE, TWO], layout, given)
    payload = 2000 * ring_bits // 8
    assert payload < client.transport.traffic.total("sent").bytes < payload + 200
    totals, _ = sum_up(SECAGG, layout, [ONE, TWO], [random_inputs(layout, [ONE, TWO])])
    assert totals[0].real.size + totals[0].counts.size == 2000


def test_the_sum_does_not_depend_on_who_was_first() -> None:
    layout = layout_for(3, real=1, counts=0)
    values = dict(zip(everyone(3), (0.1, 0.2, 0.3), strict=True))
    assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)
    totals = set()
    for order in ((1, 2, 3), (3, 2, 1), (2, 3, 1)):
        network = InProcessNetwork(3)
        server = Conversation(network.endpoint(SERVER), SESSION)
        for party in map(PartyId, order):
            given = Contribution(np.array([values[party]]), np.zeros(0, dtype=np.int64))
            end = Conversation(network.endpoint(party), SESSION)
            PlainSumClient().contribute(end, RoundId(1), PURPOSE, everyone(3), layout, given)
        collecting = PlainSumServer()
        total = collecting.collect(server, RoundId(1), PURPOSE, everyone(3), layout, PAST)
        totals.add(float(total.real[0]))
        assert collecting.unmask_seconds > 0
    assert totals == {0.1 + 0.2 + 0.3}


def test_values_do_not_show_in_the_error_of_a_refused_message() -> None:
    with pytest.raises(ValueError, match="not finite") as caught:
        ClearInput(PURPOSE, np.array([0.123456, np.nan]), np.zeros(0, dtype="<u8"))
    assert "0.123" not in str(caught.value)
    assert issubclass(ClearInput, wire.Message)
