"""Damage under way: a bit of one frame of a whole sum flips, and the sum is exact or there is none.

What no longer decodes, and what its receiver refuses, counts as silence: the others go on as far as they can, with a
threshold of two of four, so that damage has every chance to end up in the sum. One thing is left out because no sum
can notice it: a masked vector is a vector, so a change of its entries is a change of its owner's input.
"""

import random
import struct
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import DecodeError, PeerMisbehaved, ProtocolError, SumAbandoned
from protocols.foundation.identifiers import SETUP, PartyId, RoundId
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
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
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.session import SecAggSession
from tests.support.secagg_sessions import (
    EVERYONE,
    ME,
    SESSION,
    SIGNED_STEPS,
    Federation,
    Sum,
    channel_directory,
    complete,
)

pytestmark = pytest.mark.long

PARAMETERS = complete(4, 2)
FOUR = PartyId(4)
Damage = Callable[[bytes], bytes]


class Channel:
    """Carries every message as a frame and damages the one of a kind that client 2 sends or is sent."""

    def __init__(self, kind: type[wire.Message] | None = None, damage: Damage = bytes) -> None:
        self.frames: dict[type[wire.Message], bytes] = {}
        """What client 2 has sent and was sent, undamaged."""
        self._kind, self._damage = kind, damage

    def carried(self, party: PartyId, message: wire.Message, round_id: int) -> wire.Message:
        frame = bytes(wire.encode(message, SESSION, RoundId(round_id)))
        if party == ME:
            self.frames[type(message)] = frame
            if type(message) is self._kind:
                frame = self._damage(frame)
        envelope = wire.decode(frame, session=SESSION)
        if envelope.round != round_id:
            raise PeerMisbehaved("a message of another round")  # what a conversation does with it
        return envelope.message


def run(begun: Sum, channel: Channel) -> str:
    """The rest of the sum, in which client 4 gives no input: 'exact', 'none', or 'WRONG'."""
    server, round_id = begun.server, begun.terms.sum.round
    while server.step is not Step.DONE:
        for party in sorted(server.awaited):
            if server.step is Step.ABANDONED:
                return "none"
            if (server.step is Step.MASKED_INPUT and party == FOUR) or party not in begun.clients:
                continue
            if server.step is not Step.ADVERTISE_KEYS and party not in begun.inbox:
                continue
            try:
                server.receive(party, channel.carried(party, begun.answer(party), round_id))
            except ProtocolError:
                continue
        if server.step is Step.ABANDONED:
            return "none"
        try:
            messages = server.close()
        except SumAbandoned:
            return "none"
        begun.inbox = {}
        for party, message in messages.items():
            try:
                begun.inbox[party] = channel.carried(party, message, round_id)
            except ProtocolError:
                continue
    return "exact" if server.total().tolist() == begun.exact() else "WRONG"


def set_up(channel: Channel, signed: bool) -> Federation:
    """The set-up of a session over the same channel; a client that ends its session takes no part in sums."""
    federation = Federation(EVERYONE, signed=signed)
    sessions = {party: SecAggSession(party, EVERYONE, SESSION, federation.credentials.get(party)) for party in EVERYONE}
    adverts: dict[PartyId, AdvertiseChannel] = {}
    for party, begun in sessions.items():
        try:
            advert = channel.carried(party, begun.start(), SETUP)
        except ProtocolError:
            continue
        if isinstance(advert, AdvertiseChannel):
            adverts[party] = advert
    federation.directory = channel_directory(adverts)
    federation.sessions = {}
    for party in adverts:
        try:
            directory = channel.carried(party, federation.directory, SETUP)
            assert isinstance(directory, ChannelDirectory)
            sessions[party].receive(directory)
        except (ProtocolError, AssertionError):
            continue
        federation.sessions[party] = sessions[party]
    return federation


FEDERATIONS = {signed: Federation(EVERYONE, signed=signed) for signed in (False, True)}
SET_UP: list[type[wire.Message]] = [AdvertiseChannel, ChannelDirectory]
KINDS: list[type[wire.Message]] = [
    AdvertiseKeys,
    KeyDirectory,
    ShareKeys,
    EncryptedShares,
    MaskedInput,
    Survivors,
    UnmaskShares,
    SurvivorSignature,
    SignedSurvivors,
]
CASES = [
    pytest.param(kind, signed, id=f"{kind.__name__}-{'active' if signed else 'semi-honest'}")
    for kind in [*SET_UP, *KINDS]
    for signed in (False, True)
    if signed or kind not in (SurvivorSignature, SignedSurvivors)
]


def outcome(kind: type[wire.Message] | None, signed: bool, damage: Damage = bytes) -> tuple[str, Channel]:
    channel = Channel(kind, damage)
    federation = set_up(channel, signed) if kind in SET_UP else FEDERATIONS[signed]
    return run(federation.begin(PARAMETERS), channel), channel


def flip(bit: int) -> Damage:
    def damage(frame: bytes) -> bytes:
        changed = bytearray(frame)
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)

    return damage


def decoded(frame: bytes) -> wire.Message | None:
    try:
        return wire.decode(frame, session=SESSION).message
    except DecodeError:
        return None


def places_of(frame: bytes, pieces: list[bytes]) -> set[int]:
    return {place for piece in pieces for place in range(frame.index(piece), frame.index(piece) + len(piece))}


def long_fields(message: wire.Message) -> list[bytes]:
    """Keys, signatures, ciphertexts, shares and vectors: many bytes of one kind."""
    found: list[bytes] = []
    for name in message.__struct_fields__:
        value = getattr(message, name)
        entries = list(value.values()) if isinstance(value, dict) else [value]
        found += [entry for entry in entries if isinstance(entry, bytes) and len(entry) >= 32]
    return found + ([message.vector.tobytes()] if isinstance(message, MaskedInput) else [])


def mask_keys(message: wire.Message) -> list[bytes]:
    if isinstance(message, AdvertiseKeys):
        return [message.mask_key]
    return list(message.mask_keys.values()) if isinstance(message, KeyDirectory) else []


def names_one_twice(frame: bytes, bit: int) -> bool:
    """Whether two entries of a map get the same number, so that a lenient reader would lose the first in silence."""
    before = decoded(frame)
    assert before is not None
    try:
        after = wire._decoder(type(before)).decode(flip(bit)(frame)[wire.HEADER.size :])
    except (msgspec.MsgspecError, ValueError) as problem:
        return "keys and states of different clients" in str(problem)  # one of two maps that must fit has lost an entry
    return any(
        isinstance(getattr(before, name), dict) and len(getattr(after, name)) < len(getattr(before, name))
        for name in before.__struct_fields__
    )


def bits_to_flip(kind: type[wire.Message], signed: bool) -> list[int]:
    """Every bit of the frame's structure and one of every byte of its long fields, as far as the frame decodes."""
    _, channel = outcome(kind, signed)
    frame = channel.frames[kind]
    message = decoded(frame)
    assert message is not None
    dense = places_of(frame, long_fields(message))
    left_out = places_of(frame, [message.vector.tobytes()]) if isinstance(message, MaskedInput) else set()
    rng = random.Random(kind.__name__)
    bits: list[int] = []
    for place in set(range(len(frame))) - left_out:
        bits += [8 * place + (rng.randrange(8))] if place in dense else range(8 * place, 8 * place + 8)
    return [bit for bit in bits if decoded(flip(bit)(frame)) is not None]


@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
def test_an_undamaged_sum_is_exact_and_carries_every_kind_of_message(signed: bool) -> None:
    ended, channel = outcome(AdvertiseChannel, signed)
    assert ended == "exact"
    assert channel.frames.keys() == {case.values[0] for case in CASES if case.values[1] == signed}


@pytest.mark.parametrize("apart", [pytest.param(1, marks=pytest.mark.slow, id="all"), pytest.param(7, id="some")])
@pytest.mark.parametrize(("kind", "signed"), CASES)
def test_a_flipped_bit_never_gives_a_wrong_sum(kind: type[wire.Message], signed: bool, apart: int) -> None:
    bits = bits_to_flip(kind, signed)
    assert len(bits) >= 32  # the bits of the round at least
    bits = bits[::apart]  # seven has no factor in common with eight: all bits of a byte have their turn
    ends: Counter[str] = Counter()
    for bit in bits:
        ended, _ = outcome(kind, signed, flip(bit))
        assert ended != "WRONG", (bit // 8, bit % 8)
        ends[ended] += 1
    assert ends["exact"] + ends["none"] == len(bits)


@pytest.mark.parametrize(("kind", "signed"), CASES)
def test_a_truncated_frame_is_never_delivered(kind: type[wire.Message], signed: bool) -> None:
    """Neither as it is nor with its length set right; the sum goes on as without the message."""
    _, channel = outcome(kind, signed)
    frame = channel.frames[kind]
    for end in range(len(frame)):
        assert decoded(frame[:end]) is None
        if end >= wire.HEADER.size:
            length = struct.pack("<Q", end - wire.HEADER.size)
            assert decoded(frame[: wire.HEADER.size - 8] + length + frame[wire.HEADER.size : end]) is None
    ended, _ = outcome(kind, signed, lambda frame: frame[:-1])
    assert ended in ("exact", "none")


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_at_random_places_never_give_a_wrong_sum(seed: int) -> None:
    """Several changes at once to one frame; the vector is left alone as above."""
    rng = random.Random(seed)
    for _ in range(50):
        kind, signed = rng.choice([kind for kind in KINDS if kind is not MaskedInput]), rng.random() < 0.5
        signed = signed or kind in (SurvivorSignature, SignedSurvivors)

        def damage(frame: bytes) -> bytes:
            changed = bytearray(frame)
            for _ in range(rng.randrange(1, 4)):
                changed[rng.randrange(wire.HEADER.size, len(changed))] = rng.randrange(256)
            return bytes(changed)

        assert outcome(kind, signed, damage)[0] != "WRONG"


@pytest.mark.parametrize("kind", [AdvertiseKeys, KeyDirectory], ids=lambda kind: kind.__name__)
def test_a_flipped_bit_of_a_mask_key_never_gives_a_wrong_sum(kind: type[wire.Message]) -> None:
    """Client 2 and a peer have different keys of one of them: it notices before it gives its input.

    Every byte, and the top bit of every key, of which X25519 takes no notice.
    """
    _, channel = outcome(kind, False)
    assert MaskedInput in channel.frames
    frame = channel.frames[kind]
    message = decoded(frame)
    assert message is not None
    for key in mask_keys(message):
        start = 8 * frame.index(key)
        for bit in [*range(start + 2, start + 256, 8), start + 255]:
            ended, damaged = outcome(kind, False, flip(bit))
            assert ended != "WRONG", bit - start
            assert MaskedInput not in damaged.frames, bit - start


@pytest.mark.parametrize(
    ("kind", "signed"),
    [
        pytest.param(*case.values, id=case.id)
        for case in CASES
        if case.values[0] in (ChannelDirectory, KeyDirectory, ShareKeys, EncryptedShares, UnmaskShares, SignedSurvivors)
    ],
)
def test_two_entries_that_get_the_same_number_never_give_a_wrong_sum(kind: type[wire.Message], signed: bool) -> None:
    """The frame is refused as a whole."""
    _, channel = outcome(kind, signed)
    frame = channel.frames[kind]
    bits = [bit for bit in range(8 * wire.HEADER.size, 8 * len(frame)) if names_one_twice(frame, bit)]
    assert bits
    for bit in bits:
        assert decoded(flip(bit)(frame)) is None, bit
        assert outcome(kind, signed, flip(bit))[0] != "WRONG", bit


def test_every_step_of_a_signed_sum_is_damaged_somewhere() -> None:
    """The kinds above are all that travel: two in the set-up, one to and one from the server in each step."""
    assert len(SET_UP) == 2
    assert len(KINDS) == 2 * len(SIGNED_STEPS) - 1
