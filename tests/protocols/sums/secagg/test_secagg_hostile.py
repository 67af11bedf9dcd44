"""A hostile server and hostile peers against one client: it ends the sum, and nothing of what it protects gets out.

That nothing gets out is read off the bytes of everything the client has sent (`Watched.shown`). The others and the
rest of the server are honest, so that a client that did not notice would go on to the end.
"""

from collections.abc import Callable
from itertools import combinations

import pytest

from protocols.foundation.errors import SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.primitives.group import Ring
from protocols.primitives.keys import AgreementKey
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    KeyDirectory,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.states import Advertised, Answered, Masked, Ready, Shared, State
from protocols.sums.terms import SumTerms, VectorLayout
from tests.support.hostile_sums import FIVE, FOUR, ONE, THREE, assert_refused, due
from tests.support.secagg_sessions import (
    EVERYONE,
    LENGTH,
    ME,
    OTHERS,
    PARAMETERS,
    PURPOSE,
    SESSION,
    Federation,
    Script,
    Sum,
    Watched,
    assert_over,
    channel_directory,
    complete,
    key_directory,
)
from tests.support.vectors import unhex, vectors

# --- lists of survivors ---------------------------------------------------------------------------------------------


LISTS = {
    "itself": ([2], "names this client"),
    "itself and another": ([2, 3], "names this client"),
    "one twice": ([3, 3], "names one twice"),
    "a stranger": ([9], "has sent no shares"),
    "the server": ([0], "has sent no shares"),
    "a negative one": ([-1], "has sent no shares"),
    "a huge one": ([2**64 - 1], "has sent no shares"),
    "too many": ([1, 3], "2 clients are said to have sent an input, fewer than 3"),
    "all others": ([1, 3, 4], "1 clients are said to have sent an input, fewer than 3"),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
def test_a_list_that_contradicts_the_own_record_is_not_answered(name: str, signed: bool) -> None:
    dropped, problem = LISTS[name]
    script = Script(signed).reach(Masked)
    assert_refused(script.me, Survivors(PURPOSE, dropped), problem)


def test_a_client_that_never_shared_cannot_have_dropped_out() -> None:
    script = Script(silent_at={FOUR: Step.SHARE_KEYS}).reach(Masked)
    assert_refused(script.me, Survivors(PURPOSE, [4]), "has sent no shares")


def test_the_fewest_survivors_are_the_clients_own_choice() -> None:
    """The threshold would allow two; the client insists on four."""
    script = Script(begun=Federation(EVERYONE).begin(complete(4, 2, min_survivors=4))).reach(Masked)
    assert_refused(script.me, Survivors(PURPOSE, [3]), "3 clients are said to have sent an input, fewer than 4")


TELLABLE = [list(chosen) for size in range(3) for chosen in combinations([1, 3, 4, 5], size)]


@pytest.mark.parametrize("first", TELLABLE, ids=str)
def test_no_two_lists_get_both_shares_of_a_client(first: list[int]) -> None:
    """Whatever is asked after the first answer: the second list is refused, and each client has shown one share."""
    for second in TELLABLE:
        script = Script(begun=Federation(FIVE).begin(complete(5, 3))).reach(Masked)
        answer = script.me.receive(Survivors(PURPOSE, first))
        assert isinstance(answer, UnmaskShares)
        with pytest.raises(UnexpectedMessage, match="Survivors in state 'unmasking'"):
            script.me.receive(Survivors(PURPOSE, second))
        expected = {str(peer): {"mask key" if peer in first else "seed"} for peer in (1, 3, 4, 5)}
        assert script.me.shares_shown() == expected | {"me": {"seed"}}
        assert_over(script.me)


@pytest.mark.parametrize("second", [[], [1], [3], [1, 3]], ids=str)
def test_a_signed_list_is_not_taken_back(second: list[int]) -> None:
    script = Script(signed=True).reach(Masked)
    assert isinstance(script.me.receive(Survivors(PURPOSE, [3])), SurvivorSignature)
    assert_refused(script.me, Survivors(PURPOSE, second), "in state 'consistency check'", UnexpectedMessage)


@pytest.mark.parametrize("state", [Advertised, Shared, Ready], ids=lambda state: state.__name__)
def test_no_share_leaves_before_the_input_has(state: type[State]) -> None:
    script = Script().reach(state)
    assert_refused(script.me, Survivors(PURPOSE, []), "Survivors in state", UnexpectedMessage)


# --- key directories ------------------------------------------------------------------------------------------------


Keys = dict[int, bytes]
DIRECTORIES: dict[str, tuple[Callable[[Keys, bytes], object], str]] = {
    "me among them": (lambda keys, mine: keys.update({2: mine}), "is no neighbour"),
    "another key for me": (lambda keys, mine: keys.update({2: AgreementKey().public}), "is no neighbour"),
    "a stranger": (lambda keys, mine: keys.update({9: AgreementKey().public}), "is no neighbour"),
    "a stranger in place": (lambda keys, mine: keys.update({9: keys.pop(3)}), "is no neighbour"),
    "one key twice": (lambda keys, mine: keys.update({3: keys[1]}), "the same key"),
    "my key for another": (lambda keys, mine: keys.update({3: mine}), "the same key"),
    "too few": (lambda keys, mine: (keys.pop(1), keys.pop(3)), "2 clients are said to have advertised keys"),
    "nobody": (lambda keys, mine: keys.clear(), "1 clients are said to have advertised keys"),
}


@pytest.mark.parametrize("name", DIRECTORIES)
@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
def test_a_directory_that_contradicts_the_own_record_ends_the_sum(name: str, signed: bool) -> None:
    change, problem = DIRECTORIES[name]
    script = Script(signed).reach(Advertised)
    message = due(script)
    assert isinstance(message, KeyDirectory)
    keys = dict(message.mask_keys)
    advert = script.me.sent[0]
    assert isinstance(advert, AdvertiseKeys)
    change(keys, advert.mask_key)
    assert_refused(script.me, key_directory(PURPOSE, keys, message.signatures), problem)


@pytest.mark.parametrize("party", [0, -1])
def test_a_directory_with_a_party_that_is_no_client_is_no_message(party: int) -> None:
    with pytest.raises(ValueError, match="no client"):
        key_directory(PURPOSE, {party: bytes(32)}, {})


@pytest.mark.parametrize("key", [unhex(key) for key in vectors("x25519_small_order")["public_keys"]], ids=bytes.hex)
def test_a_key_of_small_order_ends_the_sum_before_any_share_is_sent(key: bytes) -> None:
    """32 zero bytes among them."""
    script = Script().reach(Advertised)
    message = due(script)
    assert isinstance(message, KeyDirectory)
    assert_refused(script.me, key_directory(PURPOSE, {**message.mask_keys, 3: key}, {}), "small order")
    assert [type(sent) for sent in script.me.sent] == [AdvertiseKeys]


def test_a_client_without_a_channel_takes_no_part() -> None:
    """It is configured and among the participants, but had no key in the set-up's directory."""
    sessions = {party: SecAggSession(party, EVERYONE, SESSION) for party in EVERYONE}
    directory = channel_directory({party: begun.start() for party, begun in sessions.items() if party != FOUR})
    sessions[ME].receive(directory)
    client = sessions[ME].begin(
        SumTerms(RoundId(1), PURPOSE, tuple(EVERYONE), VectorLayout(Ring(64), LENGTH)), PARAMETERS
    )
    me = Watched(client)
    me.start()
    keys = {int(party): AgreementKey().public for party in OTHERS}
    assert_refused(me, key_directory(PURPOSE, keys, {}), "without a channel")


@pytest.mark.parametrize("state", [Shared, Ready, Masked, Answered], ids=lambda state: state.__name__)
def test_a_second_directory_ends_the_sum(state: type[State]) -> None:
    script = Script().reach(Advertised)
    message = due(script)
    script.reach(state)
    shown = script.me.shown()
    with pytest.raises(UnexpectedMessage, match="KeyDirectory in state"):
        script.me.receive(message)
    assert script.me.shown() == shown
    assert_over(script.me)


def tampered_directory(change: Callable[[Keys], object], threshold: int) -> Sum:
    """A sum in which client 2 alone has got a changed directory, up to everybody's input; nobody is silent."""
    begun = Federation(EVERYONE).begin(complete(4, threshold)).until(Step.SHARE_KEYS)
    message = begun.inbox[ME]
    assert isinstance(message, KeyDirectory)
    keys = dict(message.mask_keys)
    change(keys)
    begun.inbox[ME] = key_directory(PURPOSE, keys, {})
    return begun.until(Step.MASKED_INPUT)


@pytest.mark.parametrize("threshold", [2, 3])
@pytest.mark.parametrize(
    ("change", "deceived"),
    [
        (lambda keys: keys.update({1: keys[3], 3: keys[1]}), [ONE, ME, THREE]),
        (lambda keys: keys.update({3: AgreementKey().public}), [ME, THREE]),
    ],
    ids=["two keys exchanged", "one key replaced"],
)
def test_a_directory_with_other_keys_never_gives_a_wrong_sum(
    change: Callable[[Keys], object], deceived: list[PartyId], threshold: int
) -> None:
    """Of every pair that has other keys than the other's true ones, neither gives an input."""
    begun = tampered_directory(change, threshold)
    for party in deceived:
        me = Watched(begun.clients[party])
        assert_refused(me, begun.inbox[party], r"cannot be opened: forged, or it was told other keys, terms or rows")
    others = [party for party in EVERYONE if party not in deceived]
    if len(others) < threshold:
        with pytest.raises(SumAbandoned, match="sent an input"):
            begun.step(silent=deceived)
        return
    begun.step(silent=deceived)
    assert begun.run().tolist() == begun.exact(others)
