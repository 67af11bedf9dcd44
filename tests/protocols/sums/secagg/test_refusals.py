"""A client refuses one sum where a peer's words do not fit, names the peer, and does not bear that without end."""

from dataclasses import replace
from typing import Any

import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, PeersRefused, SumAbandoned, SumRefused
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.session.control import RefuseShares, refusal
from protocols.session.conversation import Abandon, Conversation
from protocols.sums.secagg.messages import ShareKeys
from protocols.sums.secagg.refusals import MOST, MOST_IN_A_ROW, Refusals, require_fit
from tests.support.bent_servers import CLIENTS, FOUR, INPUTS, LAYOUT, ONE, SECURE, TASK, THREE, TWO
from tests.support.in_threads import at_once, at_server, converse
from tests.support.sum_conversations import Foreseen, Silences, bent, is_sum_of


class Said:
    """A client's end of a session that notes what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[wire.Message, RoundId]] = []

    def send(self, message: wire.Message, round_id: RoundId) -> None:
        self.sent.append((message, round_id))


def refuses(refusals: Refusals, purpose: str = "rows", round_id: int = 1) -> Said:
    said: Any = Said()
    refusals.say(said, RoundId(round_id), purpose, PeersRefused("the shares of client 3 cannot be opened", 3))
    return said


def test_a_refusal_names_the_peer_to_the_server() -> None:
    said = refuses(Refusals(), round_id=7)
    assert said.sent == [(RefuseShares("rows", "the shares of client 3 cannot be opened", [3]), RoundId(7))]


def test_too_many_in_a_row_end_the_clients_part_in_a_line_that_names_the_peer() -> None:
    refusals = Refusals()
    for _ in range(MOST_IN_A_ROW - 1):
        refuses(refusals)
    with pytest.raises(PeerMisbehaved, match=rf"\({MOST_IN_A_ROW} in a row\).*client 3") as problem:
        refuses(refusals)
    assert not isinstance(problem.value, SumAbandoned)


def test_a_sum_that_this_client_helped_to_open_begins_the_row_of_its_purpose_again() -> None:
    refusals = Refusals()
    for _ in range(MOST_IN_A_ROW - 1):
        refuses(refusals)
    refusals.helped("valid")
    refusals.helped("rows")
    refuses(refusals)


def test_a_server_that_lets_every_other_sum_pass_meets_the_limit_of_the_session() -> None:
    refusals = Refusals()
    for _ in range(MOST - 1):
        refuses(refusals)
        refusals.helped("rows")
    with pytest.raises(PeerMisbehaved, match=f"{MOST} in this session"):
        refuses(refusals)


def test_where_names_are_aligned_the_first_refusal_ends_the_clients_part() -> None:
    said: Any = Said()
    with pytest.raises(PeerMisbehaved, match="client 3") as problem:
        Refusals().say(said, SETUP, "union", PeersRefused("the shares of client 3 cannot be opened", 3))
    assert not isinstance(problem.value, SumAbandoned)
    assert not said.sent


def test_all_peers_whose_words_do_not_fit_are_named() -> None:
    def check(peer: PartyId) -> None:
        if peer in (TWO, FOUR):
            raise PeerMisbehaved(f"client {peer} lies")

    with pytest.raises(PeersRefused, match=r"^client 2 lies; likewise client 4$") as told:
        require_fit(CLIENTS, check)
    assert told.value.of == told.value.parties == (TWO, FOUR)
    require_fit([ONE, THREE], check)


def test_the_server_hears_who_refuses_and_of_whom() -> None:
    told = refusal(TWO, "client 2", RefuseShares("rows", "no", [4]))
    assert (told.by, told.of, str(told)) == (TWO, (4,), "client 2: no")
    assert refusal(TWO, "client 2", Abandon("rows", "no")).of == ()


@pytest.mark.parametrize("of", [[], [2, 2], [0], [-1]], ids=str)
def test_a_refusal_of_nobody_or_of_no_client_is_no_message(of: list[int]) -> None:
    with pytest.raises(ValueError, match=r"nobody, or a client twice|no client"):
        RefuseShares("rows", "no", of)


@pytest.mark.parametrize("name", SECURE)
def test_the_session_goes_on_with_the_next_sum(name: str) -> None:
    """What client 4 seals for client 2 in the first sum does not open. Nobody opens that one, and all the next one."""
    twin = SECURE[name]
    tasks = [TASK, replace(TASK, round=RoundId(TASK.round + 1))]

    def flips(message: wire.Message, round_id: RoundId) -> wire.Message:
        if not isinstance(message, ShareKeys) or round_id != TASK.round:
            return message
        sealed = {**message.sealed, int(TWO): bytes([message.sealed[TWO][0] ^ 1]) + message.sealed[TWO][1:]}
        return ShareKeys(message.purpose, sealed, message.seed_commitment, message.state, message.signature)

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = twin.client(CLIENTS, me)

        def both(talk: Conversation) -> None:
            client.setup(at_once(talk))
            for task in tasks:
                client.prepare(at_once(talk), task)
                if task is TASK:
                    with pytest.raises(SumAbandoned, match="the shares of client 4 cannot be opened"):
                        client.contribute(at_once(talk), task, INPUTS[me])
                else:
                    client.contribute(at_once(talk), task, INPUTS[me])

        (bent(both, flips) if me == FOUR else both)(conversation)

    served: list[Any] = []

    def serve(conversation: Conversation) -> None:
        server = twin.server(CLIENTS)

        def session(clients: Any) -> Any:
            return at_server(conversation, clients, Foreseen(), Silences())

        server.setup(session(CLIENTS))
        for task in tasks:
            try:
                server.prepare(session(CLIENTS), task)
                served.append(server.collect(session(CLIENTS), task))
            except SumRefused as problem:
                served.append(problem)
                conversation.broadcast(CLIENTS, Abandon(task.purpose, str(problem)), task.round)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    refused, collected = served
    assert (refused.by, refused.of) == (TWO, (FOUR,))
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)
