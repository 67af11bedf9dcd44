"""The server's steps: one kind of answer, once, from those it waits for."""

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.primitives.keys import AgreementKey
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
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.server import EXPECTED, Step
from tests.support.secagg_sessions import (
    LENGTH,
    PURPOSE,
    SIGNED_STEPS,
    Federation,
    everyone,
    key_directory,
    parties,
    reachable_bytes,
    secrets_in,
)
from tests.support.server_steps import EVERYONE, FOUR, ONE, THREE, TWO, begun_at, finish, masked_by_two

ANY: list[wire.Message] = [
    AdvertiseChannel(bytes(32), b""),
    ChannelDirectory({}, {}),
    AdvertiseKeys(PURPOSE, AgreementKey().public, b"", b""),
    key_directory(PURPOSE, {}, {}),
    ShareKeys(PURPOSE, {1: bytes(108), 3: bytes(108), 4: bytes(108)}, bytes(32), b"", b""),
    EncryptedShares(PURPOSE, {}, {}, {}),
    MaskedInput(PURPOSE, np.ones(LENGTH, dtype="<u8"), bytes(PEERS_BYTES)),
    Survivors(PURPOSE, []),
    SurvivorSignature(PURPOSE, bytes(64)),
    SignedSurvivors(PURPOSE, {}),
    UnmaskShares(PURPOSE, {}, {party: bytes(40) for party in (1, 2, 3, 4)}),
]


@pytest.mark.parametrize("message", ANY, ids=lambda message: type(message).__name__)
@pytest.mark.parametrize("step", SIGNED_STEPS, ids=lambda step: step.value)
def test_a_step_takes_its_own_kind_of_answer_and_no_other(step: Step, message: wire.Message) -> None:
    begun = begun_at(step)
    if type(message) is EXPECTED[step]:
        if isinstance(message, MaskedInput):
            message = masked_by_two(begun, message.vector)
        begun.server.receive(TWO, message)
        assert begun.server.missing == {ONE, THREE, FOUR}
        return
    with pytest.raises(UnexpectedMessage, match=f"{type(message).__name__} of client 2 in step '{step.value}'"):
        begun.server.receive(TWO, message)
    assert begun.server.missing == set(EVERYONE)
    finish(begun)


def test_every_step_has_its_kind_of_answer() -> None:
    assert list(EXPECTED) == SIGNED_STEPS
    assert len(set(EXPECTED.values())) == len(SIGNED_STEPS)
    assert {type(message) for message in ANY} >= set(EXPECTED.values())


@pytest.mark.parametrize("party", [SERVER, PartyId(5), PartyId(-1)], ids=["the server", "a stranger", "negative"])
@pytest.mark.parametrize("step", SIGNED_STEPS, ids=lambda step: step.value)
def test_whoever_is_no_participant_is_refused(step: Step, party: PartyId) -> None:
    begun = begun_at(step)
    answer = begun.answer(ONE)
    with pytest.raises(UnexpectedMessage):
        begun.server.receive(party, answer)
    begun.server.receive(ONE, answer)
    finish(begun, ONE)


@pytest.mark.parametrize("step", SIGNED_STEPS, ids=lambda step: step.value)
def test_a_second_answer_is_refused_and_changes_nothing(step: Step) -> None:
    begun = begun_at(step)
    answer = begun.answer(THREE)
    begun.server.receive(THREE, answer)
    with pytest.raises(UnexpectedMessage, match="of client 3"):
        begun.server.receive(THREE, answer)
    finish(begun, THREE)


@pytest.mark.parametrize("step", SIGNED_STEPS, ids=lambda step: step.value)
def test_an_answer_for_another_purpose_is_refused(step: Step) -> None:
    begun = begun_at(step)
    answer = begun.answer(THREE)
    fields = [getattr(answer, name) for name in answer.__struct_fields__]
    with pytest.raises(PeerMisbehaved, match="client 3 answers for another sum"):
        begun.server.receive(THREE, type(answer)("counts", *fields[1:]))
    begun.server.receive(THREE, answer)
    finish(begun, THREE)


def test_a_vector_that_comes_too_late_is_refused_and_not_added() -> None:
    begun = begun_at(Step.MASKED_INPUT, signed=False)
    late = begun.answer(FOUR)
    begun.step(silent=[FOUR])
    while begun.server.step is not Step.DONE:
        with pytest.raises(UnexpectedMessage, match="MaskedInput of client 4"):
            begun.server.receive(FOUR, late)
        begun.step()
    with pytest.raises(UnexpectedMessage, match="MaskedInput of client 4 in step 'done'"):
        begun.server.receive(FOUR, late)
    assert begun.server.survivors == {ONE, TWO, THREE}
    assert begun.server.total().tolist() == begun.exact([ONE, TWO, THREE])


@pytest.mark.parametrize("last", SIGNED_STEPS[:-1], ids=lambda step: step.value)
def test_a_client_that_missed_a_step_is_out_of_all_that_follow(last: Step) -> None:
    begun = begun_at(last)
    begun.step(silent=[FOUR])
    assert FOUR not in begun.server.awaited
    assert FOUR not in begun.inbox
    for message in ANY:
        with pytest.raises(UnexpectedMessage):
            begun.server.receive(FOUR, message)
    begun.until(Step.DONE)
    assert begun.server.total().tolist() == begun.exact()


def test_there_is_no_total_before_the_end() -> None:
    begun = begun_at(Step.ADVERTISE_KEYS)
    for step in SIGNED_STEPS:
        begun.until(step)
        with pytest.raises(UnexpectedMessage, match=f"no sum in step '{step.value}'"):
            begun.server.total()
    begun.step()
    assert begun.server.total().tolist() == begun.exact(EVERYONE)


@pytest.mark.parametrize("end", [Step.DONE, Step.ABANDONED], ids=lambda step: step.value)
def test_a_sum_that_has_ended_takes_nothing_more(end: Step) -> None:
    begun = begun_at(Step.UNMASKING)
    if end is Step.DONE:
        begun.step()
    else:
        with pytest.raises(SumAbandoned):
            begun.step(silent=[ONE, TWO])
    assert begun.server.step is end
    for message in ANY:
        for party in EVERYONE:
            with pytest.raises(UnexpectedMessage):
                begun.server.receive(party, message)
    with pytest.raises(UnexpectedMessage, match=f"the sum is {end.value}"):
        begun.server.close()
    assert begun.server.step is end


# --- clients that can no longer be reached --------------------------------------------------------------------------


@pytest.mark.parametrize("step", SIGNED_STEPS, ids=lambda step: step.value)
def test_a_dropout_is_no_longer_waited_for(step: Step) -> None:
    """Nor is its answer taken, should it come nevertheless. An input it has given before stays in the sum."""
    begun = begun_at(step)
    answer = begun.answer(FOUR)
    begun.server.drop([FOUR])
    assert begun.server.awaited == begun.server.missing == {ONE, TWO, THREE}
    with pytest.raises(UnexpectedMessage, match="of client 4"):
        begun.server.receive(FOUR, answer)
    begun.step()
    assert FOUR not in begun.inbox
    given = SIGNED_STEPS.index(step) > SIGNED_STEPS.index(Step.MASKED_INPUT)
    assert begun.run().tolist() == begun.exact(EVERYONE if given else [ONE, TWO, THREE])
    assert begun.server.survivors == set(EVERYONE if given else [ONE, TWO, THREE])


@pytest.mark.parametrize("step", SIGNED_STEPS, ids=lambda step: step.value)
def test_whoever_has_answered_keeps_its_place_in_the_step(step: Step) -> None:
    begun = begun_at(step)
    begun.server.receive(FOUR, begun.answer(FOUR))
    begun.server.drop(parties(4, 0, 9))
    assert begun.server.awaited == set(EVERYONE)
    assert begun.server.missing == {ONE, TWO, THREE}
    finish(begun, FOUR)


@pytest.mark.parametrize("step", SIGNED_STEPS, ids=lambda step: step.value)
def test_a_sum_with_too_many_dropouts_is_abandoned(step: Step) -> None:
    begun = begun_at(step)
    begun.server.drop([THREE, FOUR])
    with pytest.raises(SumAbandoned):
        begun.step()
    assert begun.server.step is Step.ABANDONED


# --- what it sends --------------------------------------------------------------------------------------------------


def test_everybody_is_told_about_exactly_its_own_neighbours() -> None:
    begun = Federation(everyone(9)).begin(SumParameters(9, 4, 2, 2)).until(Step.SHARE_KEYS)
    circle = {party: set(begun.terms.graph.neighbours(party)) for party in everyone(9)}
    for party in everyone(9):
        message = begun.inbox[party]
        assert isinstance(message, KeyDirectory)
        assert message.mask_keys.keys() == circle[party]
        assert message.signatures == {}
    begun.step(silent=[TWO])
    for party in everyone(9)[2:]:
        message = begun.inbox[party]
        assert isinstance(message, EncryptedShares)
        assert message.sealed.keys() == circle[party] - {TWO}
    begun.step(silent=[THREE, TWO])
    for party in everyone(9)[3:]:
        assert begun.inbox[party] == Survivors(PURPOSE, [3] if THREE in circle[party] else [])


def test_signatures_are_relayed_to_those_who_signed() -> None:
    begun = begun_at(Step.SHARE_KEYS)
    message = begun.inbox[ONE]
    assert isinstance(message, KeyDirectory)
    assert message.signatures.keys() == {2, 3, 4}
    begun.until(Step.CONSISTENCY_CHECK)
    begun.step(silent=[TWO])
    assert begun.inbox.keys() == {ONE, THREE, FOUR}
    for message in begun.inbox.values():
        assert isinstance(message, SignedSurvivors)
        assert message.signatures.keys() == {1, 3, 4}


def test_the_server_never_holds_a_mask_key_a_seed_or_an_input_of_a_survivor() -> None:
    """All of its memory after each step, against all secrets of all clients; only shares are given to it."""
    begun = begun_at(Step.ADVERTISE_KEYS, signed=False)
    secrets = {f"input of {party}": vector.tobytes() for party, vector in begun.inputs.items()}
    while begun.server.step is not Step.DONE:
        begun.step(silent=[FOUR] if begun.server.step is Step.MASKED_INPUT else [])
        for party, client in begun.clients.items():
            known = secrets_in(client)
            secrets |= {f"{name} of {party}": known[name] for name in known if "share of" not in name}
        memory = b"|".join(reachable_bytes(begun.server))
        assert not {name for name, secret in secrets.items() if secret in memory}
    assert {"mask key of 1", "seed of 1", "input of 1", "channel key of 4"} <= secrets.keys()
