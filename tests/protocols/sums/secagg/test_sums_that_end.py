"""Masked sums that end early, and what is on the wire: noise, keys and nothing else."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import (
    DeadlineExpired,
    LeftOut,
    PeerLost,
    SumAbandoned,
)
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.session.conversation import Abandon, Conversation, LeaveOut
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.interface import Collected, Contribution, SumLayout
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.transport.base import Transport
from protocols.transport.tap import Tap, read_transcript
from tests.support.bent_servers import CLIENTS, FOUR, INPUTS, LAYOUT, ONE, SECURE, TASK, THREE, TWO, Lying, both
from tests.support.in_threads import SESSION, at_once, at_server, converse
from tests.support.sum_conversations import (
    PURPOSE,
    SECOND,
    SIGNED,
    Foreseen,
    Silences,
    Twin,
    bent,
    is_sum_of,
    serving,
    step_of,
    stopping_at,
    taking_part,
    task_of,
)
from tests.support.uniformity import ENTRIES, looks_uniform

# --- sums that end early --------------------------------------------------------------------------------------------


@both
def test_a_preparation_that_fails_is_forgotten_and_the_next_sum_is_exact(twin: Twin) -> None:
    following = replace(TASK, round=SECOND)

    def abandon(to: PartyId, message: wire.Message) -> wire.Message:
        return Abandon(PURPOSE, "too few") if isinstance(message, KeyDirectory) else message

    def serve(conversation: Conversation) -> Collected:
        server, silent = twin.server(CLIENTS), Silences()
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent))
        patience = Foreseen(*((step_of("share keys"), party) for party in CLIENTS))
        with pytest.raises(SumAbandoned):
            server.prepare(at_server(Lying(conversation, abandon), CLIENTS, patience, silent), TASK)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), following)
        return server.collect(at_server(conversation, None, Foreseen(), silent), following)

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = twin.client(CLIENTS, me)
        client.setup(at_once(conversation))
        with pytest.raises(SumAbandoned, match=r"^too few$"):
            client.prepare(at_once(conversation), TASK)
        before = conversation.transport.traffic.total("sent"), conversation.transport.traffic.wait_seconds
        with pytest.raises(RuntimeError, match=r"^prepare\(\) comes first$"):
            client.contribute(at_once(conversation), TASK, INPUTS[me])
        # At once: it has neither sent nor waited.
        assert (conversation.transport.traffic.total("sent"), conversation.transport.traffic.wait_seconds) == before
        client.prepare(at_once(conversation), following)
        client.contribute(at_once(conversation), following, INPUTS[me])

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))[SERVER]
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)


class Losing(Transport):
    """A server's end that loses client 4 when it is to be sent a message of one kind. The client is told so."""

    def __init__(self, inner: Transport, kind: type[wire.Message]) -> None:
        super().__init__(inner.party, inner.peers)
        self._inner, self._kind = inner, kind

    def flush(self, deadline: Deadline) -> None:
        self._inner.flush(deadline)

    def _post(self, to: PartyId, frame: wire.Frame) -> None:
        envelope = wire.decode(frame, session=SESSION)
        if to == FOUR and isinstance(envelope.message, self._kind):
            self._inner.send(to, wire.encode(LeaveOut(), SESSION, envelope.round))
            raise PeerLost("client 4 can no longer be reached", to)
        self._inner.send(to, frame)

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, wire.Frame] | None:
        try:
            return self._inner.receive(senders, deadline)
        except DeadlineExpired:
            return None


@pytest.mark.parametrize(
    ("name", "kind", "step", "following", "summed"),
    [
        ("secagg", KeyDirectory, "advertise keys", "share keys", [ONE, TWO, THREE]),
        ("signed", KeyDirectory, "advertise keys", "share keys", [ONE, TWO, THREE]),
        ("secagg", EncryptedShares, "share keys", "masked input", [ONE, TWO, THREE]),
        ("signed", EncryptedShares, "share keys", "masked input", [ONE, TWO, THREE]),
        # Its input has arrived by then.
        ("secagg", Survivors, "masked input", "unmasking", CLIENTS),
        ("signed", Survivors, "masked input", "consistency check", CLIENTS),
        ("signed", SignedSurvivors, "consistency check", "unmasking", CLIENTS),
    ],
)
def test_a_client_that_cannot_be_reached_is_called_silent_once_and_not_waited_for(
    name: str, kind: type[wire.Message], step: str, following: str, summed: list[PartyId]
) -> None:
    twin, silent = SECURE[name], Silences()
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])
    patience = Asked((step_of(following), FOUR))

    def serve(conversation: Conversation) -> Collected:
        losing = Conversation(Losing(conversation.transport, kind), conversation.session)
        (collected,) = serving(twin, CLIENTS, [TASK], patience, silent)(losing)
        assert isinstance(collected, Collected)
        return collected

    def lost(conversation: Conversation) -> None:
        with pytest.raises(LeftOut):
            honest(conversation)

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, honest) | {FOUR: lost})[SERVER]
    assert silent.seen == [({FOUR}, step_of(step))]
    assert (step_of(step), FOUR) in patience.asked
    assert {party for asked, party in patience.asked if asked == step_of(following)} == {ONE, TWO, THREE}
    assert is_sum_of(collected, LAYOUT, INPUTS, summed)


class Asked(Foreseen):
    """Remembers for whom there was waiting in which step."""

    def __init__(self, *silent: tuple[str, PartyId]) -> None:
        super().__init__(*silent)
        self.asked: set[tuple[str, PartyId]] = set()

    def limit(self, step: str, party: PartyId, answered: Sequence[float], asked: int) -> float:
        self.asked.add((step, party))
        return super().limit(step, party, answered, asked)


# --- the wire -------------------------------------------------------------------------------------------------------


@both
def test_the_server_sees_noise_and_keys_and_nothing_else(twin: Twin, tmp_path: Path) -> None:
    """The transcript of the server's own end: no frame that arrives there shows a client's small numbers."""
    layout = SumLayout(ENTRIES, 0, bound=4.0, max_count=0, parties=2, ring_bits=64)
    clients = [ONE, TWO]
    task, clear = task_of(layout, clients), np.full(ENTRIES, 0.5)

    def serve(conversation: Conversation) -> Collected:
        with conversation.transport as transport:
            transport.attach(Tap(tmp_path / "server"))
            (collected,) = serving(twin, clients, [task])(conversation)
            assert isinstance(collected, Collected)
            return collected

    inputs = dict.fromkeys(clients, Contribution(clear, np.zeros(0, dtype=np.int64)))
    results = converse({SERVER: serve} | dict.fromkeys(clients, taking_part(twin, clients, [(task, inputs)])))
    assert np.array_equal(results[SERVER].total.real, 2 * clear)
    records = list(read_transcript(tmp_path / "server"))
    messages = [wire.decode(record.frame, session=SESSION).message for record in records]
    check: list[tuple[str, str, type[wire.Message]]] = [
        ("received", step_of("consistency check"), SurvivorSignature),
        ("sent", step_of("consistency check"), SignedSurvivors),
    ]
    expected: list[tuple[str, str, type[wire.Message]]] = [
        ("received", "advertise channel", AdvertiseChannel),
        ("sent", "advertise channel", ChannelDirectory),
        ("received", step_of("advertise keys"), AdvertiseKeys),
        ("sent", step_of("advertise keys"), KeyDirectory),
        ("received", step_of("share keys"), ShareKeys),
        ("sent", step_of("share keys"), EncryptedShares),
        ("received", step_of("masked input"), MaskedInput),
        ("sent", step_of("masked input"), Survivors),
        *(check if twin is SIGNED else []),
        ("received", step_of("unmasking"), UnmaskShares),
    ]
    seen = [(record.direction, record.phase, type(message)) for record, message in zip(records, messages, strict=True)]
    assert seen == [entry for entry in expected for _ in clients]
    masked = [message.vector for message in messages if isinstance(message, MaskedInput)]
    for vector in (*masked, masked[0] - masked[1]):
        assert looks_uniform(vector)
    # The pairwise masks cancel in the sum of the two, and the self masks still hide it.
    assert looks_uniform(masked[0] + masked[1])
    assert not looks_uniform(layout.codec.encode(clear).vector)


@both
def test_no_client_gives_both_shares_of_anyone_or_its_own_mask_key(twin: Twin) -> None:
    """Client 4 drops out before its input: its mask key is opened, everybody else's self mask."""
    given: dict[PartyId, UnmaskShares] = {}
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])

    def take_part(conversation: Conversation) -> None:
        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            if isinstance(message, UnmaskShares):
                given[conversation.transport.party] = message
            return message

        bent(honest, note)(conversation)

    parts = {SERVER: serving(twin, CLIENTS, [TASK], Foreseen((step_of("masked input"), FOUR)))}
    converse(parts | dict.fromkeys(CLIENTS, take_part) | {FOUR: bent(honest, stopping_at(MaskedInput))})
    assert given.keys() == {ONE, TWO, THREE}
    for answer in given.values():
        assert answer.mask_key_shares.keys() == {FOUR}
        assert answer.seed_shares.keys() == {ONE, TWO, THREE}
