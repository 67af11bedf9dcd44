"""A client of a federation: FedR, algorithm 1, "Client executes".

The client knows its own graph, settings and number. It answers the server's requests in the order a round allows,
computes itself who takes part in a round, and sends nothing but contributions to sums and acknowledgements. Rows that
too few clients hold it keeps to itself.

If it was too slow and the others have gone on, it says that it is back and waits for the next round it is asked for;
its rows of the missed round are used by nobody, and their masks by no other sum.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from protocols.alignment.interface import Positions
from protocols.alignment.psu import names as union_names
from protocols.alignment.psu.vote import AlignmentRefused
from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.digests import digest
from protocols.foundation.errors import LeftOut, PeerMisbehaved, ProtocolError, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import NO_SESSION, SERVER, SETUP, PartyId, RoundId, SessionId
from protocols.holders.interface import CountTask, Holders
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_REASON, Abandon, Back, Conversation, Failed
from protocols.session.credentials import Credentials
from protocols.session.receipts import Head
from protocols.sums.interface import Contribution, ContributionReport, MayOpen, SumLayout
from protocols.sums.secagg.keys import ClientKeys
from protocols.sums.secagg.openings import Openings
from protocols.sums.secret.aggregation import SecretSumClient
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal, sum_total_bytes
from protocols.transport.base import Transport
from secure_kg.data.graph import ClientGraph, Part
from secure_kg.data.soundness import faults
from secure_kg.federation.client.first_rows import first_rows, private_seed
from secure_kg.federation.client.judge import Judge
from secure_kg.federation.client.own_count import OwnCount
from secure_kg.federation.client.own_rows import OwnRows
from secure_kg.federation.client.states import States
from secure_kg.federation.plan import twins
from secure_kg.federation.plan.messages import (
    Aligned,
    Done,
    Evaluate,
    Finish,
    Goodbye,
    Hello,
    LendTable,
    LentTable,
    Ready,
    SaveCheckpoint,
    Saved,
    SharedRows,
    TrainRound,
    Verdict,
    Welcome,
    lent_table_bytes,
    shared_rows_bytes,
)
from secure_kg.federation.plan.metric_sum import ClientMetrics, metric_contribution, metric_layout, metrics_of
from secure_kg.federation.plan.row_sum import row_layout
from secure_kg.federation.plan.sampling import participants
from secure_kg.federation.plan.schedule import AGREEING_ROUND
from secure_kg.federation.plan.settings import SETUP_SECONDS, RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.errors import UserError
from secure_kg.learning.trainer import LocalTrainer, TrainStats
from secure_kg.models.shapes import initial_range
from secure_kg.runs import checkpoint
from secure_kg.runs.alignment_files import keep_objection, load_positions, save_positions
from secure_kg.runs.client_folder import append_opening, read_openings, run_id, state_key
from secure_kg.runs.metric_names import named_metrics
from secure_kg.runs.peak_memory import peak_memory_mb
from secure_kg.runs.recording import ReceiptKeeper
from secure_kg.runs.run_folder import write_json
from secure_kg.runs.stopwatch import Stopwatch

_SECONDS_TO_SAY_SO: Final = 10.0
MOST_IN_VAIN: Final = 10
"""Sums of rows given up one after the other, beside those that a resumed job repeats. An honest server ends sooner."""


@dataclass(slots=True)
class Losses:
    """What fixed-point encoding did to this client's rows so far."""

    clipped: int = 0
    max_error: float = 0.0


class FederationClient:
    """One run from a client's side. `greet()` opens the session, `run()` lasts until the results are written."""

    def __init__(self, config: RunConfig, transport: Transport, clients: int) -> None:
        """`clients`: how many there are, from this client's own knowledge of the federation."""
        self._config, self._transport = config, transport
        self._strategy = STRATEGIES[config.strategy]
        self._clients = tuple(PartyId(number) for number in range(1, clients + 1))
        self._watch = Stopwatch()
        self._losses = Losses()
        self._count = OwnCount(config, lambda number: transport.party in self._participants(number))
        self._lent: set[tuple[int, int]] = set()
        self._best: dict[str, torch.Tensor] = {}
        self._best_round = self._in_vain = 0
        self._last = TrainStats(0.0, 0, 0)
        self._conversation = Conversation(transport, NO_SESSION)
        self._done = SETUP
        self._saved_by: tuple[int, ...] = ()
        self._aligned = b""
        self._rows: OwnRows | None = None
        self._receipt: ReceiptKeeper | None = None
        if config.transcript:
            self._receipt = ReceiptKeeper()
            transport.attach(self._receipt)

    def say_failed(self, reason: str) -> None:
        """Tell the server that this client cannot go on. The reason must name places, never contents."""
        with contextlib.suppress(ProtocolError):  # there is nothing more to be done about a server that takes no word
            self._conversation.send(SERVER, Failed(reason[:MAX_REASON]), self._done)
        self._transport.flush(Deadline.after(_SECONDS_TO_SAY_SO))  # a server that no longer listens must not hold us
        if self._receipt is not None:
            self._receipt.stop(self._done)

    def greet(self) -> str:
        """Join the session; returns the name the server gave the run."""
        self._conversation.send(SERVER, Hello(self._config.digest()), SETUP)
        welcome = self._conversation.receive(SERVER, Welcome, SETUP, self._deadline())
        self._conversation = Conversation(self._transport, SessionId(welcome.session), welcome.binding)
        if welcome.digest != self._config.digest():
            raise UserError("the server was started with other settings than this client")
        if welcome.rounds_done and self._strategy.shared is not None and not welcome.aligned:
            raise PeerMisbehaved("the server wants a run that has trained already to be aligned anew")
        self._done = RoundId(welcome.rounds_done)
        self._saved_by = tuple(welcome.saved_by)
        self._aligned = welcome.aligned
        return welcome.run_name

    def run(
        self,
        graph: ClientGraph,
        trainer: LocalTrainer,
        folder: Path,
        credentials: Credentials | None = None,
        record: Path | None = None,
    ) -> bool:
        """Take part until the results are written; `folder` is this client's own. Whether all clients are there.

        `credentials`: its signing key and the others' pinned identities, against an active server. `record`: where it
        keeps which sums it has helped to open, if that is to hold for more than this run.
        """
        self._record = record if record is not None else folder
        self._graph, self._trainer, self._folder = graph, trainer, folder
        if self._receipt is None:
            return self._take_part(folder, credentials)
        head = Head(self._conversation.session, self._transport.party, self._config.digest())
        self._receipt.open(folder, head, credentials.sign if credentials is not None else None)
        try:
            return self._take_part(folder, credentials)
        finally:
            self._receipt.stop(self._done)

    def _take_part(self, folder: Path, credentials: Credentials | None) -> bool:
        self._judge = Judge(self._config.patience, folder)
        record, run = self._record, run_id(folder)
        self._states, known = States(state_key(record)), read_openings(record)
        self._count.opened = frozenset(one.round for one in known if (one.run, one.purpose) == (run, "valid"))
        # Clients that were drawn have trained between two evaluations; others may not have been drawn.
        openings = Openings(
            known, lambda opening: append_opening(record, opening), run, at_the_end=["test"], moving=["valid"]
        )
        self._conversation.send(SERVER, Ready(), SETUP)
        self._open_session(credentials, openings)
        self._keep_receipt()
        self._align()
        if self._done:
            self._restore()
        while True:
            self._keep_receipt()
            try:
                round_id, message = self._conversation.receive_any(SERVER, self._done, self._deadline())
                if isinstance(message, Goodbye):
                    self._keep_receipt(final=True)
                    return message.complete
                self._handle(round_id, message)
            except LeftOut:
                self._conversation.send(SERVER, Back(), self._done)
            except SumAbandoned:
                continue  # the server has said why; what this client trained stays its own

    def _handle(self, round_id: RoundId, message: wire.Message) -> None:
        match message:
            case TrainRound() if self._done < round_id <= self._config.rounds:
                self._train(round_id)
            case SharedRows() | SumTotal() | LentTable() if self._rows is not None:
                with self._watch.measure("take"):
                    self._take_rows(round_id, message, self._rows)
            case LendTable() if self._rows is not None:
                self._lend(round_id, PartyId(message.to), self._rows)
            case Evaluate() if self._count.evaluation_due(round_id):
                self._evaluate(round_id)
            case Verdict() if self._count.judge(round_id):
                self._take_verdict(round_id, message.improved)
            case SaveCheckpoint() if round_id <= self._config.rounds:
                self._done = round_id  # a client that was not drawn may hear of the round only here
                self._save(round_id)
            case Abandon():
                pass  # of a sum to which this client has contributed already
            case Finish() if self._done < round_id and self._count.finish(round_id):
                self._finish(round_id, message)
            case _:
                raise UnexpectedMessage(
                    f"the server sent {type(message).__name__} of round {round_id} after round {self._done}"
                )

    def _keep_receipt(self, *, final: bool = False) -> None:
        if self._receipt is not None:
            self._receipt.keep(self._done, final=final)

    def _take_rows(self, round_id: RoundId, message: SharedRows | SumTotal | LentTable, rows: OwnRows) -> None:
        """News of the shared rows, in the one form that this run's sums have."""
        secret = self._config.aggregation == "secret"
        match message:
            case SharedRows() if not secret:
                rows.take(message, round_id)
            case SumTotal() if 0 < message.of_round <= round_id:
                terms = SumTerms(RoundId(message.of_round), "rows", self._participants(message.of_round), rows.layout)
                opened = self._reader().open(terms, message)
                rows.take_sum(message, opened, self._config.least_holders)
            case LentTable() if secret and self._keys is not None:
                channels = self._keys.vectors.session
                content = channels.open_from(PartyId(message.by), f"table/{round_id}", message.sealed)
                rows.take_lent(content, round_id)
            case _:
                raise UnexpectedMessage(f"the server sent {type(message).__name__}, which these sums have no use for")

    def _lend(self, round_id: RoundId, to: PartyId, rows: OwnRows) -> None:
        """Encrypt the shared rows for a client that has missed sums. A false table would differ in its digest."""
        if self._keys is None or self._config.aggregation != "secret" or (to, round_id) in self._lent:
            raise UnexpectedMessage(f"the server asks for the table for client {to} in round {round_id}")
        self._lent.add((to, round_id))  # the key of a second one would be the same
        sealed = self._keys.vectors.session.seal_for(to, f"table/{round_id}", rows.lend())
        self._conversation.send(SERVER, LentTable(int(self._transport.party), sealed), round_id)

    def _deadline(self) -> Deadline:
        # A client waits for the slowest of the others, in starting up, training and evaluation; the server notices a
        # silent client much sooner, and a server that has died takes the job with it.
        return Deadline.after(SETUP_SECONDS + 2 * self._config.eval_every * self._config.deadline)

    def _step(self) -> ClientSession:
        """The session for the next step of a protocol."""
        return ClientSession(self._conversation, self._deadline())

    def _open_session(self, credentials: Credentials | None, openings: Openings) -> None:
        """Keys with the other clients, where the settings need any, and the protocols that use them."""
        self._keys: ClientKeys | None = None
        if self._config.has_session:
            self._keys = twins.client_keys(self._config, self._clients, credentials, openings, self._step())
        self._sums = twins.sum_client(self._config, self._keys)
        self._holders = twins.holder_client(self._config, self._keys)

    def _align(self) -> None:
        """Line 1-2: the places of this client's rows among the shared ones, and the rows to start from."""
        shared = self._strategy.shared
        if shared is None:
            return
        config, training = self._config, self._config.training
        names = self._graph.relations if shared == "relation" else self._graph.entities
        if self._aligned:
            positions = load_positions(self._folder, self._aligned, names)
        else:
            positions = self._aligned_anew(names)
            save_positions(self._folder, positions, names)
        width = self._strategy.row_width(training.model, training.dim)
        # A union that no message could carry is not a union: a false size must not make this client allocate it.
        if positions.union_size * (width + 1) * config.ring_bits // 8 > wire.MAX_FRAME_BYTES:
            raise PeerMisbehaved(f"the server announces a union of {positions.union_size} names, too many for one sum")
        seed, span = private_seed(self._graph, config.seed), initial_range(training.margin, training.dim)
        layout = row_layout(positions.union_size, width, config.clip, len(self._clients), config.ring_bits)
        self._admit_rows(positions.union_size, layout)
        self._rows = OwnRows(positions, shared, span, self._trainer, layout)
        self._rows.start(first_rows(names, seed, width, span))
        self._conversation.send(SERVER, Aligned(), SETUP)

    def _admit_rows(self, union_size: int, layout: SumLayout) -> None:
        """The largest messages that the server has reason to send, also to one that was away: rows, or sums of them."""
        width = layout.real_entries // union_size
        total = sum_total_bytes("rows", layout.entries, layout.group.element_bytes, self._clients)
        rows = shared_rows_bytes(union_size, width), lent_table_bytes(union_size, width)
        self._conversation.admit(max(total, *rows))

    def _aligned_anew(self, names: tuple[str, ...]) -> Positions:
        config, keys, clients = self._config, self._keys, self._clients
        state = self._states.of_names(names, run_id(self._folder))
        try:
            positions = twins.align_as_client(config, self._step(), keys, clients, names, state)
            if config.reveal_names and keys is not None:
                union_names.reveal(self._step(), keys.vectors, clients, positions, names)
        except AlignmentRefused as problem:
            keep_objection(self._folder, problem.objection)
            raise
        except SumAbandoned as problem:
            raise ProtocolError(f"the names could not be aligned: {problem}") from None
        return positions

    def _participants(self, round_id: int) -> tuple[PartyId, ...]:
        config = self._config
        fraction, least = config.client_fraction, config.min_participants
        return participants(self._clients, fraction, least, config.seed, RoundId(round_id))

    def _train(self, round_id: RoundId) -> None:
        """Line 9-13: local epochs, then the shared rows into the sum. Keys are agreed on before the epochs.

        In the first round there are no epochs: its sum makes the first rows common to all (`first_rows`).

        Holders are counted after them, right before the rows leave: the less time between the two, the fewer clients
        fall silent in between.
        """
        chosen = self._participants(round_id)
        if self._transport.party not in chosen:
            raise PeerMisbehaved(f"the server asks for round {round_id}, for which this client is not drawn")
        self._done = round_id
        if self._rows is None:
            self._train_locally(round_id)
            return
        rows = self._rows
        if self._in_vain >= MOST_IN_VAIN + 2 * self._config.checkpoint_every:
            raise PeerMisbehaved(f"this client has trained for {self._in_vain} sums in a row that were given up")
        self._in_vain += 1
        rows.begin_round()
        terms, count = self._row_terms(round_id, rows), self._count_task(round_id, rows)
        if count is not None:
            self._holders.prepare(self._step(), count)
        self._sums.prepare(self._step(), terms)
        if round_id != AGREEING_ROUND:
            self._train_locally(round_id)
        self._count.trained = round_id
        holders: Holders | None = None
        if count is not None:
            holders = self._holders.count(self._step(), count, rows.positions.own)
        may_open = holders.may_open if holders is not None else None
        report = self._contribute(terms, rows.contribution(holders), may_open)
        self._in_vain = 0
        self._losses.clipped += report.clipped
        self._losses.max_error = max(self._losses.max_error, report.max_error)

    def _train_locally(self, round_id: RoundId) -> None:
        with self._watch.measure("train"):
            self._last = self._trainer.train_round(round_id)
        self._count.trained = round_id

    def _row_terms(self, round_id: RoundId, rows: OwnRows) -> SumTerms[SumLayout]:
        """The sum of a round that is about to be trained."""
        state = self._states.of_nothing("rows", round_id)
        if len(rows.positions.own):
            state = self._states.of_rows(self._trainer)
        return SumTerms(round_id, "rows", self._participants(round_id), rows.layout, rows.digest, state)

    def _count_task(self, round_id: RoundId, rows: OwnRows) -> CountTask | None:
        """None if rows of any number of holders may be added up."""
        positions, least = rows.positions, self._config.least_holders
        if least < 2:
            return None
        return CountTask(round_id, self._participants(round_id), positions.union_size, positions.digest, least)

    def _reader(self) -> SecretSumClient:
        if not isinstance(self._sums, SecretSumClient):
            raise UnexpectedMessage("the server sent a sum to read where it can read sums itself")
        return self._sums

    def _contribute(
        self, terms: SumTerms[SumLayout], contribution: Contribution, may_open: MayOpen | None = None
    ) -> ContributionReport:
        report = self._sums.contribute(self._step(), terms, contribution, may_open)
        self._watch.add("encode", report.encoding)
        self._watch.add("mask", report.masking)
        return report

    def _evaluate(self, round_id: RoundId) -> None:
        self._done = round_id  # a client that was not drawn hears of the round only here
        if not self._count.may_evaluate(round_id):
            self._count.refused += 1
            reason = "this client has not trained since its last evaluation"
            self._conversation.send(SERVER, Abandon("valid", reason), round_id)
            return
        fresh = self._count.fresh(round_id)
        terms = self._result_terms(round_id, "valid", fresh=fresh)
        self._count.evaluated(round_id)
        self._sums.prepare(self._step(), terms)
        # A loss that was told before is not told again: over other clients it would be the same secret once more.
        self._contribute(terms, metric_contribution(self._rank("valid", self._last if fresh else None)))
        if isinstance(self._sums, SecretSumClient):
            metrics, _ = self._read_metrics(self._sums, terms)
            self._conversation.send(SERVER, self._judge.read(round_id, metrics), round_id)

    def _read_metrics(self, sums: SecretSumClient, terms: SumTerms[SumLayout]) -> tuple[ClientMetrics, int]:
        """The federation's figures, which the server has added up for the clients, and of how many clients they are."""
        total = self._step().receive(SumTotal, *terms.key)
        return metrics_of(sums.open(terms, total)), len(total.contributors)

    def _take_verdict(self, round_id: RoundId, improved: bool) -> None:
        if improved:
            self._best, self._best_round = self._trainer.parameters_state(), int(round_id)
        self._judge.take_verdict(round_id, improved)

    def _result_terms(self, round_id: RoundId, part: Part, *, fresh: bool, best: int = 0) -> SumTerms[SumLayout]:
        """The sum of results on `part`, of the parameters as they are now: `fresh`, or of the copy of round `best`."""
        applied = self._rows.digest if self._rows is not None else b""
        if not len(self._graph.part(part)) and not (fresh and self._last.triples):
            state = self._states.of_nothing(f"results/{part}", round_id)
        else:
            state = self._states.of_results(self._trainer, part)
        layout, model = metric_layout(len(self._clients)), digest(applied, best.to_bytes(8, "little"))
        return SumTerms(round_id, part, self._clients, layout, model, state)

    def _rank(self, part: Part, stats: TrainStats | None = None) -> ClientMetrics:
        """`stats`: of training that is to be told, too."""
        with self._watch.measure("evaluate"):
            tail = self._trainer.evaluate(part, "tail")
            both = tail + self._trainer.evaluate(part, "head")
        if stats is None:
            return ClientMetrics(tail, both)
        return ClientMetrics(tail, both, loss_sum=stats.loss * stats.triples, loss_triples=stats.triples)

    def _finish(self, round_id: RoundId, asked: Finish) -> None:
        self._done = round_id
        if self._best:
            self._trainer.load_parameters(self._best)
        metrics = self._rank("test")
        with contextlib.suppress(SumAbandoned):  # the model and this client's own result are written all the same
            if asked.wanted:
                self._sum_results(round_id, asked.best_round, metrics)
        checkpoint.save_arrays(self._folder / "model.safetensors", _numpy(self._trainer.parameters_state()), {})
        write_json(self._folder / "result.json", self._result(metrics))
        self._conversation.send(SERVER, Done(), round_id)

    def _sum_results(self, round_id: RoundId, best_round: int, metrics: ClientMetrics) -> None:
        """Test figures into their sum, which is bound to the round of the best copy: all are of the same one."""
        if best_round != self._best_round:
            reason = f"this client's best copy is of round {self._best_round}"
            self._conversation.send(SERVER, Abandon("test", reason), round_id)
            return
        terms = self._result_terms(round_id, "test", fresh=True, best=best_round)
        self._sums.prepare(self._step(), terms)
        self._contribute(terms, metric_contribution(metrics))
        if isinstance(self._sums, SecretSumClient):
            test, clients = self._read_metrics(self._sums, terms)
            self._judge.write_result(test, clients, self._rows.averaged_in_union if self._rows is not None else 0)

    def _result(self, metrics: ClientMetrics) -> dict[str, Any]:
        graph, traffic, watch = self._graph, self._transport.traffic, self._times()
        figures = {**metrics.tail.metrics(), "both_sides": metrics.both.metrics()}
        return {
            "client": self._transport.party,
            **figures,
            "metrics": named_metrics(figures),
            "split_faults": faults(graph).counts(),
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            "train_triples": len(graph.train),
            "valid_triples": len(graph.valid),
            "test_triples": len(graph.test),
            "rows_averaged": self._rows.averaged_of_own if self._rows is not None else 0,
            "rows_kept_local": self._kept_local(),
            "refused_evaluations": self._count.refused,
            "clipped_values": self._losses.clipped,
            "max_fixed_point_error": self._losses.max_error,
            "seconds": watch.seconds,
            "cpu_seconds": watch.cpu_seconds,
            "peak_memory_mb": peak_memory_mb(),
            "late_messages": self._conversation.late_messages,
            "messages_sent": traffic.total("sent").messages,
            "messages_received": traffic.total("received").messages,
        }

    def _kept_local(self) -> int:
        """How many of its own shareable rows this client never shared, because too few others hold them."""
        return len(self._rows.positions.own) - self._rows.averaged_of_own if self._rows is not None else 0

    def _times(self) -> Stopwatch:
        """Of all sessions of the run."""
        watch = self._watch.with_traffic(self._transport.traffic)
        watch.add("holders", self._holders.spent)
        return watch

    def _save(self, round_id: RoundId) -> None:
        model = {f"model/{name}": value for name, value in self._trainer.state().items()}
        best = {f"best/{name}": value for name, value in self._best.items()}
        times = self._times()
        record = {
            "seconds": times.seconds,
            "cpu_seconds": times.cpu_seconds,
            "clipped": self._losses.clipped,
            "max_error": self._losses.max_error,
            "loss": [self._last.loss, self._last.triples, self._last.steps],
            "judge": self._judge.record(),
            "count": self._count.record(),
            "best_round": self._best_round,
        }
        shared = self._rows.state() if self._rows is not None else {}
        checkpoint.save_part(self._folder, round_id, _numpy(model | best) | shared, record)
        self._conversation.send(SERVER, Saved(), round_id)

    def _restore(self) -> None:
        part: int | None = self._done
        absent = self._transport.party not in self._saved_by
        if absent:
            part = checkpoint.latest_before(self._folder, self._done)
        if part is None:
            return
        arrays, record = checkpoint.load_part(self._folder, part)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        fits = self._trainer.parameters_state()
        if any(f"model/{name}" not in tensors or tensors[f"model/{name}"].shape != p.shape for name, p in fits.items()):
            raise UserError("the checkpoint does not fit this client: its data have changed")
        self._trainer.load_state(_below(tensors, "model/"))
        self._best, self._best_round = _below(tensors, "best/"), int(record.get("best_round", 0))
        self._watch = Stopwatch(record["seconds"], record.get("cpu_seconds"))  # earlier versions kept the first only
        self._losses = Losses(record["clipped"], record["max_error"])
        self._last = TrainStats(*record["loss"])
        self._judge.restore(record["judge"], self._done)
        self._count.restore(record.get("count", {}))
        if self._rows is not None and not absent:  # one that was absent takes the whole table anew
            self._rows.load_state(arrays)


def _numpy(tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray[Any, Any]]:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def _below(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
