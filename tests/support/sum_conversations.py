"""Whole sums as conversations: a server and its clients over threads, for the plain sum and its secure twins alike."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.primitives.identity import IdentityKey
from protocols.session.conversation import Conversation
from protocols.session.credentials import Credentials
from protocols.session.patience import Patience
from protocols.sums.interface import Collected, Contribution, ContributionReport, SumClient, SumLayout, SumServer
from protocols.sums.plain import ClearInput, PlainSumClient, PlainSumServer
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    MaskedInput,
    ShareKeys,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.params import ThreatModel, complete_parameters
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms
from tests.support.in_threads import PATIENCE, Part, at_once, at_server, converse

PURPOSE = "rows"
FIRST, SECOND = RoundId(1), RoundId(2)
SEMI_HONEST = ThreatModel(0.25, 0.4)
ACTIVE = ThreatModel(0.25, 0.25, "active")
"""Of four clients both bear one that drops out and give up with two."""


def everyone(count: int) -> list[PartyId]:
    return [PartyId(number) for number in range(1, count + 1)]


_IDENTITIES = {party: IdentityKey.generate() for party in everyone(6)}
_PINNED = {party: identity.public for party, identity in _IDENTITIES.items()}


def credentials(party: PartyId) -> Credentials:
    return Credentials(_IDENTITIES[party], _PINNED)


Kinds: TypeAlias = Mapping[str, type[wire.Message]]


@dataclass(frozen=True)
class Twin:
    """How to make the two sides of one kind of sum, and what a client says in each of its steps."""

    client: Callable[[Collection[PartyId], PartyId], SumClient]
    server: Callable[[Collection[PartyId]], SumServer[Collected]]
    says: Kinds

    @property
    def input_step(self) -> str:
        return "masked input" if "masked input" in self.says else "input"

    @property
    def input(self) -> type[wire.Message]:
        return self.says[self.input_step]


PLAIN = Twin(
    lambda clients, me: PlainSumClient(),
    lambda clients: PlainSumServer(complete_parameters(len(clients), SEMI_HONEST).min_survivors),
    {"input": ClearInput},
)
SECAGG = Twin(
    lambda clients, me: SecAggSumClient(VectorClient(clients, SEMI_HONEST)),
    lambda clients: SecAggSumServer(VectorServer(len(clients), SEMI_HONEST)),
    {
        "advertise keys": AdvertiseKeys,
        "share keys": ShareKeys,
        "masked input": MaskedInput,
        "unmasking": UnmaskShares,
    },
)
SIGNED = Twin(
    lambda clients, me: SecAggSumClient(VectorClient(clients, ACTIVE, credentials=credentials(me))),
    lambda clients: SecAggSumServer(VectorServer(len(clients), ACTIVE)),
    {**SECAGG.says, "consistency check": SurvivorSignature},
)
TWINS = {"plain": PLAIN, "secagg": SECAGG, "signed": SIGNED}
EVERY_STEP = [(name, step) for name, twin in TWINS.items() for step in twin.says]
"""Every step of every twin in which a client can misbehave or drop out."""

Inputs = Mapping[PartyId, Contribution]


def step_of(step: str) -> str:
    """A step as the server calls it."""
    return f"{step}/{PURPOSE}"


def layout_for(clients: int, ring_bits: Any = 64, real: int = 20, counts: int = 5) -> SumLayout:
    return SumLayout(real, counts, bound=4.0, max_count=1000, parties=clients, ring_bits=ring_bits)


def random_inputs(layout: SumLayout, clients: Collection[PartyId], seed: int = 0) -> dict[PartyId, Contribution]:
    """Values that a float of 32 bits holds, so that the plain sum of that width loses nothing."""
    rng = np.random.default_rng(seed)
    return {
        party: Contribution(
            rng.uniform(-4, 4, layout.real_entries).astype(np.float32),
            rng.integers(0, layout.max_count, layout.count_entries, endpoint=True),
        )
        for party in clients
    }


def is_sum_of(collected: Collected, layout: SumLayout, inputs: Inputs, parties: Collection[PartyId]) -> bool:
    """Whether it is, to the last bit, what adding up the encoded inputs of exactly `parties` in the clear gives."""
    added = layout.group.zeros(layout.entries)
    for party in parties:
        layout.group.add_into(added, layout.encode(inputs[party]).vector)
    expected = layout.decode(added)
    return (
        collected.contributors == frozenset(parties)
        and np.array_equal(collected.total.real, expected.real)
        and np.array_equal(collected.total.counts, expected.counts)
    )


class Foreseen(Patience):
    """Does not wait at all for those of whom it is known that they will not answer, and for the others as long as a
    test may take: who counts as a dropout never depends on how fast the machine is."""

    def __init__(self, *silent: tuple[str, PartyId]) -> None:
        super().__init__(PATIENCE, PATIENCE)
        self._silent = frozenset(silent)

    def limit(self, step: str, party: PartyId, answered: Sequence[float], asked: int) -> float:
        return 0.0 if (step, party) in self._silent else super().limit(step, party, answered, asked)


@dataclass
class Silences:
    """Whom the server has called silent, and in which step."""

    seen: list[tuple[set[PartyId], str]] = field(default_factory=list)

    def __call__(self, parties: Collection[PartyId], step: str) -> None:
        self.seen.append((set(parties), step))


class Stopped(Exception):
    """A client has dropped out for good."""


Bend: TypeAlias = Callable[[wire.Message, RoundId], wire.Message | wire.Frame]


class Bent(Conversation):
    """A client's conversation in which everything it sends is what `bend` makes of it."""

    def __init__(self, straight: Conversation, bend: Bend) -> None:
        super().__init__(straight.transport, straight.session)
        self.setup = straight.setup
        self._straight, self._bend = straight, bend

    def send(self, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        said = self._bend(message, round_id)
        if isinstance(said, wire.Message):
            self._straight.send(to, said, round_id)
        else:
            self.transport.send(to, said)


def instead_of(kind: type[wire.Message], make: Bend) -> Bend:
    """Honest but for messages of one kind."""
    return lambda message, round_id: make(message, round_id) if isinstance(message, kind) else message


def stopping_at(kind: type[wire.Message]) -> Bend:
    def stop(message: wire.Message, round_id: RoundId) -> wire.Message:
        raise Stopped

    return instead_of(kind, stop)


def taking_part(twin: Twin, clients: Collection[PartyId], tasks: Sequence[tuple[SumTerms[SumLayout], Inputs]]) -> Part:
    """An honest client; the reports of those sums in which it has an input."""

    def take_part(conversation: Conversation) -> list[ContributionReport]:
        me = conversation.transport.party
        client = twin.client(clients, me)
        client.setup(at_once(conversation))
        reports = []
        for task, inputs in tasks:
            if me in inputs:
                client.prepare(at_once(conversation), task)
                reports.append(client.contribute(at_once(conversation), task, inputs[me]))
        return reports

    return take_part


def bent(part: Part, bend: Bend) -> Part:
    """The same client, but what it sends passes through `bend`. It may stop."""

    def take_part(conversation: Conversation) -> Any:
        try:
            return part(Bent(conversation, bend))
        except Stopped:
            return None

    return take_part


def serving(
    twin: Twin,
    clients: Collection[PartyId],
    tasks: Sequence[SumTerms[SumLayout]],
    patience: Patience | None = None,
    silent: Silences | None = None,
) -> Part:
    def serve(conversation: Conversation) -> list[Collected]:
        server, waiting, notice = twin.server(clients), patience or Foreseen(), silent or Silences()
        server.setup(at_server(conversation, clients, waiting, notice))
        collected = []
        for task in tasks:
            server.prepare(at_server(conversation, clients, waiting, notice), task)
            collected.append(server.collect(at_server(conversation, None, waiting, notice), task))
        return collected

    return serve


def task_of(
    layout: SumLayout, participants: Collection[PartyId], round_id: int = 1, purpose: str = PURPOSE
) -> SumTerms[SumLayout]:
    return SumTerms(RoundId(round_id), purpose, tuple(participants), layout)


def sum_up(
    twin: Twin, layout: SumLayout, clients: Collection[PartyId], rounds: Collection[Inputs]
) -> tuple[list[Collected], dict[PartyId, list[ContributionReport]]]:
    """One session with one sum per element of `rounds`, whose keys are that round's participants."""
    tasks = [(task_of(layout, list(inputs), number), inputs) for number, inputs in enumerate(rounds, start=1)]
    silent = Silences()
    results = converse(
        {SERVER: serving(twin, clients, [task for task, _ in tasks], silent=silent)}
        | dict.fromkeys(clients, taking_part(twin, clients, tasks))
    )
    assert silent.seen == []
    return results.pop(SERVER), results
