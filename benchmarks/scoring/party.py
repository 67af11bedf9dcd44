"""One party's part of a measurement: the batches of all backends, one after the other, and what each has cost it.

Repetitions go round the backends in turn, so that a machine whose speed changes is as fast for one as for the other.
Every backend has a first batch that is not counted: it makes keys and tables that later batches find.
"""

import secrets
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.scoring import hidden
from benchmarks.scoring.hidden import HiddenWork
from benchmarks.scoring.workload import Truth, Workload
from protocols.bundles import ScoreBackend
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.registry import SCORES
from protocols.scores import batches
from protocols.scores.budget import Helpers
from protocols.scores.crypten.client import CryptenScoreClient
from protocols.scores.crypten.server import CryptenScoreServer
from protocols.scores.interface import ScoreClient
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.hidden_batches import as_bytes
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.transport.traffic import Traffic
from secure_kg.runs.records.scores import ScoreBatch, ScoreSession
from secure_kg.runs.score_budget import budget_of
from secure_kg.runs.score_recording import of_session, recorded

Meet = Callable[[], None]
"""A point that no party passes before all have reached it."""
MODEL: Final = ThreatModel(corrupt=0.2, dropout=0.0, server_apart=True)
_SECONDS: Final = 3600.0


class BatchCost(msgspec.Struct, frozen=True):
    """What one batch has cost one party."""

    backend: str
    repetition: int
    """0: the first batch, which is not counted."""
    party: int
    seconds: float
    """From the party's first step to its last, waiting included."""
    cpu_seconds: float
    """Of the party's own thread."""
    process_seconds: float
    """Processor seconds of the party's process up to then, threads in the background included."""
    shared_process_seconds: float
    """The same once all parties are done, for parties that share a process."""
    sent_bytes: int
    received_bytes: int
    sent_messages: int
    received_messages: int
    group_bytes: int = 0
    """Sent outside of the toolkit's transport, to a group of the backend's own."""
    group_rounds: int = 0
    helper_seconds: float = 0.0
    """Processor seconds of a helper process that the server keeps."""
    same_ranking: bool | None = None
    """Of the asker only."""
    max_abs_error: float | None = None


@dataclass(frozen=True)
class Batch:
    """One entry of the schedule."""

    backend: str
    repetition: int
    number: int


def schedule(backends: Collection[str], repeat: int) -> list[Batch]:
    """All batches in order, the same for all parties."""
    in_turn = [(repetition, backend) for repetition in range(repeat + 1) for backend in backends]
    return [Batch(backend, repetition, number) for number, (repetition, backend) in enumerate(in_turn, start=1)]


class Meter:
    """Counts what a party spends, from now on."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._started = self._now()

    def cost(self, batch: Batch, party: PartyId, meet: Meet) -> BatchCost:
        """Called at the party's last step."""
        seconds, cpu, process, *counts = (end - start for start, end in zip(self._started, self._now(), strict=True))
        meet()
        shared = time.process_time() - self._started[2]
        sent, received, messages_sent, messages_received = map(int, counts)
        return BatchCost(
            backend=batch.backend,
            repetition=batch.repetition,
            party=int(party),
            seconds=seconds,
            cpu_seconds=cpu,
            process_seconds=process,
            shared_process_seconds=shared,
            sent_bytes=sent,
            received_bytes=received,
            sent_messages=messages_sent,
            received_messages=messages_received,
        )

    def _now(self) -> tuple[float, ...]:
        sent, received = self._traffic.total("sent"), self._traffic.total("received")
        counts = (sent.bytes, received.bytes, sent.messages, received.messages)
        return time.perf_counter(), time.thread_time(), time.process_time(), *counts


@dataclass(frozen=True)
class Measured:
    """What a party needs to take part."""

    work: Workload
    bundles: Mapping[str, ScoreBackend]
    repeat: int
    tell: Callable[[str], None] = lambda _: None
    allow_extraction: bool = False
    """Whether scorers open means without a limit; else each keeps a budget, as in a job."""
    record: Path | None = None
    """Where the server records what it sees."""
    similarity: str | None = None
    """How hidden queries are scored, if there are any."""

    @property
    def batches(self) -> list[Batch]:
        """Number 0 belongs to the tables of hidden queries."""
        return schedule(self.bundles, self.repeat)

    @cached_property
    def hidden(self) -> HiddenWork | None:
        if hidden.NAME not in self.bundles or self.similarity is None:
            return None
        return HiddenWork.named(self.work, self.similarity)

    def terms(self, batch: Batch) -> ScoreTerms:
        if batch.backend == hidden.NAME and self.hidden is not None:
            return self.hidden.terms(batch.number)
        return self.work.terms(self.bundles[batch.backend], batch.number)

    @property
    def needs_keys(self) -> bool:
        return any(bundle.needs_keys for bundle in self.bundles.values())


def take_part(measured: Measured, conversation: Conversation, meet: Meet) -> list[BatchCost]:
    """A client's part, the asker's included."""
    return _Client(measured, conversation, meet).costs()


class _Client:
    def __init__(self, measured: Measured, conversation: Conversation, meet: Meet) -> None:
        self._measured, self._work = measured, measured.work
        self._conversation, self._meet = conversation, meet
        self._truths: dict[str, Truth] = {}

    def costs(self) -> list[BatchCost]:
        measured, keys = self._measured, None
        if measured.needs_keys:
            keys = ClientKeys.agree(self._session(), VectorClient(self._work.parties, MODEL))
        with tempfile.TemporaryDirectory(prefix="benchmarks-scores-") as folder:
            helpers = Helpers.of(self._work.clients, MODEL)
            budget = budget_of(
                Path(folder), self._work.dimensions, helpers, allow_extraction=measured.allow_extraction
            )
            clients = {
                name: bundle.client(keys, budget if bundle.has_budget else None)
                for name, bundle in measured.bundles.items()
            }
            if measured.hidden is not None and keys is not None:
                clients[hidden.NAME] = measured.hidden.client(self._session(), keys)
            return [self._cost(clients[batch.backend], batch) for batch in measured.batches]

    def _cost(self, client: ScoreClient, batch: Batch) -> BatchCost:
        terms = self._measured.terms(batch)
        if self._conversation.transport.party == terms.asker:
            self._measured.tell(f"{batch.backend}: batch {batch.repetition} of {self._measured.repeat}")
            return self._ask(client, terms, batch)
        return self._score(client, terms, batch)

    def _ask(self, client: ScoreClient, terms: ScoreTerms, batch: Batch) -> BatchCost:
        if batch.backend not in self._truths:
            self._truths[batch.backend] = self._truth(batch, terms)
        truth, own = self._truths[batch.backend], self._work.scores[terms.asker]
        queries = self._queries(batch)
        self._meet()
        meter = Meter(self._conversation.transport.traffic)
        answer = batches.ask(client, self._session(), terms, queries, own)
        cost = _with_group(client, meter.cost(batch, terms.asker, self._meet))
        return msgspec.structs.replace(cost, same_ranking=truth.same_ranking(answer), max_abs_error=truth.error(answer))

    def _truth(self, batch: Batch, terms: ScoreTerms) -> Truth:
        if batch.backend == hidden.NAME and self._measured.hidden is not None:
            return self._measured.hidden.truth(batch.number)
        return Truth.of(self._work, terms)

    def _queries(self, batch: Batch) -> bytes:
        if batch.backend == hidden.NAME and self._measured.hidden is not None:
            return as_bytes(self._measured.hidden.queries)
        return secrets.token_bytes(32)  # scores do not depend on them, but no two batches are the same

    def _score(self, client: ScoreClient, terms: ScoreTerms, batch: Batch) -> BatchCost:
        me = self._conversation.transport.party
        mine = self._work.scores[me]
        self._meet()
        meter = Meter(self._conversation.transport.traffic)
        batches.score(client, self._session(), terms, lambda queries: mine)
        return _with_group(client, meter.cost(batch, me, self._meet))

    def _session(self) -> ClientSession:
        return ClientSession(self._conversation, Deadline.after(_SECONDS))


def _with_group(client: ScoreClient, cost: BatchCost) -> BatchCost:
    """With what a client has said in a group outside of the transport, if its backend has one."""
    group = client.last_group if isinstance(client, CryptenScoreClient) else None
    if group is None:
        return cost
    return msgspec.structs.replace(cost, group_bytes=group.sent_bytes, group_rounds=group.rounds)


def serve(measured: Measured, conversation: Conversation, meet: Meet) -> list[BatchCost]:
    """The server's part, recorded if that is asked for."""
    if measured.record is None:
        return _served(measured, conversation, meet)
    with recorded(measured.record, _recorded_as(measured, conversation.session), conversation.transport):
        return _served(measured, conversation, meet)


def _recorded_as(measured: Measured, session: SessionId) -> ScoreSession:
    """Under the names by which backends are registered, also if they are measured under another one."""
    registered = {one.disclosure.title: name for name, one in SCORES.items()}
    batches_ = [
        ScoreBatch.of(
            registered[measured.bundles[batch.backend].disclosure.title],
            measured.terms(batch),
            measured.hidden.record if measured.hidden is not None and batch.backend == hidden.NAME else None,
        )
        for batch in measured.batches
    ]
    return of_session(session, measured.work.parties, MODEL, batches_, allow_extraction=measured.allow_extraction)


def _served(measured: Measured, conversation: Conversation, meet: Meet) -> list[BatchCost]:
    work, party = measured.work, conversation.transport.party
    session = ServerSession(conversation, set(work.parties), Patience.fixed(_SECONDS), _nobody)
    keys = ServerKeys.agree(session, VectorServer(work.clients, MODEL)) if measured.needs_keys else None
    servers = {name: bundle.server(keys) for name, bundle in measured.bundles.items()}
    if measured.hidden is not None and keys is not None:
        servers[hidden.NAME] = measured.hidden.server(session, keys)
    costs = []
    for batch in measured.batches:
        terms = measured.terms(batch)
        server = servers[batch.backend]
        meet()
        meter, before = Meter(conversation.transport.traffic), server.spent.cpu_seconds
        batches.serve(server, session, terms)
        cost = meter.cost(batch, party, meet)
        if isinstance(server, CryptenScoreServer):  # what it counts is its dealer's, a process of its own
            cost = msgspec.structs.replace(cost, helper_seconds=server.spent.cpu_seconds - before)
        costs.append(cost)
    return costs


def _nobody(parties: object, step: str) -> None:
    raise RuntimeError(f"{parties} dropped out in '{step}'")
