"""Simulated views are what the honest server accepts, give exactly the ideal output, and have the real views' form."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from protocols.alignment.psu.attempts import UnionPlaces
from protocols.alignment.psu.names import names_terms, read
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import SETUP, PartyId, RoundId, new_session
from protocols.ideal.group_key import simulate_group_key
from protocols.ideal.masked_sum import SimulatedSums, uniform_vector
from protocols.ideal.opened import open_sum
from protocols.ideal.real import Falls, Parties
from protocols.ideal.real_sessions import SumSession, UnionSession
from protocols.ideal.union import simulate_names, simulate_union
from protocols.ideal.views import SeenFrame, View, canonical
from protocols.primitives.group import MODULUS, PrimeField, Ring
from protocols.primitives.identity import IdentityKey
from protocols.session.credentials import Credentials
from protocols.session.group_key import SealedGroupKeys
from protocols.sums.interface import Contribution, SumLayout
from protocols.sums.secagg.messages import MaskedInput, ShareKeys, Survivors
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import Step
from protocols.sums.terms import SumTerms, VectorLayout

LAYOUT = SumLayout(real_entries=5, count_entries=2, bound=4.0, max_count=10, parties=5, ring_bits=32)
SEMI_HONEST = Parties.of(5, ThreatModel(0.25, 0.4))
ROUND = RoundId(1)


def signed() -> Parties:
    parties = Parties.of(5, ThreatModel(0.25, 0.25, "active"))
    identities = {party: IdentityKey.generate() for party in parties.clients}
    directory = {party: identity.public for party, identity in identities.items()}
    return replace(parties, credentials={party: Credentials(own, directory) for party, own in identities.items()})


def inputs(parties: Parties) -> dict[PartyId, Contribution]:
    rng = np.random.default_rng(0)
    return {party: Contribution(rng.uniform(-4, 4, 5), rng.integers(0, 10, 2)) for party in parties.clients}


def simulated_sum(
    parties: Parties, task: SumTerms[SumLayout], silent: Mapping[PartyId, Step]
) -> tuple[View, np.ndarray]:
    total = LAYOUT.group.zeros(LAYOUT.entries)
    for party, contribution in inputs(parties).items():
        if silent.get(party) in (None, Step.UNMASKING, Step.CONSISTENCY_CHECK):
            LAYOUT.group.add_into(total, LAYOUT.encode(contribution).vector)
    sums = SimulatedSums(parties.clients, parties.model, new_session(), credentials=parties.credentials)
    sums.setup()
    collected = sums.masked_sum(task, total, silent)
    assert np.array_equal(collected.vector, total)
    return sums.view(), total


def real_sum(parties: Parties, task: SumTerms[SumLayout], silent: Mapping[PartyId, Step]) -> View:
    session = SumSession.masked(parties, [(task, inputs(parties))])
    return replace(session, falls=Falls({(task.round, task.purpose): silent})).view()


STEPS = [Step.ADVERTISE_KEYS, Step.SHARE_KEYS, Step.MASKED_INPUT, Step.UNMASKING]
PATTERNS: list[tuple[bool, dict[PartyId, Step]]] = [
    (False, {}),
    *((False, {PartyId(2): step}) for step in STEPS),
    (False, {PartyId(1): Step.MASKED_INPUT, PartyId(5): Step.MASKED_INPUT}),
    (False, {PartyId(1): Step.SHARE_KEYS, PartyId(3): Step.UNMASKING}),
    (True, {}),
    (True, {PartyId(2): Step.MASKED_INPUT}),
    (True, {PartyId(4): Step.CONSISTENCY_CHECK}),
]


@pytest.mark.parametrize(("active", "silent"), PATTERNS)
def test_simulated_sums_have_the_form_of_real_ones_and_the_same_output(
    active: bool, silent: dict[PartyId, Step]
) -> None:
    parties = signed() if active else SEMI_HONEST
    task = SumTerms(ROUND, "rows", parties.clients, LAYOUT)
    simulated, total = simulated_sum(parties, task, silent)
    real = real_sum(parties, task, silent)
    assert simulated.structure() == real.structure()
    for view in (simulated, real):
        opened = open_sum(view, task, parties.clients, parties.model)
        assert np.array_equal(opened.total, total)
        left = LAYOUT.group.zeros(LAYOUT.entries)
        for residue in opened.residues.values():
            LAYOUT.group.add_into(left, residue)
        assert np.array_equal(left, total)
        assert opened.mask_keys.keys() == {party for party, step in silent.items() if step is Step.MASKED_INPUT}
        assert opened.seeds.keys() == opened.survivors


def test_a_sum_over_a_sparse_graph_is_simulated() -> None:
    clients = tuple(PartyId(number) for number in range(1, 101))
    model = ThreatModel(0.1, 0.1)
    sums = SimulatedSums(clients, model, new_session())
    sums.setup()
    task = SumTerms(ROUND, "rows", clients, VectorLayout(Ring(64), 3))
    total = uniform_vector(task.layout.group, task.layout.entries)
    silent = {PartyId(7): Step.MASKED_INPUT, PartyId(8): Step.UNMASKING, PartyId(9): Step.SHARE_KEYS}
    assert np.array_equal(sums.masked_sum(task, total, silent).vector, total)
    opened = open_sum(sums.view(), task, clients, model)
    assert np.array_equal(opened.total, total)
    assert opened.mask_keys.keys() == {7}


def test_sums_of_several_rounds_are_simulated_with_fresh_secrets() -> None:
    sums = SimulatedSums(SEMI_HONEST.clients, SEMI_HONEST.model, new_session())
    sums.setup()
    total = LAYOUT.group.zeros(4)
    tasks = [
        SumTerms(RoundId(number), "rows", SEMI_HONEST.clients, VectorLayout(LAYOUT.group, 4)) for number in (1, 2, 3)
    ]
    for task in tasks:
        sums.masked_sum(task, total)
    opened = [open_sum(sums.view(), task, SEMI_HONEST.clients, SEMI_HONEST.model) for task in tasks]
    assert len({seed for one in opened for seed in one.seeds.values()}) == 15
    sealed = [seen.message.sealed for seen in sums.view().messages() if isinstance(seen.message, ShareKeys)]
    assert len({entry for entries in sealed for entry in entries.values()}) == 3 * 5 * 4


def test_a_union_that_needs_two_attempts_has_the_form_of_a_real_one() -> None:
    names = {party: [f"name {number}" for number in range(600)] for party in SEMI_HONEST.clients}

    def simulated() -> View:
        sums = SimulatedSums(SEMI_HONEST.clients, SEMI_HONEST.model, new_session())
        sums.setup()
        commitment = simulate_group_key(sums)
        assert simulate_union(sums, commitment, 600, 64).size == 600
        return sums.view()

    def of_two_attempts(draw: Callable[[], View]) -> View:
        """A table of the second attempt cannot be read in one case of 2,000, simulated or real."""
        while True:
            view = draw()
            sizes = [seen.message.size for seen in view.messages() if isinstance(seen.message, UnionPlaces)]
            assert sizes[:5] == [0] * 5
            if sizes == [0] * 5 + [600] * 5:
                return view

    real = of_two_attempts(lambda: UnionSession(SEMI_HONEST, names, 64).view())
    assert of_two_attempts(simulated).structure() == real.structure()


def test_simulated_names_are_read_by_the_server_in_a_random_order() -> None:
    names = [f"name {number}" for number in range(20)]
    orders = set()
    for _ in range(2):
        sums = SimulatedSums(SEMI_HONEST.clients, SEMI_HONEST.model, new_session())
        sums.setup()
        union = simulate_union(sums, simulate_group_key(sums), 20, 30)
        placed = simulate_names(sums, union, names)
        task = names_terms(SEMI_HONEST.clients, 20, union.digest)
        total = open_sum(sums.view(), task, SEMI_HONEST.clients, SEMI_HONEST.model).total
        assert read(total.astype(np.uint64), 20) == [placed[position] for position in range(20)]
        orders.add(tuple(placed.values()))
    assert sorted(orders.pop()) == sorted(names)
    assert orders, "twice the same order: once in 20! times"


def test_a_group_key_is_simulated_without_a_key() -> None:
    sums = SimulatedSums(SEMI_HONEST.clients, SEMI_HONEST.model, new_session())
    sums.setup()
    commitment = simulate_group_key(sums)
    (drawn,) = [seen.message for seen in sums.view().messages() if isinstance(seen.message, SealedGroupKeys)]
    assert drawn.commitment == commitment
    assert len(set(drawn.sealed.values())) == 4


def test_a_view_that_was_changed_does_not_open() -> None:
    task = SumTerms(ROUND, "rows", SEMI_HONEST.clients, LAYOUT)
    view, _ = simulated_sum(SEMI_HONEST, task, {})
    kinds = [(seen.direction, type(seen.message)) for seen in view.messages()]
    for kind in (("received", ShareKeys), ("received", MaskedInput), ("sent", Survivors)):
        at = kinds.index(kind)
        missing = View(view.session, view.frames[:at] + view.frames[at + 1 :])
        with pytest.raises(ProtocolError):
            open_sum(missing, task, SEMI_HONEST.clients, SEMI_HONEST.model)


def test_answers_of_one_step_stand_in_the_order_of_their_senders() -> None:
    def seen(direction: str, peer: int, phase: str) -> SeenFrame:
        return SeenFrame(direction, PartyId(peer), SETUP, phase, b"")  # type: ignore[arg-type]

    frames = [seen("received", 2, "a"), seen("received", 1, "a"), seen("sent", 2, "a"), seen("sent", 1, "a")]
    frames += [seen("received", 3, "b"), seen("received", 1, "c")]
    assert [frame.peer for frame in canonical(new_session(), frames).frames] == [1, 2, 2, 1, 3, 1]


def test_uniform_vectors_are_elements_of_their_group() -> None:
    vector = uniform_vector(PrimeField(), 1000)
    assert vector.dtype == np.dtype("<u8")
    assert int(vector.max()) < MODULUS
    assert len(np.unique(vector)) == 1000
    assert uniform_vector(Ring(32), 7).shape == (7,)
