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
from protocols.holders.interface import CountTask
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.sums.interface import SumTask
from protocols.sums.secagg.messages import STATE_BYTES
from protocols.sums.secagg.openings import Openings
from protocols.sums.secret.aggregation import SecretSumClient
from protocols.sums.totals import SumTotal
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
    network, done, failures = InProcessNetwork(clients), SumsAlone(repeat), list[BaseException]()
    session, parties = new_session(), tuple(PartyId(number) for number in range(1, clients + 1))
    plan, block, union = RunPlan(config, clients), Block("rows", width, config.aggregation), Union(rows, _UNION)
    rounds = [RoundId(number) for number in range(1, repeat + 2)]

    def tasks(round_id: RoundId) -> tuple[CountTask, SumTask]:
        counting, task = plan.count(round_id, block, union), plan.rows(round_id, block, union)
        if counting is None:
            raise UserError("--min-holders 1: there is no count of holders to measure")
        return counting, dataclasses.replace(task, model=_UNION)

    def serve() -> None:
        patience, present = Patience.fixed(_SECONDS), set(parties)
        talk = Conversation(network.endpoint(SERVER), session)
        keys = None
        if config.aggregation != "plain":
            keys = twins.ServerSession.open(config, parties, talk, present, patience, _nobody)
        sums = twins.sum_server(config.aggregation, keys, config.min_participants)
        holders, before = twins.holder_server(config, keys), 0.0
        for round_id in rounds:
            counting, task = tasks(round_id)
            holders.prepare(talk, counting, present, patience, _nobody)
            sums.prepare(talk, task, present, patience, _nobody)
            holders.collect(talk, counting, patience, _nobody, present)
            result = sums.collect(talk, task, patience, _nobody, present)
            if isinstance(result, SumTotal):
                talk.broadcast(present, result, round_id)
            if round_id == rounds[0]:
                before = sums.unmasking.cpu_seconds
        done.server_cpu_seconds = sums.unmasking.cpu_seconds - before

    def take_part(number: PartyId) -> None:
        deadline, held = Deadline.after(_SECONDS), np.arange(rows)
        talk = Conversation(network.endpoint(number), session)
        keys = None
        if config.aggregation != "plain":
            keys = twins.ClientSession.open(config, parties, None, Openings(), talk, deadline)
        sums, holders = twins.sum_client(config.aggregation, keys), twins.holder_client(config, keys)
        values = np.full((rows, width), 0.25, dtype=np.float32)
        spent = 0.0
        for round_id in rounds:
            counting, public = tasks(round_id)
            task = dataclasses.replace(public, state=secrets.token_bytes(STATE_BYTES))
            counted = holders.spent.cpu_seconds
            holders.prepare(talk, counting, deadline)
            sums.prepare(talk, task, deadline)
            may_open = holders.count(talk, counting, held, deadline).may_open
            report = sums.contribute(talk, task, row_contribution(values, held, rows), deadline, may_open)
            reading = Spent()
            if isinstance(sums, SecretSumClient):
                total = talk.receive(SERVER, SumTotal, round_id, deadline, task.purpose)
                with reading.measure():
                    sums.open(task, total)
            if round_id != rounds[0]:
                spent += reading.cpu_seconds
                spent += holders.spent.cpu_seconds - counted
                spent += report.encoding.cpu_seconds + report.masking.cpu_seconds
        done.client_cpu_seconds[number], done.sent[number] = spent, talk.transport.traffic

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as problem:
            failures.append(problem)

    works = [serve, *(lambda number=number: take_part(number) for number in parties)]
    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and not failures:
            thread.join(0.2)
    if failures:
        raise UserError(f"sums of {clients} clients with {rows} rows failed: {failures[0]}")
    return done


def _nobody(parties: object, step: str) -> None:
    raise RuntimeError(f"{parties} fell silent in '{step}'")
