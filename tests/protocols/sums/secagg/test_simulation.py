"""The simulated sum is the real one: exact, with the bytes of the wire, whoever drops out wherever."""

import weakref
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SETUP, PartyId, new_session
from protocols.primitives.group import MODULUS, Group, GroupVector, PrimeField, Ring
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.secagg.messages import PEERS_BYTES, AdvertiseKeys, MaskedInput, ShareKeys
from protocols.sums.secagg.messages import SEALED_SHARES_BYTES as SEALED
from protocols.sums.secagg.params import ParametersRefused, ThreatModel, complete_parameters
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.simulation import PURPOSE, ROUND, Scenario, SimulationResult, simulate
from protocols.sums.secagg.step_costs import Spread
from protocols.sums.terms import VectorLayout

pytestmark = pytest.mark.long

RING = Ring(32)
GROUPS = [RING, Ring(64), PrimeField()]
STEPS = ["advertise keys", "share keys", "masked input", "unmasking"]


def parties(*numbers: int) -> frozenset[PartyId]:
    return frozenset(PartyId(number) for number in numbers)


def input_of(party: PartyId, group: Group, length: int) -> GroupVector:
    """Some elements from everywhere in the group."""
    limit = 1 << group.bits if isinstance(group, Ring) else MODULUS
    return np.array([pow(3, 40 * party + place, limit) for place in range(length)], dtype=group.dtype)


def plain_sum(result: SimulationResult) -> GroupVector:
    group, length = result.layout.group, result.layout.entries
    total = group.zeros(length)
    for party in result.survivors:
        group.add_into(total, input_of(party, group, length))
    return total


def simulated(
    clients: int,
    length: int,
    model: ThreatModel,
    dropped: Mapping[Step, Collection[PartyId]] | None = None,
    group: Group = RING,
    **options: Any,
) -> SimulationResult:
    """With inputs that `plain_sum` knows."""
    inputs = options.pop("inputs", lambda party: input_of(party, group, length))
    progress = options.pop("progress", None)
    return simulate(Scenario(clients, VectorLayout(group, length), model, dropped or {}, **options), inputs, progress)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
@pytest.mark.parametrize(("clients", "silent"), [(2, ()), (3, ()), (10, (1, 7)), (60, (2, 3, 30, 60))])
def test_the_sum_is_exact(clients: int, silent: tuple[int, ...], group: Group) -> None:
    dropped = {Step.MASKED_INPUT: parties(*silent)}
    result = simulated(clients, 37, ThreatModel(0.2, len(silent) / clients), dropped, group)
    assert result.survivors == parties(*range(1, clients + 1)) - parties(*silent)
    assert np.array_equal(result.total, plain_sum(result))
    assert [step.name for step in result.steps] == STEPS


def test_a_sparse_graph() -> None:
    model = ThreatModel(0.05, 0.05, security_bits=20, correctness_bits=10)
    result = simulated(200, 5, model, {Step.MASKED_INPUT: parties(*range(1, 200, 20))})
    assert not result.parameters.complete
    assert np.array_equal(result.total, plain_sum(result))
    assert result.steps[1].bytes_down.total < 200 * 199 * SEALED


@pytest.mark.parametrize("step", [Step.ADVERTISE_KEYS, Step.SHARE_KEYS, Step.MASKED_INPUT, Step.UNMASKING])
def test_silent_in_any_step(step: Step) -> None:
    result = simulated(10, 8, ThreatModel(0.2, 0.3), {step: parties(1, 5, 10)})
    gone = frozenset() if step is Step.UNMASKING else parties(1, 5, 10)
    assert result.survivors == parties(*range(1, 11)) - gone
    assert np.array_equal(result.total, plain_sum(result))
    answered = {cost.name: cost.clients for cost in result.steps}
    assert answered[step.value] == answered["unmasking"] == 7


def test_silent_one_after_the_other_against_an_active_server() -> None:
    steps = [Step.ADVERTISE_KEYS, Step.SHARE_KEYS, Step.MASKED_INPUT, Step.CONSISTENCY_CHECK, Step.UNMASKING]
    dropped = {step: parties(number) for number, step in enumerate(steps, start=3)}
    result = simulated(20, 8, ThreatModel(0.1, 0.3, server="active"), dropped)
    assert result.survivors == parties(*range(1, 21)) - parties(3, 4, 5)
    assert np.array_equal(result.total, plain_sum(result))
    assert [step.name for step in result.steps] == [step.value for step in steps]


def test_too_many_silent_clients_leave_no_sum() -> None:
    with pytest.raises(SumAbandoned):
        simulated(10, 8, ThreatModel(0.2, 0.1), {Step.MASKED_INPUT: parties(1, 2)})


def test_refuses_what_no_sum_can_be() -> None:
    with pytest.raises(ParametersRefused):
        simulated(1, 8, ThreatModel(0.0, 0.0))
    with pytest.raises(ValueError, match="0 entries"):
        simulated(2, 0, ThreatModel(0.0, 0.0))


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_bytes_are_those_of_the_wire(group: Group) -> None:
    result = simulated(10, 1000, ThreatModel(0.2, 0.2), {Step.MASKED_INPUT: parties(4, 5)}, group)
    session = new_session()
    advertise, share, masked, _ = result.steps
    assert result.setup.bytes_up.mean == len(wire.encode(AdvertiseChannel(bytes(32), b""), session, SETUP))
    directory = ChannelDirectory({n: bytes(32) for n in range(1, 11)}, dict.fromkeys(range(1, 11), b""))
    assert result.setup.bytes_down.total == 10 * len(wire.encode(directory, session, SETUP))
    assert advertise.bytes_up.maximum == len(wire.encode(AdvertiseKeys(PURPOSE, bytes(32), b"", b""), session, ROUND))
    sealed = {n: bytes(SEALED) for n in range(1, result.parameters.degree + 1)}
    shares = ShareKeys(PURPOSE, sealed, bytes(32), b"", b"")
    assert share.bytes_up.total == 10 * len(wire.encode(shares, session, ROUND))
    vector = MaskedInput(PURPOSE, group.zeros(1000), bytes(PEERS_BYTES))
    assert masked.bytes_up.total == 8 * len(wire.encode(vector, session, ROUND))
    assert result.client_bytes_up == sum(step.bytes_up.mean for step in result.steps) > 1000 * group.element_bytes


def test_counts_the_keystreams_the_server_removes() -> None:
    model = ThreatModel(0.2, 0.2)
    parameters = complete_parameters(10, model)
    result = simulated(10, 8, model, {Step.MASKED_INPUT: parties(4, 5)}, parameters=parameters)
    assert result.expansions == 8 + 2 * 8


def test_only_survivors_are_asked_for_an_input_and_none_is_kept() -> None:
    given: dict[PartyId, weakref.ref[GroupVector]] = {}

    def inputs(party: PartyId) -> GroupVector:
        assert sum(vector() is not None for vector in given.values()) <= 1
        vector = np.full(8, party, dtype=np.uint32)
        given[party] = weakref.ref(vector)
        return vector

    result = simulated(10, 8, ThreatModel(0.2, 0.2), {Step.MASKED_INPUT: parties(4, 5)}, inputs=inputs)
    assert given.keys() == result.survivors
    assert (result.total == sum(result.survivors)).all()


def test_tells_how_far_it_is() -> None:
    told: list[tuple[str, int, int]] = []
    dropped = {Step.MASKED_INPUT: parties(3)}
    simulated(5, 8, ThreatModel(0.0, 0.2), dropped, progress=lambda *what: told.append(what))
    ends = [(step, of) for step, done, of in told if done == of]
    assert ends == [("set-up", 5), ("advertise keys", 5), ("share keys", 5), ("masked input", 4), ("unmasking", 4)]


def test_spread() -> None:
    assert Spread.of([1, 2, 6]) == Spread(total=9, mean=3, median=2, maximum=6)
    assert Spread.of([]) == Spread(0, 0, 0, 0)
