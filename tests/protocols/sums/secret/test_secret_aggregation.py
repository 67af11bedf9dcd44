"""Sums that the server cannot read: exact for every client, noise for the server and for whoever has another key."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.primitives.group import GroupVector, PrimeField, Ring
from protocols.primitives.keys import derive_key
from protocols.primitives.prg import add_keystream, subtract_keystream
from protocols.primitives.shamir import recombine
from protocols.session.channels import setup_transcript
from protocols.session.conversation import Conversation
from protocols.session.group_key import GroupKey, SealedGroupKeys
from protocols.session.messages import ChannelDirectory
from protocols.session.patience import Patience
from protocols.sums.interface import Contribution, SumLayout, Total
from protocols.sums.secagg.messages import AdvertiseKeys, MaskedInput, ShareKeys, SurvivorSignature, UnmaskShares
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.secagg.vectors import VectorClient, parameters_for
from protocols.sums.secret.aggregation import (
    SecretSumClient,
    SecretSumServer,
    mask_key,
    open_total,
    secret_terms,
)
from protocols.sums.secret.check import CHECKS, LARGEST_CHECKED, possible_entries, with_checks
from protocols.sums.terms import SumTerms, VectorLayout
from protocols.sums.totals import SumTotal
from protocols.transport.tap import Tap, TranscriptRecord, read_transcript
from tests.support.group_keys import KINDS, Kind, a_key
from tests.support.in_threads import SESSION, at_once, at_server, converse
from tests.support.sum_conversations import (
    PURPOSE,
    SEMI_HONEST,
    Bent,
    Foreseen,
    Inputs,
    Silences,
    Stopped,
    everyone,
    layout_for,
    random_inputs,
    step_of,
    stopping_at,
    task_of,
)
from tests.support.uniformity import ENTRIES, looks_uniform

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
FIRST, SECOND = RoundId(1), RoundId(2)
PAST = Deadline(0.0)
LAYOUT = layout_for(4)
TASK = task_of(LAYOUT, CLIENTS)
INPUTS = random_inputs(LAYOUT, CLIENTS)
both = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
both_rings = pytest.mark.parametrize("ring_bits", [32, 64])

SAYS: dict[str, type[wire.Message]] = {
    "advertise keys": AdvertiseKeys,
    "share keys": ShareKeys,
    "masked input": MaskedInput,
    "consistency check": SurvivorSignature,
    "unmasking": UnmaskShares,
}
EVERY_STEP = [(name, step) for name in KINDS for step in SAYS if (name, step) != ("semi-honest", "consistency check")]


@dataclass
class Run:
    """One session: what the server holds after each sum, whom it called silent, and the clients as they are then."""

    totals: list[SumTotal]
    clients: dict[PartyId, SecretSumClient]
    silent: Silences = field(default_factory=Silences)

    def key(self, party: PartyId = ONE) -> GroupKey:
        return self.clients[party]._group_key()


def run(
    kind: Kind,
    tasks: Sequence[tuple[SumTerms[SumLayout], Inputs]],
    patience: Patience | None = None,
    stop: tuple[PartyId, type[wire.Message]] | None = None,
    watch: Callable[[Conversation], Conversation] = lambda conversation: conversation,
) -> Run:
    """Each sum of `tasks` in turn; whoever has an input contributes. `stop`: who falls silent, before saying what."""
    made, waiting = Run([], {}), patience or Foreseen()

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = made.clients[me] = SecretSumClient(kind.client(CLIENTS, me))
        if stop is not None and stop[0] == me:
            conversation = Bent(conversation, stopping_at(stop[1]))
        try:
            client.setup(at_once(conversation))
            for task, inputs in tasks:
                if me in inputs:
                    client.prepare(at_once(conversation), task)
                    report = client.contribute(at_once(conversation), task, inputs[me])
                    assert report.max_error == task.layout.encode(inputs[me]).max_error
        except Stopped:
            pass

    def serve(conversation: Conversation) -> None:
        conversation, server = watch(conversation), SecretSumServer(kind.server(CLIENTS))
        server.setup(at_server(conversation, CLIENTS, waiting, made.silent))
        gone = {party for parties, _ in made.silent.seen for party in parties}
        for task, inputs in tasks:
            server.prepare(at_server(conversation, inputs.keys() - gone, waiting, made.silent), task)
            made.totals.append(over_the_wire(server.collect(at_server(conversation, None, waiting, made.silent), task)))
        assert server.unmask_seconds > 0

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    return made


def over_the_wire(total: SumTotal) -> SumTotal:
    received = wire.decode(wire.encode(total, SESSION, FIRST), session=SESSION).message
    assert isinstance(received, SumTotal)
    return received


def added(task: SumTerms[SumLayout], inputs: Inputs, parties: Collection[PartyId]) -> GroupVector:
    """The sum of the encoded inputs in the clear."""
    total = task.layout.group.zeros(task.layout.entries)
    for party in parties:
        task.layout.group.add_into(total, task.layout.encode(inputs[party]).vector)
    return total


def added_with_checks(
    key: GroupKey, task: SumTerms[SumLayout], inputs: Inputs, parties: Collection[PartyId]
) -> GroupVector:
    """The sum of what clients send, each with the checks of its own vector."""
    vectors = secret_terms(task)
    total = task.layout.group.zeros(vectors.layout.entries)
    for party in parties:
        sent = with_checks(key, vectors, task.layout.encode(inputs[party]).vector)
        task.layout.group.add_into(total, sent)
    return total


def is_sum_of(opened: Total, task: SumTerms[SumLayout], inputs: Inputs, parties: Collection[PartyId]) -> bool:
    """To the last bit."""
    expected = task.layout.decode(added(task, inputs, parties))
    return np.array_equal(opened.real, expected.real) and np.array_equal(opened.counts, expected.counts)


def masked(
    key: GroupKey, task: SumTerms[SumLayout], inputs: Inputs, parties: Collection[PartyId] | None = None
) -> SumTotal:
    """What the server holds at the end of a sum, put together in one place."""
    contributors = list(inputs) if parties is None else list(parties)
    vector = added_with_checks(key, task, inputs, contributors)
    for party in contributors:
        add_keystream(mask_key(key, secret_terms(task), party), vector, task.layout.group)
    return SumTotal.of(task.round, task.purpose, contributors, vector)


def client_with(key: GroupKey) -> SecretSumClient:
    return SecretSumClient(VectorClient(CLIENTS, SEMI_HONEST), key)


# --- what clients read ----------------------------------------------------------------------------------------------


@both
@both_rings
def test_every_client_reads_the_exact_sum(kind: Kind, ring_bits: int) -> None:
    layout = layout_for(4, ring_bits)
    tasks = [(task_of(layout, CLIENTS, number), random_inputs(layout, CLIENTS, number)) for number in (1, 2)]
    made = run(kind, tasks)
    assert made.silent.seen == []
    for total, (task, inputs) in zip(made.totals, tasks, strict=True):
        assert total.contributors == CLIENTS
        for client in made.clients.values():
            assert is_sum_of(client.open(task, total), task, inputs, CLIENTS)


@both_rings
@pytest.mark.parametrize(("name", "step"), EVERY_STEP)
def test_the_sum_is_exact_without_a_client_that_falls_silent_and_that_client_reads_it_too(
    name: str, step: str, ring_bits: int
) -> None:
    layout = layout_for(4, ring_bits)
    task, inputs = task_of(layout, CLIENTS), random_inputs(layout, CLIENTS, seed=3)
    for gone in (ONE, FOUR):
        made = run(KINDS[name], [(task, inputs)], Foreseen((step_of(step), gone)), (gone, SAYS[step]))
        assert made.silent.seen == [({gone}, step_of(step))]
        contributors = [party for party in CLIENTS if party != gone or step in ("consistency check", "unmasking")]
        (total,) = made.totals
        assert total.contributors == contributors
        for client in made.clients.values():
            assert is_sum_of(client.open(task, total), task, inputs, contributors)


@both
def test_a_client_that_was_not_drawn_or_away_reads_what_it_has_missed(kind: Kind) -> None:
    """Client 4 is no participant of the first sum, and one of the second that is not there. Three clients are too few
    for one that is corrupt and one that drops out, so nobody is declared corrupt."""
    kind = replace(kind, model=replace(kind.model, corrupt=0.0, dropout=0.25))
    others = [ONE, TWO, THREE]
    inputs = [random_inputs(LAYOUT, others, seed) for seed in (1, 2)]
    tasks = [task_of(LAYOUT, others), task_of(LAYOUT, CLIENTS, SECOND)]
    made = run(kind, list(zip(tasks, inputs, strict=True)))
    for task, total, given_in in zip(tasks, made.totals, inputs, strict=True):
        assert is_sum_of(made.clients[FOUR].open(task, total), task, given_in, others)


@both
def test_the_sums_go_on_if_the_client_that_was_to_draw_the_key_falls_silent(kind: Kind) -> None:
    made = run(kind, [(TASK, INPUTS)], Foreseen(("group key", ONE)), (ONE, SealedGroupKeys))
    assert made.silent.seen == [({ONE}, "group key")]
    for party in (TWO, THREE, FOUR):
        opened = made.clients[party].open(TASK, made.totals[0])
        assert is_sum_of(opened, TASK, INPUTS, [TWO, THREE, FOUR])


@both
def test_a_client_that_misses_the_setup_is_named_once_and_has_no_key(kind: Kind) -> None:
    """Nobody has a channel to it: whoever draws the key encrypts none for it."""
    silent, patience = Silences(), Foreseen(("advertise channel", ONE))

    def serve(conversation: Conversation) -> SumTotal:
        server = SecretSumServer(kind.server(CLIENTS))
        server.setup(at_server(conversation, CLIENTS, patience, silent))
        server.prepare(at_server(conversation, CLIENTS, patience, silent), TASK)
        return server.collect(at_server(conversation, None, patience, silent), TASK)

    def take_part(conversation: Conversation) -> SecretSumClient:
        client = SecretSumClient(kind.client(CLIENTS, conversation.transport.party))
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), TASK)
        client.contribute(at_once(conversation), TASK, INPUTS[conversation.transport.party])
        return client

    results = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part) | {ONE: lambda conversation: None})
    assert silent.seen == [({ONE}, "advertise channel")]
    for party in (TWO, THREE, FOUR):
        assert is_sum_of(results[party].open(TASK, results[SERVER]), TASK, INPUTS, [TWO, THREE, FOUR])


@both
def test_the_server_holds_the_sum_plus_one_mask_of_each_contributor(kind: Kind) -> None:
    """The construction, computed from the clients' key; everything else in this file may rest on it."""
    made = run(kind, [(TASK, INPUTS)])
    expected = masked(made.key(), TASK, INPUTS)
    assert np.array_equal(made.totals[0].vector, expected.vector)
    assert made.totals[0].contributors == expected.contributors


@given(st.data())
@settings(deadline=None, max_examples=50)
def test_any_vectors_of_any_group_and_any_contributors_are_opened_exactly(data: st.DataObject) -> None:
    group = data.draw(st.sampled_from([Ring(32), Ring(64), PrimeField()]))
    participants = everyone(data.draw(st.integers(1, 6)))
    contributors = data.draw(st.sets(st.sampled_from(participants), min_size=1))
    length = data.draw(st.integers(0, 5))
    top = (1 << group.bits if isinstance(group, Ring) else (1 << 61) - 1) - 1
    entries = st.lists(st.integers(0, top), min_size=length, max_size=length)
    task = SumTerms(FIRST, PURPOSE, tuple(participants), VectorLayout(group, length), b"model")
    rows = [data.draw(entries) for _ in contributors]
    total = group.zeros(length)
    for party, row in zip(sorted(contributors), rows, strict=True):
        vector = np.array(row, dtype=group.dtype)
        add_keystream(mask_key(a_key(), task, party), vector, group)
        group.add_into(total, vector)
    before = total.copy()
    opened = open_total(a_key(), task, SumTotal.of(FIRST, PURPOSE, contributors, total))
    assert opened.tolist() == [sum(column) % (top + 1) for column in zip(*rows, strict=True)]
    assert np.array_equal(total, before)


def test_more_contributors_than_masks_are_removed_at_a_time() -> None:
    clients = everyone(130)
    layout = layout_for(130)
    task, inputs = task_of(layout, clients), random_inputs(layout, clients)
    assert is_sum_of(client_with(a_key()).open(task, masked(a_key(), task, inputs)), task, inputs, clients)


def test_without_a_key_there_is_nothing_to_contribute_or_to_open() -> None:
    client = SecretSumClient(VectorClient(CLIENTS, SEMI_HONEST))
    with pytest.raises(RuntimeError, match="setup"):
        client.open(TASK, masked(a_key(), TASK, INPUTS))


# --- what the server sees -------------------------------------------------------------------------------------------

WIDE = {bits: SumLayout(ENTRIES, 64, bound=4.0, max_count=9, parties=4, ring_bits=bits) for bits in (32, 64)}  # type: ignore[arg-type]


def wide(
    ring_bits: int, round_id: int = 1, purpose: str = PURPOSE
) -> tuple[SumTerms[SumLayout], dict[PartyId, Contribution]]:
    """Inputs that stand out from noise: small, all of one sign in one half, and alike."""
    layout = WIDE[ring_bits]
    row = np.linspace(-0.5, 1.0, ENTRIES)
    inputs = {party: Contribution(row * party, np.full(64, party)) for party in CLIENTS}
    return task_of(layout, CLIENTS, round_id, purpose), inputs


def has_moments_of_noise(vector: npt.NDArray[Any]) -> bool:
    """Mean and standard deviation of uniform numbers, within seven standard errors of each."""
    unit = vector.astype(np.float64) / 2.0 ** (8 * vector.itemsize)
    spread = np.sqrt(1 / 12)
    mean_error, spread_error = spread / np.sqrt(len(unit)), spread * np.sqrt(0.2 / len(unit))
    return bool(abs(unit.mean() - 0.5) < 7 * mean_error and abs(unit.std() - spread) < 7 * spread_error)


def correlation(vector: npt.NDArray[Any], clear: npt.NDArray[Any]) -> float:
    signed = vector.view(f"<i{vector.itemsize}").astype(np.float64)
    return float(abs(np.corrcoef(signed, clear.view(f"<i{clear.itemsize}").astype(np.float64))[0, 1]))


def is_noise(vector: npt.NDArray[Any], clear: npt.NDArray[Any]) -> bool:
    """Uniform, and with nothing to do with what is in clear (seven standard errors)."""
    unrelated = correlation(vector, clear) < 7 / np.sqrt(len(vector))
    return looks_uniform(vector) and has_moments_of_noise(vector) and unrelated


@both_rings
def test_the_measure_tells_a_sum_from_noise(ring_bits: int) -> None:
    task, inputs = wide(ring_bits)
    clear, noise = added(task, inputs, CLIENTS), np.zeros(task.layout.entries, task.layout.group.dtype)
    add_keystream(bytes(32), noise, task.layout.group)
    assert is_noise(noise, clear)
    assert not looks_uniform(clear)
    assert not has_moments_of_noise(clear)
    # Half the width under a mask hides the moments' lower half only.
    narrow = clear + (noise >> np.array(ring_bits // 2, noise.dtype))
    assert not is_noise(narrow, clear)
    assert correlation(clear, clear) > 0.99


@dataclass
class View:
    """Everything that passed the server's end."""

    records: list[TranscriptRecord]

    def of(self, kind: type[wire.Message]) -> dict[PartyId, Any]:
        messages = [(record.peer, wire.decode(record.frame, session=SESSION).message) for record in self.records]
        return {peer: message for peer, message in messages if isinstance(message, kind)}


def watched(kind: Kind, path: Path, tasks: Sequence[tuple[SumTerms[SumLayout], Inputs]]) -> tuple[Run, View]:
    def watch(conversation: Conversation) -> Conversation:
        conversation.transport.attach(Tap(path))
        return conversation

    made = run(kind, tasks, watch=watch)
    return made, View(list(read_transcript(path)))


@both
@both_rings
def test_all_that_the_server_holds_is_noise(kind: Kind, ring_bits: int, tmp_path: Path) -> None:
    task, inputs = wide(ring_bits)
    made, view = watched(kind, tmp_path / "server", [(task, inputs)])
    clear = added(task, inputs, CLIENTS)
    uploads = [message.vector for message in view.of(MaskedInput).values()]
    assert len(uploads) == len(CLIENTS)
    for vector in (made.totals[0].vector, *uploads, uploads[0] - uploads[1], sum(uploads[1:], uploads[0])):
        assert is_noise(vector, clear)
    assert is_sum_of(made.clients[TWO].open(task, made.totals[0]), task, inputs, CLIENTS)


@both_rings
def test_the_same_inputs_in_two_rounds_purposes_or_sessions_give_unrelated_totals(ring_bits: int) -> None:
    kind = KINDS["semi-honest"]
    (task, inputs), (later, _), (other, _) = wide(ring_bits), wide(ring_bits, 2), wide(ring_bits, 1, "other")
    made, again = run(kind, [(task, inputs), (other, inputs), (later, inputs)]), run(kind, [(task, inputs)])
    totals, clear = [total.vector for total in (*made.totals, *again.totals)], added(task, inputs, CLIENTS)
    for at, left in enumerate(totals):
        for right in totals[:at]:
            assert is_noise(left - right, clear)


@both
def test_a_colluding_client_opens_the_sum_and_no_single_upload(kind: Kind, tmp_path: Path) -> None:
    """Server and client 4 pool what they have: all group masks, all self masks, and every message."""
    task, inputs = wide(32)
    made, view = watched(kind, tmp_path / "server", [(task, inputs)])
    ring, vectors, key = task.layout.group, secret_terms(task), made.key(FOUR)
    assert np.array_equal(open_total(key, vectors, made.totals[0]), added(task, inputs, CLIENTS))
    (directory, *_) = view.of(ChannelDirectory).values()
    parameters = parameters_for(4, 4, kind.model, 2)
    transcript = setup_transcript(SESSION, directory.channel_keys)
    terms = BoundTerms(
        SESSION,
        transcript,
        parameters,
        SumTerms(FIRST, PURPOSE, task.participants, VectorLayout(ring, task.layout.entries)),
    )
    given_shares, stripped = view.of(UnmaskShares), dict[PartyId, GroupVector]()
    for party, message in view.of(MaskedInput).items():
        vector = message.vector.copy()
        subtract_keystream(mask_key(key, vectors, party), vector, ring)
        shares = {int(holder): answer.seed_shares[party] for holder, answer in given_shares.items()}
        chosen = dict(sorted(shares.items())[: parameters.threshold])
        seed = recombine(chosen, parameters.threshold)
        subtract_keystream(derive_key(seed, terms.self_mask_context(party)), vector, ring)
        stripped[party] = vector
    # What they have taken off is right: the rest of the masks cancels, in the sum of all and in no other.
    assert np.array_equal(sum(stripped.values()), added(task, inputs, CLIENTS))
    for party in (ONE, TWO, THREE):
        assert is_noise(stripped[party], task.layout.encode(inputs[party]).vector)
    assert is_noise(stripped[ONE] + stripped[TWO], added(task, inputs, [ONE, TWO]))


# --- other keys, other sums -----------------------------------------------------------------------------------------


def relabelled(total: SumTotal, task: SumTerms[SumLayout], contributors: Collection[PartyId] | None = None) -> SumTotal:
    parties = [PartyId(party) for party in total.contributors] if contributors is None else contributors
    return SumTotal.of(task.round, task.purpose, parties, total.vector)


KEY = a_key(1)
OTHER_SESSION = SessionId(bytes(16))
WRONG: dict[str, Callable[[SumTerms[SumLayout], SumTotal], tuple[GroupKey, SumTerms[SumLayout], SumTotal]]] = {
    "another key": lambda task, total: (a_key(2), task, total),
    "another session": lambda task, total: (a_key(1, OTHER_SESSION), task, total),
    "another commitment": lambda task, total: (GroupKey(bytes([1]) * 32, SESSION, bytes(32)), task, total),
    "another round": lambda task, total: (
        (later := replace(task, round=SECOND)) and (KEY, later, relabelled(total, later))
    ),
    "another purpose": lambda task, total: (
        (other := replace(task, purpose="metrics")) and (KEY, other, relabelled(total, other))
    ),
    "other participants": lambda task, total: (KEY, replace(task, participants=(*CLIENTS, PartyId(5))), total),
    "a contributor left out": lambda task, total: (KEY, task, relabelled(total, task, [ONE, TWO, FOUR])),
}


@both_rings
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_without_the_right_key_task_and_contributors_a_total_is_noise_and_is_refused(
    ring_bits: int, wrong: Callable[[SumTerms[SumLayout], SumTotal], tuple[GroupKey, SumTerms[SumLayout], SumTotal]]
) -> None:
    task, inputs = wide(ring_bits)
    total, clear = masked(KEY, task, inputs), added(task, inputs, CLIENTS)
    assert np.array_equal(open_total(KEY, secret_terms(task), total), clear)
    key, other, told = wrong(task, total)
    assert is_noise(open_total(key, secret_terms(other), told), clear)
    with pytest.raises(PeerMisbehaved, match="none of these contributors"):
        client_with(key).open(other, told)


@both_rings
def test_a_contributor_too_many_leaves_noise(ring_bits: int) -> None:
    task, inputs = wide(ring_bits)
    total = masked(KEY, task, inputs, [ONE, TWO, THREE])
    told, clear = relabelled(total, task, CLIENTS), added(task, inputs, [ONE, TWO, THREE])
    assert is_noise(open_total(KEY, secret_terms(task), told), clear)
    with pytest.raises(PeerMisbehaved, match="none of these contributors"):
        client_with(KEY).open(task, told)


def test_no_client_reads_a_sum_to_which_one_contributed_under_another_key() -> None:
    """As an active server arranges it that has two keys drawn."""
    vectors, layout = secret_terms(TASK), TASK.layout
    total = masked(KEY, TASK, INPUTS)
    subtract_keystream(mask_key(KEY, vectors, THREE), total.vector, layout.group)
    add_keystream(mask_key(a_key(2), vectors, THREE), total.vector, layout.group)
    for key in (KEY, a_key(2)):
        with pytest.raises(PeerMisbehaved, match="none of these contributors"):
            client_with(key).open(TASK, total)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"of_round": 2}, "the sum of rows of round 2 where another one was due"),
        ({"purpose": "metrics"}, "the sum of metrics of round 1 where another one was due"),
        ({"contributors": []}, "contributors that take no part"),
        ({"contributors": [1, 2, 3, 5]}, "contributors that take no part"),
        ({"contributors": [2**64 - 1]}, "contributors that take no part"),
        ({"vector": np.zeros(LAYOUT.entries - 1, "<u8")}, "another length or group"),
        ({"vector": np.zeros(LAYOUT.entries + 1, "<u8")}, "another length or group"),
        ({"vector": np.zeros(LAYOUT.entries, "<u4")}, "another length or group"),
        ({"vector": np.zeros(0, "<u8")}, "another length or group"),
    ],
    ids=["round", "purpose", "nobody", "a stranger", "no client", "short", "long", "narrow", "empty"],
)
def test_a_total_that_does_not_fit_its_task_is_refused(change: dict[str, Any], match: str) -> None:
    right = masked(KEY, TASK, INPUTS)
    fields = {name: getattr(right, name) for name in right.__struct_fields__}
    with pytest.raises(PeerMisbehaved, match=match):
        client_with(KEY).open(TASK, SumTotal(**(fields | change)))


def test_a_value_outside_of_the_field_is_refused() -> None:
    task = SumTerms(FIRST, PURPOSE, tuple(CLIENTS), VectorLayout(PrimeField(), 1))
    with pytest.raises(PeerMisbehaved, match="another length or group"):
        open_total(KEY, task, SumTotal.of(FIRST, PURPOSE, CLIENTS, np.array([(1 << 61) - 1], "<u8")))


# --- the check ------------------------------------------------------------------------------------------------------

FEW = {bits: layout_for(4, bits, real=3, counts=9) for bits in (32, 64)}


def shifted(total: SumTotal, shift: GroupVector) -> SumTotal:
    return SumTotal(total.purpose, total.of_round, total.contributors, total.vector + shift)


def passes(task: SumTerms[SumLayout], key: GroupKey, total: SumTotal) -> bool:
    try:
        client_with(key).open(task, total)
    except PeerMisbehaved:
        return False
    return True


@both_rings
def test_any_single_bit_of_a_total_that_is_changed_is_noticed(ring_bits: int) -> None:
    task, inputs = task_of(FEW[ring_bits], CLIENTS), random_inputs(FEW[ring_bits], CLIENTS)
    total = masked(KEY, task, inputs)
    assert len(total.vector) == 12 + CHECKS
    assert is_sum_of(client_with(KEY).open(task, total), task, inputs, CLIENTS)
    for entry in range(len(total.vector)):
        for bit in range(ring_bits):
            shift = np.zeros_like(total.vector)
            shift[entry] = 1 << bit
            assert not passes(task, KEY, shifted(total, shift))


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_any_shift_is_noticed_and_none_is_accepted(data: st.DataObject) -> None:
    """Shifts of all 2-adic valuations, of entries and checks; over any contributors."""
    bits = data.draw(st.sampled_from([32, 64]))
    layout = FEW[bits]
    task, inputs = task_of(layout, CLIENTS), random_inputs(layout, CLIENTS, data.draw(st.integers(0, 99)))
    contributors = data.draw(st.sets(st.sampled_from(CLIENTS), min_size=1))
    total = masked(KEY, task, inputs, sorted(contributors))
    assert is_sum_of(client_with(KEY).open(task, total), task, inputs, sorted(contributors))
    amounts = st.integers(0, bits - 1).flatmap(
        lambda power: st.integers(0, (1 << (bits - power)) - 1).map(lambda odd: odd << power)
    )
    shift = np.zeros_like(total.vector)
    for entry, amount in data.draw(st.dictionaries(st.integers(0, len(shift) - 1), amounts, min_size=1)).items():
        shift[entry] = amount
    assert passes(task, KEY, shifted(total, shift)) == (not shift.any())


@both_rings
def test_half_the_ring_on_one_entry_passes_every_second_check_and_never_all(ring_bits: int) -> None:
    """The change that a single check would miss half of the time: why there are so many."""
    layout = FEW[ring_bits]
    inputs, tries, missed, accepted = random_inputs(layout, CLIENTS), 300, 0, 0
    for number in range(1, tries + 1):
        task = task_of(layout, CLIENTS, number)
        vectors, total = secret_terms(task), masked(KEY, task, inputs)
        shift = np.zeros_like(total.vector)
        shift[number % 12] = 1 << (ring_bits - 1)
        accepted += passes(task, KEY, shifted(total, shift))
        opened = open_total(KEY, vectors, shifted(total, shift))
        missed += int((with_checks(KEY, vectors, opened[:12])[12:] == opened[12:]).sum())
    assert accepted == 0
    assert abs(missed / (tries * CHECKS) - 0.5) < 5 * 0.5 / np.sqrt(tries * CHECKS)


def test_factors_are_the_rounds_the_purposes_and_the_keys_own() -> None:
    numbers = np.ones(12, dtype="<u8")
    task = task_of(FEW[64], CLIENTS)
    others = [
        (KEY, replace(task, round=SECOND)),
        (KEY, replace(task, purpose="valid")),
        (KEY, replace(task, participants=(ONE, TWO, THREE))),
        (a_key(2), task),
    ]
    checks = [with_checks(key, secret_terms(one), numbers)[12:] for key, one in [(KEY, task), *others]]
    assert len({entry for vector in checks for entry in vector.tolist()}) == CHECKS * len(checks)
    # A client that was away reads the sum without knowing what model the participants had, or their states.
    later = replace(task, model=b"another", state=b"and another")
    assert np.array_equal(with_checks(KEY, secret_terms(later), numbers)[12:], checks[0])


def test_checks_are_the_sums_with_the_factors_computed_one_by_one() -> None:
    task, numbers = task_of(FEW[32], CLIENTS), np.arange(2**32 - 12, 2**32, dtype="<u4")
    vectors = secret_terms(task)
    units = [with_checks(KEY, vectors, row)[12:].tolist() for row in np.eye(12, dtype="<u4")]
    expected = [
        sum(int(number) * unit[at] for number, unit in zip(numbers, units, strict=True)) % 2**32 for at in range(CHECKS)
    ]
    assert with_checks(KEY, vectors, numbers)[12:].tolist() == expected


def test_a_field_has_no_such_check() -> None:
    task = SumTerms(FIRST, PURPOSE, tuple(CLIENTS), VectorLayout(PrimeField(), 3))
    with pytest.raises(ValueError, match="for rings"):
        with_checks(KEY, task, np.zeros(2, "<u8"))


@pytest.mark.parametrize(("entries", "length"), [(1, 41), (4096, 4136), (4097, 4097)])
def test_a_sum_has_a_check_up_to_so_many_entries(entries: int, length: int) -> None:
    task = task_of(layout_for(4, 32, real=entries, counts=0), CLIENTS)
    assert secret_terms(task).layout.entries == length
    assert entries in possible_entries(length)


def test_lengths_tell_how_many_entries_there_are() -> None:
    assert [possible_entries(length) for length in (0, 39, 40, 535)] == [(), (), (0,), (495,)]
    assert possible_entries(LARGEST_CHECKED + 1) == (LARGEST_CHECKED + 1 - CHECKS, LARGEST_CHECKED + 1)
    assert possible_entries(50_000) == (50_000,)


def test_in_a_longer_sum_an_amount_is_not_noticed_nor_is_noise_without_counts() -> None:
    """Both are stated as not covered. If one comes to be noticed, the docstring must say so."""
    layout = layout_for(4, real=LARGEST_CHECKED, counts=6)
    task, inputs = task_of(layout, CLIENTS), random_inputs(layout, CLIENTS)
    total = masked(KEY, task, inputs)
    assert len(total.vector) == layout.entries
    total.vector[0] += np.uint64(1 << 40)
    opened, true = client_with(KEY).open(task, total), layout.decode(added(task, inputs, CLIENTS))
    assert opened.real[0] != true.real[0]
    assert np.array_equal(opened.real[1:], true.real[1:])
    bare = task_of(layout_for(4, real=LARGEST_CHECKED + 1, counts=0), CLIENTS)
    noise = masked(a_key(2), bare, random_inputs(bare.layout, CLIENTS))
    assert client_with(KEY).open(bare, noise).real.shape == (LARGEST_CHECKED + 1,)


# --- why the masks are as they are ----------------------------------------------------------------------------------


@both_rings
def test_one_mask_for_all_would_leave_the_lowest_bits_of_the_sum_in_clear(ring_bits: int) -> None:
    """An even number of contributors adds an even multiple of it. With a mask of each one's own they are hidden."""
    task, inputs = wide(ring_bits)
    ring, clear = task.layout.group, added(task, inputs, CLIENTS)
    common = clear.copy()
    for _ in CLIENTS:
        add_keystream(bytes(32), common, ring)
    three = np.array(3, dtype=ring.dtype)
    assert np.array_equal(common & three, clear & three)
    total = masked(KEY, task, inputs).vector
    assert 0.2 < np.mean((total & three) == (clear & three)) < 0.3


@both_rings
def test_the_same_masks_in_every_round_would_show_the_differences_of_the_sums(ring_bits: int) -> None:
    """As in the paper, whose perturbation is drawn once."""
    (task, inputs), (later, _) = wide(ring_bits), wide(ring_bits, 2)
    changed = {party: Contribution(-given.real, given.counts) for party, given in inputs.items()}
    difference = added(later, changed, CLIENTS) - added(task, inputs, CLIENTS)
    once = masked(KEY, task, changed).vector - masked(KEY, task, inputs).vector
    assert np.array_equal(once, difference)
    afresh = masked(KEY, later, changed).vector - masked(KEY, task, inputs).vector
    assert is_noise(afresh, difference)


def test_no_two_masks_have_the_same_key() -> None:
    """Of all parties, rounds, purposes, groups, lengths, sets of participants, sessions and keys."""
    base = SumTerms(FIRST, PURPOSE, tuple(CLIENTS), VectorLayout(Ring(32), 8), b"m")
    tasks = [
        base,
        replace(base, round=SECOND),
        replace(base, purpose="metrics"),
        replace(base, participants=tuple(CLIENTS[:3])),
        replace(base, layout=VectorLayout(Ring(64), 8)),
        replace(base, layout=VectorLayout(PrimeField(), 8)),
        replace(base, layout=VectorLayout(Ring(32), 9)),
    ]
    keys = [KEY, a_key(2), a_key(1, OTHER_SESSION)]
    derived = [mask_key(key, task, party) for key in keys for task in tasks for party in CLIENTS]
    assert len(set(derived)) == len(keys) * len(tasks) * len(CLIENTS)
    # A client that was away does not know the model of that round, and may name participants in another order.
    same = replace(base, participants=tuple(CLIENTS[::-1]), model=b"")
    assert mask_key(KEY, same, ONE) == mask_key(KEY, base, ONE)
