"""Shares from hostile peers, or bent on their way: they do not open, and nothing of what a client protects gets out."""

from collections.abc import Callable, Mapping

import msgspec
import pytest

from protocols.foundation.errors import PeerMisbehaved, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import PartyId
from protocols.primitives.group import Ring
from protocols.sums.secagg.messages import (
    EncryptedShares,
    MaskedInput,
)
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.states import Answered, Masked, Ready, Shared, State
from tests.support.hostile_sums import FOUR, ONE, THREE, assert_refused, due
from tests.support.secagg_sessions import (
    EVERYONE,
    ME,
    PARAMETERS,
    PURPOSE,
    Federation,
    Script,
    Sum,
    assert_over,
    complete,
    everyone,
)

# --- shares of others -----------------------------------------------------------------------------------------------


Sealed = dict[int, bytes]


def shares_for_me(script: Script) -> Sealed:
    message = due(script)
    assert isinstance(message, EncryptedShares)
    return dict(message.sealed)


def encrypted(sealed: Mapping[int, bytes]) -> EncryptedShares:
    """Of clients that commit to no state."""
    return EncryptedShares(PURPOSE, dict(sealed), dict.fromkeys(sealed, b""), {})


def assert_does_not_open(script: Script, sealed: Mapping[int, bytes]) -> None:
    assert_refused(script.me, encrypted(sealed), "cannot be opened")


@pytest.mark.parametrize("replayed", [[1], [3], [1, 3, 4]], ids=str)
@pytest.mark.parametrize("source", ["old session", "old round", "another purpose", "another group"])
def test_shares_of_another_sum_do_not_open(source: str, replayed: list[int]) -> None:
    """With the right label on the outside: only what they were encrypted for is wrong."""
    federation = Federation(EVERYONE)
    old = Federation(EVERYONE) if source == "old session" else federation
    other = old.begin(
        PARAMETERS,
        Ring(32) if source == "another group" else Ring(64),
        purpose="counts" if source in ("another purpose", "another group") else PURPOSE,
        round_id=1,
    )
    old_shares = Script(begun=other).reach(Shared)
    now = Script(begun=federation.begin(PARAMETERS, round_id=2 if source == "old round" else 1)).reach(Shared)
    fresh, stale = shares_for_me(now), shares_for_me(old_shares)
    assert_does_not_open(now, fresh | {party: stale[party] for party in replayed})


def test_shares_meant_for_another_receiver_do_not_open() -> None:
    script = Script().reach(Shared)
    for_three = script.sum.inbox[THREE]
    assert isinstance(for_three, EncryptedShares)
    assert_does_not_open(script, shares_for_me(script) | {1: for_three.sealed[1]})


def test_shares_in_the_name_of_another_sender_do_not_open() -> None:
    script = Script().reach(Shared)
    sealed = shares_for_me(script)
    assert_does_not_open(script, sealed | {1: sealed[3], 3: sealed[1]})


def test_the_own_shares_sent_back_do_not_open() -> None:
    """The channel with client 1 has one secret; its two directions have two keys."""
    script = Script().reach(Shared)
    for_one = script.sum.inbox[ONE]
    assert isinstance(for_one, EncryptedShares)
    assert_does_not_open(script, shares_for_me(script) | {1: for_one.sealed[2]})


@pytest.mark.parametrize("start", range(0, 108, 12))
def test_shares_with_any_byte_changed_do_not_open(start: int) -> None:
    """Every byte of nonce, both shares and tag, with a changing bit."""
    for place in range(start, start + 12):
        script = Script().reach(Shared)
        sealed = shares_for_me(script)
        damaged = bytearray(sealed[3])
        damaged[place] ^= 1 << place % 8
        assert_does_not_open(script, sealed | {3: bytes(damaged)})


SENDERS: dict[str, tuple[Callable[[Sealed], object], str]] = {
    "me among them": (lambda sealed: sealed.update({2: sealed[1]}), "has advertised no key"),
    "a stranger": (lambda sealed: sealed.update({9: sealed[1]}), "has advertised no key"),
    "too few": (lambda sealed: (sealed.pop(1), sealed.pop(3)), "2 clients are said to have shared keys"),
    "nobody": (lambda sealed: sealed.clear(), "1 clients are said to have shared keys"),
}


@pytest.mark.parametrize("name", SENDERS)
def test_shares_of_the_wrong_clients_end_the_sum(name: str) -> None:
    change, problem = SENDERS[name]
    script = Script().reach(Shared)
    sealed = shares_for_me(script)
    change(sealed)
    assert_refused(script.me, encrypted(sealed), problem)


def test_shares_of_a_client_that_advertised_nothing_end_the_sum() -> None:
    script = Script(silent_at={FOUR: Step.ADVERTISE_KEYS}).reach(Shared)
    sealed = shares_for_me(script)
    assert sealed.keys() == {1, 3}
    assert_refused(script.me, encrypted(sealed | {4: sealed[1]}), "has advertised no key")


@pytest.mark.parametrize("state", [Ready, Masked, Answered], ids=lambda state: state.__name__)
def test_shares_are_taken_once(state: type[State]) -> None:
    script = Script().reach(Shared)
    message = due(script)
    script.reach(state)
    shown = script.me.shown()
    with pytest.raises(UnexpectedMessage, match="EncryptedShares in state"):
        script.me.receive(message)
    assert script.me.shown() == shown
    assert_over(script.me)


def robbed(begun: Sum, of: PartyId, sender: PartyId) -> Sum:
    """The shares of `sender` do not reach client `of`."""
    message = begun.inbox[of]
    assert isinstance(message, EncryptedShares)
    kept = {party: entry for party, entry in message.sealed.items() if party != sender}
    assert len(kept) == len(message.sealed) - 1
    begun.inbox[of] = msgspec.structs.replace(
        message,
        sealed=kept,
        states={party: state for party, state in message.states.items() if party != sender},
    )
    return begun


@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
@pytest.mark.parametrize("sender", [ME, THREE, FOUR], ids=int)
def test_shares_that_are_lost_on_the_way_are_noticed_with_the_input(signed: bool, sender: PartyId) -> None:
    """Client 1 then drops out, and the others are enough to open everything: their sum is exact nevertheless."""
    begun = robbed(Federation(EVERYONE, signed=signed).begin(complete(4, 3)).until(Step.MASKED_INPUT), ONE, sender)
    with pytest.raises(PeerMisbehaved, match="client 1 has masked with others than its neighbours"):
        begun.server.receive(ONE, begun.answer(ONE))
    with pytest.raises(UnexpectedMessage, match="no sum"):
        begun.server.total()
    assert ONE in begun.server.missing
    total = begun.run({ONE: Step.MASKED_INPUT})
    assert begun.server.survivors == {ME, THREE, FOUR}
    assert total.tolist() == begun.exact([ME, THREE, FOUR])


def test_shares_that_are_lost_on_the_way_are_noticed_in_a_sparse_graph() -> None:
    clients = everyone(12)
    begun = Federation(clients).begin(SumParameters(12, 6, 3, 3)).until(Step.MASKED_INPUT)
    for party in clients:
        peer = begun.terms.graph.neighbours(party)[0]
        robbed(begun, party, peer)
        with pytest.raises(PeerMisbehaved, match=f"client {party} has masked with others than its neighbours"):
            begun.server.receive(party, begun.answer(party))
    assert begun.server.missing == set(clients)
    with pytest.raises(SumAbandoned):
        begun.server.close()


def test_a_client_that_was_told_of_other_sharers_gives_itself_away() -> None:
    """The server keeps client 2's shares from client 1, which therefore leaves out their common mask.

    Client 1 lies about that when it sends its input, and gives itself away when it opens the masks.
    """
    begun = robbed(Federation(EVERYONE).begin(complete(4, 2)).until(Step.MASKED_INPUT), ONE, ME)
    answer = begun.answer(ONE)
    assert isinstance(answer, MaskedInput)
    lie = begun.terms.peers_digest(ONE, [ME, THREE, FOUR])
    begun.server.receive(ONE, MaskedInput(PURPOSE, answer.vector, lie))
    for party in (ME, THREE, FOUR):
        begun.server.receive(party, begun.answer(party))
    begun.inbox = begun.server.close()
    with pytest.raises(PeerMisbehaved, match="client 1 does not answer for exactly its neighbours"):
        begun.server.receive(ONE, begun.answer(ONE))
    # The other three would be enough to rebuild every seed, but a mask is left over: there is no sum.
    for party in (ME, THREE, FOUR):
        with pytest.raises(UnexpectedMessage, match="in step 'abandoned'"):
            begun.server.receive(party, begun.answer(party))
    with pytest.raises(UnexpectedMessage, match="the sum is abandoned"):
        begun.server.close()
    with pytest.raises(UnexpectedMessage, match="no sum in step 'abandoned'"):
        begun.server.total()
