"""Counts of holders as conversations over threads, for the secret count and its plain twin alike."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders.interface import CountTask, HolderClient, HolderServer
from protocols.holders.plain import PlainHolderClient, PlainHolderServer
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.session import group_key
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import OnDropout
from protocols.sums.secagg.params import complete_parameters
from tests.support.group_keys import KINDS, Kind
from tests.support.in_threads import at_once, at_server
from tests.support.sum_conversations import ACTIVE, SEMI_HONEST

Held = Mapping[PartyId, Collection[int]]
"""The rows that each client holds."""


@dataclass(frozen=True)
class Counting:
    """How to make the two sides of one kind of count, set-up included."""

    client: Callable[[Conversation, Collection[PartyId]], HolderClient]
    server: Callable[[Conversation, Collection[PartyId], Patience, OnDropout], HolderServer]


def secret(kind: Kind) -> Counting:
    def client(conversation: Conversation, clients: Collection[PartyId]) -> HolderClient:
        vectors = kind.client(clients, conversation.transport.party)
        vectors.setup(at_once(conversation))
        return SecretHolderClient(vectors, group_key.join(at_once(conversation), vectors.session))

    def server(
        conversation: Conversation, clients: Collection[PartyId], patience: Patience, silent: OnDropout
    ) -> HolderServer:
        vectors = kind.server(clients)
        vectors.setup(at_server(conversation, clients, patience, silent))
        group_key.serve(at_server(conversation, clients, patience, silent))
        return SecretHolderServer(vectors)

    return Counting(client, server)


PLAIN = Counting(
    lambda conversation, clients: PlainHolderClient(),
    lambda conversation, clients, patience, silent: PlainHolderServer(
        complete_parameters(len(clients), SEMI_HONEST).min_survivors
    ),
)
SECRET = {name: secret(kind) for name, kind in KINDS.items()}
TWINS = {"plain": PLAIN, **SECRET}
assert {kind.model for kind in KINDS.values()} == {SEMI_HONEST, ACTIVE}


def task_of(
    union_size: int, participants: Collection[PartyId], round_id: int = 1, union: bytes = b"union", least: int = 2
) -> CountTask:
    return CountTask(RoundId(round_id), tuple(participants), union_size, union, least)


def rows(held: Collection[int]) -> npt.NDArray[np.int64]:
    return np.array(sorted(held), dtype=np.int64)


def counted(held: Held, union_size: int, parties: Collection[PartyId]) -> list[int]:
    """In Python's integers, row by row."""
    return [sum(row in held[party] for party in parties) for row in range(union_size)]


def enough(held: Held, parties: Collection[PartyId], party: PartyId, least: int) -> list[bool]:
    """What `party` is to find out of its rows, in order of their positions."""
    return [sum(row in held[other] for other in parties) >= least for row in sorted(held[party])]


def some_rows(parties: Sequence[PartyId], union_size: int, seed: int = 0) -> dict[PartyId, set[int]]:
    rng = np.random.default_rng(seed)
    return {party: set(np.flatnonzero(rng.random(union_size) < 0.6).tolist()) for party in parties}
