"""What the server sees of secret sums, and what masks and keys are for: noise without the right key."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.primitives.group import GroupVector, PrimeField, Ring
from protocols.primitives.keys import derive_key
from protocols.primitives.prg import add_keystream, subtract_keystream
from protocols.primitives.shamir import recombine
from protocols.session.channels import setup_transcript
from protocols.session.conversation import Conversation
from protocols.session.group_key import GroupKey
from protocols.session.messages import ChannelDirectory
from protocols.sums.interface import Contribution, SumLayout
from protocols.sums.secagg.messages import MaskedInput, UnmaskShares
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.secagg.vectors import parameters_for
from protocols.sums.secret.aggregation import (
    mask_key,
    open_total,
    secret_terms,
)
from protocols.sums.terms import SumTerms, VectorLayout
from protocols.sums.totals import SumTotal
from protocols.transport.tap import Tap, TranscriptRecord, read_transcript
from tests.support.group_keys import KINDS, Kind, a_key
from tests.support.in_threads import SESSION
from tests.support.secret_sums import (
    CLIENTS,
    FIRST,
    FOUR,
    INPUTS,
    KEY,
    LAYOUT,
    ONE,
    SECOND,
    TASK,
    THREE,
    TWO,
    Run,
    added,
    both,
    both_rings,
    client_with,
    is_sum_of,
    masked,
    run,
)
from tests.support.sum_conversations import (
    PURPOSE,
    Inputs,
    task_of,
)
from tests.support.uniformity import ENTRIES, looks_uniform

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
