"""The server of a federation: FedR, algorithm 1, "Server executes".

It sees what the chosen protocols reveal to it and nothing else: it opens no triple file, imports no model, and under
secure aggregation reads only sums, of rows as well as of metrics. It may decide when to stop; what a client sends is
decided by the client.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from protocols.conversation import Conversation
from protocols.errors import EncodingOverflow, ProtocolError
from protocols.identifiers import NO_SESSION, SETUP, PartyId, RoundId, SessionId, new_session
from protocols.sums import SumLayout, Total
from protocols.transport.base import Transport
from protocols.transport.deadline import Deadline
from protocols.transport.tap import Tap
from secure_kg.errors import UserError
from secure_kg.federation import checkpoint, twins
from secure_kg.federation.config import SETUP_SECONDS, RunConfig
from secure_kg.federation.early_stopping import EarlyStopping
from secure_kg.federation.messages import (
    Done,
    Evaluate,
    Finish,
    Hello,
    Ready,
    SaveCheckpoint,
    Saved,
    TrainRound,
    Verdict,
    Welcome,
)
from secure_kg.federation.metric_sum import ClientMetrics, metric_layout, metrics_of
from secure_kg.federation.row_sum import Rows, mean_rows, row_layout
from secure_kg.federation.run_folder import RunFolder
from secure_kg.federation.sampling import participants
from secure_kg.federation.stopwatch import Stopwatch
from secure_kg.federation.strategy import STRATEGIES
from secure_kg.models.shapes import initial_range
from secure_kg.seeds import generator

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ServerOutcome:
    """What the server knows when the run is over."""

    rounds: int
    best_round: int
    valid_mrr: float
    test: ClientMetrics
    union_size: int
    single_holder_rows: int
    """Most rows in any round to which one client alone contributed: their "means" are that client's own rows."""
    elapsed: float
    seconds: dict[str, float]
    bytes_up: dict[int, int]
    bytes_down: dict[int, int]


class FederationServer:
    """One run, from greeting to results. `run()` is the whole life of the object."""

    def __init__(self, config: RunConfig, transport: Transport, folder: RunFolder, report: Report) -> None:
        self._config, self._transport, self._folder, self._report = config, transport, folder, report
        self._strategy = STRATEGIES[config.strategy]
        self._clients = transport.peers
        self._stopping = EarlyStopping(config.patience)
        self._started = time.perf_counter()
        self._carried: dict[str, Any] = {"elapsed": 0.0, "seconds": {}, "bytes_up": {}, "bytes_down": {}}
        self._current: set[PartyId] = set()  # clients that have the newest rows
        self._conversation = Conversation(transport, NO_SESSION)
        self._round_id = SETUP
        self._single_holder_rows = 0

    def run(self) -> ServerOutcome:
        """The whole run. If it cannot be finished, the clients are told why before the error leaves."""
        try:
            return self._run()
        except (UserError, ProtocolError) as problem:
            self._conversation.abort(self._clients, str(problem), self._round_id)
            raise

    def _run(self) -> ServerOutcome:
        self._check_feasible()
        done = checkpoint.last_complete(self._folder.path)
        self._greet(done)
        self._sums = twins.sum_server(self._config, self._clients)
        self._conversation.gather_all(self._clients, Ready, SETUP, self._setup_deadline())
        self._sums.setup(self._conversation, self._deadline())
        self._table = self._align()
        if done:
            self._restore(done)
        self._report(self._setting())
        while not self._over(done):
            done += 1
            self._round(RoundId(done))
        return self._finish(RoundId(done))

    def _check_feasible(self) -> None:
        """Refuse at once what could only fail later."""
        config, clients = self._config, len(self._clients)
        if config.min_participants > clients:
            raise UserError(f"--min-participants {config.min_participants}: there are only {clients} clients")
        try:
            row_layout(1, 1, config.clip, clients, config.ring_bits)
        except EncodingOverflow as problem:
            raise UserError(f"--clip {config.clip:g}: {problem}") from None

    def _setup_deadline(self) -> Deadline:
        return Deadline.after(max(SETUP_SECONDS, self._config.deadline))

    def _deadline(self) -> Deadline:
        return Deadline.after(self._config.deadline)

    def _over(self, done: int) -> bool:
        return done >= self._config.rounds or self._stopping.exhausted

    def _greet(self, done: int) -> None:
        """Open a session with every client; settings that differ between parties end the job before it starts."""
        greeting = self._conversation
        digest = self._config.digest()
        session = new_session()
        if self._config.transcript:
            self._transport.attach(Tap(self._folder.path / f"transcript-{session.hex()[:8]}.bin"))
        hellos = greeting.gather_all(self._clients, Hello, SETUP, self._setup_deadline())
        greeting.broadcast(self._clients, Welcome(session, digest, done, self._folder.path.resolve().name), SETUP)
        self._conversation = Conversation(self._transport, SessionId(session))
        odd = [party for party in sorted(hellos) if hellos[party].digest != digest]
        if odd:
            raise UserError(f"client {odd[0]} was started with other settings than the server")

    def _align(self) -> Rows:
        """Line 1-2: the size of the union, and the initial table."""
        if self._strategy.shared is None:
            return np.zeros((0, 0), dtype=np.float32)
        size = twins.align_as_server(self._config, self._conversation, self._clients, self._deadline())
        training = self._config.training
        width = self._strategy.row_width(training.model, training.dim)
        span = initial_range(training.margin, training.dim)
        start = generator(self._config.seed, "shared rows").uniform(-span, span, size=(size, width))
        return start.astype(np.float32)

    def _round(self, round_id: RoundId) -> None:
        """Line 4-8, then evaluation and checkpoint when due."""
        self._round_id = round_id
        config = self._config
        chosen = participants(self._clients, config.client_fraction, config.min_participants, config.seed, round_id)
        with self._transport.phase(round_id, "train"):
            self._conversation.broadcast(set(chosen) & self._current, TrainRound(_NO_ROWS), round_id)
            self._conversation.broadcast(set(chosen) - self._current, TrainRound(self._table), round_id)
        if self._strategy.shared is not None:
            rows, width = self._table.shape
            layout = row_layout(rows, width, config.clip, len(self._clients), config.ring_bits)
            total = self._collect(round_id, "rows", chosen, layout)
            self._table = mean_rows(total, self._table)
            self._single_holder_rows = max(self._single_holder_rows, int((total.counts == 1).sum()))
            self._current.clear()
        last = round_id == config.rounds
        if round_id % config.eval_every == 0 or last:
            self._evaluate(round_id)
            last = last or self._stopping.exhausted
        if config.checkpoint_every and (round_id % config.checkpoint_every == 0 or last):
            self._checkpoint(round_id)

    def _collect(self, round_id: RoundId, purpose: str, chosen: Collection[PartyId], layout: SumLayout) -> Total:
        # Where nothing is shared, nobody waits for a client until the next evaluation, which may be rounds away.
        rounds = 1 if self._strategy.shared else self._config.eval_every
        deadline = Deadline.after(rounds * self._config.deadline)
        return self._sums.collect(self._conversation, round_id, purpose, chosen, layout, deadline)

    def _evaluate(self, round_id: RoundId) -> None:
        with self._transport.phase(round_id, "evaluate"):
            self._conversation.broadcast(self._current, Evaluate(_NO_ROWS), round_id)
            self._conversation.broadcast(set(self._clients) - self._current, Evaluate(self._table), round_id)
        self._current = set(self._clients)
        total = self._collect(round_id, "valid", self._clients, metric_layout(len(self._clients)))
        metrics = metrics_of(total)
        mrr = metrics.tail.metrics()["mrr"]
        improved = self._stopping.judge(round_id, mrr)
        with self._transport.phase(round_id, "verdict"):
            self._conversation.broadcast(self._clients, Verdict(improved), round_id)
        elapsed = self._elapsed()
        self._folder.append_metrics(
            {
                "round": round_id,
                "seconds": round(elapsed, 3),
                "loss": metrics.loss,
                "valid": metrics.tail.metrics(),
                "valid_both_sides": metrics.both.metrics(),
                "bytes_up": sum(self._bytes("received").values()),
                "bytes_down": sum(self._bytes("sent").values()),
            }
        )
        mark = "  best so far" if improved else ""
        self._report(
            f"round {round_id:4d}/{self._config.rounds}  loss {metrics.loss:8.4f}  valid MRR {mrr:.4f}"
            f"  {elapsed:6.1f} s{mark}"
        )

    def _checkpoint(self, round_id: RoundId) -> None:
        with self._transport.phase(round_id, "checkpoint"):
            self._conversation.broadcast(self._clients, SaveCheckpoint(), round_id)
            record = {
                "best_mrr": self._stopping.best_mrr,
                "best_round": self._stopping.best_round,
                "checks_since_best": self._stopping.checks_since_best,
                "single_holder_rows": self._single_holder_rows,
                "elapsed": self._elapsed(),
                "seconds": self._seconds(),
                "bytes_up": self._bytes("received"),
                "bytes_down": self._bytes("sent"),
            }
            checkpoint.save_part(self._folder.server, round_id, {"table": self._table}, record)
            self._conversation.gather_all(self._clients, Saved, round_id, self._deadline())
        checkpoint.mark_complete(self._folder.path, round_id)

    def _restore(self, done: int) -> None:
        arrays, record = checkpoint.load_part(self._folder.server, done)
        table = arrays.get("table")
        if table is None or table.shape != self._table.shape:
            raise UserError("the checkpoint does not fit this federation: the clients' data have changed")
        self._table = table
        self._stopping.best_mrr = record["best_mrr"]
        self._stopping.best_round = record["best_round"]
        self._stopping.checks_since_best = record["checks_since_best"]
        self._single_holder_rows = record["single_holder_rows"]
        self._carried = record
        self._folder.forget_metrics_after(done)
        self._report(f"continuing after round {done}")

    def _finish(self, done: RoundId) -> ServerOutcome:
        last = RoundId(done + 1)  # results are a step of their own, so that no mask of a training round is used again
        with self._transport.phase(last, "finish"):
            self._conversation.broadcast(self._clients, Finish(), last)
        total = self._collect(last, "test", self._clients, metric_layout(len(self._clients)))
        with self._transport.phase(last, "finish"):
            self._conversation.gather_all(self._clients, Done, last, self._deadline())
        return ServerOutcome(
            rounds=done,
            best_round=self._stopping.best_round,
            valid_mrr=self._stopping.best_mrr,
            test=metrics_of(total),
            union_size=len(self._table),
            single_holder_rows=self._single_holder_rows,
            elapsed=self._elapsed(),
            seconds=self._seconds(),
            bytes_up={int(party): size for party, size in self._bytes("received").items()},
            bytes_down={int(party): size for party, size in self._bytes("sent").items()},
        )

    def _elapsed(self) -> float:
        return float(self._carried["elapsed"]) + time.perf_counter() - self._started

    def _seconds(self) -> dict[str, float]:
        watch = Stopwatch(self._carried["seconds"])
        watch.add("send", self._transport.traffic.send_seconds)
        watch.add("wait", self._transport.traffic.wait_seconds)
        watch.add("unmask", self._sums.unmask_seconds)
        return watch.seconds

    def _bytes(self, direction: Any) -> dict[str, int]:
        """Bytes per client, those before a resumption included."""
        earlier = self._carried["bytes_up" if direction == "received" else "bytes_down"]
        traffic = self._transport.traffic
        return {
            str(party): earlier.get(str(party), 0) + traffic.total(direction, peer=party).bytes
            for party in self._clients
        }

    def _setting(self) -> str:
        rows = len(self._table)
        shared = f"{rows} shared {self._strategy.shared} rows" if self._strategy.shared else "nothing shared"
        return f"{self._strategy.title}: {len(self._clients)} clients, {shared}, aggregation {self._config.aggregation}"


_NO_ROWS: Rows = np.zeros((0, 0), dtype=np.float32)
