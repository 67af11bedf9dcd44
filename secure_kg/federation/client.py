"""A client of a federation: FedR, algorithm 1, "Client executes".

The client knows its own graph, settings and number. It answers the server's requests in the order a round allows,
computes itself who takes part in a round, and sends nothing but contributions to sums and acknowledgements.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from protocols import wire
from protocols.conversation import MAX_REASON, Conversation, Failed
from protocols.errors import PeerMisbehaved, UnexpectedMessage
from protocols.identifiers import NO_SESSION, SERVER, SETUP, PartyId, RoundId, SessionId
from protocols.sums import Contribution, SumLayout
from protocols.transport.base import Transport
from protocols.transport.deadline import Deadline
from protocols.unions import Positions
from secure_kg.data.graph import ClientGraph, Part
from secure_kg.errors import UserError
from secure_kg.federation import checkpoint, twins
from secure_kg.federation.config import SETUP_SECONDS, RunConfig
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
from secure_kg.federation.metric_sum import ClientMetrics, metric_contribution, metric_layout
from secure_kg.federation.row_sum import Rows, row_contribution, row_layout
from secure_kg.federation.run_folder import write_json
from secure_kg.federation.sampling import participants
from secure_kg.federation.stopwatch import Stopwatch
from secure_kg.federation.strategy import STRATEGIES
from secure_kg.training.trainer import LocalTrainer, TrainStats

_SECONDS_TO_SAY_SO: Final = 10.0


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
        self._best: dict[str, torch.Tensor] = {}
        self._last = TrainStats(0.0, 0, 0)
        self._conversation = Conversation(transport, NO_SESSION)
        self._done = SETUP

    def say_failed(self, reason: str) -> None:
        """Tell the server that this client cannot go on. The reason must name places, never contents."""
        self._conversation.send(SERVER, Failed(reason[:MAX_REASON]), self._done)
        self._transport.flush(Deadline.after(_SECONDS_TO_SAY_SO))  # a server that no longer listens must not hold us

    def greet(self) -> str:
        """Join the session; returns the name the server gave the run."""
        self._conversation.send(SERVER, Hello(self._config.digest()), SETUP)
        welcome = self._conversation.receive(SERVER, Welcome, SETUP, self._deadline())
        self._conversation = Conversation(self._transport, SessionId(welcome.session))
        if welcome.digest != self._config.digest():
            raise UserError("the server was started with other settings than this client")
        self._done = RoundId(welcome.rounds_done)
        return welcome.run_name

    def run(self, graph: ClientGraph, trainer: LocalTrainer, folder: Path) -> None:
        """Take part until the results are written; `folder` is this client's own."""
        self._graph, self._trainer, self._folder = graph, trainer, folder
        self._sums = twins.sum_client(self._config, self._clients)
        self._conversation.send(SERVER, Ready(), SETUP)
        self._sums.setup(self._conversation, self._deadline())
        self._positions = self._align()
        if self._done:
            self._restore()
        while True:
            round_id, message = self._conversation.receive_any(SERVER, self._done, self._deadline())
            match message:
                case TrainRound() if round_id > self._done:
                    self._train(round_id, message)
                case Evaluate() if round_id >= self._done:
                    self._evaluate(round_id, message)
                case Verdict() if round_id == self._done:
                    if message.improved:
                        self._best = self._trainer.parameters_state()
                case SaveCheckpoint() if round_id >= self._done:
                    self._done = round_id  # a client that was not drawn may hear of the round only here
                    self._save(round_id)
                case Finish() if round_id > self._done:
                    self._finish(round_id)
                    return
                case _:
                    raise UnexpectedMessage(
                        f"the server sent {type(message).__name__} of round {round_id} after round {self._done}"
                    )

    def _deadline(self) -> Deadline:
        # A client waits for the slowest of the others, in starting up, training and evaluation; the server notices a
        # silent client much sooner, and a server that has died takes the job with it.
        return Deadline.after(SETUP_SECONDS + 2 * self._config.eval_every * self._config.deadline)

    def _align(self) -> Positions | None:
        if self._strategy.shared is None:
            return None
        names = self._graph.relations
        positions = twins.align_as_client(self._config, self._conversation, names, self._deadline())
        training = self._config.training
        width = self._strategy.row_width(training.model, training.dim)
        # A union that no message could carry is not a union: a false size must not make this client allocate it.
        if positions.union_size * (width + 1) * self._config.ring_bits // 8 > wire.MAX_FRAME_BYTES:
            raise PeerMisbehaved(f"the server announces a union of {positions.union_size} names, too many for one sum")
        return positions

    def _train(self, round_id: RoundId, message: TrainRound) -> None:
        """Line 9-13: local epochs, then the shared rows into the sum."""
        config = self._config
        chosen = participants(self._clients, config.client_fraction, config.min_participants, config.seed, round_id)
        if self._transport.party not in chosen:
            raise PeerMisbehaved(f"the server asks for round {round_id}, for which this client is not drawn")
        self._done = round_id
        self._take_rows(message.rows)
        with self._watch.measure("train"):
            self._last = self._trainer.train_round(round_id)
        if self._positions is None or self._strategy.shared is None:
            return
        size = self._positions.union_size
        rows = self._trainer.rows(self._strategy.shared)
        layout = row_layout(size, rows.shape[1], config.clip, len(self._clients), config.ring_bits)
        contribution = row_contribution(rows, self._positions.own, size)
        clipped, error = self._contribute(round_id, "rows", chosen, layout, contribution)
        self._losses.clipped += clipped
        self._losses.max_error = max(self._losses.max_error, error)

    def _take_rows(self, rows: Rows) -> None:
        """Put the means of this client's own rows into its model; an empty table means that it has them already."""
        if rows.size == 0 or self._positions is None or self._strategy.shared is None:
            return
        training = self._config.training
        width = self._strategy.row_width(training.model, training.dim)
        if rows.shape != (self._positions.union_size, width):
            raise PeerMisbehaved("the server's table has another shape than the union")
        self._trainer.set_rows(self._strategy.shared, rows[self._positions.own])

    def _contribute(
        self,
        round_id: RoundId,
        purpose: str,
        chosen: tuple[PartyId, ...],
        layout: SumLayout,
        contribution: Contribution,
    ) -> tuple[int, float]:
        report = self._sums.contribute(self._conversation, round_id, purpose, chosen, layout, contribution)
        self._watch.add("encode", report.encode_seconds)
        self._watch.add("mask", report.mask_seconds)
        return report.clipped, report.max_error

    def _evaluate(self, round_id: RoundId, message: Evaluate) -> None:
        self._done = round_id  # a client that was not drawn hears of the round only here
        self._take_rows(message.rows)
        self._contribute_metrics(round_id, "valid", self._rank("valid"))

    def _rank(self, part: Part) -> ClientMetrics:
        with self._watch.measure("evaluate"):
            tail = self._trainer.evaluate(part, "tail")
            both = tail + self._trainer.evaluate(part, "head")
        stats = self._last
        return ClientMetrics(tail, both, loss_sum=stats.loss * stats.triples, loss_triples=stats.triples)

    def _contribute_metrics(self, round_id: RoundId, purpose: str, metrics: ClientMetrics) -> None:
        layout = metric_layout(len(self._clients))
        self._contribute(round_id, purpose, self._clients, layout, metric_contribution(metrics))

    def _finish(self, round_id: RoundId) -> None:
        if self._best:
            self._trainer.load_parameters(self._best)
        metrics = self._rank("test")
        self._contribute_metrics(round_id, "test", metrics)
        checkpoint.save_arrays(self._folder / "model.safetensors", _numpy(self._trainer.parameters_state()), {})
        write_json(self._folder / "result.json", self._result(metrics))
        self._conversation.send(SERVER, Done(), round_id)

    def _result(self, metrics: ClientMetrics) -> dict[str, Any]:
        graph, traffic = self._graph, self._transport.traffic
        return {
            "client": self._transport.party,
            **metrics.tail.metrics(),
            "both_sides": metrics.both.metrics(),
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            "train_triples": len(graph.train),
            "valid_triples": len(graph.valid),
            "test_triples": len(graph.test),
            "clipped_values": self._losses.clipped,
            "max_fixed_point_error": self._losses.max_error,
            "seconds": self._seconds(),
            "late_messages": self._conversation.late_messages,
            "messages_sent": traffic.total("sent").messages,
        }

    def _seconds(self) -> dict[str, float]:
        watch = Stopwatch(self._watch.seconds)
        watch.add("send", self._transport.traffic.send_seconds)
        watch.add("wait", self._transport.traffic.wait_seconds)
        return watch.seconds

    def _save(self, round_id: RoundId) -> None:
        model = {f"model/{name}": value for name, value in self._trainer.state().items()}
        best = {f"best/{name}": value for name, value in self._best.items()}
        record = {
            "seconds": self._seconds(),
            "clipped": self._losses.clipped,
            "max_error": self._losses.max_error,
            "loss": [self._last.loss, self._last.triples, self._last.steps],
        }
        checkpoint.save_part(self._folder, round_id, _numpy(model | best), record)
        self._conversation.send(SERVER, Saved(), round_id)

    def _restore(self) -> None:
        arrays, record = checkpoint.load_part(self._folder, self._done)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        fits = self._trainer.parameters_state()
        if any(f"model/{name}" not in tensors or tensors[f"model/{name}"].shape != p.shape for name, p in fits.items()):
            raise UserError("the checkpoint does not fit this client: its data have changed")
        self._trainer.load_state(_below(tensors, "model/"))
        self._best = _below(tensors, "best/")
        self._watch = Stopwatch(record["seconds"])
        self._losses = Losses(record["clipped"], record["max_error"])
        self._last = TrainStats(*record["loss"])


def _numpy(tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray[Any, Any]]:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def _below(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


