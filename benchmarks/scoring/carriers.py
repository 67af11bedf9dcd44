"""Carriers of a measurement: parties as threads of one process, as processes that it starts, or as ranks of mpirun."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from benchmarks.scoring.backends import bundles
from benchmarks.scoring.party import BatchCost, Measured, Meet, serve, take_part
from benchmarks.scoring.workload import Workload
from launch.hosts import environment
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import SERVER, PartyId, SessionId, new_session
from protocols.registry import SCORES
from protocols.scores.crypten.launcher import LOADED
from protocols.session.conversation import Conversation
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.processes import run_parties
from secure_kg.foundation.errors import UserError

_SECONDS: Final = 3600.0
World: TypeAlias = Any
"""MPI's communicator of all ranks: a module that names its type would start MPI."""
_COSTS: Final = msgspec.json.Decoder(list[BatchCost])


def part(measured: Measured, transport: Transport, session: SessionId, meet: Meet) -> list[BatchCost]:
    """The part of the party at this end."""
    conversation = Conversation(transport, session)
    return (serve if transport.party == SERVER else take_part)(measured, conversation, meet)


def in_threads(measured: Measured) -> list[BatchCost]:
    """All parties in this process; what one of them raises is raised here."""
    network, session = InProcessNetwork(measured.work.clients), new_session()
    barrier = threading.Barrier(measured.work.clients + 1)
    costs, failures = list[BatchCost](), list[BaseException]()

    def meet() -> None:
        barrier.wait(_SECONDS)

    def guarded(party: PartyId) -> None:
        try:
            costs.extend(part(measured, network.endpoint(party), session, meet))
        except threading.BrokenBarrierError:
            pass  # another party has failed
        except BaseException as problem:
            failures.append(problem)
            barrier.abort()

    threads = [threading.Thread(target=guarded, args=(party,), daemon=True) for party in network.parties]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and not failures:
            thread.join(0.2)
    if failures:
        raise failures[0]
    return costs


@dataclass(frozen=True)
class ProcessJob:
    """A measurement as a new process can be told: by the names of its backends."""

    work: Workload
    names: tuple[str, ...]
    paillier_bits: int
    repeat: int
    session: SessionId
    allow_extraction: bool = False
    record: Path | None = None
    similarity: str | None = None

    @property
    def measured(self) -> Measured:
        chosen = bundles(self.names, self.paillier_bits)
        return Measured(
            self.work,
            chosen,
            self.repeat,
            allow_extraction=self.allow_extraction,
            record=self.record,
            similarity=self.similarity,
        )


def in_processes(job: ProcessJob) -> list[BatchCost]:
    """Every party in a process of its own. Batches wait for each other: no party begins one before it has a word."""
    parts = {PartyId(number): partial(_process_part, job) for number in range(job.work.clients + 1)}
    ended = run_parties(parts, _SECONDS, LOADED if any(SCORES[n].own_process for n in job.names if n in SCORES) else ())
    if problems := [f"party {party}: {one.problem}" for party, one in ended.items() if one.problem]:
        raise CarrierFailed(problems[-1])  # the server fails last, and only because a client did
    return [cost for one in ended.values() for cost in msgspec.convert(one.value, list[BatchCost])]


class CarrierFailed(Exception):
    """A party's process has failed; the text says which, and why."""


def _process_part(job: ProcessJob, transport: Transport) -> Any:
    return msgspec.to_builtins(part(job.measured, transport, job.session, lambda: None))


def all_may_begin(check: Callable[[], None]) -> bool:
    """Whether rank 0 has found nothing wrong; there the problem is raised. The others wait for its word."""
    rank = environment.rank()
    if rank is None:
        check()
        return True
    from mpi4py import MPI

    word = np.ones(1, dtype=np.uint8)
    try:
        if rank == SERVER:
            check()
    except UserError:
        word[0] = 0
        raise
    finally:
        MPI.COMM_WORLD.Bcast(word, root=SERVER)
    return bool(word[0])


def in_ranks(measured: Measured, world: World) -> list[BatchCost] | None:
    """This rank's part. The costs of all parties at rank 0, None elsewhere."""
    from protocols.transport.mpi import MpiTransport

    session = np.frombuffer(new_session(), dtype=np.uint8).copy()
    world.Bcast(session, root=SERVER)
    meet = meeting(world)
    with MpiTransport(world, _SECONDS) as transport:
        own = part(measured, transport, SessionId(session.tobytes()), meet)
        transport.flush(Deadline.after(_SECONDS))
    meet()
    return _gathered(own, world)


def meeting(world: World) -> Meet:
    """MPI's own barrier spins, and would take the cores from the parties that are still at work."""
    from protocols.transport.mpi import Backoff

    def meet() -> None:
        everybody, backoff = world.Ibarrier(), Backoff()
        while not everybody.Test():
            backoff.sleep(_SECONDS)

    return meet


def _gathered(own: list[BatchCost], world: World) -> list[BatchCost] | None:
    mine = np.frombuffer(msgspec.json.encode(own), dtype=np.uint8)
    sizes = np.zeros(world.Get_size(), dtype=np.int64)
    world.Allgather(np.array([len(mine)], dtype=np.int64), sizes)
    everything = np.zeros(int(sizes.sum()), dtype=np.uint8)
    world.Allgatherv(mine, (everything, sizes))
    if world.Get_rank() != SERVER:
        return None
    ends = np.cumsum(sizes)[:-1]
    return [cost for one in np.split(everything, ends) for cost in _COSTS.decode(one.tobytes())]
