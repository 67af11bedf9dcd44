"""Real and simulated views of every protocol on fixed inputs, and what a distinguisher knows beforehand.

The definition lets the distinguisher choose the inputs, so they are fixed, known to it, and picked to be easy to
recognise: a client whose values are all zero, one whose values are all as large as they may be, values that hardly
change between two rounds. In the last sum of each session one client drops out before its input and another one
after it, so that mask keys are opened as well as seeds. What is not fixed is what clients draw at random.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.alignment.psu.attempts import Attempt, UnionPlaces
from protocols.alignment.psu.names import POSITION_ENTRIES, names_terms
from protocols.alignment.psu.table import PeelFailed, peel_in_rounds
from protocols.alignment.psu.vote import vote_terms
from protocols.foundation.identifiers import SETUP, PartyId, RoundId, new_session
from protocols.holders.interface import CountTask
from protocols.holders.secret import count_terms
from protocols.ideal.count import simulate_count
from protocols.ideal.group_key import simulate_group_key
from protocols.ideal.masked_sum import SimulatedSums
from protocols.ideal.real import Falls, Parties
from protocols.ideal.real_sessions import (
    CountSession,
    GroupKeySession,
    PlainUnionSession,
    Session,
    SumSession,
    UnionSession,
)
from protocols.ideal.secret_sum import simulate_secret_sum
from protocols.ideal.union import simulate_names, simulate_union
from protocols.ideal.views import View
from protocols.session.group_key import SealedGroupKeys
from protocols.sums.interface import Contribution, SumLayout
from protocols.sums.secagg.messages import STATE_BYTES
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import Step
from protocols.sums.secret.aggregation import secret_terms
from protocols.sums.terms import Layout, SumTerms

Vector: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
Reader: TypeAlias = Callable[[Vector], npt.NDArray[np.uint64]]

CLIENTS: Final = 5
MODEL: Final = ThreatModel(0.25, 0.4)
"""For five clients: one corrupt, two silent, threshold three."""
LAYOUT: Final = SumLayout(real_entries=48, count_entries=16, bound=4.0, max_count=10, parties=CLIENTS, ring_bits=32)
ROUNDS: Final = 2
PURPOSE: Final = "rows"
NAMES: Final = 30
FALLS: Final = {PartyId(4): Step.MASKED_INPUT, PartyId(5): Step.UNMASKING}
"""In the last sum."""


@dataclass(frozen=True)
class KnownSum:
    """A sum of a view, and what is known of it to somebody who has chosen the inputs."""

    terms: SumTerms[Layout]
    inputs: Mapping[PartyId, Vector] = field(default_factory=dict, repr=False)
    """Empty where clients draw what they add."""
    total: Vector | None = field(default=None, repr=False)
    """Over the survivors, where the server is meant to read it."""
    weights: Reader | None = None
    """How to read, from a total, the weights under which names stand in it."""
    model: ThreatModel = MODEL
    """What the clients declare of their server."""


@dataclass(frozen=True)
class Experiment:
    """One protocol with fixed inputs: `session` holds it, `simulate` writes a view of it from the ideal output."""

    name: str
    session: Session = field(repr=False)
    simulate: Callable[[], View] = field(repr=False)
    known: Callable[[View], Sequence[KnownSum]] = field(repr=False)
    more: Callable[[View], dict[str, float]] = field(default=lambda view: {}, repr=False)
    """Features of this protocol alone."""


def group_keys(seed: int) -> Experiment:
    return Experiment("group-key", GroupKeySession(_parties()), lambda: _with_group_key()[0].view(), lambda view: [])


def masked_sums(seed: int) -> Experiment:
    sums = guarded_sums(seed)
    known = [
        KnownSum(terms, encoded(inputs), total_of(inputs, silent))
        for (terms, inputs), silent in zip(sums, _silences(), strict=True)
    ]

    def simulate() -> View:
        simulated = _simulated()
        for one, silent in zip(known, _silences(), strict=True):
            assert one.total is not None
            simulated.masked_sum(one.terms, one.total, silent)
        return simulated.view()

    session = replace(SumSession.masked(_parties(), sums), falls=_falls(PURPOSE))
    return Experiment("secagg", session, simulate, lambda view: known)


def plain_sums(seed: int) -> Experiment:
    """The twin in clear, held against the simulator of the masked sum."""
    return replace(masked_sums(seed), name="secagg", session=SumSession.plain(_parties(), fixed_sums(seed)))


def secret_sums(seed: int) -> Experiment:
    sums = guarded_sums(seed)

    def simulate() -> View:
        simulated, _ = _with_group_key()
        for (terms, _), silent in zip(sums, _silences(), strict=True):
            simulate_secret_sum(simulated, secret_terms(terms), silent)
        return simulated.view()

    session = replace(SumSession.secret(_parties(), sums), falls=_falls(PURPOSE))
    known = [KnownSum(secret_terms(terms), _without_checks(terms, inputs)) for terms, inputs in sums]
    return Experiment("secret", session, simulate, lambda view: known)


def counts(seed: int) -> Experiment:
    held = {party: np.arange(party - 1, 2 * party + 10, dtype=np.int64) for party in _parties().clients}
    tasks = [CountTask(RoundId(number), _parties().clients, NAMES, b"union", 2) for number in (1, ROUNDS)]

    def simulate() -> View:
        simulated, _ = _with_group_key()
        for task, silent in zip(tasks, _silences(), strict=True):
            simulate_count(simulated, task, silent)
        return simulated.view()

    session = CountSession(_parties(), [(task, held) for task in tasks], _falls("holders"))
    known = [KnownSum(count_terms(task)) for task in tasks]
    return Experiment("holders", session, simulate, lambda view: known)


def union(seed: int, revealing: bool = False) -> Experiment:
    """The first name is held by all, the second by all but one, and so on: their numbers of holders are known."""
    held = _held_names()
    left = {name for party, names in held.items() if party not in _silent_before_input() for name in names}

    def simulate() -> View:
        simulated, commitment = _with_group_key()
        found = simulate_union(simulated, commitment, len(left), NAMES, FALLS)
        if revealing:
            simulate_names(simulated, found, left)
        return simulated.view()

    session = UnionSession(_parties(), held, NAMES, revealing, Falls({(SETUP, "union/0"): FALLS}))
    return Experiment("psu-names" if revealing else "psu", session, simulate, lambda view: _union_sums(view, revealing))


def union_with_names(seed: int) -> Experiment:
    return union(seed, revealing=True)


def plain_union(seed: int) -> Experiment:
    """The twin in clear, held against the simulator of the private union."""
    return replace(union(seed), session=PlainUnionSession(_parties(), _held_names()))


def _parties() -> Parties:
    return Parties.of(CLIENTS, MODEL)


def _silences() -> list[dict[PartyId, Step]]:
    return [{}] * (ROUNDS - 1) + [FALLS]


def _silent_before_input() -> set[PartyId]:
    return {party for party, step in FALLS.items() if step is Step.MASKED_INPUT}


def _falls(purpose: str) -> Falls:
    return Falls({(RoundId(ROUNDS), purpose): FALLS})


def _simulated() -> SimulatedSums:
    simulated = SimulatedSums(_parties().clients, MODEL, new_session())
    simulated.setup()
    return simulated


def _with_group_key() -> tuple[SimulatedSums, bytes]:
    simulated = _simulated()
    return simulated, simulate_group_key(simulated)


def fixed_sums(seed: int) -> list[tuple[SumTerms[SumLayout], dict[PartyId, Contribution]]]:
    """The sums of a session, one for each round, with every client's input."""
    rng = np.random.default_rng(seed)
    clients = _parties().clients
    real = {party: rng.uniform(-LAYOUT.bound, LAYOUT.bound, LAYOUT.real_entries) for party in clients}
    real[clients[0]][:] = 0.0
    real[clients[1]][:] = LAYOUT.bound
    counts = {party: rng.integers(0, 2, LAYOUT.count_entries) for party in clients}
    sums = []
    for number in range(1, ROUNDS + 1):
        terms = SumTerms(RoundId(number), PURPOSE, clients, LAYOUT)
        sums.append((terms, {party: Contribution(real[party].copy(), counts[party]) for party in clients}))
        for party in clients[2:]:
            real[party] += rng.normal(0.0, 1e-3, LAYOUT.real_entries)
    return sums


def guarded_sums(seed: int) -> list[tuple[SumTerms[SumLayout], dict[PartyId, Contribution]]]:
    """The same with clients that commit to the states of their inputs."""
    return [(replace(terms, state=bytes(STATE_BYTES)), inputs) for terms, inputs in fixed_sums(seed)]


def encoded(inputs: Mapping[PartyId, Contribution]) -> dict[PartyId, Vector]:
    return {party: LAYOUT.encode(contribution).vector for party, contribution in inputs.items()}


def _without_checks(terms: SumTerms[SumLayout], inputs: Mapping[PartyId, Contribution]) -> dict[PartyId, Vector]:
    """Whoever has chosen the inputs does not know the factors of their checks: zeros there."""
    length = secret_terms(terms).layout.entries
    vectors = {party: LAYOUT.group.zeros(length) for party in inputs}
    for party, numbers in encoded(inputs).items():
        vectors[party][: len(numbers)] = numbers
    return vectors


def total_of(inputs: Mapping[PartyId, Contribution], silent: Mapping[PartyId, Step]) -> Vector:
    total = LAYOUT.group.zeros(LAYOUT.entries)
    for party, vector in encoded(inputs).items():
        if silent.get(party) is not Step.MASKED_INPUT:
            LAYOUT.group.add_into(total, vector)
    return total


def _held_names() -> dict[PartyId, list[str]]:
    names = [f"name {number}" for number in range(NAMES)]
    return {party: names[party % 3 :: 1 + party // 2] for party in _parties().clients}


def _union_sums(view: View, revealing: bool) -> list[KnownSum]:
    """The sums of a union depend on the group key's commitment, which stands in the view."""
    messages = [seen.message for seen in view.messages()]
    drawn = [message for message in messages if isinstance(message, SealedGroupKeys)]
    answers = {message.purpose: message for message in messages if isinstance(message, UnionPlaces)}
    if not drawn:
        return []
    sums = []
    for number, answer in enumerate(answers.values()):
        attempt = Attempt.of(number, NAMES, view.session, drawn[0].commitment)
        sums.append(KnownSum(attempt.terms(_parties().clients), weights=_table_weights(attempt)))
        if answer.size:
            sums.append(KnownSum(vote_terms(_parties().clients, attempt.digest(answer))))
        if revealing and answer.size:
            terms = names_terms(_parties().clients, answer.size, attempt.digest(answer))
            sums.append(KnownSum(terms, weights=lambda total: total.astype(np.uint64).reshape(POSITION_ENTRIES, -1)[0]))
    return sums


def _table_weights(attempt: Attempt) -> Reader:
    def weights(total: Vector) -> npt.NDArray[np.uint64]:
        try:
            return peel_in_rounds(total.astype(np.uint64), attempt.layout).in_order()[1]
        except PeelFailed:
            return np.zeros(0, dtype=np.uint64)

    return weights


PROTOCOLS: Final[dict[str, Callable[[int], Experiment]]] = {
    "secagg": masked_sums,
    "secret": secret_sums,
    "holders": counts,
    "group-key": group_keys,
    "psu": union,
    "psu-names": union_with_names,
}
"""Of every protocol the comparison in which it must not be told apart, for a seed of its inputs."""
PLAIN_TWINS: Final[dict[str, Callable[[int], Experiment]]] = {"secagg": plain_sums, "psu": plain_union}
"""The same comparison with the plain twin in place of the protocol."""
