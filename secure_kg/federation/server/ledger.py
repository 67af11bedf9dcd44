"""Ledger of a run: costs, dropouts and abandoned sums over all its sessions."""

import time
from typing import Any, Final

from protocols.foundation.identifiers import PartyId
from protocols.sums.interface import SumServer
from protocols.transport.base import Transport
from protocols.transport.traffic import Direction
from secure_kg.federation.plan.twins import Result
from secure_kg.federation.server.attendance import Attendance
from secure_kg.runs.stopwatch import Stopwatch

_DIRECTIONS: Final[tuple[Direction, ...]] = ("received", "sent")
_NOTHING: Final[dict[str, Any]] = {
    "elapsed": 0.0,
    "seconds": {},
    "cpu_seconds": {},
    "bytes_up": {},
    "bytes_down": {},
    "dropouts": [],
    "abandoned_sums": [],
    "setup": {"seconds": 0.0, "bytes_up": 0, "bytes_down": 0},
}


class Ledger:
    """The server's figures; those before a resumption are carried over."""

    def __init__(self, transport: Transport, clients: tuple[PartyId, ...], attendance: Attendance) -> None:
        self._transport, self._clients, self._attendance = transport, clients, attendance
        self._started = time.perf_counter()
        self._carried = _NOTHING
        self._abandoned: list[dict[str, Any]] = []
        self.abandoned_in_a_row = 0
        self.sums: list[SumServer[Result]] = []
        self._setup: dict[str, Any] = _NOTHING["setup"]

    def setup_is_over(self) -> None:
        """Rounds begin: what was spent until now is set-up, that of all sessions together."""
        earlier, traffic = self._carried["setup"], self._transport.traffic
        self._setup = {
            "seconds": earlier["seconds"] + time.perf_counter() - self._started,
            "bytes_up": earlier["bytes_up"] + traffic.total("received").bytes,
            "bytes_down": earlier["bytes_down"] + traffic.total("sent").bytes,
        }

    @property
    def setup(self) -> dict[str, Any]:
        """Seconds and bytes spent before the first round, from greeting to alignment."""
        return self._setup

    def abandon(self, round_id: int, purpose: str, reason: str) -> None:
        self._abandoned.append({"round": round_id, "purpose": purpose, "reason": reason})
        self.abandoned_in_a_row += 1

    @property
    def last_reason(self) -> str:
        """Why the last sum was given up."""
        return str(self._abandoned[-1]["reason"]) if self._abandoned else ""

    @property
    def elapsed(self) -> float:
        return float(self._carried["elapsed"]) + time.perf_counter() - self._started

    @property
    def dropouts(self) -> list[dict[str, Any]]:
        """Who fell silent, in which round and step, and in which round it came back, if it did."""
        return [*self._carried["dropouts"], *(dropout.record() for dropout in self._attendance.dropouts)]

    @property
    def abandoned_sums(self) -> list[dict[str, Any]]:
        """Sums that ended without a result: round, purpose, reason."""
        return [*self._carried["abandoned_sums"], *self._abandoned]

    @property
    def times(self) -> Stopwatch:
        """The server's seconds per phase."""
        watch = Stopwatch(self._carried["seconds"], self._carried["cpu_seconds"]).with_traffic(self._transport.traffic)
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
        earlier = self._carried["bytes_up" if direction == "received" else "bytes_down"]
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

    def evaluation(self, round_id: int, figures: dict[str, Any], clients: int) -> dict[str, Any]:
        """A line of `metrics.jsonl`: the figures of an evaluation, of how many clients, and the costs so far."""
        record = {"round": round_id, "seconds": round(self.elapsed, 3), **figures, "clients": clients}
        up, down = (sum(self.bytes(direction).values()) for direction in _DIRECTIONS)
        return {**record, "bytes_up": up, "bytes_down": down}

    def record(self) -> dict[str, Any]:
        """For a checkpoint."""
        times = self.times
        return {
            "elapsed": self.elapsed,
            "seconds": times.seconds,
            "cpu_seconds": times.cpu_seconds,
            "bytes_up": {str(party): size for party, size in self.bytes("received").items()},
            "bytes_down": {str(party): size for party, size in self.bytes("sent").items()},
            "dropouts": self.dropouts,
            "abandoned_sums": self.abandoned_sums,
            "setup": self.setup,
        }

    def restore(self, record: dict[str, Any], done: int) -> None:
        """Go on from a checkpoint of round `done`. Who is here now has come back."""
        for dropout in record["dropouts"]:
            if "returned" not in dropout and dropout["client"] in self._attendance.present:
                dropout["returned"] = done + 1
        # Checkpoints of earlier versions lack what was not measured then.
        self._carried = {name: record.get(name, nothing) for name, nothing in _NOTHING.items()}
