"""The plain sum: what the server sees is the encoded inputs themselves."""

import numpy as np
import pytest

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.foundation.words import clients_have
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.sums.plain import ClearInput, PlainSumClient, PlainSumServer
from protocols.transport.in_process import InProcessNetwork
from tests.support.in_threads import SESSION, SHORT, at_server
from tests.support.sum_conversations import (
    FIRST,
    PURPOSE,
    SECOND,
    Silences,
    everyone,
    layout_for,
    random_inputs,
    step_of,
    task_of,
)

CLIENTS = everyone(3)
ONE, TWO, THREE = CLIENTS
LAYOUT = layout_for(3)
TASK = task_of(LAYOUT, CLIENTS)
INPUTS = random_inputs(LAYOUT, CLIENTS)
PAST = Deadline(0.0)


class Ends:
    """The plain sum needs no answers, so one thread can speak for everybody: what was sent is there."""

    def __init__(self, min_contributors: int = 1) -> None:
        network = InProcessNetwork(3)
        self.talk = {party: Conversation(network.endpoint(party), SESSION) for party in (SERVER, *CLIENTS)}
        self.server = PlainSumServer(min_contributors)
        self.silent = Silences()

    def contribute(self, *parties: PartyId) -> None:
        for party in parties:
            client = PlainSumClient()
            client.setup(ClientSession(self.talk[party], PAST))
            client.prepare(ClientSession(self.talk[party], PAST), TASK)
            client.contribute(ClientSession(self.talk[party], PAST), TASK, INPUTS[party])

    def prepare(self, *present: PartyId) -> None:
        patience = Patience.fixed(SHORT)
        self.server.setup(at_server(self.talk[SERVER], present, patience, self.silent))
        self.server.prepare(at_server(self.talk[SERVER], present, patience, self.silent), TASK)


def test_a_contribution_travels_in_clear() -> None:
    ends, given = Ends(), INPUTS[ONE]
    summing, client = PlainSumClient(), ends.talk[ONE]
    summing.setup(ClientSession(client, PAST))
    summing.prepare(ClientSession(client, PAST), TASK)
    assert client.transport.traffic.total("sent").messages == 0
    report = summing.contribute(ClientSession(client, PAST), TASK, given)
    assert report.mask_seconds == 0
    assert (report.clipped, report.max_error) == (0, LAYOUT.encode(given).max_error)
    message = ends.talk[SERVER].receive(ONE, ClearInput, FIRST, PAST)
    assert message.purpose == PURPOSE
    seen = LAYOUT.decode(message.vector)
    assert np.abs(seen.real - given.real).max() <= LAYOUT.codec.unit / 2
    assert np.array_equal(seen.counts, given.counts)
    label = {"peer": SERVER, "round_id": FIRST, "phase": step_of("input")}
    assert client.transport.traffic.total("sent", **label).messages == 1  # type: ignore[arg-type]


def test_the_server_says_nothing() -> None:
    ends = Ends()
    ends.contribute(*CLIENTS)
    ends.prepare(*CLIENTS)
    ends.server.collect(at_server(ends.talk[SERVER], None, Patience.fixed(SHORT), ends.silent), TASK)
    assert ends.talk[SERVER].transport.traffic.total("sent").messages == 0
    assert ends.server.unmask_seconds > 0


@pytest.mark.parametrize("contributing", [[], [ONE], [ONE, TWO], CLIENTS])
@pytest.mark.parametrize("needed", [1, 2, 3])
def test_the_twin_gives_up_where_the_secure_sum_would(contributing: list[PartyId], needed: int) -> None:
    ends = Ends(needed)
    ends.contribute(*contributing)
    ends.prepare(*CLIENTS)
    if len(contributing) >= needed:
        collected = ends.server.collect(at_server(ends.talk[SERVER], None, Patience.fixed(SHORT), ends.silent), TASK)
        assert collected.contributors == set(contributing)
        assert np.array_equal(collected.total.counts, sum(INPUTS[party].counts for party in contributing))
    else:
        match = f"^{clients_have(len(contributing))} sent an input, {needed} are needed"
        with pytest.raises(SumAbandoned, match=match):
            ends.server.collect(at_server(ends.talk[SERVER], None, Patience.fixed(SHORT), ends.silent), TASK)
    missing = set(CLIENTS) - set(contributing)
    assert ends.silent.seen == ([(missing, step_of("input"))] if missing else [])


def test_only_participants_that_are_present_are_asked() -> None:
    """Client 1 is no participant, client 3 is away; what they have sent stays where it is."""
    ends = Ends()
    ends.contribute(*CLIENTS)
    task = task_of(LAYOUT, [TWO, THREE])
    ends.server.prepare(at_server(ends.talk[SERVER], [ONE, TWO], Patience.fixed(SHORT), ends.silent), task)
    collected = ends.server.collect(at_server(ends.talk[SERVER], None, Patience.fixed(SHORT), ends.silent), task)
    assert collected.contributors == {TWO}
    assert np.array_equal(collected.total.counts, INPUTS[TWO].counts)
    assert ends.silent.seen == []
    assert ends.talk[SERVER].gather([ONE, THREE], ClearInput, FIRST, PAST).keys() == {ONE, THREE}


def test_a_late_input_is_dropped_and_counted_and_the_next_sum_is_exact() -> None:
    ends = Ends()
    ends.contribute(ONE, TWO)
    ends.prepare(*CLIENTS)
    ends.server.collect(at_server(ends.talk[SERVER], None, Patience.fixed(SHORT), ends.silent), TASK)
    ends.contribute(THREE)
    second = task_of(LAYOUT, CLIENTS, SECOND)
    for party in CLIENTS:
        PlainSumClient().contribute(ClientSession(ends.talk[party], PAST), second, INPUTS[party])
    ends.server.prepare(at_server(ends.talk[SERVER], CLIENTS, Patience.fixed(SHORT), ends.silent), second)
    collected = ends.server.collect(at_server(ends.talk[SERVER], None, Patience.fixed(SHORT), ends.silent), second)
    assert ends.talk[SERVER].late_messages == 1
    assert collected.contributors == set(CLIENTS)
    assert np.array_equal(collected.total.counts, sum(given.counts for given in INPUTS.values()))
