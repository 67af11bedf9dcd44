"""The plain sum and the masked sums run the same conversations: same totals."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from protocols.foundation.errors import (
    EncodingOverflow,
)
from protocols.foundation.identifiers import SERVER
from protocols.session.conversation import Conversation
from protocols.sums.interface import Contribution, SumLayout
from tests.support.in_threads import at_once, at_server, converse
from tests.support.sum_conversations import (
    FIRST,
    PLAIN,
    SECAGG,
    SIGNED,
    Foreseen,
    Inputs,
    Silences,
    Twin,
    everyone,
    is_sum_of,
    layout_for,
    random_inputs,
    serving,
    step_of,
    sum_up,
    taking_part,
    task_of,
)
from tests.support.twin_sums import CLIENTS, INPUTS, LAYOUT, ONE, TASK, TWO, every_twin


def exact(inputs: Inputs) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    real = np.sum([given.real.astype(np.float64) for given in inputs.values()], axis=0)
    return real, np.sum([given.counts for given in inputs.values()], axis=0)


# --- totals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ring_bits", [32, 64])
@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("secure", [SECAGG, SIGNED], ids=["secagg", "signed"])
def test_the_twins_agree_to_the_bit_and_with_the_truth_within_half_a_unit_per_client(
    count: int, ring_bits: int, secure: Twin
) -> None:
    clients, layout = everyone(count), layout_for(count, ring_bits)
    rounds = [random_inputs(layout, clients, seed) for seed in range(3)]
    (plain, _), (masked, reports) = sum_up(PLAIN, layout, clients, rounds), sum_up(secure, layout, clients, rounds)
    for clear, hidden, inputs in zip(plain, masked, rounds, strict=True):
        real, counts = exact(inputs)
        assert clear.contributors == hidden.contributors == set(clients)
        assert np.array_equal(clear.total.real, hidden.total.real)
        assert np.abs(hidden.total.real - real).max() <= count * layout.codec.unit / 2
        assert np.array_equal(clear.total.counts, counts)
        assert np.array_equal(hidden.total.counts, counts)
    for party in clients:
        for inputs, report in zip(rounds, reports[party], strict=True):
            assert report.clipped == 0
            lost = np.abs(layout.codec.decode(layout.codec.encode(inputs[party].real).vector) - inputs[party].real)
            assert report.max_error == lost.max() <= layout.codec.unit / 2
            assert report.mask_seconds > 0


@every_twin
def test_the_narrow_ring_does_round(twin: Twin) -> None:
    """Without this the test above would not notice a codec that loses nothing because it was never used."""
    layout = layout_for(4, 32, real=2000)
    inputs = random_inputs(layout, CLIENTS)
    (collected,), _ = sum_up(twin, layout, CLIENTS, [inputs])
    assert np.abs(collected.total.real - exact(inputs)[0]).max() > 0
    assert is_sum_of(collected, layout, inputs, CLIENTS)


@every_twin
def test_every_set_of_participants_has_its_sum(twin: Twin) -> None:
    clients = everyone(3)
    subsets = [list(chosen) for size in (2, 3) for chosen in combinations(clients, size)]
    layout = layout_for(3)
    rounds = [random_inputs(layout, chosen, seed) for seed, chosen in enumerate(subsets)]
    sums, _ = sum_up(twin, layout, clients, rounds)
    for collected, inputs in zip(sums, rounds, strict=True):
        real, counts = exact(inputs)
        assert collected.contributors == inputs.keys()
        assert np.abs(collected.total.real - real).max() <= len(inputs) * layout.codec.unit / 2
        assert np.array_equal(collected.total.counts, counts)


@every_twin
def test_a_round_can_have_several_sums_of_different_kinds(twin: Twin) -> None:
    narrow = layout_for(4, 32, real=0, counts=3)
    sums = [(TASK, INPUTS), (task_of(narrow, CLIENTS, purpose="counts"), random_inputs(narrow, CLIENTS, seed=9))]
    tasks = [task for task, _ in sums]
    results = converse(
        {SERVER: serving(twin, CLIENTS, tasks)} | dict.fromkeys(CLIENTS, taking_part(twin, CLIENTS, sums))
    )
    for collected, (task, inputs) in zip(results[SERVER], sums, strict=True):
        assert is_sum_of(collected, task.layout, inputs, CLIENTS)


@every_twin
@pytest.mark.parametrize(("real", "counts"), [(0, 0), (0, 3), (3, 0)])
def test_a_part_may_be_empty(twin: Twin, real: int, counts: int) -> None:
    layout = layout_for(4, real=real, counts=counts)
    inputs = random_inputs(layout, CLIENTS)
    (collected,), _ = sum_up(twin, layout, CLIENTS, [inputs])
    assert (collected.total.real.shape, collected.total.counts.shape) == ((real,), (counts,))
    assert np.allclose(collected.total.real, exact(inputs)[0])
    assert np.array_equal(collected.total.counts, exact(inputs)[1])


@every_twin
def test_values_beyond_the_bound_are_clipped_and_counted(twin: Twin) -> None:
    layout = layout_for(2, real=3, counts=0)
    counts = np.zeros(0, dtype=np.int64)
    rounds = [{ONE: Contribution(np.array([9.0, -1e308, 1.0]), counts), TWO: Contribution(np.zeros(3), counts)}]
    (collected,), reports = sum_up(twin, layout, [ONE, TWO], rounds)
    assert collected.total.real.tolist() == [4.0, -4.0, 1.0]
    assert [reports[ONE][0].clipped, reports[TWO][0].clipped] == [2, 0]


@every_twin
@pytest.mark.parametrize("ring_bits", [32, 64])
def test_an_input_is_as_wide_as_its_ring(twin: Twin, ring_bits: int) -> None:
    """So that a comparison of the twins' traffic compares like with like."""
    layout = layout_for(4, ring_bits, real=1000, counts=1000)
    task, inputs = task_of(layout, CLIENTS), random_inputs(layout, CLIENTS)

    def serve(conversation: Conversation) -> list[int]:
        serving(twin, CLIENTS, [task])(conversation)
        traffic = conversation.transport.traffic
        label = {"round_id": FIRST, "phase": step_of(twin.input_step)}
        return [traffic.total("received", peer=peer, **label).bytes for peer in CLIENTS]  # type: ignore[arg-type]

    payload = 2000 * ring_bits // 8
    parts = {SERVER: serve} | dict.fromkeys(CLIENTS, taking_part(twin, CLIENTS, [(task, inputs)]))
    for received in converse(parts)[SERVER]:
        assert payload < received < payload + 100


@every_twin
def test_contributions_are_left_as_they_were(twin: Twin) -> None:
    inputs = random_inputs(LAYOUT, CLIENTS)
    before = {party: (given.real.copy(), given.counts.copy()) for party, given in inputs.items()}
    sum_up(twin, LAYOUT, CLIENTS, [inputs])
    for party, given in inputs.items():
        assert np.array_equal(given.real, before[party][0])
        assert np.array_equal(given.counts, before[party][1])


@every_twin
@pytest.mark.parametrize("ring_bits", [32, 64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_never_leave(twin: Twin, ring_bits: int, bad: float) -> None:
    layout = layout_for(2, ring_bits, real=1, counts=0)
    refused(twin, layout, Contribution(np.array([bad]), np.zeros(0, dtype=np.int64)), "not finite")


@every_twin
def test_counts_beyond_their_limit_never_leave(twin: Twin) -> None:
    layout = layout_for(2, real=0, counts=1)
    refused(twin, layout, Contribution(np.zeros(0), np.array([1001])), "outside 0..1000")


def refused(twin: Twin, layout: SumLayout, wrong: Contribution, problem: str) -> None:
    """Both clients are ready to contribute when they notice that they cannot."""
    clients = [ONE, TWO]
    task = task_of(layout, clients)

    def serve(conversation: Conversation) -> None:
        server = twin.server(clients)
        server.setup(at_server(conversation, clients, Foreseen(), Silences()))
        server.prepare(at_server(conversation, clients, Foreseen(), Silences()), task)

    def take_part(conversation: Conversation) -> None:
        client = twin.client(clients, conversation.transport.party)
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), task)
        before = conversation.transport.traffic.total("sent")
        with pytest.raises(EncodingOverflow, match=problem):
            client.contribute(at_once(conversation), task, wrong)
        assert conversation.transport.traffic.total("sent") == before

    converse({SERVER: serve, ONE: take_part, TWO: take_part})
