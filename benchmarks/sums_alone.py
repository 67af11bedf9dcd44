"""The sums of one round without any training, all parties as threads of one process: for how they grow.

The parties, protocols and messages are those of a real federation; only the rows are made up. Seconds are of the
processor, thread by thread, so it does not matter that the parties share the cores.
"""

import dataclasses
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from protocols.alignment.interface import Union
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, new_session
from protocols.foundation.spent import Spent
from protocols.holders.interface import CountTask, HolderClient
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.interface import SumClient, SumLayout
from protocols.sums.secagg.messages import STATE_BYTES
from protocols.sums.secagg.openings import Openings
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal, TotalReader
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.traffic import Traffic
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.row_sum import row_contribution
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError

_SECONDS = 600.0
_UNION = b"u" * 32


@dataclass
class SumsAlone:
    """What `repeat` rounds of sums have cost, after a first one that is not counted."""

    rounds: int
    client_cpu_seconds: dict[int, float] = field(default_factory=dict)
    """Per client, all rounds together: encoding, keys, shares, masks, the count of holders, and opening secret sums."""
    server_cpu_seconds: float = 0.0
    sent: dict[int, Traffic] = field(default_factory=dict)
    """What each client has sent and received."""


def sums_alone(config: RunConfig, clients: int, rows: int, width: int, repeat: int = 3) -> SumsAlone:
    """Every client holds every row. `config` says how sums are made."""
    held, failures = _Held(config, clients, rows, width, repeat), list[BaseException]()

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as problem:
            failures.append(problem)

    works = [held.serve, *(lambda number=number: held.take_part(number) for number in held.parties)]
    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and not failures:
            thread.join(0.2)
    if failures:
        raise UserError(f"sums of {clients} clients with {rows} rows failed: {failures[0]}")
    return held.done


class _Held:
    """One session with its rounds of sums, to be held by a server and its clients in threads of their own."""

    def __init__(self, config: RunConfig, clients: int, rows: int, width: int, repeat: int) -> None:
        self.done = SumsAlone(repeat)
        self.parties = tuple(PartyId(number) for number in range(1, clients + 1))
        self._config, self._rows, self._width = config, rows, width
        self._network, self._session = InProcessNetwork(clients), new_session()
        self._plan, self._block = RunPlan(config, clients), Block("rows", width, config.aggregation)
        self._rounds = [RoundId(number) for number in range(1, repeat + 2)]

    def serve(self) -> None:
        config, keys, before = self._config, None, 0.0
        talk = Conversation(self._network.endpoint(SERVER), self._session)
        session = ServerSession(talk, set(self.parties), Patience.fixed(_SECONDS), _nobody)
        if config.sum_protocol.needs_keys:
            keys = twins.server_keys(config, self.parties, session)
        sums = twins.sum_server(config.aggregation, keys, config.min_participants)
        holders = twins.holder_server(config.aggregation, keys, config.min_participants)
        for round_id in self._rounds:
            counting, terms = self._terms(round_id)
            holders.prepare(session, counting)
            sums.prepare(session, terms)
            holders.collect(session, counting)
            result = sums.collect(session, terms)
            if isinstance(result, SumTotal):
                session.broadcast(self.parties, result, *terms.key)
            if round_id == self._rounds[0]:
                before = sums.unmasking.cpu_seconds
        self.done.server_cpu_seconds = sums.unmasking.cpu_seconds - before

    def take_part(self, number: PartyId) -> None:
        config, keys, spent = self._config, None, 0.0
        talk = Conversation(self._network.endpoint(number), self._session)
        session = ClientSession(talk, Deadline.after(_SECONDS))
        if config.sum_protocol.needs_keys:
            keys = twins.client_keys(config, self.parties, None, Openings(), session)
        sums = twins.sum_client(config.aggregation, keys)
        holders = twins.holder_client(config.aggregation, keys)
        for round_id in self._rounds:
            seconds = self._one_round(session, sums, holders, round_id)
            spent += seconds if round_id != self._rounds[0] else 0.0
        self.done.client_cpu_seconds[number], self.done.sent[number] = spent, talk.transport.traffic

    def _one_round(self, session: ClientSession, sums: SumClient, holders: HolderClient, round_id: RoundId) -> float:
        """A client's processor seconds."""
        values, held = np.full((self._rows, self._width), 0.25, dtype=np.float32), np.arange(self._rows)
        counting, public = self._terms(round_id)
        terms = dataclasses.replace(public, state=secrets.token_bytes(STATE_BYTES))
        counted, reading = holders.spent.cpu_seconds, Spent()
        holders.prepare(session, counting)
        sums.prepare(session, terms)
        may_open = holders.count(session, counting, held).may_open
        report = sums.contribute(session, terms, row_contribution(values, held, self._rows), may_open)
        if isinstance(sums, TotalReader):
            total = session.receive(SumTotal, *terms.key)
            with reading.measure():
                sums.open(terms, total)
        counting_seconds = holders.spent.cpu_seconds - counted
        return reading.cpu_seconds + counting_seconds + report.encoding.cpu_seconds + report.masking.cpu_seconds

    def _terms(self, round_id: RoundId) -> tuple[CountTask, SumTerms[SumLayout]]:
        plan, block, union = self._plan, self._block, Union(self._rows, _UNION)
        counting, terms = plan.count(round_id, block, union), plan.rows(round_id, block, union)
        if counting is None:
            raise UserError("--min-holders 1: there is no count of holders to measure")
        return counting, dataclasses.replace(terms, model=_UNION)


def _nobody(parties: object, step: str) -> None:
    raise RuntimeError(f"{parties} dropped out in '{step}'")
