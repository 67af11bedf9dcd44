"""What three MPI ranks say to each other in `test_mpi_transport.py`: run under mpirun, writes the server's findings.

    mpirun -n 3 python mpi_exchange.py <file for the findings>

Every rank goes through the same acts in the same order. A rank that fails ends the job with its traceback.
"""

import hashlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DeadlineExpired, LeftOut, PeerLost, PeerMisbehaved
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId, SessionId
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Back, Conversation, LeaveOut
from protocols.session.patience import Patience
from protocols.sums.interface import Contribution, SumLayout
from protocols.sums.plain import PlainSumClient, PlainSumServer
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms
from protocols.transport import packets
from protocols.transport.mpi import MpiTransport
from tests.support.in_threads import at_server

LARGE = 20 * 2**20 + 3
IDLE_SECONDS = 3.0
ONE, TWO = PartyId(1), PartyId(2)
CLIENTS = [ONE, TWO]
SESSION = SessionId(bytes(range(16)))


def soon() -> Deadline:
    return Deadline.after(60.0)


def large_frame(sender: int, to: int) -> bytes:
    return np.random.default_rng([sender, to]).bytes(LARGE)


def digest(frame: Any) -> str:
    return hashlib.sha256(frame).hexdigest()


def cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system


def small(transport: MpiTransport) -> Any:
    """Several small frames in a row each way: content, order and sender."""
    if transport.party != SERVER:
        heard = [bytes(transport.receive([SERVER], soon())[1]).decode() for _ in range(3)]
        for word in heard:
            transport.send(SERVER, f"{word} back".encode())
        return None
    for word in ("one", "", "three"):
        for client in CLIENTS:
            transport.send(client, f"{word} {client}".encode())
    return {
        str(client): [bytes(transport.receive([client], soon())[1]).decode() for _ in range(3)] for client in CLIENTS
    }


def large(transport: MpiTransport) -> Any:
    """Frames far beyond what MPI buffers, from everybody to everybody at once."""
    for peer in transport.peers:
        transport.send(peer, large_frame(transport.party, peer))
    received = transport.gather(transport.peers, soon())
    right = {
        str(peer): len(frame) == LARGE and digest(frame) == digest(large_frame(peer, transport.party))
        for peer, frame in received.items()
    }
    transport.flush(soon())
    if transport.party != SERVER:
        transport.send(SERVER, json.dumps(right).encode())
        return None
    told = transport.gather(CLIENTS, soon())
    return right | {f"at {client}": json.loads(bytes(frame)) for client, frame in told.items()}


def sent_and_met(transport: MpiTransport) -> None:
    """Beyond this point everything that anybody sent before it has arrived."""
    transport.flush(soon())
    MPI.COMM_WORLD.Barrier()


def silence(transport: MpiTransport) -> str:
    try:
        transport.receive(transport.peers, Deadline.after(0.2))
    except DeadlineExpired as expired:
        return str(expired)
    return "a message out of nowhere"


def deadline(transport: MpiTransport) -> Any:
    """First the server waits in vain, then every client: each wait ends by itself and names the silent."""
    if transport.party != SERVER:
        transport.receive([SERVER], soon())
        transport.send(SERVER, silence(transport).encode())
        return None
    finding = silence(transport)
    for client in CLIENTS:
        transport.send(client, b"your turn")
    told = {str(client): bytes(transport.receive([client], soon())[1]).decode() for client in CLIENTS}
    return told | {"0": finding}


def gather(transport: MpiTransport) -> Any:
    """Client 1 answers, client 2 does not; afterwards client 2 is heard as if nothing had happened."""
    if transport.party == ONE:
        transport.send(SERVER, b"here")
    sent_and_met(transport)
    if transport.party == TWO:
        transport.receive([SERVER], soon())
        transport.send(SERVER, b"now")
    if transport.party != SERVER:
        return None
    partial = transport.gather(CLIENTS, Deadline.after(0.2))
    transport.send(TWO, b"your turn")
    late = transport.gather([TWO], soon())
    return [{str(party): bytes(frame).decode() for party, frame in answers.items()} for answers in (partial, late)]


def already_there(transport: MpiTransport) -> Any:
    """A message that has arrived counts although the deadline is over; one to nobody is refused."""
    if transport.party != SERVER:
        transport.send(SERVER, b"early")
    sent_and_met(transport)
    if transport.party != SERVER:
        return None
    heard = [bytes(transport.receive([client], Deadline(0.0))[1]).decode() for client in CLIENTS]
    try:
        transport.send(PartyId(3), b"x")
    except PeerLost as problem:
        return {"heard": heard, "refused": str(problem), "lost": problem.parties}
    return {"heard": heard, "refused": "nothing"}


def turns(transport: MpiTransport) -> Any:
    """Client 1 has sent many frames and client 2 a few: they are heard in turn, and then the rest of client 1."""
    for number in range({SERVER: 0, ONE: 20, TWO: 3}[transport.party]):
        transport.send(SERVER, bytes([number]))
    sent_and_met(transport)
    if transport.party != SERVER:
        return None
    heard = [transport.receive(CLIENTS, Deadline(0.0)) for _ in range(23)]
    order = {str(client): [bytes(frame)[0] for sender, frame in heard if sender == client] for client in CLIENTS}
    return {"first": sorted(sender for sender, _ in heard[:6]), "order": order}


def untaken(transport: MpiTransport) -> Any:
    """Client 2 reads nothing: a second frame to it is refused after a while, and client 1 is served meanwhile."""
    if transport.party == ONE:
        heard = bytes(transport.receive([SERVER], soon())[1])
        transport.send(SERVER, heard + b" back")
    if transport.party != SERVER:
        MPI.COMM_WORLD.Barrier()
        if transport.party == TWO:
            frame = transport.receive([SERVER], soon())[1]
            transport.send(SERVER, str(digest(frame) == digest(large_frame(SERVER, TWO))).encode())
        return None
    transport.send(TWO, large_frame(SERVER, TWO))
    transport.send(ONE, b"there")
    found: dict[str, Any] = {"client 1": bytes(transport.receive([ONE], soon())[1]).decode()}
    found["busy"] = [client for client in CLIENTS if transport.busy(client)]
    patience, transport._send_seconds = transport._send_seconds, 0.2
    try:
        transport.send(TWO, b"second")
    except PeerLost as problem:
        found |= {"second": str(problem), "lost": problem.parties}
    transport._send_seconds = patience
    MPI.COMM_WORLD.Barrier()
    return found | {"first": bytes(transport.receive([TWO], soon())[1]).decode()}


def idle(transport: MpiTransport) -> Any:
    """The CPU time of a rank while it waits for `IDLE_SECONDS`; client 1 is the one that lets them wait."""
    before = cpu_seconds()
    if transport.party == ONE:
        time.sleep(IDLE_SECONDS)
        transport.send(SERVER, b"enough")
        return None
    if transport.party == TWO:
        transport.receive([SERVER], soon())
        transport.send(SERVER, str(cpu_seconds() - before).encode())
        return None
    transport.receive([ONE], soon())
    used = cpu_seconds() - before
    transport.send(TWO, b"enough")
    other = float(bytes(transport.receive([TWO], soon())[1]))
    return {"server": used, "client 2": other, "seconds": IDLE_SECONDS}


LAYOUT = SumLayout(1000, 1, bound=4.0, max_count=10, parties=2, ring_bits=64)
INPUTS = {client: np.random.default_rng(client).uniform(-4, 4, 1000).astype(np.float32) for client in CLIENTS}
UNHURRIED = Patience.fixed(60.0)


def sum_of_all(round_id: int) -> SumTerms[SumLayout]:
    return SumTerms(RoundId(round_id), "rows", tuple(CLIENTS), LAYOUT)


def contribution(client: PartyId) -> Contribution:
    return Contribution(INPUTS[client], np.array([client]))


def unheard(parties: Collection[PartyId], step: str) -> None:
    raise AssertionError(f"{parties} drop out in {step}")


def masked_sum(transport: MpiTransport) -> Any:
    """The conversation of a masked sum, as over threads."""
    conversation, task, model = Conversation(transport, SESSION), sum_of_all(1), ThreatModel(0.25, 0.4)
    if transport.party != SERVER:
        client = SecAggSumClient(VectorClient(CLIENTS, model))
        client.setup(ClientSession(conversation, soon()))
        client.prepare(ClientSession(conversation, soon()), task)
        client.contribute(ClientSession(conversation, soon()), task, contribution(transport.party))
        return None
    server = SecAggSumServer(VectorServer(len(CLIENTS), model))
    server.setup(at_server(conversation, CLIENTS, UNHURRIED, unheard))
    server.prepare(at_server(conversation, CLIENTS, UNHURRIED, unheard), task)
    collected = server.collect(at_server(conversation, None, UNHURRIED, unheard), task)
    exact = INPUTS[ONE].astype(np.float64) + INPUTS[TWO]
    error = float(np.abs(collected.total.real - exact).max())
    counts, contributors = collected.total.counts.tolist(), sorted(collected.contributors)
    return {"error": error, "allowed": LAYOUT.codec.unit, "counts": counts, "contributors": contributors}


def left_out(transport: MpiTransport) -> Any:
    """Client 2 drops out in one sum, hears that it was left out, sends its stale input, and is in the next sum."""
    conversation, tasks = Conversation(transport, SESSION), [sum_of_all(1), sum_of_all(2)]
    if transport.party != SERVER:
        client = PlainSumClient()
        if transport.party == TWO:
            try:
                conversation.receive_any(SERVER, SETUP, soon())
            except LeftOut:
                client.contribute(ClientSession(conversation, soon()), tasks[0], contribution(TWO))
                conversation.send(SERVER, Back(), RoundId(1))
        else:
            client.contribute(ClientSession(conversation, soon()), tasks[0], contribution(ONE))
        client.contribute(ClientSession(conversation, soon()), tasks[1], contribution(transport.party))
        return None
    server, silent = PlainSumServer(), list[Any]()
    patience = Patience(longest=60.0, grace=0.2)
    server.prepare(at_server(conversation, CLIENTS, patience, unheard), tasks[0])
    first = server.collect(
        at_server(conversation, None, patience, lambda parties, step: silent.append([*parties, step])), tasks[0]
    )
    conversation.send(TWO, LeaveOut(), RoundId(1))
    limit = soon()
    while not conversation.came_back(TWO) and not limit.expired:
        time.sleep(0.01)
    server.prepare(at_server(conversation, CLIENTS, UNHURRIED, unheard), tasks[1])
    second = server.collect(at_server(conversation, None, UNHURRIED, unheard), tasks[1])
    return {
        "silent": silent,
        "contributors": [sorted(collected.contributors) for collected in (first, second)],
        "counts": [collected.total.counts.tolist() for collected in (first, second)],
        "late": conversation.late_messages,
    }


def too_large(transport: MpiTransport) -> Any:
    """A frame above the limit is refused by its size alone; the next one, from somebody else, is taken."""
    if transport.party != SERVER:
        transport.send(SERVER, bytes(2000 if transport.party == ONE else 1000))
        return None
    try:
        transport.receive([ONE], soon(), 1000)
    except PeerMisbehaved as problem:
        return {"refused": str(problem), "taken": len(transport.receive([TWO], soon(), 1000)[1])}
    return "taken in spite of its size"


def together(transport: MpiTransport) -> Any:
    """Frames in a cork: as single frames in their order, round a long one, also those that look like packets."""
    words = [b"one", packets.join([b"in", b"side"]), b"three", bytes(2 * packets.FRAME_BYTES), b"five", b"six"]
    words += [b"%d" % number for number in range(40)]
    if transport.party == SERVER:
        with transport.corked():
            for word in words:
                for client in CLIENTS:
                    transport.send(client, word)
            answers = {client: [transport.receive([client], soon())[1] for _ in words] for client in CLIENTS}
        before = transport.receive(CLIENTS, soon())  # sent before its sender works on in its block
        return {
            "same": [[bytes(frame) for frame in answers[client]] == words for client in CLIENTS],
            "released": bytes(before[1]).decode(),
        }
    heard = [transport.receive([SERVER], soon())[1] for _ in words]
    with transport.corked():
        for frame in heard:
            transport.send(SERVER, frame)
        if transport.party == ONE:
            transport.send(SERVER, b"before its work")
            transport.release()
            time.sleep(0.2)
    return None


def hostile_packets(transport: MpiTransport) -> Any:
    """Messages that begin like packets, and are none."""
    sound = bytearray(packets.join([b"one", b"two"]))
    sound[1] = 2
    marker = bytes([packets.MARKER])
    refused = [marker, bytes(sound), marker + b"\x01\x00\x00", marker * 90_000]
    if transport.party == ONE:
        for message in refused:
            transport._send(SERVER, message)
        transport.send(SERVER, b"after them")
    if transport.party != SERVER:
        return None
    found = list[str]()
    for _ in refused:
        try:
            found.append(str(transport.receive([ONE], soon())))
        except PeerMisbehaved as problem:
            found.append(str(problem))
    return [*found, bytes(transport.receive([ONE], soon())[1]).decode()]


ACTS: list[Callable[[MpiTransport], Any]] = [
    small,
    large,
    deadline,
    gather,
    already_there,
    turns,
    untaken,
    idle,
    masked_sum,
    left_out,
    too_large,
    together,
    hostile_packets,
]


def main(findings_path: Path) -> None:
    findings: dict[str, Any] = {}
    traffic: dict[str, list[int]] = {}
    with MpiTransport(MPI.COMM_WORLD) as transport:
        for number, act in enumerate(ACTS):
            with transport.phase(RoundId(number), act.__name__):
                findings[act.__name__] = act(transport)
        transport.flush(soon())
        with transport.phase(SETUP, "report"):
            own = [transport.traffic.total(way, phase="large").bytes for way in ("sent", "received")]
            if transport.party != SERVER:
                transport.send(SERVER, json.dumps(own).encode())
                transport.flush(soon())
            else:
                traffic["0"] = own
                for client, frame in transport.gather(CLIENTS, soon()).items():
                    traffic[str(client)] = json.loads(bytes(frame))
    if transport.party == SERVER:
        findings_path.write_text(json.dumps(findings | {"traffic": traffic}), encoding="utf-8")
    MPI.Finalize()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)
