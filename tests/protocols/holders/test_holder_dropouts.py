"""Rows are not opened if a client that was counted as a holder is gone."""

from collections.abc import Collection
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.foundation import wire
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.holders.interface import PURPOSE, Holders
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.session import group_key
from protocols.session.conversation import Abandon, Conversation
from protocols.sums.interface import Collected, Total
from protocols.sums.secagg.graph import MaskingGraph
from protocols.sums.secagg.messages import (
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums.secagg.vectors import VectorClient, VectorServer, parameters_for
from protocols.sums.secret.aggregation import SecretSumClient, SecretSumServer
from protocols.sums.terms import SumTerms, VectorLayout
from protocols.sums.totals import SumTotal
from tests.support.group_keys import KINDS, Kind
from tests.support.holder_conversations import task_of
from tests.support.holder_counts import CLIENTS, FIELD, FIRST, FOUR, ONE, SAYS, THREE, TWO
from tests.support.in_threads import at_once, at_server, converse, soon
from tests.support.sum_conversations import (
    Bend,
    Foreseen,
    Silences,
    bent,
    everyone,
    layout_for,
    random_inputs,
    stopping_at,
)
from tests.support.sum_conversations import task_of as sum_task_of


def holders_among(contributors: Collection[PartyId], answers: Collection[bool] = (True, True)) -> Holders:
    return Holders(np.array(answers, dtype=np.bool_), frozenset(contributors))


@pytest.mark.parametrize("answers", [[], [False], [True, True]], ids=["no rows", "a lone row", "rows of many"])
@given(contributors=st.sets(st.sampled_from(CLIENTS)), missing=st.sets(st.sampled_from(everyone(6))))
def test_a_sum_is_refused_if_any_counted_client_is_missing(
    answers: list[bool], contributors: set[PartyId], missing: set[PartyId]
) -> None:
    found = holders_among(contributors, answers)
    if gone := missing & contributors:
        with pytest.raises(
            SumAbandoned, match=f"^{len(gone)} clients? dropped out after holders were counted: a row may"
        ):
            found.may_open(frozenset(missing))
    else:
        found.may_open(frozenset(missing))


# --- counted, then gone ---------------------------------------------------------------------------------------------

ROWS = "rows"
LAYOUT = layout_for(4)
ROW_TASK = sum_task_of(LAYOUT, CLIENTS, purpose=ROWS)
INPUTS = random_inputs(LAYOUT, CLIENTS)
TASK_OF_TWO = task_of(2, CLIENTS)


def rows_exact(opened: Total, parties: Collection[PartyId]) -> bool:
    added = LAYOUT.group.zeros(LAYOUT.entries)
    for party in parties:
        LAYOUT.group.add_into(added, LAYOUT.encode(INPUTS[party]).vector)
    expected = LAYOUT.decode(added)
    return np.array_equal(opened.real, expected.real) and np.array_equal(opened.counts, expected.counts)


def stopping_in(purpose: str, kind: type[wire.Message]) -> Bend:
    """Silent from one message of one sum on."""
    stop = stopping_at(kind)

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message | wire.Frame:
        return stop(message, round_id) if getattr(message, "purpose", None) == purpose else message

    return bend


class Rows:
    """A round as it is meant to be: both sums prepared, holders counted, rows added up."""

    def __init__(
        self, kind: Kind, step: str, *, secret_rows: bool, late: bool, counted: Collection[PartyId] = CLIENTS
    ) -> None:
        """`step`: in which step of the rows client 4 drops out, or of the count, if it is not `counted`.

        `late`: rows are prepared after the count.
        """
        self.kind, self.step, self.secret_rows, self.late, self.counted = kind, step, secret_rows, late, set(counted)
        self.silent_in = ROWS if FOUR in self.counted else PURPOSE
        self.said: dict[PartyId, list[wire.Message]] = {party: [] for party in CLIENTS}
        self.opened = set[PartyId]()
        """Who has read the sum of the rows, which was that of clients 1 to 3."""
        self.problems: dict[PartyId, str] = {}

    def run(self) -> None:
        parts = {SERVER: self._serve} | dict.fromkeys(CLIENTS, self._noted)
        converse(parts | {FOUR: bent(self._noted, stopping_in(self.silent_in, SAYS[self.step]))})

    def _noted(self, conversation: Conversation) -> None:
        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            self.said[conversation.transport.party].append(message)
            return message

        bent(self._take_part, note)(conversation)

    def _take_part(self, conversation: Conversation) -> None:
        me = conversation.transport.party
        vectors = self.kind.client(CLIENTS, me)
        vectors.setup(at_once(conversation))
        key = group_key.join(at_once(conversation), vectors.session)
        counting = SecretHolderClient(vectors, key)
        summing = SecretSumClient(vectors, key) if self.secret_rows else SecAggSumClient(vectors)
        counting.prepare(at_once(conversation), TASK_OF_TWO)
        if not self.late:
            summing.prepare(at_once(conversation), ROW_TASK)
        found = counting.count(at_once(conversation), TASK_OF_TWO, np.arange(2))
        assert found.enough.tolist() == [True, True]
        assert found.contributors == self.counted
        if self.late:
            summing.prepare(at_once(conversation), ROW_TASK)
        try:
            summing.contribute(at_once(conversation), ROW_TASK, INPUTS[me], found.may_open)
            if self.secret_rows:
                total = conversation.receive(SERVER, SumTotal, FIRST, soon(), ROWS)
                assert isinstance(summing, SecretSumClient)
                assert rows_exact(summing.open(ROW_TASK, total), CLIENTS[:3])
                self.opened.add(me)
        except SumAbandoned as problem:
            self.problems[me] = str(problem)

    def _serve(self, conversation: Conversation) -> None:
        vectors, silent = self.kind.server(CLIENTS), Silences()
        patience = Foreseen((f"{self.step}/{self.silent_in}", FOUR))
        vectors.setup(at_server(conversation, CLIENTS, patience, silent))
        group_key.serve(at_server(conversation, CLIENTS, patience, silent))
        counting = SecretHolderServer(vectors)
        summing = SecretSumServer(vectors) if self.secret_rows else SecAggSumServer(vectors)
        counting.prepare(at_server(conversation, CLIENTS, patience, silent), TASK_OF_TWO)
        if not self.late:
            summing.prepare(at_server(conversation, CLIENTS, patience, silent), ROW_TASK)
        counting.collect(at_server(conversation, CLIENTS, patience, silent), TASK_OF_TWO)
        if self.late:
            summing.prepare(at_server(conversation, self.counted, patience, silent), ROW_TASK)
        try:
            collected = summing.collect(at_server(conversation, self.counted, patience, silent), ROW_TASK)
            if isinstance(collected, Collected):
                assert rows_exact(collected.total, CLIENTS[:3])
                self.opened.add(SERVER)
            else:
                conversation.broadcast(CLIENTS[:3], collected, FIRST)
        except SumAbandoned as problem:
            self.problems[SERVER] = str(problem)
            conversation.broadcast(CLIENTS[:3], Abandon(ROWS, str(problem)), FIRST)
        assert silent.seen == [({FOUR}, f"{self.step}/{self.silent_in}")]


FALLING_SILENT = [("masked input", False), ("advertise keys", True), ("share keys", True), ("masked input", True)]
both_kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
masked_or_secret = pytest.mark.parametrize("secret_rows", [False, True], ids=["masked rows", "secret rows"])


@both_kinds
@masked_or_secret
@pytest.mark.parametrize(("step", "late"), FALLING_SILENT)
def test_rows_are_not_opened_if_a_counted_client_is_gone(kind: Kind, step: str, late: bool, secret_rows: bool) -> None:
    """Whether client 4 goes before it has shared keys for the rows or after; no client gives a share away."""
    a_round = Rows(kind, step, secret_rows=secret_rows, late=late)
    a_round.run()
    reason = "1 client dropped out after holders were counted: a row may have too few of them left"
    assert reason in a_round.problems[SERVER]
    assert a_round.problems.keys() == {SERVER, ONE, TWO, THREE}
    assert any(a_round.problems[party] == reason for party in CLIENTS[:3])
    assert a_round.opened == set()
    for party in CLIENTS:
        answers = [message for message in a_round.said[party] if getattr(message, "purpose", None) == ROWS]
        assert not any(isinstance(message, UnmaskShares | SurvivorSignature) for message in answers)


@both_kinds
@masked_or_secret
@pytest.mark.parametrize("late", [False, True], ids=["keys shared for the rows", "no keys shared"])
def test_rows_are_added_up_without_a_participant_that_was_not_counted(
    kind: Kind, late: bool, secret_rows: bool
) -> None:
    """Client 4 drops out before the count, whether or not it has shared keys for the rows by then."""
    a_round = Rows(kind, "masked input", secret_rows=secret_rows, late=late, counted=CLIENTS[:3])
    a_round.run()
    assert a_round.problems == {}
    assert a_round.opened == (set(CLIENTS[:3]) if secret_rows else {SERVER})


SPARSE = ThreatModel(0.0, 0.1, security_bits=1, correctness_bits=1)


def test_in_a_sparse_graph_one_that_is_gone_ends_the_sum_however_many_hold_its_rows() -> None:
    clients, gone = everyone(24), PartyId(7)
    parameters = parameters_for(24, 24, SPARSE, 2)
    assert not parameters.complete
    task = SumTerms(FIRST, ROWS, tuple(clients), VectorLayout(FIELD, 2))
    may_open = holders_among(clients).may_open
    given_shares = list[wire.Message]()

    def take_part(conversation: Conversation) -> None:
        client = VectorClient(clients, SPARSE)
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), task)
        if conversation.transport.party != gone:
            with suppress(SumAbandoned):
                client.contribute(at_once(conversation), task, np.ones(2, "<u8"), may_open=may_open)

    def noting(conversation: Conversation) -> None:
        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            if isinstance(message, UnmaskShares):
                given_shares.append(message)
            return message

        bent(take_part, note)(conversation)

    def serve(conversation: Conversation) -> None:
        server = VectorServer(24, SPARSE)
        server.setup(at_server(conversation, clients, Foreseen(), Silences()))
        server.prepare(at_server(conversation, clients, Foreseen(), Silences()), task)
        with pytest.raises(SumAbandoned, match="1 client dropped out after holders were counted"):
            server.collect(at_server(conversation, set(clients) - {gone}, Foreseen(), Silences()), task)

    converse({SERVER: serve} | dict.fromkeys(clients, noting))
    # Whoever answers has not heard of the missing client: nobody gives a share of its mask key.
    assert len(given_shares) == len(clients) - 1 - parameters.degree
    assert not any(message.mask_key_shares for message in given_shares if isinstance(message, UnmaskShares))


@pytest.mark.parametrize("count", [60, 200])
def test_in_a_sparse_graph_no_sum_can_be_opened_without_the_neighbours_of_whoever_is_missing(count: int) -> None:
    """Even if the missing client has shared no keys, so that no mask key of it is needed: whoever is next to it on the
    ring has a self mask of which too few clients give shares."""
    clients = everyone(count)
    parameters = parameters_for(count, count, ThreatModel(0.0, 0.05), 2)
    assert not parameters.complete
    graph = MaskingGraph(tuple(clients), parameters.degree, bytes(32))
    neighbours = {party: set(graph.neighbours(party)) for party in clients}
    for missing in clients:
        answering = set(clients) - neighbours[missing] - {missing}
        fewest = min(len((neighbours[party] | {party}) & answering) for party in clients if party != missing)
        assert fewest < parameters.threshold
