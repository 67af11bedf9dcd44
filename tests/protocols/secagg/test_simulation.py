"""The simulated sum is the real one: exact, with the bytes of the wire, whoever falls silent wherever."""

import weakref

import numpy as np
import pytest

from protocols import wire
from protocols.errors import SumAbandoned
from protocols.identifiers import SETUP, PartyId, new_session
from protocols.primitives.group import Group, GroupVector, PrimeField, Ring
from protocols.secagg.messages import SEALED_SHARES_BYTES as SEALED
from protocols.secagg.messages import AdvertiseChannel, AdvertiseKeys, ChannelDirectory, MaskedInput, ShareKeys
from protocols.secagg.params import ParametersRefused, ThreatModel, complete_parameters
from protocols.secagg.server import Step
from protocols.secagg.simulation import PURPOSE, ROUND, SimulationResult, Spread, drop_out, random_inputs, simulate

GROUPS = [Ring(32), Ring(64), PrimeField()]
STEPS = ["advertise keys", "share keys", "masked input", "unmasking"]


def parties(*numbers: int) -> frozenset[PartyId]:
    return frozenset(PartyId(number) for number in numbers)


def plain_sum(result: SimulationResult, seed: int = 0) -> GroupVector:
    total = result.group.zeros(result.length)
    for party in result.survivors:
        result.group.add_into(total, random_inputs(result.group, result.length, seed)(party))
    return total


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
@pytest.mark.parametrize(("clients", "dropout"), [(2, 0.0), (3, 0.0), (10, 0.2), (60, 0.1)])
def test_the_sum_is_exact(clients: int, dropout: float, group: Group) -> None:
    result = simulate(clients, 37, model=ThreatModel(0.2, dropout), group=group, dropped=dropout, seed=5)
    assert len(result.survivors) == clients - int(clients * dropout)
    assert np.array_equal(result.total, plain_sum(result, seed=5))
    assert [step.name for step in result.steps] == STEPS


def test_a_sparse_graph() -> None:
    result = simulate(200, 5, model=ThreatModel(0.05, 0.05, security_bits=20, correctness_bits=10), dropped=0.05)
    assert not result.parameters.complete
    assert np.array_equal(result.total, plain_sum(result))
    assert result.steps[1].bytes_down.total < 200 * 199 * SEALED


@pytest.mark.parametrize("step", [Step.ADVERTISE_KEYS, Step.SHARE_KEYS, Step.MASKED_INPUT, Step.UNMASKING])
def test_silent_in_any_step(step: Step) -> None:
    result = simulate(10, 8, model=ThreatModel(0.2, 0.3), dropped={step: parties(1, 5, 10)})
    gone = frozenset() if step is Step.UNMASKING else parties(1, 5, 10)
    assert result.survivors == parties(*range(1, 11)) - gone
    assert np.array_equal(result.total, plain_sum(result))
    answered = {cost.name: cost.clients for cost in result.steps}
    assert answered[step.value] == answered["unmasking"] == 7


def test_silent_one_after_the_other_against_an_active_server() -> None:
    steps = [Step.ADVERTISE_KEYS, Step.SHARE_KEYS, Step.MASKED_INPUT, Step.CONSISTENCY_CHECK, Step.UNMASKING]
    dropped = {step: parties(number) for number, step in enumerate(steps, start=3)}
    result = simulate(20, 8, model=ThreatModel(0.1, 0.3, server="active"), dropped=dropped)
    assert result.survivors == parties(*range(1, 21)) - parties(3, 4, 5)
    assert np.array_equal(result.total, plain_sum(result))
    assert [step.name for step in result.steps] == [step.value for step in steps]


def test_too_many_silent_clients_leave_no_sum() -> None:
    with pytest.raises(SumAbandoned):
        simulate(10, 8, model=ThreatModel(0.2, 0.1), dropped={Step.MASKED_INPUT: parties(1, 2)})


def test_refuses_what_no_sum_can_be() -> None:
    with pytest.raises(ParametersRefused):
        simulate(1, 8, model=ThreatModel(0.0, 0.0))
    with pytest.raises(ParametersRefused):
        simulate(10, 8, model=ThreatModel(0.0, 0.0), dropped=1.5)
    with pytest.raises(ValueError, match="0 entries"):
        simulate(2, 0, model=ThreatModel(0.0, 0.0))


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_bytes_are_those_of_the_wire(group: Group) -> None:
    result = simulate(10, 1000, model=ThreatModel(0.2, 0.2), group=group, dropped=0.2)
    session = new_session()
    advertise, share, masked, _ = result.steps
    assert result.setup.bytes_up.mean == len(wire.encode(AdvertiseChannel(bytes(32), b""), session, SETUP))
    directory = ChannelDirectory({n: bytes(32) for n in range(1, 11)}, dict.fromkeys(range(1, 11), b""))
    assert result.setup.bytes_down.total == 10 * len(wire.encode(directory, session, SETUP))
    assert advertise.bytes_up.maximum == len(wire.encode(AdvertiseKeys(PURPOSE, bytes(32), b""), session, ROUND))
    sealed = {n: bytes(SEALED) for n in range(1, result.parameters.degree + 1)}
    assert share.bytes_up.total == 10 * len(wire.encode(ShareKeys(PURPOSE, sealed, bytes(32)), session, ROUND))
    vector = MaskedInput(PURPOSE, group.zeros(1000))
    assert masked.bytes_up.total == 8 * len(wire.encode(vector, session, ROUND))
    assert result.client_bytes_up == sum(step.bytes_up.mean for step in result.steps) > 1000 * group.element_bytes


def test_counts_the_keystreams_the_server_removes() -> None:
    model = ThreatModel(0.2, 0.2)
    parameters = complete_parameters(10, model)
    result = simulate(10, 8, model=model, parameters=parameters, dropped=drop_out(10, 0.2, seed=1))
    assert result.expansions == 8 + 2 * 8


def test_only_survivors_are_asked_for_an_input_and_none_is_kept() -> None:
    given: dict[PartyId, weakref.ref[GroupVector]] = {}

    def inputs(party: PartyId) -> GroupVector:
        assert sum(vector() is not None for vector in given.values()) <= 1
        vector = np.full(8, party, dtype=np.uint32)
        given[party] = weakref.ref(vector)
        return vector

    result = simulate(10, 8, model=ThreatModel(0.2, 0.2), dropped=0.2, inputs=inputs)
    assert given.keys() == result.survivors
    assert (result.total == sum(result.survivors)).all()


def test_the_seed_decides_who_drops_out_and_what_is_added() -> None:
    runs = [simulate(20, 8, model=ThreatModel(0.2, 0.2), dropped=0.2, seed=seed) for seed in (1, 1, 2)]
    assert runs[0].survivors == runs[1].survivors != runs[2].survivors
    assert np.array_equal(runs[0].total, runs[1].total)
    assert not np.array_equal(runs[0].total, runs[2].total)


def test_tells_how_far_it_is() -> None:
    told: list[tuple[str, int, int]] = []
    simulate(5, 8, model=ThreatModel(0.0, 0.2), dropped=0.2, progress=lambda *what: told.append(what))
    ends = [(step, of) for step, done, of in told if done == of]
    assert ends == [("set-up", 5), ("advertise keys", 5), ("share keys", 5), ("masked input", 4), ("unmasking", 4)]


def test_spread() -> None:
    assert Spread.of([1, 2, 6]) == Spread(total=9, mean=3, median=2, maximum=6)
    assert Spread.of([]) == Spread(0, 0, 0, 0)
