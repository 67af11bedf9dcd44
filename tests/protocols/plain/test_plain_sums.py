"""The plain sum: what the server sees is the inputs themselves, added in the order of the parties."""

from collections.abc import Collection
from itertools import permutations

import numpy as np
import pytest
from in_threads import SESSION
from sum_conversations import PURPOSE, everyone, layout_for, random_inputs

from protocols.conversation import Conversation, M
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


class Shuffled(Conversation):
    """Answers come in a given order."""

    order: tuple[int, ...]

    def gather_all(
        self, senders: Collection[PartyId], expected: type[M], round_id: RoundId, deadline: Deadline
    ) -> dict[PartyId, M]:
        answers = super().gather_all(senders, expected, round_id, deadline)
        return {PartyId(party): answers[PartyId(party)] for party in self.order}


def test_the_sum_does_not_depend_on_who_was_first() -> None:
    layout = layout_for(3, real=1, counts=0)
    values = dict(zip(everyone(3), (0.1, 0.2, 0.3), strict=True))
    assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1
    for order in permutations((1, 2, 3)):
        network = InProcessNetwork(3)
        server = Shuffled(network.endpoint(SERVER), SESSION)
        server.order = order
        for party, value in values.items():
            given = Contribution(np.array([value]), np.zeros(0, dtype=np.int64))
            end = Conversation(network.endpoint(party), SESSION)
            PlainSumClient().contribute(end, RoundId(1), PURPOSE, everyone(3), layout, given)
        total = PlainSumServer().collect(server, RoundId(1), PURPOSE, everyone(3), layout, PAST)
        assert total.real.tolist() == [(0.1 + 0.2) + 0.3]


def test_values_do_not_show_in_the_error_of_a_refused_message() -> None:
    with pytest.raises(ValueError, match="not finite") as caught:
        ClearInput(PURPOSE, np.array([0.123456, np.nan]), np.zeros(0, dtype="<u8"))
    assert "0.123" not in str(caught.value)
