"""Ledger of a run: costs, dropouts and abandoned sums over all its sessions."""

import time
from typing import Any, ClassVar, Final

import msgspec

from protocols.foundation.identifiers import PartyId
from protocols.sums.interface import SumServer
from protocols.transport.base import Transport
from protocols.transport.traffic import Direction
from secure_kg.federation.plan.twins import Result
from secure_kg.federation.server.attendance import Attendance
from secure_kg.runs.records.client_result import Evaluation
from secure_kg.runs.records.events import AbandonedSum, Dropout, SetupCosts
from secure_kg.runs.records.record import Figures, Record
from secure_kg.runs.stopwatch import Stopwatch

_DIRECTIONS: Final[tuple[Direction, ...]] = ("received", "sent")


class Costs(Record, kw_only=True, frozen=True):
    """The ledger of all sessions so far, for a checkpoint. Earlier versions did not measure all of it."""

    kind: ClassVar[str] = "ledger of a run"

    elapsed: float = 0.0
    seconds: dict[str, float] = msgspec.field(default_factory=dict)
    cpu_seconds: dict[str, float] = msgspec.field(default_factory=dict)
    bytes_up: dict[str, int] = msgspec.field(default_factory=dict)
    """By client."""
    bytes_down: dict[str, int] = msgspec.field(default_factory=dict)
    dropouts: list[Dropout] = msgspec.field(default_factory=list)
    abandoned_sums: list[AbandonedSum] = msgspec.field(default_factory=list)
    setup: SetupCosts = SetupCosts()


class Ledger:
    """The server's figures; those before a resumption are carried over."""

    def __init__(self, transport: Transport, clients: tuple[PartyId, ...], attendance: Attendance) -> None:
        self._transport, self._clients, self._attendance = transport, clients, attendance
        self._started = time.perf_counter()
        self._carried = Costs()
        self._abandoned: list[AbandonedSum] = []
        self.abandoned_in_a_row = 0
        self.sums: list[SumServer[Result]] = []
        self._setup = SetupCosts()

    def setup_is_over(self) -> None:
        """Rounds begin: what was spent until now is set-up, that of all sessions together."""
        earlier, traffic = self._carried.setup, self._transport.traffic
        self._setup = SetupCosts(
            seconds=earlier.seconds + time.perf_counter() - self._started,
            bytes_up=earlier.bytes_up + traffic.total("received").bytes,
            bytes_down=earlier.bytes_down + traffic.total("sent").bytes,
        )

    @property
    def setup(self) -> SetupCosts:
        """Seconds and bytes spent before the first round, from greeting to alignment."""
        return self._setup

    def abandon(self, round_id: int, purpose: str, reason: str) -> None:
        self._abandoned.append(AbandonedSum(round_id, purpose, reason))
        self.abandoned_in_a_row += 1

    @property
    def last_reason(self) -> str:
        """Why the last sum was abandoned."""
        return self._abandoned[-1].reason if self._abandoned else ""

    @property
    def elapsed(self) -> float:
        return self._carried.elapsed + time.perf_counter() - self._started

    @property
    def dropouts(self) -> list[Dropout]:
        return [*self._carried.dropouts, *self._attendance.dropouts]

    @property
    def abandoned_sums(self) -> list[AbandonedSum]:
        return [*self._carried.abandoned_sums, *self._abandoned]

    @property
    def times(self) -> Stopwatch:
        """The server's seconds per phase."""
        watch = Stopwatch(self._carried.seconds, self._carried.cpu_seconds).with_traffic(self._transport.traffic)
        for spent in {id(sums.unmasking): sums.unmasking for sums in self.sums}.values():  # they may share one clock
            watch.add("unmask", spent)
        return watch

    def figures(self) -> dict[str, dict[str, float]]:
        """Totals of this session, for those who watch them grow (`pacing`): times, and traffic per phase and client."""
        traffic: dict[str, dict[str, float]] = {}
        for key, count in self._transport.traffic.counts.items():
            way = "up" if key.direction == "received" else "down"
            for kind, name, size in (
                (f"bytes_{way}", key.phase, count.bytes),
                (f"messages_{way}", key.phase, count.messages),
                (f"bytes_{way}_per_client", str(key.peer), count.bytes),
            ):
                totals = traffic.setdefault(kind, {})
                totals[name] = totals.get(name, 0) + size
        times, in_vain = self.times, self._attendance.seconds_in_vain
        dropouts = float(len(self._attendance.dropouts))
        waiting = {"seconds": in_vain, "dropouts": dropouts, "abandoned": float(len(self._abandoned))}
        return {"seconds": times.seconds, "cpu_seconds": times.cpu_seconds, "in_vain": waiting, **traffic}

    def bytes(self, direction: Direction) -> dict[int, int]:
        """Bytes per client."""
        earlier = self._carried.bytes_up if direction == "received" else self._carried.bytes_down
        traffic = self._transport.traffic
        return {
            int(party): earlier.get(str(party), 0) + traffic.total(direction, peer=party).bytes
            for party in self._clients
        }

    def costs(self) -> dict[str, Any]:
        """Dropouts, abandoned sums, times and bytes of all sessions, by the names of `ServerOutcome`."""
        return {
            "dropouts": self.dropouts,
            "abandoned_sums": self.abandoned_sums,
            "elapsed": self.elapsed,
            "setup": self.setup,
            "seconds": self.times.seconds,
            "cpu_seconds": self.times.cpu_seconds,
            "bytes_up": self.bytes("received"),
            "bytes_down": self.bytes("sent"),
        }

    def evaluation(self, round_id: int, figures: Figures, clients: int) -> Evaluation:
        """A line of `metrics.jsonl`: the figures of an evaluation, of how many clients, and the costs so far."""
        up, down = (sum(self.bytes(direction).values()) for direction in _DIRECTIONS)
        return Evaluation(
            round=round_id,
            seconds=round(self.elapsed, 3),
            figures=figures,
            clients=clients,
            bytes_up=up,
            bytes_down=down,
        )

    def record(self) -> Figures:
        """For a checkpoint."""
        times = self.times
        so_far = Costs(
            elapsed=self.elapsed,
            seconds=times.seconds,
            cpu_seconds=times.cpu_seconds,
            bytes_up={str(party): size for party, size in self.bytes("received").items()},
            bytes_down={str(party): size for party, size in self.bytes("sent").items()},
            dropouts=self.dropouts,
            abandoned_sums=self.abandoned_sums,
            setup=self.setup,
        )
        return so_far.to_json()

    def restore(self, record: Figures, done: int) -> None:
        """Go on from a checkpoint of round `done`. Clients that are present now have come back."""
        carried, present = Costs.from_json(record, f"the checkpoint of round {done}"), self._attendance.present
        dropouts = [
            one.back(done + 1) if one.returned is None and one.client in present else one for one in carried.dropouts
        ]
        self._carried = msgspec.structs.replace(carried, dropouts=dropouts)
