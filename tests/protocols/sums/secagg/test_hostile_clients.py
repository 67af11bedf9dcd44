"""Hostile clients of one masked sum: false answers cost the sum, never bend it."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import DecodeError, PeerMisbehaved, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.primitives.group import MODULUS, GroupVector, PrimeField
from protocols.primitives.keys import AgreementKey
from protocols.sums.secagg.messages import (
    PEERS_BYTES,
    AdvertiseKeys,
    MaskedInput,
    ShareKeys,
    UnmaskShares,
)
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.states import Advertised
from tests.support.secagg_sessions import (
    LENGTH,
    PURPOSE,
    SESSION,
    Federation,
    Sum,
    complete,
    parties,
)
from tests.support.server_steps import EVERYONE, FOUR, ONE, PARAMETERS, THREE, TWO, begun_at, finish, masked_by_two

# --- hostile clients ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "vector",
    [
        np.ones(LENGTH - 1, dtype="<u8"),
        np.ones(LENGTH + 1, dtype="<u8"),
        np.ones(0, dtype="<u8"),
        np.ones(LENGTH, dtype="<u4"),
        np.ones(2 * LENGTH, dtype="<u4"),
    ],
    ids=["short", "long", "empty", "another ring", "another ring, as many bytes"],
)
def test_a_vector_of_another_length_or_group_is_refused_and_not_added(vector: GroupVector) -> None:
    begun = begun_at(Step.MASKED_INPUT)
    right = begun.answer(TWO)
    with pytest.raises(PeerMisbehaved, match="client 2 sends a vector of another length or group"):
        begun.server.receive(TWO, masked_by_two(begun, vector))
    begun.server.receive(TWO, right)
    finish(begun, TWO)


@pytest.mark.parametrize("value", [MODULUS, MODULUS + 1, 2**64 - 1])
def test_a_value_outside_the_field_is_refused_and_not_added(value: int) -> None:
    begun = Federation(EVERYONE).begin(PARAMETERS, PrimeField()).until(Step.MASKED_INPUT)
    right = begun.answer(TWO)
    wrong = np.array([value, *[1] * (LENGTH - 1)], dtype="<u8")
    with pytest.raises(PeerMisbehaved, match="client 2"):
        begun.server.receive(TWO, masked_by_two(begun, wrong))
    begun.server.receive(TWO, right)
    finish(begun, TWO)


@pytest.mark.parametrize("peers", [[1, 3], [1, 2, 3, 4], [1, 3, 5], [], [1, 3, 4, 5]], ids=str)
def test_an_input_that_was_masked_with_others_is_refused_and_not_added(peers: list[int]) -> None:
    begun = begun_at(Step.MASKED_INPUT)
    right = begun.answer(TWO)
    assert isinstance(right, MaskedInput)
    wrong = MaskedInput(PURPOSE, right.vector.copy(), begun.terms.peers_digest(TWO, parties(*peers)))
    with pytest.raises(PeerMisbehaved, match="client 2 has masked with others than its neighbours"):
        begun.server.receive(TWO, wrong)
    begun.server.receive(TWO, right)
    finish(begun, TWO)


def test_another_clients_digest_of_the_peers_is_refused() -> None:
    begun = begun_at(Step.MASKED_INPUT)
    right = begun.answer(TWO)
    assert isinstance(right, MaskedInput)
    for party in (ONE, THREE, FOUR):
        other = begun.terms.peers_digest(party, [peer for peer in EVERYONE if peer != party])
        with pytest.raises(PeerMisbehaved, match="client 2 has masked with others"):
            begun.server.receive(TWO, MaskedInput(PURPOSE, right.vector.copy(), other))
    begun.server.receive(TWO, right)
    finish(begun, TWO)


def test_peers_that_fell_silent_before_they_shared_keys_are_not_among_them() -> None:
    begun = begun_at(Step.MASKED_INPUT, silent_at={FOUR: Step.SHARE_KEYS})
    right = begun.answer(TWO)
    assert isinstance(right, MaskedInput)
    assert right.peers == begun.terms.peers_digest(TWO, [ONE, THREE])
    with pytest.raises(PeerMisbehaved, match="client 2 has masked with others"):
        begun.server.receive(TWO, masked_by_two(begun, right.vector.copy()))
    begun.server.receive(TWO, right)
    assert begun.server.missing == {ONE, THREE}


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_digest_of_another_length_is_no_message(size: int) -> None:
    with pytest.raises(ValueError, match="digest of wrong length"):
        MaskedInput(PURPOSE, np.ones(LENGTH, dtype="<u8"), bytes(size))


@pytest.mark.parametrize("dtype", ["<f8", "<i8", "<i1", "<f4"])
def test_a_vector_of_no_group_is_no_message(dtype: str) -> None:
    with pytest.raises(ValueError, match="instead of"):
        MaskedInput(PURPOSE, np.ones(LENGTH, dtype=dtype), bytes(PEERS_BYTES))


@pytest.mark.parametrize("peers", [[1, 3], [1, 2, 3, 4], [1, 3, 5], [], [1, 3, 4, 5]], ids=str)
def test_keys_shared_with_others_than_the_neighbours_are_refused(peers: list[int]) -> None:
    begun = begun_at(Step.SHARE_KEYS)
    right = begun.answer(TWO)
    assert isinstance(right, ShareKeys)
    with pytest.raises(PeerMisbehaved, match="client 2 shares its keys with others"):
        begun.server.receive(TWO, ShareKeys(PURPOSE, dict.fromkeys(peers, bytes(108)), right.seed_commitment, b"", b""))
    begun.server.receive(TWO, right)
    finish(begun, TWO)


WRONG_ANSWERS: dict[str, Callable[[UnmaskShares], UnmaskShares]] = {
    "nothing": lambda told: UnmaskShares(PURPOSE, {}, {}),
    "without the dropped": lambda told: UnmaskShares(PURPOSE, {}, told.seed_shares),
    "without itself": lambda told: UnmaskShares(PURPOSE, told.mask_key_shares, _without(told.seed_shares, 2)),
    "without a survivor": lambda told: UnmaskShares(PURPOSE, told.mask_key_shares, _without(told.seed_shares, 3)),
    "with a stranger": lambda told: UnmaskShares(PURPOSE, told.mask_key_shares | {9: bytes(40)}, told.seed_shares),
    "a survivor's mask key": lambda told: UnmaskShares(
        PURPOSE, told.mask_key_shares | {1: bytes(40)}, _without(told.seed_shares, 1)
    ),
    "the dropped one's seed": lambda told: UnmaskShares(PURPOSE, {}, told.seed_shares | {4: bytes(40)}),
    "exchanged": lambda told: UnmaskShares(PURPOSE, told.seed_shares, told.mask_key_shares),
}


def _without(shares: dict[int, bytes], party: int) -> dict[int, bytes]:
    return {other: share for other, share in shares.items() if other != party}


@pytest.mark.parametrize("name", WRONG_ANSWERS)
def test_shares_of_others_than_those_asked_for_are_refused(name: str) -> None:
    begun = begun_at(Step.UNMASKING, signed=False, silent_at={FOUR: Step.MASKED_INPUT})
    right = begun.answer(TWO)
    assert isinstance(right, UnmaskShares)
    with pytest.raises(PeerMisbehaved, match="client 2 does not answer for exactly its neighbours"):
        begun.server.receive(TWO, WRONG_ANSWERS[name](right))
    assert_abandoned(begun, {TWO: right, ONE: begun.answer(ONE), THREE: begun.answer(THREE)})


@pytest.mark.parametrize("last", [ONE, TWO, THREE])
def test_shares_of_others_than_those_asked_for_cost_the_sum_whenever_they_come(last: PartyId) -> None:
    """Although the right answers before it may already be a threshold."""
    begun = begun_at(Step.UNMASKING, signed=False)
    answers = {party: begun.answer(party) for party in EVERYONE}
    for party in sorted({ONE, TWO, THREE, FOUR} - {last}):
        begun.server.receive(party, answers[party])
    with pytest.raises(PeerMisbehaved, match=f"client {last} does not answer for exactly its neighbours"):
        begun.server.receive(last, UnmaskShares(PURPOSE, {}, {}))
    assert_abandoned(begun, answers)


def assert_abandoned(begun: Sum, right: dict[PartyId, wire.Message]) -> None:
    """Not even the right answers of everybody get a total out of the server, which has forgotten what it added up."""
    assert begun.server.step is Step.ABANDONED
    for party, answer in right.items():
        with pytest.raises(UnexpectedMessage, match="in step 'abandoned'"):
            begun.server.receive(party, answer)
    with pytest.raises(UnexpectedMessage, match="the sum is abandoned"):
        begun.server.close()
    with pytest.raises(UnexpectedMessage, match="no sum in step 'abandoned'"):
        begun.server.total()
    assert len(begun.server._sum) == 0


def test_both_shares_of_one_client_cannot_be_said() -> None:
    """Neither made here nor read from the wire."""
    share = bytes(40)
    with pytest.raises(ValueError, match="both shares of one client"):
        UnmaskShares(PURPOSE, {1: share, 2: share}, {2: share})
    right = bytes(wire.encode(UnmaskShares(PURPOSE, {1: share}, {2: share}), SESSION, RoundId(1)))
    for named, problem in (((1, 2), None), ((2, 2), "both shares")):
        body = msgspec.msgpack.encode([PURPOSE, {named[0]: share}, {named[1]: share}])
        frame = right[: wire.HEADER.size] + body
        if problem is None:
            assert frame == right
            continue
        with pytest.raises(DecodeError, match=problem):
            wire.decode(frame, session=SESSION)


def flipped(share: bytes, bit: int) -> bytes:
    changed = bytearray(share)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


# The three lowest bits of a mask key have no meaning in X25519: a key that differs there alone is the same key.
@pytest.mark.parametrize("bit", [3, 7, 60, 61, 63, 64, 200, 319])
@pytest.mark.parametrize(
    ("owner", "reason"), [(1, "self mask of client 1"), (2, "self mask of client 2"), (4, "mask key of client 4")]
)
@pytest.mark.parametrize("liar", [1, 2, 3])
def test_a_false_share_costs_the_sum(liar: int, owner: int, reason: str, bit: int) -> None:
    begun = begun_at(Step.UNMASKING, signed=False, silent_at={FOUR: Step.MASKED_INPUT})
    for party in (ONE, TWO, THREE):
        answer = begun.answer(party)
        assert isinstance(answer, UnmaskShares)
        if party == liar:
            keys, seeds = dict(answer.mask_key_shares), dict(answer.seed_shares)
            target = keys if owner in keys else seeds
            target[owner] = flipped(target[owner], bit)
            answer = UnmaskShares(PURPOSE, keys, seeds)
        begun.server.receive(party, answer)
    with pytest.raises(SumAbandoned, match=f"the shares of the {reason} are false"):
        begun.server.close()
    with pytest.raises(UnexpectedMessage):
        begun.server.total()


@pytest.mark.parametrize("liar", EVERYONE)
def test_a_false_share_beyond_the_threshold_costs_nothing_or_the_sum(liar: PartyId) -> None:
    """Four shares of which three are needed: whoever lies, the sum is exact or there is none."""
    begun = begun_at(Step.UNMASKING, signed=False)
    for party in EVERYONE:
        answer = begun.answer(party)
        assert isinstance(answer, UnmaskShares)
        if party == liar:
            answer = UnmaskShares(
                PURPOSE, {}, {owner: flipped(share, 3) for owner, share in answer.seed_shares.items()}
            )
        begun.server.receive(party, answer)
    if liar == FOUR:
        begun.server.close()
        assert begun.server.total().tolist() == begun.exact(EVERYONE)
    else:
        with pytest.raises(SumAbandoned, match="are false"):
            begun.server.close()


def test_shares_of_two_clients_exchanged_cost_the_sum() -> None:
    begun = begun_at(Step.UNMASKING, signed=False)
    for party in EVERYONE:
        answer = begun.answer(party)
        assert isinstance(answer, UnmaskShares)
        if party == ONE:
            seeds = dict(answer.seed_shares)
            seeds[3], seeds[4] = seeds[4], seeds[3]
            answer = UnmaskShares(PURPOSE, {}, seeds)
        begun.server.receive(party, answer)
    with pytest.raises(SumAbandoned, match="the self mask of client 3 are false"):
        begun.server.close()


def test_a_false_commitment_costs_the_sum() -> None:
    begun = begun_at(Step.SHARE_KEYS, signed=False)
    for party in EVERYONE:
        answer = begun.answer(party)
        assert isinstance(answer, ShareKeys)
        if party == TWO:
            answer = ShareKeys(PURPOSE, answer.sealed, flipped(answer.seed_commitment, 9), b"", b"")
        begun.server.receive(party, answer)
    begun.inbox = begun.server.close()
    with pytest.raises(SumAbandoned, match="the self mask of client 2 are false"):
        begun.until(Step.DONE)


def test_a_client_that_advertises_another_key_than_it_shares_costs_the_sum_once_it_is_silent() -> None:
    """Its peers mask with the advertised key, with which it agrees; what recovery opens is another one."""
    begun = begun_at(Step.ADVERTISE_KEYS, signed=False)
    for party in EVERYONE:
        answer = begun.answer(party)
        if party == TWO:
            key = TwoFaced()
            begun.clients[TWO].state = Advertised(key)
            answer = AdvertiseKeys(PURPOSE, key.public, b"", b"")
        begun.server.receive(party, answer)
    begun.inbox = begun.server.close()
    with pytest.raises(SumAbandoned, match="the shares of the mask key of client 2 are false"):
        begun.until(Step.DONE, {TWO: Step.MASKED_INPUT})


class TwoFaced(AgreementKey):
    """Shares out another secret than its own."""

    def secret_for_sharing(self) -> bytes:
        return bytes(32)


def test_a_client_that_advertises_another_key_than_it_has_is_noticed_before_any_input() -> None:
    begun = begun_at(Step.ADVERTISE_KEYS, signed=False)
    for party in EVERYONE:
        answer = begun.answer(party)
        begun.server.receive(party, AdvertiseKeys(PURPOSE, AgreementKey().public, b"", b"") if party == TWO else answer)
    begun.inbox = begun.server.close()
    begun.until(Step.MASKED_INPUT)
    for party in EVERYONE:
        liar = ONE if party == TWO else TWO
        with pytest.raises(PeerMisbehaved, match=f"client {liar} cannot be opened: forged, or it was told other keys"):
            begun.answer(party)
    with pytest.raises(SumAbandoned, match="0 clients have sent an input"):
        begun.server.close()


def test_two_hostile_clients_of_one_sum_still_cannot_bend_it() -> None:
    """Consistent lies: two of three needed holders move the shares of a seed along a line to another secret."""
    begun = Federation(EVERYONE).begin(complete(4, 2)).until(Step.UNMASKING)
    false = {1: bytes(39) + b"\x00", 2: bytes(39) + b"\x00"}
    for party in EVERYONE:
        answer = begun.answer(party)
        assert isinstance(answer, UnmaskShares)
        if party in (ONE, TWO):  # the two lowest points are the ones used; zero shares give the seed zero
            answer = UnmaskShares(PURPOSE, {}, answer.seed_shares | {3: false[party]})
        begun.server.receive(party, answer)
    with pytest.raises(SumAbandoned, match="the self mask of client 3 are false"):
        begun.server.close()


def test_parties_of_the_terms_only_are_waited_for() -> None:
    begun = begun_at(Step.ADVERTISE_KEYS)
    server = type(begun.server)(begun.terms, frozenset(parties(0, 2, 3, 9)))
    assert server.awaited == server.missing == {TWO, THREE}
    assert repr(server) == "SecAggServer(round=1, step=advertise keys)"
