"""The in-process host: parties are threads, and each is told how it ended."""

import threading

import pytest

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerLost
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.in_threads import run_in_process

ONE, TWO = PartyId(1), PartyId(2)


def soon() -> Deadline:
    return Deadline.after(20.0)


def echo(transport: Transport) -> bytes:
    word = bytes(transport.receive([SERVER], soon())[1])
    transport.send(SERVER, word)
    return word


def ask(transport: Transport) -> dict[PartyId, bytes]:
    for client in transport.peers:
        transport.send(client, b"word %d" % client)
    return {client: bytes(frame) for client, frame in transport.gather(transport.peers, soon()).items()}


def test_parties_meet_and_their_results_come_back() -> None:
    ended = run_in_process(ask, {ONE: echo, TWO: echo})
    assert ended.server.result() == {ONE: b"word 1", TWO: b"word 2"}
    assert {number: client.result() for number, client in ended.clients.items()} == ended.server.result()


def test_a_server_that_fails_ends_the_clients_that_wait_for_it() -> None:
    def fail(transport: Transport) -> None:
        raise ZeroDivisionError

    ended = run_in_process(fail, {ONE: echo})
    assert isinstance(ended.server.error, ZeroDivisionError)
    assert isinstance(ended.clients[ONE].error, PeerLost)
    with pytest.raises(ZeroDivisionError):
        ended.server.result()


def test_a_client_that_is_killed_is_gone_without_a_word() -> None:
    def killed(transport: Transport) -> bytes:
        raise SystemExit

    def serve(transport: Transport) -> dict[PartyId, bytes]:
        transport.send(TWO, b"here?")
        return {client: bytes(frame) for client, frame in transport.gather([TWO], soon()).items()}

    ended = run_in_process(serve, {ONE: killed, TWO: echo})
    assert ended.server.result() == {TWO: b"here?"}
    assert isinstance(ended.clients[ONE].error, SystemExit)


def test_a_party_that_hangs_is_told_from_one_that_failed() -> None:
    over = threading.Event()

    def wait(transport: Transport) -> bytes:
        over.wait(20.0)
        return b""

    ended = run_in_process(lambda transport: None, {ONE: wait}, seconds=0.05)
    over.set()
    assert ended.clients[ONE].hangs
    assert not ended.server.hangs
    with pytest.raises(TimeoutError):
        ended.clients[ONE].result()


def test_transports_may_be_made_by_the_caller() -> None:
    made: list[PartyId] = []

    def endpoint(network: InProcessNetwork, party: PartyId) -> Transport:
        made.append(party)
        return network.endpoint(party)

    run_in_process(ask, {ONE: echo, TWO: echo}, endpoint=endpoint)
    assert sorted(made) == [SERVER, ONE, TWO]
