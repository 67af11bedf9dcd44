"""Counts of holders: their tasks and rows, their two sides in threads, and the same put together in one place."""

import numpy as np
import pytest
from hypothesis import strategies as st

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders.interface import PURPOSE, CountTask, Holders
from protocols.holders.secret import count_terms, enough_holders, held_vector, own_entries, rest_of_rows
from protocols.primitives.group import FieldArray, PrimeField
from protocols.primitives.prg import add_keystream
from protocols.session.conversation import Conversation
from protocols.session.group_key import GroupKey
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    MaskedInput,
    ShareKeys,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secret.aggregation import mask_key, open_total
from protocols.sums.totals import SumTotal
from tests.support.group_keys import a_key
from tests.support.holder_conversations import SECRET, TWINS, Counting, Held, rows, some_rows, task_of
from tests.support.in_threads import Part, at_once, at_server
from tests.support.sum_conversations import Foreseen, Silences, everyone

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
FIRST, SECOND = RoundId(1), RoundId(2)
FIELD = PrimeField()
UNION = 30
TASK = task_of(UNION, CLIENTS)
HELD = some_rows(CLIENTS, UNION)
KEY = a_key(1)
REFUSED = "the total of the holders is not that of what the clients have sent"
both = pytest.mark.parametrize("counting", SECRET.values(), ids=SECRET)
every_twin = pytest.mark.parametrize("counting", TWINS.values(), ids=TWINS)

SAYS: dict[str, type[wire.Message]] = {
    "advertise keys": AdvertiseKeys,
    "share keys": ShareKeys,
    "masked input": MaskedInput,
    "consistency check": SurvivorSignature,
    "unmasking": UnmaskShares,
}


def counting_in(counting: Counting, held: Held, *tasks: CountTask) -> Part:
    def take_part(conversation: Conversation) -> list[Holders]:
        client = counting.client(conversation, CLIENTS)
        counts = []
        for task in tasks:
            client.prepare(at_once(conversation), task)
            counts.append(client.count(at_once(conversation), task, rows(held[conversation.transport.party])))
        return counts

    return take_part


def serving(
    counting: Counting, *tasks: CountTask, patience: Foreseen | None = None, silent: Silences | None = None
) -> Part:
    def serve(conversation: Conversation) -> None:
        waiting, notice = patience or Foreseen(), silent or Silences()
        server = counting.server(conversation, CLIENTS, waiting, notice)
        for task in tasks:
            server.prepare(at_server(conversation, CLIENTS, waiting, notice), task)
            server.collect(at_server(conversation, CLIENTS, waiting, notice), task)

    return serve


class Count:
    """What clients send and the server adds up, put together in one place."""

    def __init__(
        self, held: Held, task: CountTask = TASK, key: GroupKey = KEY, own: dict[PartyId, FieldArray] | None = None
    ) -> None:
        """`own`: what clients add for their rows, if it is not to be drawn."""
        self.task, self.key = task, key
        self.held = {party: rows(of_party) for party, of_party in held.items()}
        self.own = own or {party: own_entries(len(of_party), task) for party, of_party in self.held.items()}
        added: FieldArray = np.zeros(task.entries + 1, dtype="<u8")
        for party, of_party in self.held.items():
            vector = held_vector(of_party, self.own[party], task, key)
            add_keystream(mask_key(key, count_terms(task), party), vector, FIELD)
            FIELD.add_into(added, vector)
        self.total = SumTotal.of(task.round, PURPOSE, held.keys(), added)

    def read(self, party: PartyId, total: SumTotal | None = None) -> list[bool]:
        """As a client reads what it is sent."""
        opened = open_total(self.key, count_terms(self.task), total or self.total)
        rest = rest_of_rows(opened, self.held[party], self.own[party], self.task, self.key)
        return enough_holders(rest, self.task).tolist()

    def opened(self) -> FieldArray:
        """[entries per row, union]: what a client that holds nothing sees."""
        words = open_total(self.key, count_terms(self.task), self.total).astype("<u8", copy=False)
        return words[:-1].reshape(self.task.entries_per_row, self.task.union_size)

    def left(self, party: PartyId) -> FieldArray:
        """[entries per row, held]: what a holder sees of the others."""
        return FIELD.subtract(self.opened()[:, self.held[party]], self.own[party])

    def refuses(self, total: SumTotal) -> bool:
        """Whether every contributor does."""
        refused = 0
        for party in self.held:
            try:
                self.read(party, total)
            except PeerMisbehaved as problem:
                refused += str(problem) == REFUSED
        return refused == len(self.held)


def with_vector(total: SumTotal, vector: FieldArray) -> SumTotal:
    return SumTotal(total.purpose, total.of_round, total.contributors, vector)


Union = tuple[CountTask, dict[PartyId, set[int]]]


@st.composite
def unions(draw: st.DrawFn) -> Union:
    """Of two to six participants, of whom some may have dropped out."""
    participants = everyone(draw(st.integers(2, 6)))
    size, least = draw(st.integers(1, 12)), draw(st.integers(2, 5))
    contributors = draw(st.sets(st.sampled_from(participants), min_size=1))
    held = {party: draw(st.sets(st.integers(0, size - 1))) for party in sorted(contributors)}
    return task_of(size, participants, least=least), held
