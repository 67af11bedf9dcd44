"""Every set of clients drops out at every step: the sum is exact or there is none, and there is one when due.

When a sum is due is counted here from who answers which step, with nothing of the server's own reckoning.
"""

import dataclasses
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import combinations, product

import pytest

from protocols.foundation.errors import SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import PartyId
from protocols.primitives.group import Group, PrimeField, Ring
from protocols.sums.secagg.params import SumParameters, ThreatModel, complete_parameters
from protocols.sums.secagg.server import Step
from tests.support.secagg_sessions import SEMI_HONEST_STEPS, SIGNED_STEPS, Federation, Sum, complete, everyone, parties

pytestmark = pytest.mark.long

Fates = Mapping[PartyId, Step]
"""The first step a client does not answer; clients that are not named answer all."""

DEFAULT = ThreatModel(corrupt=0.25, dropout=0.4)
ACTIVE = ThreatModel(corrupt=0.25, dropout=0.25, server="active")


@cache
def federation(count: int, signed: bool) -> Federation:
    return Federation(everyone(count), signed=signed)


def steps_of(signed: bool) -> list[Step]:
    return SIGNED_STEPS if signed else SEMI_HONEST_STEPS


def all_fates(clients: list[PartyId], signed: bool) -> Iterable[Fates]:
    never = [*steps_of(signed), Step.DONE]
    for chosen in product(never, repeat=len(clients)):
        yield {party: step for party, step in zip(clients, chosen, strict=True) if step is not Step.DONE}


def answering(clients: Iterable[PartyId], fates: Fates, step: Step) -> frozenset[PartyId]:
    return frozenset(
        party for party in clients if party not in fates or SIGNED_STEPS.index(fates[party]) > SIGNED_STEPS.index(step)
    )


def is_due(clients: list[PartyId], parameters: SumParameters, signed: bool, fates: Fates) -> bool:
    """The complete graph: enough clients for each step, who see as many as they insist on."""
    insisted = max(parameters.min_survivors, parameters.threshold)
    needed = dict.fromkeys([Step.ADVERTISE_KEYS, Step.SHARE_KEYS, Step.MASKED_INPUT], insisted)
    needed |= {Step.CONSISTENCY_CHECK: parameters.threshold, Step.UNMASKING: parameters.threshold}
    return all(len(answering(clients, fates, step)) >= needed[step] for step in steps_of(signed))


def outcome(begun: Sum, fates: Fates) -> bool:
    """Whether there was a sum. It was exact, or there was a reason and there never will be one."""
    reason = None
    try:
        total = begun.run(fates)
    except SumAbandoned as problem:
        reason = str(problem)
    if reason is not None:
        assert reason
        assert begun.server.step is Step.ABANDONED
        with pytest.raises(UnexpectedMessage, match="no sum in step 'abandoned'"):
            begun.server.total()
        return False
    survivors = answering(begun.clients, fates, Step.MASKED_INPUT)
    assert begun.server.survivors == survivors
    assert total.tolist() == begun.exact(survivors)
    return True


def check(count: int, parameters: SumParameters, signed: bool, chosen: Iterable[Fates]) -> Counter[bool]:
    clients = everyone(count)
    outcomes: Counter[bool] = Counter()
    for fates in chosen:
        due = is_due(clients, parameters, signed, fates)
        assert outcome(federation(count, signed).begin(parameters), fates) == due, fates
        outcomes[due] += 1
    assert outcomes[True]
    assert outcomes[False]
    return outcomes


def named(parameters: SumParameters) -> str:
    return f"n={parameters.participants}, t={parameters.threshold}, m={parameters.min_survivors}"


HAND_MADE = [
    *[complete(2, 2), complete(3, 2), complete(3, 3), complete(3, 2, min_survivors=3)],
    *[complete(4, 2), complete(4, 3), complete(4, 4), complete(4, 2, min_survivors=3), complete(4, 3, min_survivors=4)],
]
JUSTIFIED = [complete_parameters(count, DEFAULT) for count in (3, 4)]


@pytest.mark.parametrize("parameters", [*HAND_MADE, *JUSTIFIED], ids=named)
def test_up_to_four_clients_fall_silent_in_every_way(parameters: SumParameters) -> None:
    count = parameters.participants
    outcomes = check(count, parameters, False, all_fates(everyone(count), signed=False))
    assert outcomes.total() == 5**count


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [complete_parameters(5, DEFAULT), complete(5, 2)], ids=named)
def test_five_clients_fall_silent_in_every_way(parameters: SumParameters) -> None:
    assert check(5, parameters, False, all_fates(everyone(5), signed=False)).total() == 5**5


SIGNED = [complete(2, 2), complete(3, 3), complete(3, 2), *(complete_parameters(n, ACTIVE) for n in (3, 4))]


@pytest.mark.parametrize("parameters", SIGNED, ids=named)
def test_up_to_four_signing_clients_fall_silent_in_every_way(parameters: SumParameters) -> None:
    count = parameters.participants
    outcomes = check(count, parameters, True, all_fates(everyone(count), signed=True))
    assert outcomes.total() == 6**count


def test_five_signing_clients_fall_silent_in_every_set_at_one_step() -> None:
    clients = everyone(5)
    sets = [chosen for size in range(6) for chosen in combinations(clients, size)]
    fates = [dict.fromkeys(chosen, step) for chosen in sets for step in SIGNED_STEPS]
    assert check(5, complete_parameters(5, ACTIVE), True, fates) == {True: 5 * 6, False: 5 * 26}


@pytest.mark.parametrize("parameters", [complete_parameters(5, ACTIVE), complete(5, 3)], ids=named)
def test_five_signing_clients_fall_silent_at_mixed_steps(parameters: SumParameters) -> None:
    chosen = random.Random(17).sample(list(all_fates(everyone(5), signed=True)), 300)
    # Few of all assignments leave enough clients: those with one or two silent ones are added.
    few = [fates for fates in all_fates(everyone(5), signed=True) if len(fates) <= 2]
    check(5, parameters, True, [*chosen, *random.Random(18).sample(few, 60)])


@pytest.mark.parametrize("group", [Ring(32), Ring(64), PrimeField()], ids=lambda group: group.name)
@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
def test_every_group_recovers_exactly(group: Group, signed: bool) -> None:
    clients = parties(3, 8, 9, 200, 70_000)
    begun = Federation(clients, signed=signed).begin(complete(5, 2), group, length=1000)
    fates = {PartyId(8): Step.SHARE_KEYS, PartyId(200): Step.MASKED_INPUT, PartyId(3): Step.UNMASKING}
    assert outcome(begun, fates)
    assert len(begun.server.survivors) == 3


# --- a sparse graph -------------------------------------------------------------------------------------------------

SPARSE = SumParameters(participants=40, degree=10, threshold=4, min_survivors=5)


def is_due_in_a_graph(begun: Sum, fates: Fates) -> bool:
    """Every client that goes on sees enough of its neighbours; every secret has its threshold of holders."""
    graph, figures = begun.terms.graph, begun.terms.parameters
    insisted = max(figures.threshold, figures.min_survivors)
    advertised, shared, survivors, answered = (answering(begun.clients, fates, step) for step in SEMI_HONEST_STEPS)
    circle = {party: {party, *graph.neighbours(party)} for party in begun.clients}
    return (
        all(len(circle[party] & advertised) >= insisted for party in advertised)
        and all(len(circle[party] & shared) >= insisted for party in shared)
        and all(len(circle[party] & survivors) >= insisted for party in survivors)
        and all(len(circle[party] & survivors) >= figures.threshold for party in shared - survivors)
        and all(len(circle[party] & answered) >= figures.threshold for party in shared)
        and bool(survivors)
    )


def test_forty_clients_in_a_sparse_graph_fall_silent_at_random() -> None:
    rng = random.Random(4)
    clients = everyone(40)
    running = Federation(clients)
    outcomes: Counter[bool] = Counter()
    for silent in [0, 1, 3, 5, 8, 8, 8, 12, 12, 12, 16, 16, 16, 20, 20, 24, 28, 35, 39, 40]:
        fates = {party: rng.choice(SEMI_HONEST_STEPS) for party in rng.sample(clients, silent)}
        begun = running.begin(SPARSE, Ring(32))
        due = is_due_in_a_graph(begun, fates)
        assert outcome(begun, fates) == due, fates
        outcomes[due] += 1
    assert outcomes[True] >= 5
    assert outcomes[False] >= 5


def test_a_neighbourhood_that_is_too_thin_ends_the_sum_and_is_named() -> None:
    begun = Federation(everyone(40)).begin(SPARSE)
    lonely = PartyId(7)
    gone = begun.terms.graph.neighbours(lonely)[:7]  # three neighbours and itself are left
    with pytest.raises(SumAbandoned, match="in the neighbourhood of client"):
        begun.run(dict.fromkeys(gone, Step.MASKED_INPUT))


@pytest.mark.parametrize(("row", "due"), [(7, True), (8, False)])
def test_a_row_of_silent_neighbours_is_recovered_as_long_as_a_threshold_holds_each_secret(row: int, due: bool) -> None:
    """Seven in a row leave the middle ones exactly four surviving neighbours: the threshold, below `min_survivors`.

    That is enough for a dropout; a survivor insists on five, and those on either side still have six.
    """
    begun = Federation(everyone(40)).begin(SPARSE)
    gone = begun.terms.graph._ring[10 : 10 + row]
    left = [len(set(begun.terms.graph.neighbours(party)).difference(gone)) for party in gone]
    assert min(left) == (SPARSE.threshold if due else SPARSE.threshold - 1)
    fates = dict.fromkeys(gone, Step.MASKED_INPUT)
    assert is_due_in_a_graph(begun, fates) == due
    assert outcome(begun, fates) == due


@pytest.mark.parametrize("group", [Ring(32), Ring(64), PrimeField()], ids=lambda group: group.name)
def test_a_sparse_graph_is_exact_in_every_group(group: Group) -> None:
    begun = Federation(everyone(12)).begin(SumParameters(12, 6, 3, 3), group)
    assert outcome(begun, {PartyId(2): Step.MASKED_INPUT, PartyId(9): Step.SHARE_KEYS, PartyId(5): Step.UNMASKING})
    assert len(begun.server.survivors) == 10


# --- fewer than declared --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (Step.ADVERTISE_KEYS, "advertised keys"),
        (Step.SHARE_KEYS, "shared keys"),
        (Step.MASKED_INPUT, "sent an input"),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_sum_that_loses_more_than_declared_is_abandoned(step: Step, what: str, sparse: bool) -> None:
    """Every neighbourhood and every threshold could still bear the loss: the number in all decides."""
    parameters = SumParameters(12, 8 if sparse else 11, 3, 3)
    gone = dict.fromkeys(parties(2, 5, 9), step)
    assert outcome(Federation(everyone(12)).begin(parameters), gone)
    assert outcome(Federation(everyone(12)).begin(dataclasses.replace(parameters, least_present=9)), gone)
    begun = Federation(everyone(12)).begin(dataclasses.replace(parameters, least_present=10))
    with pytest.raises(SumAbandoned, match=rf"^9 clients have {what}, 10 are needed$"):
        begun.run(gone)
    with pytest.raises(UnexpectedMessage, match="no sum in step 'abandoned'"):
        begun.server.total()


def test_losses_of_several_steps_add_up() -> None:
    parameters = dataclasses.replace(complete(6, 2), least_present=4)
    fates = {PartyId(1): Step.ADVERTISE_KEYS, PartyId(2): Step.SHARE_KEYS, PartyId(3): Step.MASKED_INPUT}
    begun = Federation(everyone(6)).begin(parameters)
    with pytest.raises(SumAbandoned, match=r"^3 clients have sent an input, 4 are needed$"):
        begun.run(fates)
    # Once the inputs are there, no more than a threshold has to open the masks.
    later = {PartyId(1): Step.ADVERTISE_KEYS, PartyId(2): Step.SHARE_KEYS, PartyId(3): Step.UNMASKING}
    assert outcome(Federation(everyone(6)).begin(parameters), later)


# --- reasons --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Step.ADVERTISE_KEYS, "1 client has advertised keys, 3 are needed"),
        (Step.SHARE_KEYS, "1 client has shared keys, 3 are needed"),
        (Step.MASKED_INPUT, "1 client has sent an input, 3 are needed"),
        (Step.CONSISTENCY_CHECK, "1 client has signed the survivors, 3 are needed"),
        (Step.UNMASKING, "1 client gave a share of the self mask of client 1, 3 are needed"),
    ],
)
def test_the_reason_says_how_many_there_were_and_how_many_are_needed(step: Step, reason: str) -> None:
    begun = federation(4, True).begin(complete(4, 3))
    with pytest.raises(SumAbandoned, match=f"^{reason}$"):
        begun.run(dict.fromkeys(parties(1, 2, 3), step))


@pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])
def test_nobody_answers_at_all(signed: bool) -> None:
    for step in steps_of(signed):
        begun = federation(3, signed).begin(complete(3, 2))
        with pytest.raises(SumAbandoned):
            begun.run(dict.fromkeys(everyone(3), step))


def test_clients_that_were_never_reachable_are_not_waited_for() -> None:
    """The server knows of two participants only; the third is silent from the first step on."""
    begun = federation(3, False).begin(complete(3, 2))
    begun.server = type(begun.server)(begun.terms, frozenset(parties(1, 3, 77)))
    assert begun.server.awaited == set(parties(1, 3))
    assert begun.run().tolist() == begun.exact(parties(1, 3))
    assert begun.server.survivors == set(parties(1, 3))
