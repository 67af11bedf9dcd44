"""The server of a federation: FedR, algorithm 1, "Server executes".

It sees what the chosen protocols reveal to it and nothing else: it opens no triple file, imports no model, and under
secure aggregation reads only sums, of rows as well as of metrics. It may decide when to stop; what a client sends is
decided by the client.

A client that falls silent in any step, because it is slow, stopped or dead, costs that client only: the sum is that of
the others, the federation goes on, and a client that comes back is taken in again. A sum that too few are left for is
given up and the shared rows stay as they are.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from protocols import wire
from protocols.conversation import MAX_REASON, Abandon, Conversation
from protocols.errors import EncodingOverflow, ProtocolError, SumAbandoned
from protocols.identifiers import NO_SESSION, SETUP, PartyId, RoundId, SessionId, new_session
from protocols.patience import Patience
from protocols.sums import Collected, SumLayout, SumTask
from protocols.transport.base import Transport
from protocols.transport.tap import Tap
from secure_kg.errors import UserError
from secure_kg.federation import checkpoint, twins
from secure_kg.federation.attendance import Attendance
from secure_kg.federation.config import SETUP_SECONDS, RunConfig
from secure_kg.federation.early_stopping import EarlyStopping
from secure_kg.federation.messages import (
    Done,
    Evaluate,
    Finish,
    Goodbye,
    Hello,
    Ready,
    SaveCheckpoint,
    Saved,
    TrainRound,
    Verdict,
    Welcome,
)
from secure_kg.federation.metric_sum import ClientMetrics, metric_layout, metrics_of
from secure_kg.federation.row_sum import Rows, mean_rows, row_layout, table_digest
from secure_kg.federation.run_folder import RunFolder
from secure_kg.federation.sampling import participants
from secure_kg.federation.stopwatch import Stopwatch
from secure_kg.federation.strategy import STRATEGIES
from secure_kg.models.shapes import initial_range
from secure_kg.seeds import generator

Report = Callable[[str], None]
M = TypeVar("M", bound=wire.Message)

_SETUP_GRACE: Final = 60.0
"""Starting up (imports, reading or downloading data) varies more between clients than a round does."""
_MOST_ABANDONED: Final = 10
"""So many sums given up one after the other end the job: it would run on without learning anything."""


@dataclass(frozen=True, slots=True)
class ServerOutcome:
    """What the server knows when the run is over."""

    rounds: int
    best_round: int
    valid_mrr: float
    test: ClientMetrics
    test_clients: int
    """How many clients' results are in `test`."""
    union_size: int
    single_holder_rows: int
    """Most rows in any round to which one client alone contributed: their "means" are that client's own rows."""
    dropouts: list[dict[str, Any]]
    """Who fell silent, in which round and step, and in which round it came back, if it did."""
    abandoned_sums: list[dict[str, Any]]
    """Sums that ended without a result: round, purpose, reason."""
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
        self._carried: dict[str, Any] = {
            **{"elapsed": 0.0, "seconds": {}, "bytes_up": {}, "bytes_down": {}},
            **{"dropouts": [], "abandoned_sums": []},
        }
        self._current: set[PartyId] = set()  # clients that have the newest rows
        self._conversation = Conversation(transport, NO_SESSION)
        self._round_id = SETUP
        self._single_holder_rows = 0
        self._union_digest = b""
        # Where nothing is shared, nobody waits for a client until the next evaluation, which may be rounds away.
        longest = config.deadline * (1 if self._strategy.shared else config.eval_every)
        self._patience = Patience(longest, config.grace)
        self._attendance = Attendance(self._clients, self._patience, report)
        self._abandoned: list[dict[str, Any]] = []
        self._abandoned_in_a_row = 0

    def run(self) -> ServerOutcome:
        """The whole run. If it cannot be finished, the clients are told why before the error leaves."""
        try:
            return self._run()
        except (UserError, ProtocolError) as problem:
            self._conversation.abort(self._clients, str(problem), self._round_id)
            raise

    @property
    def complete(self) -> bool:
        """Whether every client is there at the end."""
        return self._attendance.complete

    def _run(self) -> ServerOutcome:
        self._check_feasible()
        last = checkpoint.last_complete(self._folder.path)
        done, patience = last.round, Patience(max(SETUP_SECONDS, self._config.deadline), _SETUP_GRACE)
        self._greet(last, patience)
        self._sums = twins.sum_server(self._config, self._clients)
        self._gather(Ready, SETUP, patience, "start")
        self._sums.setup(self._conversation, self._attendance.present, patience, self._silent)
        self._table = self._align(patience)
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
        if config.aggregation == "secagg":
            config.sum_parameters(clients, clients)
            config.sum_parameters(len(self._chosen(RoundId(1))), clients)

    def _chosen(self, round_id: RoundId) -> tuple[PartyId, ...]:
        config = self._config
        return participants(self._clients, config.client_fraction, config.min_participants, config.seed, round_id)

    def _silent(self, parties: Collection[PartyId], step: str) -> None:
        """Go on without `parties`."""
        self._current -= set(parties)
        self._attendance.lose(self._conversation, parties, self._round_id, step)

    def _gather(self, expected: type[M], round_id: RoundId, patience: Patience, step: str) -> dict[PartyId, M]:
        """One message from everybody who is there; who does not answer is there no longer."""
        present = frozenset(self._attendance.present)
        answers = dict(self._conversation.gather_each(present, expected, round_id, patience, step))
        if missing := present - answers.keys():
            self._silent(missing, step)
        return answers

    def _tell(self, parties: Collection[PartyId], message: wire.Message, round_id: RoundId) -> None:
        """The same message to all of `parties` that are there."""
        to = set(parties) & self._attendance.present
        if lost := self._conversation.broadcast(to, message, round_id):
            self._silent(lost, type(message).__name__)

    def _over(self, done: int) -> bool:
        return done >= self._config.rounds or self._stopping.exhausted

    def _greet(self, last: checkpoint.Complete, patience: Patience) -> None:
        """Open a session with every client; settings that differ between parties end the job before it starts."""
        digest = self._config.digest()
        session = new_session()
        if self._config.transcript:
            self._transport.attach(Tap(self._folder.path / f"transcript-{session.hex()[:8]}.bin"))
        hellos = self._gather(Hello, SETUP, patience, "greeting")
        name = self._folder.path.resolve().name
        self._tell(hellos, Welcome(session, digest, last.round, list(last.saved_by), name), SETUP)
        self._conversation = Conversation(self._transport, SessionId(session))
        odd = [party for party in sorted(hellos) if hellos[party].digest != digest]
        if odd:
            raise UserError(f"client {odd[0]} was started with other settings than the server")

    def _align(self, patience: Patience) -> Rows:
        """Line 1-2: the size of the union, and the initial table."""
        if self._strategy.shared is None:
            return np.zeros((0, 0), dtype=np.float32)
        present = self._attendance.present
        union = twins.align_as_server(self._config, self._conversation, present, patience, self._silent)
        self._union_digest = union.digest
        training = self._config.training
        width = self._strategy.row_width(training.model, training.dim)
        span = initial_range(training.margin, training.dim)
        start = generator(self._config.seed, "shared rows").uniform(-span, span, size=(union.size, width))
        return start.astype(np.float32)

    def _round(self, round_id: RoundId) -> None:
        """Line 4-8, then evaluation and checkpoint when due."""
        self._round_id = round_id
        config = self._config
        chosen = self._chosen(round_id)
        self._assemble()
        with self._transport.phase(round_id, "train"):
            self._tell(set(chosen) & self._current, TrainRound(_NO_ROWS), round_id)
            self._tell(set(chosen) - self._current, TrainRound(self._table), round_id)
        if self._strategy.shared is not None:
            rows, width = self._table.shape
            layout = row_layout(rows, width, config.clip, len(self._clients), config.ring_bits)
            collected = self._sum(round_id, "rows", chosen, layout, self._model_digest())
            self._current = set()
            if collected is not None:
                self._table = mean_rows(collected.total, self._table)
                single = int((collected.total.counts == 1).sum())
                self._single_holder_rows = max(self._single_holder_rows, single)
        last = round_id == config.rounds
        if round_id % config.eval_every == 0 or last:
            self._evaluate(round_id)
            last = last or self._stopping.exhausted
        if config.checkpoint_every and (round_id % config.checkpoint_every == 0 or last):
            self._checkpoint(round_id)

    def _assemble(self) -> None:
        """Take in who has come back; if too few are here for any sum, wait for more."""
        self._attendance.look_for_returned(self._conversation, self._round_id)
        clients, needed = len(self._clients), self._config.min_participants
        if self._config.aggregation == "secagg":
            parameters = self._config.sum_parameters(clients, clients)
            needed = max(parameters.min_survivors, parameters.least_present)
        here = len(self._attendance.present)
        if here >= needed:
            return
        self._report(f"{here} of {clients} clients are here, {needed} are needed: waiting for some to come back")
        if not self._attendance.wait_for(self._conversation, needed, self._round_id, self._config.deadline):
            here = len(self._attendance.present)
            raise UserError(
                f"{here} of {clients} clients are left in round {self._round_id}, {needed} are needed; "
                f"--resume {self._folder.path} continues from the last checkpoint"
            )

    def _sum(
        self, round_id: RoundId, purpose: str, chosen: Collection[PartyId], layout: SumLayout, model: bytes
    ) -> Collected | None:
        """One sum over those of `chosen` who are there; None if it had to be given up."""
        task = SumTask(round_id, purpose, tuple(chosen), layout, model)
        present = set(chosen) & self._attendance.present
        try:
            self._sums.prepare(self._conversation, task, present, self._patience, self._silent)
            collected = self._sums.collect(self._conversation, task, self._patience, self._silent)
        except SumAbandoned as problem:
            self._abandoned.append({"round": int(round_id), "purpose": purpose, "reason": str(problem)})
            self._report(f"round {round_id}: the sum of {purpose} was given up: {problem}")
            self._tell(chosen, Abandon(purpose, str(problem)[:MAX_REASON]), round_id)
            self._abandoned_in_a_row += 1
            # A resumed job may have to give up the sums it repeats, those of training and of evaluation.
            if self._abandoned_in_a_row >= _MOST_ABANDONED + 2 * self._config.checkpoint_every:
                given_up = self._abandoned_in_a_row
                raise UserError(f"{given_up} sums in a row were given up, the last one: {problem}") from None
            return None
        self._abandoned_in_a_row = 0
        return collected

    def _evaluate(self, round_id: RoundId) -> None:
        self._assemble()
        with self._transport.phase(round_id, "evaluate"):
            self._tell(self._current, Evaluate(_NO_ROWS), round_id)
            self._tell(set(self._clients) - self._current, Evaluate(self._table), round_id)
        self._current = set(self._attendance.present)
        layout = metric_layout(len(self._clients))
        collected = self._sum(round_id, "valid", self._clients, layout, self._model_digest())
        if collected is None:
            return
        metrics = metrics_of(collected.total)
        mrr = metrics.tail.metrics()["mrr"]
        improved = self._stopping.judge(round_id, mrr)
        with self._transport.phase(round_id, "verdict"):
            self._tell(self._clients, Verdict(improved), round_id)
        elapsed = self._elapsed()
        self._folder.append_metrics(
            {
                "round": round_id,
                "seconds": round(elapsed, 3),
                "loss": metrics.loss,
                "valid": metrics.tail.metrics(),
                "valid_both_sides": metrics.both.metrics(),
                "clients": len(collected.contributors),
                "bytes_up": sum(self._bytes("received").values()),
                "bytes_down": sum(self._bytes("sent").values()),
            }
        )
        mark = "  best so far" if improved else ""
        self._report(
            f"round {round_id:4d}/{self._config.rounds}  loss {metrics.loss:8.4f}  valid MRR {mrr:.4f}"
            f"  {elapsed:6.1f} s{mark}"
        )

    def _model_digest(self) -> bytes:
        return table_digest(self._table, self._union_digest) if self._strategy.shared else b""

    def _checkpoint(self, round_id: RoundId) -> None:
        with self._transport.phase(round_id, "checkpoint"):
            self._tell(self._clients, SaveCheckpoint(), round_id)
            record = {
                "best_mrr": self._stopping.best_mrr,
                "best_round": self._stopping.best_round,
                "checks_since_best": self._stopping.checks_since_best,
                "single_holder_rows": self._single_holder_rows,
                "dropouts": self._dropouts(),
                "abandoned_sums": self._abandoned_sums(),
                "elapsed": self._elapsed(),
                "seconds": self._seconds(),
                "bytes_up": self._bytes("received"),
                "bytes_down": self._bytes("sent"),
            }
            checkpoint.save_part(self._folder.server, round_id, {"table": self._table}, record)
            saved = self._gather(Saved, round_id, self._patience, "checkpoint")
        checkpoint.mark_complete(self._folder.path, round_id, saved)

    def _dropouts(self) -> list[dict[str, Any]]:
        return [*self._carried["dropouts"], *(dropout.record() for dropout in self._attendance.dropouts)]

    def _abandoned_sums(self) -> list[dict[str, Any]]:
        return [*self._carried["abandoned_sums"], *self._abandoned]

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
        for dropout in record["dropouts"]:
            if "returned" not in dropout and dropout["client"] in self._attendance.present:
                dropout["returned"] = done + 1
        self._carried = record
        self._folder.forget_metrics_after(done)
        self._report(f"continuing after round {done}")

    def _finish(self, done: RoundId) -> ServerOutcome:
        last = RoundId(done + 1)  # results are a step of their own, so that no mask of a training round is used again
        self._round_id = last
        self._assemble()
        with self._transport.phase(last, "finish"):
            self._tell(self._clients, Finish(), last)
        collected = self._sum(last, "test", self._clients, metric_layout(len(self._clients)), b"")
        if collected is None:
            raise UserError(f"no test result: {self._abandoned[-1]['reason']}")
        with self._transport.phase(last, "finish"):
            self._gather(Done, last, self._patience, "results")
            self._conversation.broadcast(
                self._attendance.reachable(self._conversation), Goodbye(self._attendance.complete), last
            )
        return ServerOutcome(
            rounds=done,
            best_round=self._stopping.best_round,
            valid_mrr=self._stopping.best_mrr,
            test=metrics_of(collected.total),
            test_clients=len(collected.contributors),
            union_size=len(self._table),
            single_holder_rows=self._single_holder_rows,
            dropouts=self._dropouts(),
            abandoned_sums=self._abandoned_sums(),
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
