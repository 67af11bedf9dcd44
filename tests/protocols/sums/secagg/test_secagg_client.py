"""The client's states: one message is taken in each, everything else ends the sum for good and leaves no secret."""

import copy
import pickle

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.primitives.group import GroupVector, PrimeField, Ring
from protocols.primitives.keys import AgreementKey
from protocols.primitives.shamir import recombine
from protocols.session.conversation import Abort
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.secagg.messages import (
    PEERS_BYTES,
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
from protocols.sums.secagg.states import Aborted, Advertised, Answered, Masked, New, Ready, Shared, Signed, State
from tests.support.secagg_sessions import (
    EVERYONE,
    LENGTH,
    ME,
    OTHERS,
    PARAMETERS,
    PURPOSE,
    Federation,
    Script,
    assert_over,
    key_directory,
    reachable_bytes,
)

STATES: list[type[State]] = [New, Advertised, Shared, Ready, Masked, Signed, Answered, Aborted]


def any_of(kind: type[wire.Message], script: Script) -> wire.Message:
    """The message the server really sent if there is one of this kind, else one that is well-formed."""
    sealed = {int(party): bytes(108) for party in OTHERS}
    keys = {int(party): AgreementKey().public for party in OTHERS}
    made: dict[type[wire.Message], wire.Message] = {
        AdvertiseChannel: AdvertiseChannel(bytes(32), b""),
        ChannelDirectory: ChannelDirectory(keys, {}),
        AdvertiseKeys: AdvertiseKeys(PURPOSE, bytes(32), b"", b""),
        KeyDirectory: key_directory(PURPOSE, keys, {}),
        ShareKeys: ShareKeys(PURPOSE, sealed, bytes(32), b"", b""),
        EncryptedShares: EncryptedShares(PURPOSE, sealed, dict.fromkeys(sealed, b""), {}),
        MaskedInput: MaskedInput(PURPOSE, Ring(64).zeros(LENGTH), bytes(PEERS_BYTES)),
        Survivors: Survivors(PURPOSE, []),
        SurvivorSignature: SurvivorSignature(PURPOSE, bytes(64)),
        SignedSurvivors: SignedSurvivors(PURPOSE, {}),
        UnmaskShares: UnmaskShares(PURPOSE, {}, {}),
        Abort: Abort("over"),
    }
    return script.due.get(kind, made[kind])


KINDS: list[type[wire.Message]] = [
    AdvertiseChannel,
    ChannelDirectory,
    AdvertiseKeys,
    KeyDirectory,
    ShareKeys,
    EncryptedShares,
    MaskedInput,
    Survivors,
    SurvivorSignature,
    SignedSurvivors,
    UnmaskShares,
    Abort,
]
Event = type[wire.Message] | str
TAKEN: dict[tuple[type[State], Event], type[State]] = {
    (New, "start"): Advertised,
    (Advertised, KeyDirectory): Shared,
    (Shared, EncryptedShares): Ready,
    (Ready, "input"): Masked,
}
WAITING = (Advertised, Shared, Masked, Signed)
TAKEN_UNSIGNED = TAKEN | {(Masked, Survivors): Answered}
TAKEN_SIGNED = TAKEN | {(Masked, Survivors): Signed, (Signed, SignedSurvivors): Answered}


def happen(script: Script, event: Event) -> object:
    if event == "start":
        return script.me.start()
    if event == "input":
        return script.me.set_input(script.sum.inputs[ME].copy())
    assert isinstance(event, type)
    return script.me.receive(any_of(event, script))


# There is no consistency check against a semi-honest server.
MODES = [
    pytest.param(state, signed, id=f"{state.__name__}-{'active' if signed else 'semi-honest'}")
    for state in STATES
    for signed in (False, True)
    if signed or state is not Signed
]


@pytest.mark.parametrize("event", ["start", "input", *KINDS], ids=lambda event: getattr(event, "__name__", event))
@pytest.mark.parametrize(("state", "signed"), MODES)
def test_a_state_takes_what_it_waits_for_and_nothing_else(state: type[State], event: Event, signed: bool) -> None:
    script = Script(signed).reach(state)
    before = list(script.me.sent)
    shown = script.me.shown()
    taken = TAKEN_SIGNED if signed else TAKEN_UNSIGNED
    if (state, event) in taken:
        answer = happen(script, event)
        assert isinstance(script.me.client.state, taken[state, event])
        assert (answer is None) == (event is EncryptedShares)
        return
    if state is Masked or state is Ready:
        assert "seed share of 1" in script.me.kept()  # else that it is gone below would say nothing
    with pytest.raises(UnexpectedMessage, match=f"in state '{state.name}'"):
        happen(script, event)
    assert script.me.sent == before
    assert script.me.shown() == shown
    assert_over(script.me)


def test_the_tables_name_transitions_that_are_walked() -> None:
    """Each state but the last two is left in one documented way."""
    assert len({state for state, _ in TAKEN_SIGNED}) == len(TAKEN_SIGNED) == len(STATES) - 2


def test_the_end_of_the_script_is_the_exact_sum() -> None:
    for signed in (False, True):
        script = Script(signed).reach(Answered)
        if script.sum.server.step is not Step.DONE:
            script.sum.server.close()
        assert script.sum.server.total().tolist() == script.sum.exact(EVERYONE)


# --- secrets --------------------------------------------------------------------------------------------------------

HELD: dict[type[State], set[str]] = {
    New: set(),
    Advertised: {"mask key"},
    Shared: {"seed", "seed share of me", *(f"agreed with {peer}" for peer in OTHERS)},
    Ready: {"self mask", "seed share of me", *(f"mask with {peer}" for peer in OTHERS)},
    Masked: {"seed share of me"},
    Answered: set(),
    Aborted: set(),
}
SHARES = {f"{what} share of {peer}" for what in ("mask key", "seed") for peer in OTHERS}
CHANNELS = {"channel key"} | {f"channel with {peer}" for peer in OTHERS}


@pytest.mark.parametrize("state", HELD, ids=lambda state: state.__name__)
def test_each_state_holds_only_the_secrets_it_still_needs(state: type[State]) -> None:
    script = Script(signed=False).reach(state)
    held = script.me.kept() - CHANNELS - {"input"}
    assert held == HELD[state] | (SHARES if state in (Ready, Masked) else set())


def test_the_signed_state_holds_one_share_of_each_client() -> None:
    script = Script(signed=True).reach(Signed)
    assert script.me.kept() - CHANNELS == {
        *(f"seed share of {peer}" for peer in OTHERS),
        *(f"answer about {peer}" for peer in EVERYONE),
        "seed share of me",
    }


def test_the_search_for_secrets_finds_them() -> None:
    """Otherwise every test above that none is found would be empty."""
    script = Script(signed=False).reach(Advertised)
    assert isinstance(script.me.client.state, Advertised)
    assert script.me.client.state.mask_key.secret_for_sharing() in reachable_bytes(script.me.client)
    script.reach(Shared)
    assert isinstance(script.me.client.state, Shared)
    assert script.me.client.state.seed in reachable_bytes(script.me.client)
    assert set(script.me.client.state.agreed.values()) <= set(reachable_bytes(script.me.client))
    assert script.me.client.state.seed not in reachable_bytes(script.sum.server)


@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
def test_the_mask_key_is_gone_once_it_is_shared_and_does_what_it_was_for(signed: bool) -> None:
    """The private half: what it agreed on with the others is kept instead, and goes when the masks are made."""
    script = Script(signed).reach(Advertised)
    state = script.me.client.state
    assert isinstance(state, Advertised)
    private = state.mask_key.secret_for_sharing()
    public = {party: script.sum.server._adverts[party].mask_key for party in OTHERS}
    expected = {party: AgreementKey.from_secret(private).agree(key) for party, key in public.items()}
    del state
    script.reach(Shared)
    assert isinstance(script.me.client.state, Shared)
    assert script.me.client.state.agreed == expected
    for later in STATES[STATES.index(Shared) : -1]:
        if later is not Signed or signed:
            assert "mask key" not in script.reach(later).me.kept()
            assert script.me.secrets["mask key"] == private
            assert (set(expected.values()) <= set(reachable_bytes(script.me.client))) == (later is Shared)
    assert "mask key" not in script.me.shown()


@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
def test_an_honest_sum_shows_one_share_of_each_client_and_no_other_secret(signed: bool) -> None:
    script = Script(signed).reach(Answered)
    shown = {name for name in script.me.shown() if not name.startswith("answer about")}
    assert shown == {"seed share of me", *(f"seed share of {peer}" for peer in OTHERS)}


def test_a_silent_client_is_answered_for_with_its_mask_key() -> None:
    script = Script(signed=False).reach(Masked)
    answer = script.me.receive(Survivors(PURPOSE, [3]))
    assert isinstance(answer, UnmaskShares)
    assert answer.mask_key_shares.keys() == {3}
    assert answer.seed_shares.keys() == {1, 2, 4}
    assert script.me.shown() == {"seed share of me", "seed share of 1", "mask key share of 3", "seed share of 4"}


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_client_does_not_print_its_secrets(state: type[State]) -> None:
    script = Script(signed=True).reach(state)
    printed = repr(script.me.client) + repr(script.me.client.state)
    assert f"state={state.name}" in printed
    for secret in script.me.secrets.values():
        assert repr(secret)[2:-1] not in printed
        assert secret.hex() not in printed


def test_abort_is_final_in_every_state_and_keeps_the_reason() -> None:
    for state in STATES:
        script = Script(signed=True).reach(state)
        script.me.client.abort("the server is gone")
        assert script.me.client.state == Aborted("the server is gone")
        assert_over(script.me)


def test_an_aborted_sum_leaves_the_session_usable() -> None:
    federation = Federation(EVERYONE)
    federation.begin(PARAMETERS).clients[ME].abort("over")
    begun = federation.begin(PARAMETERS)
    assert begun.run().tolist() == begun.exact(EVERYONE)


# --- what it shares and what it masks -------------------------------------------------------------------------------


def test_any_threshold_of_holders_can_rebuild_the_mask_key_and_the_seed() -> None:
    """What the others opened of client 2's shares are shares of exactly its two secrets."""
    script = Script(signed=False).reach(Shared)
    for party in OTHERS:
        script.sum.clients[party].receive(script.sum.inbox[party])
    keys, seeds = {}, {}
    for party in OTHERS:
        state = script.sum.clients[party].state
        assert isinstance(state, Ready)
        keys[int(party)], seeds[int(party)] = state.held[ME].mask_key, state.held[ME].seed
    assert recombine(keys, 3) == script.me.secrets["mask key"]
    assert recombine(seeds, 3) == script.me.secrets["seed"]
    with_mine = {1: seeds[1], 3: seeds[3], int(ME): script.me.secrets["seed share of me"]}
    assert recombine(with_mine, 3) == script.me.secrets["seed"]


def test_an_input_is_masked_in_place_and_sent_without_a_copy() -> None:
    script = Script(signed=False).reach(Ready)
    vector = script.sum.inputs[ME].copy()
    assert script.me.set_input(vector).vector is vector
    assert not np.array_equal(vector, script.sum.inputs[ME])


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(LENGTH, dtype="<u4"),
        np.zeros(LENGTH + 1, dtype="<u8"),
        np.zeros(LENGTH - 1, dtype="<u8"),
        np.zeros((LENGTH, 1), dtype="<u8"),
        np.zeros(LENGTH, dtype="<i8"),
        np.zeros(LENGTH, dtype="<f8"),
    ],
    ids=lambda vector: f"{vector.dtype}{vector.shape}",
)
def test_an_input_of_another_group_or_length_is_not_masked(
    wrong: GroupVector,
) -> None:
    """It is the caller's mistake and not a peer's: the sum may go on with the right one."""
    script = Script(signed=False).reach(Ready)
    with pytest.raises(ValueError, match="is not a vector"):
        script.me.set_input(wrong)
    assert not wrong.any()
    assert isinstance(script.me.client.state, Ready)


def test_a_value_outside_the_field_is_not_masked() -> None:
    begun = Federation(EVERYONE).begin(PARAMETERS, PrimeField(), 3).until(Step.MASKED_INPUT)
    client = begun.clients[ME]
    client.receive(begun.inbox[ME])
    with pytest.raises(ValueError, match="2\\^61-1 or more"):
        client.set_input(np.array([0, 2**61 - 1, 1], dtype="<u8"))


def test_a_second_input_ends_the_sum() -> None:
    script = Script(signed=False).reach(Masked)
    with pytest.raises(UnexpectedMessage, match="an input in state 'masked input'"):
        script.me.set_input(script.sum.inputs[ME].copy())
    assert_over(script.me)


@pytest.mark.parametrize(("state", "signed"), [mode for mode in MODES if mode.values[0] in WAITING])
def test_a_message_for_another_purpose_ends_the_sum(state: type[State], signed: bool) -> None:
    script = Script(signed).reach(state)
    due = script.sum.inbox[ME]
    assert any(isinstance(due, kind) for taken, kind in TAKEN_SIGNED if taken is state and isinstance(kind, type))
    fields = [getattr(due, name) for name in due.__struct_fields__]
    with pytest.raises(PeerMisbehaved, match="another sum"):
        script.me.receive(type(due)("counts", *fields[1:]))
    assert_over(script.me)


@pytest.mark.parametrize(
    ("state", "signed"),
    [(state, False) for state in (New, Advertised, Shared, Ready, Masked, Answered, Aborted)] + [(Signed, True)],
)
def test_a_state_lives_in_memory_only(state: type[State], signed: bool) -> None:
    client = Script(signed=signed).reach(state).me.client
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="a client's state is not serialised"):
            pickle.dumps(client.state, protocol)
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a client's state is not serialised"):
            duplicate(client.state)
    with pytest.raises(TypeError):
        pickle.dumps(client)


def test_the_shares_that_others_entrusted_live_in_memory_only() -> None:
    state = Script().reach(Masked).me.client.state
    assert isinstance(state, Masked)
    for held in state.held.values():
        with pytest.raises(TypeError, match="a client's state is not serialised"):
            pickle.dumps(held)
