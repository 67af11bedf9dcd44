"""A count of holders stands while the same clients take part; what a server makes of that gives it nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.holders.interface import CountTask, Holders, HolderServer, StandingCount
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.messages import MaskedInput
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from secure_kg.federation.plan.messages import CountHolders
from secure_kg.federation.server import standing_count
from secure_kg.federation.server.server import FederationServer
from tests.support import federation_in_threads
from tests.support.dying_clients import VICTIM, dying_after
from tests.support.federation_in_threads import Run, nations, relation_rows, run_federation, small_config

CLIENTS = 4
TASK = CountTask(RoundId(1), tuple(PartyId(number) for number in (1, 2, 3)), 5, b"union", 2)
FOUND = Holders(np.array([True]), frozenset(TASK.participants), b"binding")
Counted = dict[int, set[str]]


class Listening(InProcessTransport):
    """Notes in which rounds its client has given an input to what."""

    def __init__(self, network: InProcessNetwork, party: PartyId, given: list[tuple[int, str]]) -> None:
        super().__init__(network, party, [PartyId(0)])
        self._given = given

    def _post(self, to: PartyId, frame: wire.Frame) -> None:
        if wire.kind_of(frame) is MaskedInput:
            session = wire.HEADER.unpack_from(frame)[4]
            envelope = wire.decode(frame, session=session)
            self._given.append((int(envelope.round), str(getattr(envelope.message, "purpose", ""))))
        super()._post(to, frame)


def listening(given: list[tuple[int, str]], number: int = 1) -> Callable[[InProcessNetwork, int], Transport]:
    def transport(network: InProcessNetwork, party: int) -> Transport:
        return Listening(network, PartyId(party), given) if party == number else network.endpoint(PartyId(party))

    return transport


def counted_in(given: list[tuple[int, str]]) -> list[int]:
    return [number for number, purpose in given if purpose == HOLDERS]


@pytest.mark.parametrize("aggregation", ["secagg", "secret"])
def test_holders_are_counted_once_while_nobody_drops_out(tmp_path: Path, aggregation: Any) -> None:
    given: list[tuple[int, str]] = []
    run = run_federation(
        small_config(aggregation=aggregation), nations(CLIENTS), tmp_path / "run", transport_of=listening(given)
    )
    run.done()
    assert counted_in(given) == [1]
    assert [number for number, purpose in given if purpose == "rows"] == [1, 2, 3, 4]


def test_a_resumed_session_counts_again(tmp_path: Path) -> None:
    given: list[tuple[int, str]] = []
    run_federation(small_config(), nations(CLIENTS), tmp_path / "run").done()
    run_federation(
        small_config(rounds=6), nations(CLIENTS), tmp_path / "run", resume=True, transport_of=listening(given)
    ).done()
    assert counted_in(given) == [5]


def test_other_participants_are_counted_anew(tmp_path: Path) -> None:
    """Client 1 is not drawn for every round; where the same ones are drawn twice in a row the count stands."""
    given: list[tuple[int, str]] = []
    config = small_config(client_fraction=0.75, rounds=6, max_corrupt=0.0)
    run_federation(config, nations(CLIENTS), tmp_path / "run", transport_of=listening(given)).done()
    rounds = [number for number, purpose in given if purpose == "rows"]
    assert len(counted_in(given)) > 1
    assert set(counted_in(given)) <= set(rounds)


def test_after_a_dropout_holders_are_counted_in_every_round_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum of the round in which it happened is abandoned: rows of the one that is gone may have too few holders."""
    monkeypatch.setattr(standing_count, "WARY_ROUNDS", 2)
    given: list[tuple[int, str]] = []

    def transport(network: InProcessNetwork, number: int) -> Transport:
        ends = dying_after(22) if number == VICTIM else listening(given)  # with its input of round 2
        return ends(network, number)

    config = small_config(rounds=7, eval_every=7, checkpoint_every=0, grace=1.0)
    outcome = run_federation(config, nations(CLIENTS), tmp_path / "run", transport_of=transport).outcome
    assert outcome is not None
    assert [(one.round, one.purpose) for one in outcome.abandoned_sums] == [(2, "rows")]
    assert "dropped out after holders were counted" in outcome.abandoned_sums[0].reason
    assert counted_in(given) == [1, 3, 4]  # that of round 4 stands


# --- servers that count as they like --------------------------------------------------------------------------------


def served_by(monkeypatch: pytest.MonkeyPatch, server: type[FederationServer], path: Path, **settings: Any) -> Run:
    monkeypatch.setattr(federation_in_threads, "FederationServer", server)
    return run_federation(small_config(**settings), nations(CLIENTS), path)


def refusals(run: Run) -> str:
    return " ".join(run.on_consoles)


class _NeverCounts(FederationServer):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._standing.is_due = lambda task, present: False  # type: ignore[method-assign]


class _AlwaysCounts(FederationServer):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._standing.is_due = lambda task, present: True  # type: ignore[method-assign]


def test_no_rows_are_added_that_nobody_has_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = served_by(monkeypatch, _NeverCounts, tmp_path / "run")
    assert run.outcome is None
    assert "of which this client has counted no holders" in refusals(run)


def test_counts_that_are_not_needed_are_made_and_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = run_federation(small_config(), nations(CLIENTS), tmp_path / "honest")
    again = served_by(monkeypatch, _AlwaysCounts, tmp_path / "run")
    assert again.done().test == honest.done().test
    for number, rows in relation_rows(honest).items():
        np.testing.assert_array_equal(relation_rows(again)[number], rows)


class _CountsWithoutVictim(FederationServer):
    """In round 3 all but the victim count anew; the victim is left with the count of round 1."""

    def _round(self, round_id: RoundId) -> None:
        if round_id == 3:
            self._standing.fall()
            tell, holders = self._people.tell, self._sums._holders
            others = [party for party in self._clients if party != VICTIM]

            def tell_others(parties: Any, message: wire.Message) -> None:
                tell([one for one in parties if one != VICTIM or not isinstance(message, CountHolders)], message)

            self._people.tell = tell_others  # type: ignore[method-assign]
            self._sums._holders = _Among(holders, others)
        super()._round(round_id)


class _Among(HolderServer):
    def __init__(self, inner: HolderServer, parties: list[PartyId]) -> None:
        self._inner, self._parties = inner, parties

    def prepare(self, session: ServerSession, task: CountTask) -> None:
        self._inner.prepare(session.among(self._parties), task)

    def collect(self, session: ServerSession, task: CountTask) -> frozenset[PartyId]:
        return self._inner.collect(session.among(self._parties), task)


def test_clients_that_go_by_different_counts_give_no_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the older one the victim would add rows that the newer one, without it, leaves out."""
    run = served_by(monkeypatch, _CountsWithoutVictim, tmp_path / "run")
    refused = [one for one in run.done().abandoned_sums if "cannot be opened" in one.reason]
    assert [(one.round, one.purpose) for one in refused] == [(3, "rows")]


class _TrustsWhoReturns(FederationServer):
    """Forgets that a client that is back has no count any more."""

    def _round(self, round_id: RoundId) -> None:
        if round_id == 3:
            self._people.dropout({PartyId(VICTIM)}, "nothing")
            self._people._wait_for(CLIENTS)
            self._standing.is_due = lambda task, present: False  # type: ignore[method-assign]
        super()._round(round_id)


def test_a_client_that_was_a_dropout_goes_by_no_earlier_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = served_by(monkeypatch, _TrustsWhoReturns, tmp_path / "run")
    assert run.outcome is None
    assert "of which this client has counted no holders" in refusals(run)


class _SaysSoTwice(FederationServer):
    def _round(self, round_id: RoundId) -> None:
        self._people.round = round_id
        if round_id == 2:
            for _ in range(2):
                self._people.tell(self._clients, CountHolders())
        super()._round(round_id)


def test_a_server_that_asks_for_two_counts_of_one_round_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = served_by(monkeypatch, _SaysSoTwice, tmp_path / "run")
    assert run.outcome is None
    assert "the server sent CountHolders of round 2" in refusals(run)


# --- what stands ----------------------------------------------------------------------------------------------------


def test_a_count_stands_for_later_rounds_of_the_same_task_alone() -> None:
    standing = StandingCount()
    assert standing.stands_for(TASK) is None
    standing.keep(TASK, FOUND)
    later = CountTask(RoundId(9), TASK.participants, 5, b"union", 2)
    assert standing.stands_for(later) is FOUND
    for other in (
        CountTask(RoundId(9), TASK.participants[:2], 5, b"union", 2),
        CountTask(RoundId(9), TASK.participants, 6, b"union", 2),
        CountTask(RoundId(9), TASK.participants, 5, b"other", 2),
        CountTask(RoundId(9), TASK.participants, 5, b"union", 3),
    ):
        assert standing.stands_for(other) is None
    standing.forget()
    assert standing.stands_for(later) is None
    assert "1" not in repr(standing)


def test_at_the_server_it_stands_while_those_who_were_counted_are_present_and_nobody_else() -> None:
    standing, everybody = standing_count.StandingCount(), frozenset(TASK.participants)
    assert standing.is_due(TASK, everybody)
    standing.made(TASK, everybody)
    later = CountTask(RoundId(2), TASK.participants, 5, b"union", 2)
    assert not standing.is_due(later, everybody)
    assert not standing.is_due(later, everybody | {PartyId(9)})  # takes no part in it
    assert standing.is_due(later, everybody - {PartyId(1)})
    standing.made(TASK, everybody - {PartyId(1)})
    assert standing.is_due(later, everybody)
    standing.made(TASK, everybody)
    standing.dropout(2)
    for number in range(3, 3 + standing_count.WARY_ROUNDS):
        now = CountTask(RoundId(number), TASK.participants, 5, b"union", 2)
        assert standing.is_due(now, everybody) == (number <= 2 + standing_count.WARY_ROUNDS)
        standing.made(now, everybody)
