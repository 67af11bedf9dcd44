"""Whole sums as conversations: a server and its clients over threads, for the plain sum and its secure twin alike."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from in_threads import converse, soon

from protocols.conversation import Conversation
from protocols.identifiers import SERVER, PartyId, RoundId
from protocols.plain.sums import PlainSumClient, PlainSumServer
from protocols.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums import Contribution, ContributionReport, SumClient, SumLayout, SumServer, Total

PURPOSE = "rows"


@dataclass(frozen=True)
class Twin:
    """How to make the two sides of one kind of sum."""

    client: Callable[[Collection[PartyId]], SumClient]
    server: Callable[[Collection[PartyId]], SumServer]


PLAIN = Twin(lambda clients: PlainSumClient(), lambda clients: PlainSumServer())
SECAGG = Twin(SecAggSumClient, SecAggSumServer)
TWINS = {"plain": PLAIN, "secagg": SECAGG}

Inputs = Mapping[PartyId, Contribution]


def everyone(count: int) -> list[PartyId]:
    return [PartyId(number) for number in range(1, count + 1)]


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


def sum_up(
    twin: Twin, layout: SumLayout, clients: Collection[PartyId], rounds: Collection[Inputs]
) -> tuple[list[Total], dict[PartyId, list[ContributionReport]]]:
    """One session with one sum per element of `rounds`, whose keys are that round's participants."""

    def serve(conversation: Conversation) -> list[Total]:
        server = twin.server(clients)
        server.setup(conversation, soon())
        return [
            server.collect(conversation, RoundId(number), PURPOSE, list(inputs), layout, soon())
            for number, inputs in enumerate(rounds, start=1)
        ]

    def take_part(conversation: Conversation) -> list[ContributionReport]:
        client, me = twin.client(clients), conversation.transport.party
        client.setup(conversation, soon())
        return [
            client.contribute(conversation, RoundId(number), PURPOSE, list(inputs), layout, inputs[me])
            for number, inputs in enumerate(rounds, start=1)
            if me in inputs
        ]

    results = converse({SERVER: serve} | dict.fromkeys(clients, take_part))
    return results.pop(SERVER), results
