"""Hostile servers of masked sums: a client that is told an untruth gives nothing away, and no wrong sum comes of it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from protocols.foundation import wire
from protocols.foundation.errors import (
    Aborted,
    LeftOut,
    PeerMisbehaved,
    PeersRefused,
    ProtocolError,
    SumAbandoned,
    SumRefused,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.primitives.keys import AgreementKey
from protocols.session.client_session import ClientSession
from protocols.session.control import RefuseShares
from protocols.session.conversation import Abandon, Abort, Conversation, LeaveOut
from protocols.session.messages import AdvertiseChannel
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
from tests.support.bent_servers import (
    CLIENTS,
    FOUR,
    INPUTS,
    ONE,
    PAST,
    SECURE,
    TASK,
    THREE,
    TWO,
    Lie,
    Lying,
    both,
    changed,
)
from tests.support.in_threads import Part, at_once, converse
from tests.support.sum_conversations import (
    PURPOSE,
    SECAGG,
    SIGNED,
    Bend,
    Foreseen,
    Silences,
    Twin,
    bent,
    serving,
    step_of,
    stopping_at,
    taking_part,
)

# --- hostile servers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Untruth:
    """What the server says to everybody instead of `kind`, and how every client takes it."""

    kind: type[wire.Message]
    problem: type[ProtocolError]
    match: str
    lie: Lie


def mask_keys(make: Callable[[PartyId, dict[int, bytes]], dict[int, bytes]]) -> Lie:
    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        assert isinstance(message, KeyDirectory)
        keys = make(to, message.mask_keys)
        return changed(message, mask_keys=keys, states=dict.fromkeys(keys, b""))

    return lie


def sealed(make: Callable[[PartyId, dict[int, bytes]], dict[int, bytes]]) -> Lie:
    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        assert isinstance(message, EncryptedShares)
        sealed = make(to, message.sealed)
        return changed(message, sealed=sealed, states=dict.fromkeys(sealed, b""))

    return lie


def signatures(make: Callable[[PartyId, dict[int, bytes]], dict[int, bytes]]) -> Lie:
    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        assert isinstance(message, SignedSurvivors)
        return changed(message, signatures=make(to, message.signatures))

    return lie


def one_of(entries: dict[int, bytes]) -> dict[int, bytes]:
    party = min(entries)
    return {party: entries[party]}


def swapped(entries: dict[int, bytes]) -> dict[int, bytes]:
    return dict(zip(entries, reversed(entries.values()), strict=True))


def flipped(entries: dict[int, bytes]) -> dict[int, bytes]:
    return {party: entry[:-1] + bytes([entry[-1] ^ 1]) for party, entry in entries.items()}


def peer_of(party: PartyId) -> int:
    return party % 4 + 1


UNTRUTHS: dict[str, Untruth] = {}


for _kind, _waits in ((KeyDirectory, "keys"), (EncryptedShares, "shares"), (Survivors, "survivors")):
    UNTRUTHS |= {
        f"{_waits}: abandoned": Untruth(
            _kind, SumAbandoned, "^too few$", lambda to, message: Abandon(PURPOSE, "too few")
        ),
        f"{_waits}: left out": Untruth(_kind, LeftOut, "gone on without this client", lambda to, message: LeaveOut()),
        f"{_waits}: session over": Untruth(_kind, Aborted, "^over$", lambda to, message: Abort("over")),
        f"{_waits}: of another sum": Untruth(
            _kind, PeerMisbehaved, "a message for another sum", lambda to, message: changed(message, purpose="other")
        ),
        f"{_waits}: another kind": Untruth(
            _kind,
            UnexpectedMessage,
            "the server sent AdvertiseChannel",
            lambda to, message: AdvertiseChannel(bytes(32), b""),
        ),
    }


UNTRUTHS |= {
    "keys: of a stranger": Untruth(
        KeyDirectory, PeerMisbehaved, "no neighbour", mask_keys(lambda to, keys: {**keys, 5: AgreementKey().public})
    ),
    "keys: of the receiver": Untruth(
        KeyDirectory, PeerMisbehaved, "no neighbour", mask_keys(lambda to, keys: {**keys, to: AgreementKey().public})
    ),
    "keys: two alike": Untruth(
        KeyDirectory, PeerMisbehaved, "same key", mask_keys(lambda to, keys: dict.fromkeys(keys, bytes([9]) * 32))
    ),
    "keys: too few": Untruth(
        KeyDirectory,
        PeerMisbehaved,
        "2 clients are said to have advertised keys, fewer than 3",
        mask_keys(lambda to, keys: one_of(keys)),
    ),
    "shares: damaged": Untruth(
        EncryptedShares, PeersRefused, "cannot be opened", sealed(lambda to, entries: flipped(entries))
    ),
    "shares: exchanged": Untruth(
        EncryptedShares, PeersRefused, "cannot be opened", sealed(lambda to, entries: swapped(entries))
    ),
    "shares: of the receiver": Untruth(
        EncryptedShares,
        PeerMisbehaved,
        "advertised no key",
        sealed(lambda to, entries: {**entries, to: min(entries.values())}),
    ),
    "shares: of a stranger": Untruth(
        EncryptedShares,
        PeerMisbehaved,
        "advertised no key",
        sealed(lambda to, entries: {**entries, 5: min(entries.values())}),
    ),
    "shares: too few": Untruth(
        EncryptedShares,
        PeerMisbehaved,
        "2 clients are said to have shared keys, fewer than 3",
        sealed(lambda to, entries: one_of(entries)),
    ),
    "survivors: without the receiver": Untruth(
        Survivors, PeerMisbehaved, "names this client", lambda to, message: Survivors(PURPOSE, [to])
    ),
    "survivors: one dropped twice": Untruth(
        Survivors, PeerMisbehaved, "names one twice", lambda to, message: Survivors(PURPOSE, [peer_of(to)] * 2)
    ),
    "survivors: a stranger dropped": Untruth(
        Survivors, PeerMisbehaved, "names one that has sent no shares", lambda to, message: Survivors(PURPOSE, [5])
    ),
    "survivors: too few": Untruth(
        Survivors,
        PeerMisbehaved,
        "2 clients are said to have sent an input, fewer than 3",
        lambda to, message: Survivors(PURPOSE, [int(party) for party in CLIENTS if party != to][:2]),
    ),
}
UNTRUTHS_IF_SIGNED: dict[str, Untruth] = {
    "keys: of the server": Untruth(
        KeyDirectory,
        PeersRefused,
        "not signed by its pinned identity",
        mask_keys(lambda to, keys: {**keys, peer_of(to): AgreementKey().public}),
    ),
    "signatures: none": Untruth(
        SignedSurvivors,
        PeerMisbehaved,
        "1 clients have signed the survivors, fewer than 3",
        signatures(lambda to, signed: {}),
    ),
    "signatures: too few": Untruth(
        SignedSurvivors,
        PeerMisbehaved,
        "2 clients have signed the survivors, fewer than 3",
        signatures(lambda to, signed: {peer_of(to): signed[peer_of(to)]}),
    ),
    "signatures: damaged": Untruth(
        SignedSurvivors, PeersRefused, "not signed by its pinned", signatures(lambda to, signed: flipped(signed))
    ),
    "signatures: exchanged": Untruth(
        SignedSurvivors, PeersRefused, "not signed by its pinned", signatures(lambda to, signed: swapped(signed))
    ),
    "signatures: of a stranger": Untruth(
        SignedSurvivors,
        PeerMisbehaved,
        "by a client that is none",
        signatures(lambda to, signed: {**signed, 5: min(signed.values())}),
    ),
    "signatures: abandoned": Untruth(
        SignedSurvivors, SumAbandoned, "^too few$", lambda to, message: Abandon(PURPOSE, "too few")
    ),
    "signatures: left out": Untruth(SignedSurvivors, LeftOut, "gone on", lambda to, message: LeaveOut()),
}
SAID: dict[type[wire.Message], list[type[wire.Message]]] = {
    KeyDirectory: [AdvertiseChannel, AdvertiseKeys],
    EncryptedShares: [AdvertiseChannel, AdvertiseKeys, ShareKeys],
    Survivors: [AdvertiseChannel, AdvertiseKeys, ShareKeys, MaskedInput],
    SignedSurvivors: [AdvertiseChannel, AdvertiseKeys, ShareKeys, MaskedInput, SurvivorSignature],
}
"""What a client has said before the server's answer of each kind."""


def next_step(twin: Twin, kind: type[wire.Message]) -> str:
    after = {KeyDirectory: "share keys", EncryptedShares: "masked input", SignedSurvivors: "unmasking"}
    return after.get(kind, "consistency check" if twin is SIGNED else "unmasking")


@pytest.mark.parametrize(
    ("name", "told"),
    [("secagg", told) for told in UNTRUTHS] + [("signed", told) for told in UNTRUTHS | UNTRUTHS_IF_SIGNED],
)
def test_a_client_says_nothing_more_in_a_sum_once_the_server_ends_or_bends_it(name: str, told: str) -> None:
    twin, untruth = SECURE[name], (UNTRUTHS | UNTRUTHS_IF_SIGNED)[told]
    step = next_step(twin, untruth.kind)

    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        return untruth.lie(to, message) if isinstance(message, untruth.kind) else message

    def serve(conversation: Conversation) -> None:
        patience = Foreseen(*((step_of(step), party) for party in CLIENTS))
        with pytest.raises(SumAbandoned):
            serving(twin, CLIENTS, [TASK], patience)(Lying(conversation, lie))

    def take_part(conversation: Conversation) -> None:
        me, said = conversation.transport.party, list[type[wire.Message]]()
        client = twin.client(CLIENTS, me)

        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            said.append(type(message))
            return message

        def sum_once(noted: Conversation) -> None:
            client.setup(at_once(noted))
            client.prepare(at_once(noted), TASK)
            client.contribute(at_once(noted), TASK, INPUTS[me])

        with pytest.raises(untruth.problem, match=untruth.match):
            bent(sum_once, note)(conversation)
        # It says whose words it does not take, where that is why; and no more in either case.
        assert said == SAID[untruth.kind] + [RefuseShares] * (untruth.problem is PeersRefused)
        # The sum is over for this client, whatever it is asked for.
        sent = conversation.transport.traffic.total("sent")
        with pytest.raises(RuntimeError, match=r"^prepare\(\) comes first$"):
            client.contribute(ClientSession(conversation, PAST), TASK, INPUTS[me])
        with pytest.raises(PeerMisbehaved, match="a second sum"):
            client.prepare(ClientSession(conversation, PAST), TASK)
        assert conversation.transport.traffic.total("sent") == sent

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


def test_a_server_that_tells_clients_different_survivors_opens_nothing_against_signatures() -> None:
    """Client 1 hears that client 2 has dropped out, the others that nobody has."""

    def lie(to: PartyId, message: wire.Message) -> wire.Message:
        return Survivors(PURPOSE, [TWO]) if isinstance(message, Survivors) and to == ONE else message

    def serve(conversation: Conversation) -> None:
        patience = Foreseen(*((step_of("unmasking"), party) for party in CLIENTS))
        with pytest.raises(SumAbandoned, match="0 clients gave a share"):
            serving(SIGNED, CLIENTS, [TASK], patience)(Lying(conversation, lie))

    def take_part(conversation: Conversation) -> None:
        with pytest.raises(PeerMisbehaved, match=r"signed by its pinned identity|a client that is none"):
            taking_part(SIGNED, CLIENTS, [(TASK, INPUTS)])(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


@both
@pytest.mark.parametrize("robbed", [ONE, THREE], ids=int)
@pytest.mark.parametrize("silent_then", [False, True], ids=["honest", "silent"])
def test_shares_that_are_lost_on_the_way_never_give_a_wrong_sum(twin: Twin, robbed: PartyId, silent_then: bool) -> None:
    """The others could open everything without it; nobody else knows that their common mask is in one input only."""
    sender = TWO
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])
    said: list[type[wire.Message]] = []

    def lose(to: PartyId, message: wire.Message) -> wire.Message:
        if to != robbed or not isinstance(message, EncryptedShares):
            return message
        kept = {party: entry for party, entry in message.sealed.items() if party != sender}
        assert len(kept) == 2
        states = {party: state for party, state in message.states.items() if party != sender}
        return changed(message, sealed=kept, states=states)

    def serve(conversation: Conversation) -> None:
        # Without the check it would wait for no answer of that client any more, and have its sum.
        patience = Foreseen(*((step_of(step), robbed) for step in ("consistency check", "unmasking") if silent_then))
        try:
            with pytest.raises(PeerMisbehaved, match=f"client {robbed} has masked with others than its neighbours"):
                serving(twin, CLIENTS, [TASK], patience)(Lying(conversation, lose))
        finally:
            conversation.abort(CLIENTS, "a client misbehaves", TASK.round)

    def take_part(conversation: Conversation) -> None:
        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            said.append(type(message))
            return message

        with pytest.raises(Aborted, match="a client misbehaves"):
            bent(honest, note)(conversation)

    def fall_silent(conversation: Conversation) -> None:
        with pytest.raises(Aborted, match="a client misbehaves"):
            bent(honest, stopping_at(twin.says["consistency check" if twin is SIGNED else "unmasking"]))(conversation)

    parts = {SERVER: serve} | dict.fromkeys(CLIENTS, take_part)
    converse(parts | {robbed: fall_silent} if silent_then else parts)
    # Nobody was asked to open anything.
    assert not {SurvivorSignature, UnmaskShares} & set(said)


def zeros(entries: dict[int, bytes]) -> dict[int, bytes]:
    return {party: bytes(len(entry)) for party, entry in entries.items()}


def damaged(message: wire.Message, round_id: RoundId) -> wire.Message:
    if not isinstance(message, UnmaskShares):
        return message
    return UnmaskShares(PURPOSE, zeros(message.mask_key_shares), zeros(message.seed_shares))


def uncommitted(message: wire.Message, round_id: RoundId) -> wire.Message:
    return changed(message, seed_commitment=bytes(32)) if isinstance(message, ShareKeys) else message


def advertised_otherwise(message: wire.Message, round_id: RoundId) -> wire.Message:
    return changed(message, mask_key=AgreementKey().public) if isinstance(message, AdvertiseKeys) else message


@pytest.mark.parametrize(
    ("name", "step", "bends", "match"),
    [
        ("secagg", "unmasking", {THREE: damaged}, "the shares of the self mask of client 1 are false"),
        ("signed", "unmasking", {THREE: damaged}, "the shares of the self mask of client 1 are false"),
        ("secagg", "masked input", {THREE: damaged}, "the shares of the mask key of client 4 are false"),
        ("signed", "masked input", {THREE: damaged}, "the shares of the mask key of client 4 are false"),
        ("secagg", "unmasking", {TWO: uncommitted}, "the shares of the self mask of client 2 are false"),
        ("signed", "unmasking", {TWO: uncommitted}, "the shares of the self mask of client 2 are false"),
    ],
)
def test_false_shares_end_the_sum_instead_of_spoiling_it(
    name: str, step: str, bends: dict[PartyId, Bend], match: str
) -> None:
    """Client 4 drops out in `step`, so that the shares of all the others are needed."""
    twin = SECURE[name]
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])

    def serve(conversation: Conversation) -> None:
        with pytest.raises(SumAbandoned, match=match):
            serving(twin, CLIENTS, [TASK], Foreseen((step_of(step), FOUR)))(conversation)

    parts: dict[PartyId, Part] = {SERVER: serve} | dict.fromkeys(CLIENTS, honest)
    parts[FOUR] = bent(honest, stopping_at(twin.says[step]))
    for party, bend in bends.items():
        parts[party] = bent(parts[party], bend)
    converse(parts)


def test_a_client_that_advertises_another_key_than_it_has_gets_no_input_out_of_anybody() -> None:
    """Its shares do not open. Against signatures nobody even shares keys with it."""
    silent = Silences()
    honest = taking_part(SECAGG, CLIENTS, [(TASK, INPUTS)])

    def take_part(conversation: Conversation) -> None:
        me, said = conversation.transport.party, list[type[wire.Message]]()

        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            said.append(type(message))
            return advertised_otherwise(message, round_id) if me == FOUR else message

        liar = "client 1" if me == FOUR else "client 4"
        with pytest.raises(PeerMisbehaved, match=f"{liar} cannot be opened: forged, or it was told other keys"):
            bent(honest, note)(conversation)
        assert said == [AdvertiseChannel, AdvertiseKeys, ShareKeys, RefuseShares]

    def serve(conversation: Conversation) -> None:
        with pytest.raises(SumRefused, match="cannot be opened") as told:
            serving(SECAGG, CLIENTS, [TASK], Foreseen(), silent)(conversation)
        assert told.value.by == FOUR or told.value.of == (FOUR,)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    assert not silent.seen
