"""The plain sum: what the server sees is the encoded inputs themselves."""

import numpy as np
from in_threads import SESSION
from sum_conversations import PURPOSE, everyone, layout_for, random_inputs

from protocols.conversation import Conversation
from protocols.identifiers import SERVER, RoundId
from protocols.plain.sums import ClearInput, PlainSumClient
from protocols.transport.deadline import Deadline
from protocols.transport.in_process import InProcessNetwork

ONE, TWO = everyone(2)
PAST = Deadline(0.0)


def test_a_contribution_travels_in_clear() -> None:
    network = InProcessNetwork(2)
    server, client = (Conversation(network.endpoint(party), SESSION) for party in (SERVER, ONE))
    layout = layout_for(2)
    given = random_inputs(layout, [ONE])[ONE]
    summing = PlainSumClient()
    summing.setup(client, PAST)
    report = summing.contribute(client, RoundId(1), PURPOSE, [ONE, TWO], layout, given)
    assert report.mask_seconds == 0
    assert (report.clipped, report.max_error) == (0, layout.encode(given).max_error)
    message = server.receive(ONE, ClearInput, RoundId(1), PAST)
    assert message.purpose == PURPOSE
    seen = layout.decode(message.vector)
    assert np.abs(seen.real - given.real).max() <= layout.codec.unit / 2
    assert np.array_equal(seen.counts, given.counts)
    label = {"peer": SERVER, "round_id": RoundId(1), "phase": f"input/{PURPOSE}"}
    assert client.transport.traffic.total("sent", **label).messages == 1  # type: ignore[arg-type]
